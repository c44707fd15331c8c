"""Replace the linear layers of blocks by sparse ones, verify the result on the model's own inputs, and restore them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.activation_function import activation_constants
from sparsact.inference.batches import Batch, call, evaluating, observed
from sparsact.inference.block import Block
from sparsact.inference.certified_screen import NARROW, Screen
from sparsact.inference.fast_paths import bar_fast_paths, free_fast_paths
from sparsact.inference.fused_linear import FusedGateUp, FusedState
from sparsact.inference.gate_memo import GateMemo
from sparsact.inference.layer_state import (
    DownState,
    GatedUpState,
    Readers,
    Screens,
    UpState,
    has_global_hooks,
    has_hooks,
)
from sparsact.inference.linear_layers import WeightRows, conv1d
from sparsact.inference.plan import BlockPlan, refused
from sparsact.inference.products import device_type
from sparsact.inference.sparse_linear import GatedUp, SparseDown, SparseLinear, SparseUp
from sparsact.inference.weight_cache import WeightCache
from sparsact.kernels.screen import MAX_INPUTS

SAMPLE: Final = 256  # inputs that a screen is fitted to


@dataclass
class Applicability:
    """Most rows of an input, and largest mean share of active units, for which a layer is computed sparsely."""

    max_rows: int = 16
    max_share: float = 0.4


@dataclass
class Replacement:
    """A block under a method: for each of its linear layers, by name, the class and the state that it takes on."""

    method: str
    layers: dict[str, tuple[type[SparseLinear], Any]] = field(default_factory=dict)

    def apply(self, model: nn.Module) -> None:
        """Turn the model's layers into sparse ones."""
        for name, (kind, state) in self.layers.items():
            layer: Any = model.get_submodule(name)
            become(layer, kind)
            layer.set_sparse(state)

    def remove(self, model: nn.Module) -> None:
        """Turn the layers into ``nn.Linear`` again."""
        for name in self.layers:
            restore(model.get_submodule(name))

    def set_limits(self, max_rows: int, max_share: float, max_selected: int) -> None:
        """Set for how many rows, and for which share of active units, the block is computed sparsely.

        Inputs are screened before pre-activations are computed for up to ``max_selected`` rows.
        """
        for _, state in self.layers.values():
            state.limits = {"max_rows": max_rows} | (
                {"max_selected": max_selected} if isinstance(state, UpState) else {"max_share": max_share}
            )

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Compute the block sparsely for any number of rows and of active units."""
        limits = [(state, state.limits) for _, state in self.layers.values()]
        for state, before in limits:
            state.limits = dict.fromkeys(before, sys.maxsize) | {"max_share": 1.0}
            if isinstance(state, UpState):
                state.calls_to_skip = 0
        try:
            yield
        finally:
            for state, before in limits:
                state.limits = before


def become(layer: Any, kind: type[SparseLinear]) -> None:
    """Give a linear layer this class, or what stands for it where the layer is a ``Conv1D``."""
    other = conv1d()
    if other is not None and isinstance(layer, other):
        from sparsact.inference.conv1d import CLASSES  # it needs transformers, which such a layer has loaded

        kind = CLASSES[kind]
    layer.__class__ = kind


def restore(module: nn.Module) -> None:
    """Turn a sparse layer into a dense one again; leave any other module as it is."""
    if isinstance(module, SparseLinear):
        layer: Any = module
        layer.restore_parameters()
        del layer._sparse
        kind = type(layer)
        if "parametrizations" in layer._modules:  # torch has derived a class of its own from ours
            kind.__bases__ = (layer.dense_class,)
        else:
            layer.__class__ = layer.dense_class


def hides_pre_activations(model: nn.Module, block: Block) -> bool:
    """Whether nothing reads pre-activations of the block's units that are off: no other operation, and no hook."""
    before = [layer for role, layer in block.linears(model).items() if role != "down"]
    seen = has_global_hooks() or Readers(model, block.readers).hooked or any(map(has_hooks, before))
    return block.private and not seen


def exact_replacement(
    model: nn.Module,
    block: Block,
    limits: Applicability,
    screens: Screens | None = None,
    device: str | None = None,
) -> Replacement:
    """The block computed exactly at the units that are on; pre-activations only where ``screens`` do not prove it off.

    With the products of that type of device: by default the one on which the weights are or, with screens, the CPU.
    """
    numbers = limits.max_rows, limits.max_share
    down = block.linears(model)["down"]
    on: dict[str, Any] = {"device": device or ("cpu" if screens is not None else device_type(down.weight))}
    method = "exact" if screens is None else "certified"
    replacement = Replacement(method, {block.down: (SparseDown, DownState(*numbers, **on))})
    constants, thresholds = activation_constants(model, block.activation), block.activation.zero_below
    if constants is None or not hides_pre_activations(model, block):  # all pre-activations are computed
        return replacement
    switching = filter(None, (block.up, block.gate))  # another module in their place, such as LoRA's, may add to them
    readers = Readers(model, (*block.readers, *switching))
    if block.up_rows is not None and block.gate_rows is not None and thresholds is not None:
        parts: dict[str, Any] = {"gate": block.gate_rows, "up": block.up_rows, "thresholds": thresholds, **on}
        replacement.layers[block.up] = (FusedGateUp, FusedState(*numbers, screens, constants, readers, **parts))
        return replacement
    if block.gate is not None and thresholds is not None:
        gate = block.linears(model)["gate"]
        memo = GateMemo(thresholds.to(gate.weight.dtype))
        replacement.layers[block.gate] = (SparseUp, UpState(*numbers, screens, constants, readers, memo, **on))
        state = GatedUpState(*numbers, gate, memo, constants, readers, **on)
        replacement.layers[block.up] = (GatedUp, state)
    elif screens is not None:
        replacement.layers[block.up] = (SparseUp, UpState(*numbers, screens, constants, readers))
    return replacement


