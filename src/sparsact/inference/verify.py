"""Put settings on the blocks of a model, and see on its own inputs that exact ones change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.block import Block
from sparsact.inference.inputs import Batch, call, evaluating
from sparsact.inference.plan import BlockPlan, refused
from sparsact.inference.settings import Replacement
from sparsact.inference.ways import Down

Chosen = tuple[Replacement | None, BlockPlan]

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 0.03}  # of the norm, by dtype


def put_on(model: nn.Module, chosen: Sequence[Chosen]) -> list[Chosen]:
    """Put the settings on; a block that shares a layer with one before it, which took the layer, stays dense."""
    taken: set[str] = set()
    worn: list[Chosen] = []
    for setting, choice in chosen:
        if setting is not None and taken & set(setting.layers):
            worn.append((None, refused(choice, "shares a layer with the block before it")))
            continue
        if setting is not None:
            taken |= set(setting.layers)
            setting.put_on(model)
        worn.append((setting, choice))
    return worn


def verified(model: nn.Module, blocks: Sequence[Block], worn: Sequence[Chosen], batch: Batch) -> list[Chosen]:
    """Take off the settings of blocks that change what the model returns, though they should be exact.

    That happens if something else than its block reads the pre-activations of a layer: a unit that is proved off has a
    0 there. All blocks are tried together, and one by one only if they differ.
    """
    settings = [setting for setting, _ in worn if setting is not None]
    with ExitStack() as stack:
        for setting in settings:
            stack.enter_context(setting.unlimited())
        outputs(model, blocks, batch)  # the layers of a gated block see in which order they are called
        sparse = outputs(model, blocks, batch)
        for setting in settings:
            setting.take_off(model)
        dense = outputs(model, blocks, batch)
        if alike(dense, sparse):
            return put_on(model, worn)
        found: list[Chosen] = []
        for alone, choice in worn:
            if alone is None or _keeps(model, blocks, alone, batch, dense):
                found.append((alone, choice))
            else:
                found.append((None, refused(choice, "the model changed: pre-activations are read elsewhere")))
    return put_on(model, found)


def _keeps(
    model: nn.Module, blocks: Sequence[Block], setting: Replacement, batch: Batch, dense: Sequence[Tensor]
) -> bool:
    """Whether the model returns the same under this setting alone."""
    setting.put_on(model)
    try:
        return alike(dense, outputs(model, blocks, batch))
    finally:
        setting.take_off(model)


def with_shares(
    model: nn.Module, blocks: Sequence[Block], worn: Sequence[Chosen], shown: Sequence[Batch]
) -> tuple[BlockPlan, ...]:
    """The choices, each with the share of calls in which its block is computed sparsely as the model runs on batches.

    The model runs as in service: without hooks, and by torch's fused paths where it takes them.
    """
    ways = [
        None if setting is None else setting.layers[block.down][1]
        for block, (setting, _) in zip(blocks, worn, strict=True)
    ]
    for way in filter(None, ways):
        way.calls = way.sparse_calls = 0
    if any(ways):
        with evaluating(model):
            for batch in shown:
                call(model, batch)
    return tuple(_with_share(choice, way) for (_, choice), way in zip(worn, ways, strict=True))


def _with_share(choice: BlockPlan, way: Down | None) -> BlockPlan:
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
