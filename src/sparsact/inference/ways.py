"""How the layers of a block are computed: what each holds beside its parameters, and the limits of its short way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, ClassVar, Protocol

from torch import Tensor, nn

from sparsact.inference.constants import Constants
from sparsact.inference.exchange import Exchange
from sparsact.inference.held import Held, Watch
from sparsact.inference.products import ActiveProduct, RowProduct
from sparsact.inference.readers import Readers

if TYPE_CHECKING:
    from sparsact.inference.linears import SwitchLinear


_LOCK = Lock()


class Chooser(Protocol):
    """Names the units that are worth computing."""

    def active(self, x: Tensor) -> Tensor:
        """Of inputs (m, d), a mask (m, s) of one byte each: 0 for units that are left out."""


class ChooserOf(Protocol):
    """Finds the chooser for a layer's weights; None if there is none for weights of their kind."""

    def of(self, watch: Watch) -> Chooser | None: ...  # noqa: D102 # see above


@dataclass
class Way:
    """How a layer is computed.

    Attributes
    ----------
    max_rows : int
        Most rows of an input for which the dense product is not taken.
    max_share : float
        Largest share of units, active for any of the rows, for which the dense product is not taken.
    watch : Watch or None
        The weights that copies were made of.
    doubts : int
        How often something was seen after which these may have changed without torch's counting it.
    """

    max_rows: int
    max_share: float
    watch: Watch | None = field(default=None, kw_only=True)
    doubts: int = field(default=0, kw_only=True)

    def watched(self, layer: nn.Linear) -> Watch:
        """The weight and the bias of a layer as they are now: the same object as long as they are what they were."""
        parameters = layer._parameters  # much quicker than the attributes
        tensors = parameters["weight"], parameters["bias"]
        watch = self.watch
        if watch is None or not watch.still(tensors, self.doubts):
            with _LOCK:  # threads that come at the same time are given one and the same
                if self.watch is watch:
                    self.watch = Watch(tensors, self.doubts)
                watch = self.watch
        return watch  # type: ignore[return-value] # it is never set to None again


@dataclass
class Down(Way):
    """How the second layer of a block reads its weight.

    Attributes
    ----------
    keep : callable or None
        Makes small activations zero first, where approximation was asked for.
    calls, sparse_calls : int
        Calls of the layer, and those of them that read active units only.
    """

    keep: Callable[[Tensor], Tensor] | None = None
    product: Held[RowProduct] = field(default_factory=lambda: Held(RowProduct))
    calls: int = 0
    sparse_calls: int = 0


@dataclass
class UpState(Way):
    """How the layer whose pre-activations switch units on, up or gate, is computed.

    Attributes
    ----------
    chooser : ChooserOf or None
        Finds the units that may be on; None computes all.
    constants : Constants
        What the activation reads beside pre-activations: with other numbers other units would be on.
    readers : Readers
        Modules that are given pre-activations.
    exchange : Exchange or None
        Of a gated block.
    """

    chooser: ChooserOf | None
    constants: Constants
    readers: Readers
    exchange: Exchange | None = None
    product: Held[ActiveProduct] = field(default_factory=lambda: Held(ActiveProduct))
    pause: int = 0  # calls to come that do not choose, because too many units were on
    penalty: int = 1

    MOST: ClassVar[int] = 64

    def gave_up(self) -> None:
        """Choosing did not pay: leave it out for the next calls, twice as many each time."""
        self.pause, self.penalty = self.penalty, min(2 * self.penalty, self.MOST)


@dataclass
class Beside(Way):
    """How the up-projection of a gated block is computed: where the gate is on."""

    gate: SwitchLinear
    exchange: Exchange
    constants: Constants
    readers: Readers
    product: Held[ActiveProduct] = field(default_factory=lambda: Held(ActiveProduct))
