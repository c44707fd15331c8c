"""Apply sparse methods to the blocks of a model, verify them on its own inputs, and restore the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.activations import constants
from sparsact.inference.batches import Batch, call, evaluating
from sparsact.inference.block import Block
from sparsact.inference.certified_screen import NARROW, Screen
from sparsact.inference.expression import Readers, hooked, hooked_globally
from sparsact.inference.fast_paths import bar_fast_paths, free_fast_paths
from sparsact.inference.gate_memo import GateMemo
from sparsact.inference.plan import BlockPlan, refused
from sparsact.inference.sparse_linear import (
    DownState,
    GatedUp,
    GatedUpState,
    SelectorFactory,
    SparseDown,
    SparseLinear,
    SparseUp,
    UnitSelector,
    UpState,
)
from sparsact.inference.weight_cache import WeightCache, WeightVersion
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

    def apply(self, model: nn.Module) -> None:
        """Let the layers of the model take on their classes."""
        for name, (kind, state) in self.layers.items():
            layer: Any = model.get_submodule(name)
            layer.__class__ = kind
            layer._sparse = state

    def take_off(self, model: nn.Module) -> None:
        """Let the layers be ``nn.Linear`` again."""
        for name in self.layers:
            restore(model.get_submodule(name))

    def limit(self, max_rows: int, max_share: float) -> None:
        """Set the most rows, and the largest share of active units, for which the block is computed sparsely."""
        for _, state in self.layers.values():
            state.max_rows, state.max_share = max_rows, max_share

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """The short way is taken always."""
        limits = [(state, state.max_rows, state.max_share) for _, state in self.layers.values()]
        self.limit(sys.maxsize, 1.0)
        for _, state in self.layers.values():
            if isinstance(state, UpState):
                state.calls_to_skip = 0
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
    model: nn.Module,
    block: Block,
    limits: Applicability,
    selector: SelectorFactory | None = None,
    method: str = "exact",
) -> Replacement:
    """The block computed exactly where units are on; ``selector`` spares also their pre-activations elsewhere."""
    numbers = limits.max_rows, limits.max_share
    setting = Replacement(method, {block.down: (SparseDown, DownState(*numbers))})
    read = constants(model, block.activation)
    if read is None or not private(model, block):  # pre-activations are left whole
        return setting
    readers = Readers(model, block.readers)
    if block.gate is not None:
        assert block.activation.zero_below is not None  # noqa: S101 # the caller has seen to it
        gate = block.linears(model)["gate"]
        memo = GateMemo(block.activation.zero_below.to(gate.weight.dtype))
        beside = GatedUpState(*numbers, gate, memo, read, readers)  # type: ignore[arg-type] # it will be one
        switch = UpState(*numbers, selector, read, readers, memo)
        setting.layers[block.gate] = (SparseUp, switch)
        setting.layers[block.up] = (GatedUp, beside)
    elif selector is not None:
        setting.layers[block.up] = (SparseUp, UpState(*numbers, selector, read, readers))
    return setting


def certified(model: nn.Module, block: Block, limits: Applicability, sample: Tensor) -> Replacement:
    """The block computed exactly for the units that the screen cannot prove to be off."""
    make = partial(_screen, threshold=block.activation.zero_below, sample=sample[:SAMPLE].clone())
    return exact(model, block, limits, WeightCache(make), "certified")


def approximate(model: nn.Module, block: Block, limits: Applicability, predictor: UnitSelector) -> Replacement:
    """The block computed for the units that a predictor names."""
    layer = block.linears(model)["gate" if block.gate else "up"]
    watch = WeightVersion((layer.weight, layer.bias))
    setting = exact(model, block, limits, Fixed(predictor, watch), "predictor")
    setting.layers[block.switch][1].watch = watch
    return setting


def kept(block: Block, limits: Applicability, keep: Callable[[Tensor], Tensor], method: str) -> Replacement:
    """The block with small activations set to zero before its second layer."""
    return Replacement(method, {block.down: (SparseDown, DownState(limits.max_rows, limits.max_share, keep))})


class Fixed:
    """A selector that was calibrated for the weights that a layer has now, and for no others.

    A copy, or one read from a file, takes the weights that it finds at its first use.
    """

    def __init__(self, selector: UnitSelector, calibrated: WeightVersion | None = None) -> None:
        self._chooser = selector
        self._calibrated = calibrated

    def get(self, watch: WeightVersion) -> UnitSelector:
        """The selector.

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
class CertifiedScreening:
    """Takes the units that a screen cannot prove to be off."""

    screen: Screen

    def active(self, x: Tensor) -> Tensor:
        """Its survivors."""
        return self.screen.mask(x)


