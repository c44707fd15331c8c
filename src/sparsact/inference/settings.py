"""Which class and state each linear layer of a block takes on under a method; putting them on and taking them off."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.inference.constants import constants
from sparsact.inference.exchange import Exchange
from sparsact.inference.fast_paths import bar_fast_paths, free_fast_paths
from sparsact.inference.held import Held, Watch
from sparsact.inference.linears import GatedUp, SparseDown, SparseLinear, SwitchLinear
from sparsact.inference.readers import Readers, hooked, hooked_globally
from sparsact.inference.screen import NARROW, Screen
from sparsact.inference.ways import Beside, Chooser, ChooserOf, Down, UpState
from sparsact.kernels.screen import MAX_INPUTS

SAMPLE = 256  # inputs that a screen is fitted to


@dataclass
class Applicability:
    """From which rows of an input, and from which share of active units on, a layer computes densely."""

    max_rows: int = 16
    max_share: float = 0.5


@dataclass
class Replacement:
    """A block under a method: for each of its linear layers, by name, the class and the state that it takes on."""

    method: str
    layers: dict[str, tuple[type[SparseLinear], Any]] = field(default_factory=dict)

    def put_on(self, model: nn.Module) -> None:
        """Let the layers of the model take on their classes."""
        for name, (kind, state) in self.layers.items():
            layer: Any = model.get_submodule(name)
            layer.__class__ = kind
            layer._sparse = state
        bar_fast_paths(model)

    def take_off(self, model: nn.Module) -> None:
        """Let the layers be ``nn.Linear`` again."""
        for name in self.layers:
            restore(model.get_submodule(name))
        free_fast_paths(model)

    def limit(self, max_rows: int, max_share: float) -> None:
        """Set the most rows, and the largest share of active units, for which the short way is taken."""
        for _, state in self.layers.values():
            state.max_rows, state.max_share = max_rows, max_share

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """The short way is taken always."""
        limits = [(state, state.max_rows, state.max_share) for _, state in self.layers.values()]
        self.limit(sys.maxsize, 1.0)
        for _, state in self.layers.values():
            if isinstance(state, UpState):
                state.pause = 0
        try:
            yield
        finally:
            for state, max_rows, max_share in limits:
                state.max_rows, state.max_share = max_rows, max_share


def restore(module: nn.Module) -> None:
    """Let a layer be ``nn.Linear`` again, if it is one of ours."""
    if isinstance(module, SparseLinear):
        layer: Any = module
        del layer._sparse
        kind = type(layer)
        if "parametrizations" in layer._modules:  # torch has made a class of its own from ours
            kind.__bases__ = (nn.Linear,)
        else:
            layer.__class__ = nn.Linear


def private(model: nn.Module, block: Block) -> bool:
    """Whether nothing reads pre-activations of the block's units that are off: no other operation, and no hook."""
    before = [layer for role, layer in block.linears(model).items() if role != "down"]
    seen = hooked_globally() or Readers(model, block.readers).hooked or any(map(hooked, before))
    return block.private and not seen


def exact(
    model: nn.Module, block: Block, limits: Applicability, chooser: ChooserOf | None = None, method: str = "exact"
) -> Replacement:
    """The block computed exactly where units are on; ``chooser`` spares also their pre-activations elsewhere."""
    numbers = limits.max_rows, limits.max_share
    setting = Replacement(method, {block.down: (SparseDown, Down(*numbers))})
    read = constants(model, block.activation)
    if read is None or not private(model, block):  # pre-activations are left whole
        return setting
    readers = Readers(model, block.readers)
    if block.gate is not None:
        assert block.activation.zero_below is not None  # noqa: S101 # the caller has seen to it
        gate = block.linears(model)["gate"]
        exchange = Exchange(block.activation.zero_below.to(gate.weight.dtype))
        beside = Beside(*numbers, gate, exchange, read, readers)  # type: ignore[arg-type] # it will be one
        switch = UpState(*numbers, chooser, read, readers, exchange)
        setting.layers[block.gate] = (SwitchLinear, switch)
        setting.layers[block.up] = (GatedUp, beside)
    elif chooser is not None:
        setting.layers[block.up] = (SwitchLinear, UpState(*numbers, chooser, read, readers))
    return setting


def certified(model: nn.Module, block: Block, limits: Applicability, sample: Tensor) -> Replacement:
    """The block computed exactly for the units that the screen cannot prove to be off."""
    make = partial(_screen, threshold=block.activation.zero_below, sample=sample[:SAMPLE].clone())
    return exact(model, block, limits, Held(make), "certified")


def approximate(model: nn.Module, block: Block, limits: Applicability, predictor: Chooser) -> Replacement:
    """The block computed for the units that a predictor names."""
    layer = block.linears(model)["gate" if block.gate else "up"]
    watch = Watch((layer.weight, layer.bias))
    setting = exact(model, block, limits, Fixed(predictor, watch), "predictor")
    setting.layers[block.switch][1].watch = watch
    return setting


def kept(block: Block, limits: Applicability, keep: Callable[[Tensor], Tensor], method: str) -> Replacement:
    """The block with small activations set to zero before its second layer."""
    return Replacement(method, {block.down: (SparseDown, Down(limits.max_rows, limits.max_share, keep))})


class Fixed:
    """A chooser that was calibrated for the weights that a layer has now, and for no others.

    A copy, or one read from a file, takes the weights that it finds at its first use.
    """

    def __init__(self, chooser: Chooser, calibrated: Watch | None = None) -> None:
        self._chooser = chooser
        self._calibrated = calibrated

    def of(self, watch: Watch) -> Chooser:
        """The chooser.

        Raises
        ------
        RuntimeError
            If the weights have changed.
        """
        if self._calibrated is None:
            self._calibrated = watch
        if self._calibrated is not watch:
            raise RuntimeError(
                "the weights of a layer have changed since its predictor was calibrated for them: "
                "call sparsact.sparsify again, or densify."
            )
        return self._chooser

    def __reduce__(self) -> tuple[Any, ...]:
        return Fixed, (self._chooser,)


@dataclass(frozen=True)
class Proving:
    """Takes the units that a screen cannot prove to be off."""

    screen: Screen

    def active(self, x: Tensor) -> Tensor:
        """Its survivors."""
        return self.screen.mask(x)


def _screen(weight: Tensor, bias: Tensor | None, threshold: Tensor | None, sample: Tensor | None) -> Proving | None:
    """A screen, where the weights are of a dtype and a width that its proof covers."""
    covered = weight.dtype in NARROW and weight.shape[1] <= MAX_INPUTS
    return Proving(Screen.of(weight, bias, threshold, sample)) if covered else None