def certified_replacement(model: nn.Module, block: Block, limits: Applicability, sample: Tensor) -> Replacement:
    """The block computed exactly at the units that a screen cannot prove to be off."""
    make = partial(_screen, threshold=block.activation.zero_below, sample=sample[:SAMPLE].clone())
    screens: Screens = WeightCache((block.gate_rows or WeightRows()).make(make))
    return exact_replacement(model, block, limits, screens)


def masked_replacement(
    block: Block, limits: Applicability, mask_small: Callable[[Tensor], Tensor], method: str
) -> Replacement:
    """The block with small activations set to zero before its second layer."""
    return Replacement(method, {block.down: (SparseDown, DownState(limits.max_rows, limits.max_share, mask_small))})


def _screen(weight: Tensor, bias: Tensor | None, threshold: Tensor | None, sample: Tensor | None) -> Screen | None:
    """A screen, if its proof covers the dtype and the width of the weights."""
    covered = weight.dtype in NARROW and weight.shape[1] <= MAX_INPUTS
    seen = None if sample is None or not len(sample) else sample  # none after a plan was read from a file
    return Screen.of(weight, bias, threshold, seen) if covered else None


PlannedBlock = tuple[Replacement | None, BlockPlan]

# Of the norm, by dtype.
TOLERANCE: Final = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.03, torch.float16: 4e-3}


@contextmanager
def applied(model: nn.Module, replacements: Sequence[Replacement]) -> Iterator[None]:
    """The model with these replacements within the context, and dense afterwards."""
    try:
        for replacement in replacements:
            replacement.apply(model)
        bar_fast_paths(model)
        yield
    finally:
        for replacement in replacements:
            replacement.remove(model)
        free_fast_paths(model)


def apply(model: nn.Module, planned: Sequence[PlannedBlock]) -> list[PlannedBlock]:
    """Apply the replacements; a block that shares a layer with one before it stays dense."""
    taken: set[str] = set()
    found: list[PlannedBlock] = []
    for replacement, plan in planned:
        if replacement is not None and taken & set(replacement.layers):
            found.append((None, refused(plan, "shares a layer with the block before it")))
            continue
        if replacement is not None:
            taken |= set(replacement.layers)
            replacement.apply(model)
        found.append((replacement, plan))
    bar_fast_paths(model)
    return found


def verified(
    model: nn.Module, blocks: Sequence[Block], planned: Sequence[PlannedBlock], batch: Batch
) -> list[PlannedBlock]:
    """Remove replacements that change what the model returns, though they should be exact.

    That happens if something besides its block reads the pre-activations of a layer: those of a unit that is proved off
    are 0. All blocks are tried together, and one by one only if the outputs differ.
    """
    replacements = [replacement for replacement, _ in planned if replacement is not None]
    with ExitStack() as stack:
        for replacement in replacements:
            stack.enter_context(replacement.unlimited())
        outputs(model, blocks, batch)  # the layers of a gated block learn in which order they are called
        sparse = outputs(model, blocks, batch)
        for replacement in replacements:
            replacement.remove(model)
        free_fast_paths(model)
        dense = outputs(model, blocks, batch)
        if are_close(dense, sparse):
            return apply(model, planned)
        found: list[PlannedBlock] = []
        for alone, plan in planned:
            if alone is not None:
                with applied(model, [alone]):
                    same = are_close(dense, outputs(model, blocks, batch))
                if not same:
                    alone, plan = None, refused(plan, "the model changed: pre-activations are read elsewhere")
            found.append((alone, plan))
    return apply(model, found)


def with_sparse_shares(
    model: nn.Module, downs: Sequence[str], planned: Sequence[PlannedBlock], shown: Sequence[Batch]
) -> tuple[BlockPlan, ...]:
    """The plans with the share of calls in which their ``down`` is computed sparsely, as in service: without hooks."""
    states: list[DownState | None] = [
        None if replacement is None else replacement.layers[down][1]
        for down, (replacement, _) in zip(downs, planned, strict=True)
    ]
    for state in filter(None, states):
        state.calls = state.sparse_calls = 0
    if any(states):
        with evaluating(model):
            for batch in shown:
                call(model, batch)
    return tuple(_with_sparse_share(plan, state) for (_, plan), state in zip(planned, states, strict=True))


def _with_sparse_share(plan: BlockPlan, state: DownState | None) -> BlockPlan:
    if state is None:
        return plan
    if not state.calls:
        return replace(plan, reason=f"{plan.reason}; no call reached its layers")
    if not state.sparse_calls:
        return replace(plan, reason=f"{plan.reason}; no call shown was computed sparsely")
    return replace(plan, share=state.sparse_calls / state.calls)


def outputs(model: nn.Module, blocks: Sequence[Block], batch: Batch) -> list[Tensor]:
    """Copies of what the second layers of the blocks return, call by call, and of all that the model returns."""
    seen: list[Tensor] = []
    downs = [block.down for block in blocks]
    with observed(model, downs, lambda name, args, output: seen.append(output.clone())), evaluating(model):
        result = call(model, batch)
    return seen + [leaf.clone() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


def are_close(dense: Sequence[Tensor], sparse: Sequence[Tensor]) -> bool:
    """Whether the tensors are the same up to the rounding of their dtype, and not finite at the same places."""
    return len(dense) == len(sparse) and all(map(_is_close, dense, sparse))


def _is_close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype not in TOLERANCE:
        return torch.equal(one, other)
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return False
    return bool((one - other)[finite].double().norm() <= TOLERANCE[one.dtype] * one[finite].double().norm())
