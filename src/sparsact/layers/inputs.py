"""What the layers ask of their inputs and sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def checked_inputs(x: Any, in_features: int, dtype: torch.dtype) -> Tensor:
    """``x`` (..., in_features) as rows (m, in_features) of the layer's ``dtype``, which only autocast lets differ."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` must be a torch tensor; got {type(x).__name__}: pass torch.as_tensor(x).")
    if not x.dtype.is_floating_point:
        raise TypeError(f"`x` must hold real numbers; got {x.dtype}: pass x.to({dtype}).")
    if x.ndim == 0 or x.shape[-1] != in_features:
        raise ValueError(f"`x` must have {in_features} features in its last dimension; got shape {tuple(x.shape)}.")
    if x.dtype != dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"`x` is {x.dtype} and the layer {dtype}: pass x.to({dtype}), or layer.to({x.dtype}).")
    return x.to(dtype).reshape(-1, in_features)


def as_computed(rows: Tensor) -> Tensor:
    """``rows`` in the dtype that torch.nn.functional.linear would compute in: that of autocast, where it is on."""
    device = rows.device.type
    if torch.is_autocast_enabled(device) and rows.dtype != torch.float64:
        return rows.to(torch.get_autocast_dtype(device))
    return rows
