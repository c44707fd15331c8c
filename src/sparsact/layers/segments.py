"""Products of matrices, one for each segment of rows: tokens in the order of their experts.

``starts`` (E + 1,) holds 0 and where each segment ends; rows beyond the last give 0. Only segments that hold rows are
computed. The two operators are each other's derivatives. On a GPU torch multiplies segments of bfloat16 in one call
and Triton products of float32 and float16, which a CUDA graph may hold; float64 and large ones wait for the sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F

from sparsact.routing.array_functions import gpu_kernels
from sparsact.routing.operators import of_two_matrices

SLOTS: Final = 64  # on a GPU a segment's length is a multiple of it
LAUNCHED: Final = 2**34  # multiplications of float32 on a GPU


@dataclass(frozen=True)
class Groups:
    """Slots in the order of the experts.

    Attributes
    ----------
    slots : (m, k) int64
        Slot of each place of a selection, -1 where it is empty.
    starts : (E + 1,) int64
        First slot of each expert.
    n_slots : int
        Number of slots; slots beyond the last expert's, and unused ones at each expert's end, stay empty.
    """

    slots: Tensor
    starts: Tensor
    n_slots: int

    @classmethod
    def of(cls, indices: Tensor, n_experts: int, *, max_taken: int | None = None) -> Groups:
        """Groups of ``indices`` (m, k), experts or -1 with at most ``max_taken`` experts; without a sync."""
        n_places = indices.numel()
        taken = n_places if max_taken is None else min(n_places, max_taken)
        step = 1 if indices.device.type == "cpu" else SLOTS
        experts, order = torch.sort(indices.reshape(-1).int(), stable=True)  # half the passes of int64
        bounds = torch.searchsorted(experts, torch.arange(n_experts + 1, device=indices.device, dtype=torch.int32))
        ends = ((bounds.diff() + (step - 1)) // step * step).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends])
        shift = (starts - bounds)[experts.clamp(min=0)]
        slots = (torch.arange(n_places, device=indices.device) + shift).where(experts >= 0, -1)
        slots = torch.empty_like(slots).scatter(0, order, slots).reshape(indices.shape)
        return cls(slots, starts, taken + n_experts * (step - 1))

    @property
    def experts(self) -> Tensor:
        """Expert of each slot (n_slots,), -1 beyond the last."""
        slots = torch.arange(self.n_slots, device=self.starts.device)
        experts = torch.searchsorted(self.starts, slots, right=True) - 1
        return experts.where(experts < self.starts.shape[0] - 1, -1)


def segment_matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    """Rows of x (p, n) of segment e times weight[e], of weight (E, n, o): (p, o)."""
    return _matmul_operator(x, weight, starts)


def _composed_matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    rows = torch.arange(x.shape[0], device=x.device)[:, None]
    segments = zip(weight, starts[:-1], starts[1:], strict=True)
    return torch.stack([(x @ of).where((begin <= rows) & (rows < end), 0) for of, begin, end in segments]).sum(0)


def _segment_matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    kernels = gpu_kernels(x)
    if _is_grouped(x, weight):
        products = _grouped_mm(x, weight, starts[1:])
        if kernels is None:
            return products.masked_fill_((torch.arange(len(x), device=x.device) >= starts[-1])[:, None], 0)
        kernels.clear_from(products, starts[-1:])
        return products
    if kernels and _is_launched(x, weight):
        of_gpu: Tensor = kernels.segment_matmul(x, weight, starts)
        return of_gpu
    products = x.new_empty(x.shape[0], weight.shape[2])
    end = 0
    for e, (begin, end) in enumerate(pairwise(starts.tolist())):
        if begin < end:
            torch.mm(x[begin:end], weight[e], out=products[begin:end])
    products[end:] = 0
    return products


def segment_outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    """Products (E, n, o) of the rows of x (p, n), transposed, with the rows of y (p, o), for each segment."""
    return _outer_operator(x, y, starts)


def _composed_outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    rows = torch.arange(x.shape[0], device=x.device)[:, None]
    return torch.stack([x.where((begin <= rows) & (rows < end), 0).T @ y for begin, end in pairwise(starts)])


def _segment_outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    if _is_grouped(x, y):
        return _grouped_mm(x.T, y, starts[1:])
    kernels = gpu_kernels(x)
    if kernels and _is_launched(x, y):
        of_gpu: Tensor = kernels.segment_outer(x, y, starts)
        return of_gpu
    products = x.new_empty(starts.shape[0] - 1, x.shape[1], y.shape[1])
    for e, (begin, end) in enumerate(pairwise(starts.tolist())):
        if begin < end:
            torch.mm(x[begin:end].T, y[begin:end], out=products[e])
        else:
            products[e] = 0
    return products


def _as_stored(weight: Tensor, x: Tensor, gradient: Tensor, starts: Tensor) -> Tensor:
    """Gradient at ``weight``, in the order of its numbers in memory: autograd copies one in another order."""
    if weight.stride(1) < weight.stride(2):
        return segment_outer(gradient, x, starts).transpose(1, 2)
    return segment_outer(x, gradient, starts)


_matmul_operator = of_two_matrices(
    _segment_matmul,
    lambda x, weight, starts: x.new_empty(x.shape[0], weight.shape[2]),
    lambda gradient, x, weight, starts: segment_matmul(gradient, weight.transpose(1, 2), starts),
    lambda gradient, x, weight, starts: _as_stored(weight, x, gradient, starts),
    _composed_matmul,
)
_outer_operator = of_two_matrices(
    _segment_outer,
    lambda x, y, starts: x.new_empty(starts.shape[0] - 1, x.shape[1], y.shape[1]),
    lambda gradient, x, y, starts: segment_matmul(y, gradient.transpose(1, 2), starts),
    lambda gradient, x, y, starts: segment_matmul(x, gradient, starts),
    _composed_outer,
)


def _is_grouped(left: Tensor, right: Tensor) -> bool:
    """Whether one call of torch multiplies all segments, which no device has to be waited for."""
    lines = 16 // left.element_size()  # what is read at a time: rows must begin at a multiple
    aligned = all(size % lines == 0 for size in (left.shape[-1], right.shape[-1]))
    wanted = left.device.type != "cpu" and left.dtype == torch.bfloat16  # others torch multiplies one by one
    return wanted and aligned and _grouped_mm_is_right(left.device, left.dtype)


def _is_launched(left: Tensor, right: Tensor) -> bool:
    """Whether Triton multiplies all segments: products that take less time than the wait for their sizes, or a graph.

    Others torch multiplies one by one: faster in float32, once the products take longer than the wait for their sizes
    (results/mixture_gpu.jsonl, benchmark mixture).
    """
    small = left.numel() * right.shape[-1] < LAUNCHED
    return small or left.dtype != torch.float32 or torch.cuda.is_current_stream_capturing()


def _grouped_mm(left: Tensor, right: Tensor, ends: Tensor) -> Tensor:
    function: Any = getattr(F, "grouped_mm", None) or torch._grouped_mm
    products: Tensor = function(left, right, offs=ends.to(torch.int32))
    return products


@cache
def _grouped_mm_is_right(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this build multiplies segments on the device in that dtype, as two of 32 rows and none show."""
    x = (torch.arange(64 * 32) * 0.7).sin().reshape(64, 32).to(device, dtype)
    weight = (torch.arange(3 * 32 * 16) * 0.3).cos().reshape(3, 32, 16).to(device, dtype)
    ends = torch.tensor([32, 32, 64], device=device)
    try:
        products, outer = _grouped_mm(x, weight, ends), _grouped_mm(x.T, x[:, :16], ends)
    except (AttributeError, RuntimeError, NotImplementedError, ValueError):
        return False
    wide, heavy = x.double().cpu(), weight.double().cpu()
    wanted = torch.cat([wide[:32] @ heavy[0], wide[32:] @ heavy[2]])
    sums = torch.stack([wide[rows].T @ wide[rows][:, :16] for rows in (slice(32), slice(0), slice(32, 64))])
    bound = 64 * torch.finfo(dtype).eps
    pairs = ((products, wanted), (outer, sums))
    return all(bool((found.double().cpu() - want).abs().max() <= bound * 8) for found, want in pairs)
