"""How the layers of a block are computed: what each holds beside its parameters, and the limits of its short way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from torch import Tensor, nn

from sparsact.inference.constants import Constants
from sparsact.inference.exchange import Exchange
from sparsact.inference.held import Held
from sparsact.inference.products import ActiveProduct, RowProduct
from sparsact.inference.readers import Readers

if TYPE_CHECKING:
    from sparsact.inference.linears import SwitchLinear


class Chooser(Protocol):
    """Names the units that are worth computing."""

    def active(self, x: Tensor) -> Tensor:
        """Of inputs (m, d), a mask (m, s) of one byte each: 0 for units that are left out."""


class ChooserOf(Protocol):
    """Finds the chooser for a layer's weights; None if there is none for weights of their kind."""

    def of(self, linear: nn.Linear) -> Chooser | None: ...  # noqa: D102 # see above


@dataclass
class Down:
    """How the second layer of a block reads its weight.

    Attributes
    ----------
    max_rows : int
        Rows of an input from which on the dense product is taken.
    max_share : float
        Share of units, active for any of the rows, from which on the dense product is taken.
    keep : callable or None
        Makes small activations zero first, where approximation was asked for.
    doubts : int
        How often something was seen after which the weights may have changed without torch's counting it.
    calls, sparse_calls : int
        Calls of the layer, and those of them that read active units only.
    """

    max_rows: int
    max_share: float
    keep: Callable[[Tensor], Tensor] | None = None
    product: Held[RowProduct] = field(default_factory=lambda: Held(RowProduct))
    doubts: int = 0
    calls: int = 0
    sparse_calls: int = 0


@dataclass
class Switch:
    """How the layer whose pre-activations switch units on, up or gate, is computed.

    Attributes
    ----------
    chooser : ChooserOf or None
        Finds the units that may be on; None computes all.
    max_rows, max_share
        As of :class:`Down`.
    constants : Constants
        What the activation reads beside pre-activations: with other numbers other units would be on.
    readers : Readers
        Modules that are given pre-activations.
    exchange : Exchange or None
        Of a gated block.
    """

    chooser: ChooserOf | None
    max_rows: int
    max_share: float
    constants: Constants
    readers: Readers
    exchange: Exchange | None = None
    product: Held[ActiveProduct] = field(default_factory=lambda: Held(ActiveProduct))
    pause: int = 0  # calls to come that do not choose, because too many units were on
    penalty: int = 1
    doubts: int = 0

    MOST: ClassVar[int] = 64

    def gave_up(self) -> None:
        """Choosing did not pay: leave it out for the next calls, twice as many each time."""
        self.pause, self.penalty = self.penalty, min(2 * self.penalty, self.MOST)


@dataclass
class Beside:
    """How the up-projection of a gated block is computed: where the gate is on."""

    gate: SwitchLinear
    exchange: Exchange
    constants: Constants
    readers: Readers
    max_rows: int
    max_share: float
    product: Held[ActiveProduct] = field(default_factory=lambda: Held(ActiveProduct))
    doubts: int = 0
