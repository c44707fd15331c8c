"""Operations of torch as the trace sees them: what they keep of a row, and which work along the last axis."""

from __future__ import annotations

import sys
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

aten = torch.ops.aten

# These return the numbers that they are given, in another shape, order of axes or memory.
SAME_NUMBERS: Final = {
    *(aten.view, aten._unsafe_view, aten._reshape_alias, aten.unsqueeze, aten.squeeze, aten.expand, aten.slice),
    *(aten.permute, aten.transpose, aten.t, aten.clone, aten.detach, aten.alias, aten._reshape_copy),
}
# These return parts of what they are given.
PARTS: Final = {aten.split, aten.split_with_sizes, aten.slice}
# These keep zeros, whatever numbers of the input their other arguments are.
MASKING: Final = {aten.mul, aten.mul_, aten.div, aten.div_, aten.masked_fill, aten.masked_fill_, aten.where}
# Products with a matrix, which may be a parameter of a module that is no plain linear layer.
PRODUCTS: Final = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.linear, aten.matmul}
# These are elementwise, and some of their overloads are not tagged as such, or were not before torch 2.13.
POINTWISE: Final = {
    "_prelu_kernel",
    "add",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "masked_fill",
    "mul",
    "rsub",
    "sub",
    "threshold",
    "where",
}
# These read only the shape of their argument.
SHAPE_ALONE: Final = {
    *(aten.zeros_like, aten.ones_like, aten.full_like, aten.empty_like, aten.new_zeros, aten.new_ones),
    *(aten.new_full, aten.new_empty),
}
# These compute each row of (..., units) alone if ``dim`` is the last axis.
ALONG: Final = {
    *(aten.mean, aten.sum, aten.std, aten.var, aten.amax, aten.amin, aten.max, aten.min, aten.any, aten.all),
    *(aten.linalg_vector_norm, aten.topk, aten.sort, aten.kthvalue, aten.cumsum, aten.gather, aten.scatter),
    *(aten.scatter_, aten.slice, aten.select, aten.cat),
}
# Names of operations that compute a number from several of a row.
MIXING: Final = {one.__name__ for one in ALONG - {aten.slice, aten.select, aten.cat, aten.scatter, aten.scatter_}}
# These count the axis from the front where an index in the code counts from the end.
INDEXING: Final = {aten.slice, aten.select}
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
    if func.overloadpacket in INDEXING:
        axes = [axis - source.ndim if axis > 0 else axis for axis in axes]
    if axes != [-1]:  # an axis counted from the front is another one in inputs of more axes
        return None
    lacks_axis = not given.get("keepdim", True) or func.overloadpacket is aten.select
    changed = given | {"dim": [-1] if axes is dim else -1}
    if "keepdim" in given:
        changed["keepdim"] = True
    if func.overloadpacket is aten.select:  # a slice keeps the axis
        start = changed.pop("index")
        return aten.slice.Tensor, changed | {"start": start, "end": start + 1 or sys.maxsize, "step": 1}, True
    return func, changed, lacks_axis


def bound(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
    """All arguments of a call by name, in the order of the operation."""
    given = dict(zip([one.name for one in func._schema.arguments], args, strict=False)) | kwargs
    return {one.name: given.get(one.name, one.default_value) for one in func._schema.arguments}


def positional(func: OpOverload, given: Given) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments, and keyword-only arguments by name."""
    named = [one.name for one in func._schema.arguments if one.kwarg_only]
    return [value for name, value in given.items() if name not in named], {name: given[name] for name in named}


def is_pointwise(func: OpOverload) -> bool:
    """Whether an operation is elementwise."""
    return torch.Tag.pointwise in func.tags or func.overloadpacket.__name__.rstrip("_") in POINTWISE
