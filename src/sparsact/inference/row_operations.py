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

RowOperation = tuple[OpOverload, tuple[Any, ...], dict[str, Any]]


def along_units(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[RowOperation, bool] | None:
    """The operation on rows that computes the same, and whether the model's result lacks the last axis; else None."""
    parameters = {one.name: one for one in func._schema.arguments}
    given = dict(zip(parameters, args, strict=False)) | kwargs
    source = args[0][0] if isinstance(args[0], list | tuple) else args[0]
    if func.overloadpacket in BATCH_NORMS:
        return None if source.ndim != 2 or given.get("training") else ((func, args, kwargs), False)
    if func.overloadpacket not in ALONG or "dim" not in parameters or not isinstance(source, Tensor):
        return None
    dim = given.get("dim", parameters["dim"].default_value)
    axes = dim if isinstance(dim, list | tuple) else [dim]
    if None in axes or [axis % max(1, source.ndim) for axis in axes] != [source.ndim - 1]:
        return None
    given["dim"] = [-1] if axes is dim else -1
    lacks_axis = "keepdim" in parameters and not given.get("keepdim", False)
    if "keepdim" in parameters:
        given["keepdim"] = True
    if func.overloadpacket is aten.select:
        start = given.pop("index")
        func, lacks_axis = aten.slice.Tensor, True
        given |= {"start": start, "end": sys.maxsize if start == -1 else start + 1}
    first = next(iter(parameters))
    return (func, (given.pop(first),), given), lacks_axis
