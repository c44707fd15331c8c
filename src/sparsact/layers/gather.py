"""Products with the rows that each input selects, as operators that torch differentiates and compiles.

The three are each other's derivatives, so that derivatives of every order exist. On CPU they are the kernels of
:mod:`sparsact.kernels`, on the memory of the tensors themselves; on a GPU Triton's; elsewhere, and where ``torch.func``
transforms the call, products of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparsact import kernels
from sparsact.routing.array_functions import gpu_kernels
from sparsact.routing.operators import of_two_matrices

KERNEL_DTYPES: Final = (torch.float32, torch.float64, torch.bfloat16)
NUMBERS_AT_ONCE: Final = 2**24  # of selected rows, where they are copied side by side


def gather_dot(x: Tensor, weight: Tensor, indices: Tensor) -> Tensor:
    """Products (m, k) of inputs x (m, n) with the rows of weight (t, n) that indices (m, k) name; 0 where -1."""
    return _dot_operator(x, weight, indices)


def gather_sum(a: Tensor, values: Tensor, indices: Tensor) -> Tensor:
    """Sums (m, n) of the rows of values (t, n) that indices (m, k) name, each times its number in a (m, k)."""
    return _sum_operator(a, values, indices)


def scatter_outer(a: Tensor, x: Tensor, indices: Tensor, rows: int) -> Tensor:
    """Sums (rows, n) of a[i, j] * x[i] (of a (m, k), x (m, n)) over the places of indices (m, k) that name each row."""
    return _outer_operator(a, x, indices, rows)


def _gather_dot(x: Tensor, weight: Tensor, indices: Tensor) -> Tensor:
    _check(x, len(indices), weight.shape[1])
    if _has_kernel(x):
        return _by_kernel(kernels.gather_dot, x, weight, indices, len(weight))
    if gpu := gpu_kernels(x):
        of_gpu: Tensor = gpu.gather_dot(x, weight, indices)
        return of_gpu
    dots = x.new_zeros(indices.shape)
    for rows in _blocks(indices, x.shape[1]):
        dots[rows] = _dots(x[rows], weight, indices[rows])
    return dots


def _gather_sum(a: Tensor, values: Tensor, indices: Tensor) -> Tensor:
    _check(a, *indices.shape)
    if _has_kernel(a):
        return _by_kernel(kernels.gather_sum, a, values, indices, len(values))
    if gpu := gpu_kernels(a):
        of_gpu: Tensor = gpu.gather_sum(a, values, indices)
        return of_gpu
    sums = a.new_zeros(a.shape[0], values.shape[1])
    for rows in _blocks(indices, values.shape[1]):
        sums[rows] = _sums(a[rows], values, indices[rows])
    return sums


def _scatter_outer(a: Tensor, x: Tensor, indices: Tensor, rows: int) -> Tensor:
    _check(a, *indices.shape)
    _check(x, len(indices), x.shape[1])
    if _has_kernel(a):
        return _by_kernel(kernels.scatter_outer, a, x, indices, rows, rows)
    if gpu := gpu_kernels(a):
        of_gpu: Tensor | None = gpu.scatter_outer(a, x, indices, rows)
        if of_gpu is not None:
            return of_gpu
    # Narrow numbers are added in float32, as the kernels do.
    total = x.new_zeros(rows, x.shape[1], dtype=torch.promote_types(x.dtype, torch.float32))
    for block in _blocks(indices, x.shape[1]):
        outer = _outer(a[block].to(total.dtype), x[block], indices[block])
        total.index_add_(0, indices[block].clamp(min=0).flatten(), outer)
    return total.to(x.dtype)


def _dots(x: Tensor, weight: Tensor, indices: Tensor) -> Tensor:
    return torch.einsum("mn,mkn->mk", x, weight[indices.clamp(min=0)]).masked_fill(indices < 0, 0)


def _sums(a: Tensor, values: Tensor, indices: Tensor) -> Tensor:
    empty = indices < 0
    selected = values[indices.clamp(min=0)].masked_fill(empty[..., None], 0)
    return torch.einsum("mk,mkn->mn", a.masked_fill(empty, 0), selected)


def _outers(a: Tensor, x: Tensor, indices: Tensor, rows: int) -> Tensor:
    return x.new_zeros(rows, x.shape[1]).index_add(0, indices.clamp(min=0).flatten(), _outer(a, x, indices))


def _outer(a: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    """Rows (m * k, n) of a[i, j] * x[i], zeros where nothing is named: without asking a device how many."""
    return (a[..., None] * x[:, None]).masked_fill((indices < 0)[..., None], 0).flatten(0, 1)


_dot_operator = of_two_matrices(
    _gather_dot,
    lambda x, weight, indices: x.new_empty(indices.shape),
    lambda gradient, x, weight, indices: gather_sum(gradient, weight, indices),
    lambda gradient, x, weight, indices: scatter_outer(gradient, x, indices, weight.shape[0]),
    _dots,
)
_sum_operator = of_two_matrices(
    _gather_sum,
    lambda a, values, indices: a.new_empty(a.shape[0], values.shape[1]),
    lambda gradient, a, values, indices: gather_dot(gradient, values, indices),
    lambda gradient, a, values, indices: scatter_outer(a, gradient, indices, values.shape[0]),
    _sums,
)
_outer_operator = of_two_matrices(
    _scatter_outer,
    lambda a, x, indices, rows: x.new_empty(rows, x.shape[1]),
    lambda gradient, a, x, indices: gather_dot(x, gradient, indices),
    lambda gradient, a, x, indices: gather_sum(a, gradient, indices),
    _outers,
)


def _check(matrix: Tensor, *shape: int) -> None:
    if matrix.shape != shape:
        raise ValueError(f"a matrix beside these indices must have shape {shape}; got {tuple(matrix.shape)}.")


def _has_kernel(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.dtype in KERNEL_DTYPES


def _by_kernel(
    kernel: Callable[..., NDArray[Any]], first: Tensor, second: Tensor, indices: Tensor, t: int, *sizes: int
) -> Tensor:
    """What a kernel computes on the memory of tensors, in the dtype of the first; indices name one of t rows."""
    array = kernel(_array(first), _array(second), _rows(indices, t), *sizes, n_threads=torch.get_num_threads())
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if array.dtype == np.uint16 else tensor.to(first.dtype)


def _array(tensor: Tensor) -> NDArray[Any]:
    """The tensor's memory, C-contiguous, as NumPy sees it: bfloat16 as uint16.

    By DLPack: ``numpy()`` would mark the memory as shared for good, and fully sharded parameters could not be freed.
    """
    flat = tensor.detach().contiguous()
    if flat.dtype == torch.bfloat16:
        return np.from_dlpack(flat.view(torch.int16)).view(np.uint16)
    return np.from_dlpack(flat)


def _rows(indices: Tensor, t: int) -> NDArray[np.int64]:
    """``indices`` as the kernels take them, who would read past the matrix where a router errs."""
    rows = _array(indices)
    if rows.size and not (rows.min() >= -1 and rows.max() < t):
        raise IndexError(f"a selection must name units in range({t}), or -1; got {rows.min()} to {rows.max()}.")
    return rows


def _blocks(indices: Tensor, n: int) -> Iterator[slice]:
    """Rows of ``indices`` in blocks whose selected rows of ``n`` numbers fit into memory side by side."""
    height = max(1, NUMBERS_AT_ONCE // max(1, indices.shape[1] * n))
    for start in range(0, indices.shape[0], height):
        yield slice(start, start + height)
