"""Array functions that routers share over NumPy and torch, and scores."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array", NDArray[Any], "Tensor")  # of NumPy or of torch, and all of one call of the same


def namespace(array: Array) -> Any:
    """Array-API functions for ``array``: NumPy itself, or ``array_api_compat.torch``."""
    # array_api_compat.array_namespace uses a cache, which torch.compile cannot trace.
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import torch  # late: a tensor implies torch; torch.compile follows this line

    return torch


def like(array: NDArray[Any], x: Array) -> Any:
    """A NumPy array as the kind of x; floats take its dtype, or float32 where that is half precision."""
    xp = namespace(x)
    dtype = xp.result_type(x.dtype, xp.float32) if array.dtype.kind == "f" else None
    if isinstance(x, np.ndarray):
        return array if dtype is None else array.astype(dtype)
    return xp.tensor(array, device=x.device, dtype=dtype)


def integers(n: int, x: Array) -> Any:
    """0, 1, ... n - 1 as int64 on the device of x."""
    xp = namespace(x)
    return xp.arange(n, dtype=xp.int64, device=x.device)


def ones(shape: tuple[int, ...], x: Array) -> Any:
    """Ones of x's dtype, on its device."""
    return namespace(x).ones(shape, dtype=x.dtype, device=x.device)


def sigmoid(scores: Array) -> Any:
    """1 / (1 + exp(-score)), whose gradient is finite wherever the score is."""
    return expit(scores) if isinstance(scores, np.ndarray) else scores.sigmoid()


def ascending(values: Array, axis: int = -1) -> Any:
    """Places that sort ``values`` along an axis; equal ones keep their order."""
    if isinstance(values, np.ndarray):
        return np.argsort(values, axis=axis, kind="stable")
    if is_for_onnx():
        return values.sort(dim=axis).indices  # ONNX has one order, which is stable
    return values.argsort(dim=axis, stable=True)


def taken(values: Array, places: Array) -> Any:
    """Entries of ``values`` (..., t) at ``places`` (..., k) of the last axis."""
    if isinstance(values, np.ndarray):
        return np.take_along_axis(values, places, axis=-1)
    return values.gather(-1, places)  # torch.take_along_dim broadcasts: torch.compile would fix the number of rows


def is_transformed() -> bool:
    """Whether ``torch.func`` transforms this call, or has tangents: both know torch's own operators alone."""
    import torch

    if torch.compiler.is_compiling():
        return False
    return torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0


def is_for_onnx() -> bool:
    """Whether ``torch.onnx.export`` traces this call: ONNX lacks stable sorts and products of groups."""
    import torch

    return torch.compiler.is_compiling() and torch.onnx.is_in_onnx_export()


def is_readable(array: Array) -> bool:
    """Whether the numbers can be looked at, now and without waiting for a device."""
    if isinstance(array, np.ndarray):
        return True
    import torch
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or is_transformed():
        return False
    return array.device.type == "cpu" and _get_current_dispatch_mode() is None


def gpu_kernels(tensor: Tensor) -> Any:
    """The module of Triton's kernels, where they take the tensor: on a GPU, not in float64; None without them."""
    if not tensor.is_cuda or is_transformed() or find_spec("triton") is None:
        return None
    from sparsact.kernels import gpu

    return gpu if tensor.dtype in gpu.DTYPES and gpu.works(tensor.device) else None


def constant(array: Array) -> Any:
    """The same numbers, through which no gradient flows."""
    return array if isinstance(array, np.ndarray) else array.detach()


def precise(x: Array, *others: Array) -> Any:
    """Data type to decide in: the widest of the arrays', at least float32, in which Switch transformers route too."""
    xp = namespace(x)
    dtype = xp.result_type(xp.float32, x.dtype)
    for other in others:
        dtype = xp.result_type(dtype, other.dtype)
    return dtype


def scores(x: Array, directions: Array) -> Any:
    """Inner products (m, t) of the rows of ``x`` (m, d) and of ``directions`` (t, d), autocast off."""
    xp = namespace(x)
    dtype = precise(x, directions)
    left, right = xp.astype(x, dtype, copy=False), xp.astype(directions, dtype, copy=False)
    if isinstance(x, np.ndarray):
        return left @ right.T
    import torch

    with torch.autocast(x.device.type, enabled=False):
        return left @ right.T
