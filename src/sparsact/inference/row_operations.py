"""Operations of torch along the last axis, as operations on rows (rows, units)."""

from __future__ import annotations

import sys
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

# These compute each row of (..., units) alone if ``dim`` is the last axis.
ALONG: Final = {
    *(aten.mean, aten.sum, aten.std, aten.var, aten.amax, aten.amin, aten.max, aten.min, aten.any, aten.all),
    *(aten.linalg_vector_norm, aten.topk, aten.sort, aten.kthvalue, aten.cumsum, aten.gather, aten.scatter),
    *(aten.scatter_, aten.slice, aten.select, aten.cat),
}
# These are affine for each column of (rows, units) in evaluation mode.
BATCH_NORMS: Final = {aten.native_batch_norm, aten._native_batch_norm_legit_no_training}

Given = dict[str, Any]  # arguments by name


def along_units(func: OpOverload, given: Given) -> tuple[OpOverload, Given, bool] | None:
    """The operation on rows that computes the same, and whether the model's result lacks the last axis; else None."""
    first = next(iter(given.values()), None)
    source = first[0] if isinstance(first, list | tuple) and first else first
    if not isinstance(source, Tensor):
        return None
    if func.overloadpacket in BATCH_NORMS:
        return None if source.ndim != 2 or given.get("training") else (func, given, False)
    if func.overloadpacket not in ALONG or "dim" not in given:
        return None
    dim = given["dim"]
    axes = dim if isinstance(dim, list | tuple) else [dim]
    if None in axes or [axis % max(1, source.ndim) for axis in axes] != [source.ndim - 1]:
        return None
    lacks_axis = not given.get("keepdim", True) or func.overloadpacket is aten.select
    changed = given | {"dim": [-1] if axes is dim else -1}
    if "keepdim" in given:
        changed["keepdim"] = True
    if func.overloadpacket is aten.select:
        start = changed.pop("index")
        return aten.slice.Tensor, changed | {"start": start, "end": start + 1 or sys.maxsize, "step": 1}, True
    return func, changed, lacks_axis


def bound(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
    """All arguments of a call by name, in the order of the operation."""
    given = dict(zip([one.name for one in func._schema.arguments], args, strict=False)) | kwargs
    return {one.name: given.get(one.name, one.default_value) for one in func._schema.arguments}


def positional(func: OpOverload, given: Given) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by position, and those that are given by name alone."""
    named = [one.name for one in func._schema.arguments if one.kwarg_only]
    return [value for name, value in given.items() if name not in named], {name: given[name] for name in named}