def _screen(
    weight: Tensor, bias: Tensor | None, threshold: Tensor | None, sample: Tensor | None
) -> CertifiedScreening | None:
    """A screen, where the weights are of a dtype and a width that its proof covers."""
    covered = weight.dtype in NARROW and weight.shape[1] <= MAX_INPUTS
    return CertifiedScreening(Screen.of(weight, bias, threshold, sample)) if covered else None


Chosen = tuple[Replacement | None, BlockPlan]

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.03}  # of the norm, by dtype


@contextmanager
def applied(model: nn.Module, settings: Sequence[Replacement]) -> Iterator[None]:
    """The model under these settings for a while; it is dense afterwards."""
    try:
        for setting in settings:
            setting.apply(model)
        bar_fast_paths(model)
        yield
    finally:
        for setting in settings:
            setting.take_off(model)
        free_fast_paths(model)


def apply(model: nn.Module, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Put the settings on; a block that shares a layer with one before it, which took the layer, stays dense."""
    taken: set[str] = set()
    applied_blocks: list[Chosen] = []
    for setting, choice in chosen:
        if setting is not None and taken & set(setting.layers):
            applied_blocks.append((None, refused(choice, "shares a layer with the block before it")))
            continue
        if setting is not None:
            taken |= set(setting.layers)
            setting.apply(model)
        applied_blocks.append((setting, choice))
    bar_fast_paths(model)
    return applied_blocks


def verified(model: nn.Module, blocks: Sequence[Block], applied_blocks: Sequence[Chosen], batch: Batch) -> list[Chosen]:
    """Take off the settings of blocks that change what the model returns, though they should be exact.

    That happens if something else than its block reads the pre-activations of a layer: a unit that is proved off has a
    0 there. All blocks are tried together, and one by one only if they differ.
    """
    settings = [setting for setting, _ in applied_blocks if setting is not None]
    with ExitStack() as stack:
        for setting in settings:
            stack.enter_context(setting.unlimited())
        outputs(model, blocks, batch)  # the layers of a gated block see in which order they are called
        sparse = outputs(model, blocks, batch)
        for setting in settings:
            setting.take_off(model)
        free_fast_paths(model)
        dense = outputs(model, blocks, batch)
        if alike(dense, sparse):
            return apply(model, applied_blocks)
        found: list[Chosen] = []
        for alone, choice in applied_blocks:
            if alone is None or _keeps(model, blocks, alone, batch, dense):
                found.append((alone, choice))
            else:
                found.append((None, refused(choice, "the model changed: pre-activations are read elsewhere")))
    return apply(model, found)


def _keeps(
    model: nn.Module, blocks: Sequence[Block], setting: Replacement, batch: Batch, dense: Sequence[Tensor]
) -> bool:
    """Whether the model returns the same under this setting alone."""
    with applied(model, [setting]):
        return alike(dense, outputs(model, blocks, batch))


def with_shares(
    model: nn.Module, blocks: Sequence[Block], applied_blocks: Sequence[Chosen], shown: Sequence[Batch]
) -> tuple[BlockPlan, ...]:
    """The choices, each with the share of calls in which its block is computed sparsely as the model runs on batches.

    The model runs as in service: without hooks, and by torch's fused paths where it takes them.
    """
    ways = [
        None if setting is None else setting.layers[block.down][1]
        for block, (setting, _) in zip(blocks, applied_blocks, strict=True)
    ]
    for way in filter(None, ways):
        way.calls = way.sparse_calls = 0
    if any(ways):
        with evaluating(model):
            for batch in shown:
                call(model, batch)
    return tuple(_with_share(choice, way) for (_, choice), way in zip(applied_blocks, ways, strict=True))


def _with_share(choice: BlockPlan, way: DownState | None) -> BlockPlan:
    if way is None:
        return choice
    if not way.calls:
        return replace(choice, reason=f"{choice.reason}; no call reached its layers")
    if not way.sparse_calls:
        return replace(choice, reason=f"{choice.reason}; no call shown was computed sparsely")
    return replace(choice, share=way.sparse_calls / way.calls)


def outputs(model: nn.Module, blocks: Sequence[Block], batch: Batch) -> list[Tensor]:
    """Copies of what the second layers of the blocks return, call by call, and of all that the model returns."""
    seen: list[Tensor] = []
    hooks = [
        model.get_submodule(name).register_forward_hook(lambda module, args, output: seen.append(output.clone()))
        for name in dict.fromkeys(block.down for block in blocks)
    ]
    try:
        with evaluating(model):
            result = call(model, batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen + [leaf.clone() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


def alike(dense: Sequence[Tensor], sparse: Sequence[Tensor]) -> bool:
    """Whether the tensors are the same up to the rounding of their dtype, and not numbers at the same places."""
    return len(dense) == len(sparse) and all(map(_alike, dense, sparse))


def _alike(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype not in TOLERANCE:
        return torch.equal(one, other)
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return False
    difference = (one - other)[finite].double().norm()
    return bool(difference <= TOLERANCE[one.dtype] * one[finite].double().norm())
