"""Make the layers of blocks sparse, verify the result on the model's own inputs, and restore them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.batches import Batch, call, evaluating, observe, tensors_in
from sparsact.inference.block import Block
from sparsact.inference.compiled import handle_of
from sparsact.inference.layer_facts import conv1d, falcon_linear
from sparsact.inference.plan import BlockPlan, refused
from sparsact.inference.selectors import ActiveInputs, SwitchedOn
from sparsact.inference.sparse_linear import IntegerLayer, LayerState, SparseLinear, holds_sparse_layer

# In evaluation mode and without gradients ``nn.TransformerEncoderLayer`` passes its weights to one fused operation, and
# ``nn.TransformerEncoder`` packs padded inputs into nested tensors for it. Each tests an attribute of its own first.
_FAST_PATHS: Final = {nn.TransformerEncoderLayer: "activation_relu_or_gelu", nn.TransformerEncoder: "use_nested_tensor"}
_SAVED: Final = "_sparsact_fast_path"


@dataclass
class Replacement:
    """The states that linear layers, by name, take on together: all of a block, or none where it stays dense."""

    layers: dict[str, LayerState] = field(default_factory=dict)

    def apply(self, model: nn.Module) -> None:
        """Turn the model's layers into sparse ones."""
        for name, state in self.layers.items():
            layer: Any = model.get_submodule(name)
            become(layer, SparseLinear)
            layer._sparse, state.handle = state, handle_of(layer)

    def remove(self, model: nn.Module) -> None:
        """Turn the layers into ``nn.Linear`` again."""
        for name in self.layers:
            restore(model.get_submodule(name))

    def set_limits(self, max_rows: int, max_share: float, max_selected: int) -> None:
        """Set for how many rows, and for which share of active units, the block is computed sparsely.

        Inputs are screened before pre-activations are computed for up to ``max_selected`` rows.
        """
        for state in self.layers.values():
            switches = isinstance(state.selector, SwitchedOn)
            state.limits = {"max_rows": max_rows} | (
                {"max_selected": max_selected} if switches else {"max_share": max_share}
            )

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Compute the block sparsely for any number of rows and of active units."""
        limits = [(state, state.limits) for state in self.layers.values()]
        for state, before in limits:
            state.limits = dict.fromkeys(before, sys.maxsize) | {"max_share": 1.0}
            if isinstance(state.selector, SwitchedOn):
                state.selector.calls_to_skip = 0
        try:
            yield
        finally:
            for state, before in limits:
                state.limits = before


def become(layer: nn.Module, kind: type[SparseLinear]) -> None:
    """Give a linear layer this class, or what stands for it where the layer is a ``Conv1D`` or ``FalconLinear``."""
    other, falcon = conv1d(), falcon_linear()
    if falcon is not None and isinstance(layer, falcon):
        from sparsact.inference.falcon_linear import CLASSES as OF_FALCON

        kind = OF_FALCON[kind]
    if other is not None and isinstance(layer, other):
        from sparsact.inference.conv1d import CLASSES  # it needs transformers, which such a layer has loaded

        kind = CLASSES[kind]
    vars(layer).pop("forward", None)  # that of its class, see LayerFacts
    layer.__class__ = kind


def restore(module: nn.Module) -> None:
    """Turn a sparse layer into a dense one again; leave any other module as it is."""
    if isinstance(module, SparseLinear):
        layer: Any = module
        if isinstance(layer, IntegerLayer):
            layer.restore_parameters()
        del layer._sparse
        kind = type(layer)
        if "parametrizations" in layer._modules:  # torch has derived a class of its own from ours
            kind.__bases__ = (layer.dense_class,)
        else:
            layer.__class__ = layer.dense_class


PlannedBlock = tuple[Replacement, BlockPlan]

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
    """Apply the replacements; of a block that shares a layer with one before it, its own ``down`` at most."""
    taken: set[str] = set()
    found: list[PlannedBlock] = []
    for replacement, plan in planned:
        if taken & set(replacement.layers):
            free = {name: state for name, state in replacement.layers.items() if name not in taken}
            down = {name: state for name, state in free.items() if isinstance(state.selector, ActiveInputs)}
            reason, replacement = "shares a layer with the block before it", Replacement(down)
            plan = replace(plan, method="exact", reason=f"{plan.reason}; {reason}") if down else refused(plan, reason)
        taken |= set(replacement.layers)
        replacement.apply(model)
        found.append((replacement, plan))
    bar_fast_paths(model)
    return found


def verified(
    model: nn.Module, blocks: Sequence[Block], planned: Sequence[PlannedBlock], batch: Batch
) -> list[PlannedBlock]:
    """Remove replacements that change what the model returns, though they should be exact.

    That happens if something besides its block reads the pre-activations of a layer, because a unit that is proved off
    has pre-activation 0. All blocks are tried together, and one by one only if the outputs differ.
    """
    replacements = [replacement for replacement, _ in planned]
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
            if alone.layers:
                with applied(model, [alone]):
                    same = are_close(dense, outputs(model, blocks, batch))
                if not same:
                    alone, plan = Replacement(), refused(plan, "the model changed: pre-activations are read elsewhere")
            found.append((alone, plan))
    return apply(model, found)


def with_sparse_shares(
    model: nn.Module, downs: Sequence[str], planned: Sequence[PlannedBlock], shown: Sequence[Batch]
) -> tuple[BlockPlan, ...]:
    """The plans with the share of calls in which their ``down`` is computed sparsely, as in service: without hooks."""
    states = [replacement.layers.get(down) for down, (replacement, _) in zip(downs, planned, strict=True)]
    for state in filter(None, states):
        state.calls = state.sparse_calls = 0
    if any(states):
        with evaluating(model):
            for batch in shown:
                call(model, batch)
    return tuple(_with_sparse_share(plan, state) for (_, plan), state in zip(planned, states, strict=True))


def _with_sparse_share(plan: BlockPlan, state: LayerState | None) -> BlockPlan:
    if state is None:
        return plan
    if not state.calls:
        return replace(plan, reason=f"{plan.reason}; no call reached its layers")
    if not state.sparse_calls:
        return replace(plan, reason=f"{plan.reason}; no sample call was computed sparsely")
    return replace(plan, share=state.sparse_calls / state.calls)


def outputs(model: nn.Module, blocks: Sequence[Block], batch: Batch) -> list[Tensor]:
    """Copies of the outputs of the blocks' second layers, call by call, and of the model's outputs."""
    seen: list[Tensor] = []
    downs = [block.down for block in blocks]
    returned = observe(model, downs, [batch], lambda name, args, output: seen.append(output.clone()))
    return seen + [tensor.clone() for tensor in tensors_in(returned)]


def are_close(dense: Sequence[Tensor], sparse: Sequence[Tensor]) -> bool:
    """Whether the tensors are the same up to the rounding of their dtype, and not finite at the same places."""
    return len(dense) == len(sparse) and all(map(_is_close, dense, sparse))


def _is_close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype not in TOLERANCE:
        return torch.equal(one, other)
    return relative_difference(other, one) <= TOLERANCE[one.dtype]


def relative_difference(found: Tensor, wanted: Tensor) -> float:
    """Norm of the difference of two tensors over that of the second, over finite numbers.

    Infinite if the two are not finite at the same places, or differ and the second is 0.
    """
    finite = wanted.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return inf
    before, after = wanted[finite].double(), found[finite].double()
    difference, size = float((after - before).norm()), float(before.norm())
    return difference / size if size else (inf if difference else 0.0)


def bar_fast_paths(model: nn.Module) -> None:
    """Let encoders that hold a sparse layer call it, instead of torch's fused path that calls no layer."""
    for owner, name in _fast_path_attributes(model):
        if _SAVED not in owner.__dict__ and holds_sparse_layer(owner):
            owner.__dict__[_SAVED] = before = owner.__dict__.get(name, False)
            owner.__dict__[name] = type(before)(0)  # of the same type: TorchScript infers it


def free_fast_paths(model: nn.Module) -> None:
    """Restore the fused path of encoders that no longer hold a sparse layer."""
    for owner, name in _fast_path_attributes(model):
        if _SAVED in owner.__dict__ and not holds_sparse_layer(owner):
            owner.__dict__[name] = owner.__dict__.pop(_SAVED)


def _fast_path_attributes(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    for kind, name in _FAST_PATHS.items():
        yield from ((owner, name) for owner in model.modules() if isinstance(owner, kind))
