"""Experts with gated activations on a CPU, some rows at a time: what lies between two products stays in the cache.

The backward pass keeps pre-activations and outputs. Activations and gradients of all rows at once would be new memory
in each step, a tenth of its time. With few rows, new memory for weight gradients takes longer than products: it comes
in large pages, and experts without rows are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from sparsact.layers.gather import gather_dot, gather_sum
from sparsact.routing.operators import is_watched

Segment = tuple[int, int, int]
"""Expert, and where its rows begin and end."""
NUMBERS_AT_ONCE: Final = 2**18  # of pre-activations: float32 of them fit into a second cache
FEW_ROWS: Final = 512  # of an expert, on average: above, products take most of a step
LINE: Final = 64  # bytes that a processor reads at once
LARGE_PAGE: Final = 2**21  # bytes, of x86-64 and of ARM
Composed = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def gated_experts(
    rows: Tensor, weights: Tensor, up: Tensor, down: Tensor, indices: Tensor, name: str, composed: Composed
) -> Tensor:
    """Sums (m, o) of the outputs of the experts ``indices`` (m, k), -1 for none, for ``rows`` (m, d).

    ``name`` is the activation's in ``torch.ops.aten``; ``composed`` computes the same from the first four arguments by
    operators that have derivatives of every order.
    """
    if not (torch.is_grad_enabled() and any(each.requires_grad for each in (rows, weights, up, down))):
        return _outputs(rows, weights, up, down, indices, name)[0]
    function: Any = _GatedExperts
    outputs: Tensor = function.apply(rows, weights, up, down, indices, name, composed)
    return outputs


class _GatedExperts(torch.autograd.Function):
    """Outputs of experts, and their first derivatives."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        output, ctx.bounds, saved = _outputs(*inputs[:6])
        ctx.save_for_backward(*inputs[:4], *saved)
        ctx.name, ctx.composed = inputs[5:]
        return output

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        rows, weights, up, down, z, outputs, order, tokens, slots = ctx.saved_tensors
        needs = ctx.needs_input_grad[:4]
        if torch.is_grad_enabled() or is_watched(gradient):  # somebody differentiates this pass, or runs many at once
            return *_composed(ctx.composed, (rows, weights, up, down), needs, gradient), None, None, None
        of_rows = rows.new_empty(len(order), rows.shape[1]) if needs[0] else None
        gradient = gradient.contiguous()
        of_weights = gather_dot(gradient, outputs, slots) if needs[1] else None
        of_up = _gradient_like(up, ctx.bounds) if needs[2] else None
        of_down = _gradient_like(down, ctx.bounds) if needs[3] else None
        factors = weights.reshape(-1, 1)[order]
        for some, segments in _blocks(ctx.bounds, up.shape[2]) if any((needs[0], *needs[2:])) else ():
            u, v = z[some].chunk(2, 1)
            active = getattr(torch.ops.aten, ctx.name)(u)
            of_output = gradient.index_select(0, tokens[some]).mul_(factors[some])
            if of_down is not None:
                _multiply_across(active * v, of_output, segments, of_down)
            if of_up is None and of_rows is None:
                continue
            of_hidden, of_z = torch.empty_like(active), torch.empty_like(z[some])
            _multiply(of_output, down.transpose(1, 2), segments, of_hidden)
            of_u, of_v = of_z.chunk(2, 1)
            torch.mul(of_hidden, active, out=of_v)
            getattr(torch.ops.aten, f"{ctx.name}_backward").grad_input(of_hidden.mul_(v), u, grad_input=of_u)
            if of_up is not None:
                _multiply_across(rows.index_select(0, tokens[some]), of_z, segments, of_up)
            if of_rows is not None:
                _multiply(of_z, up.transpose(1, 2), segments, of_rows[some])
        if of_rows is not None:
            of_rows = gather_sum(torch.ones_like(weights), of_rows, slots)
        return of_rows, of_weights, of_up, of_down, None, None, None


def _outputs(
    rows: Tensor, weights: Tensor, up: Tensor, down: Tensor, indices: Tensor, name: str
) -> tuple[Tensor, list[int], tuple[Tensor, ...]]:
    """Outputs (m, o), where the rows of each expert begin, and what else the backward pass reads."""
    experts, order = torch.sort(indices.reshape(-1).int(), stable=True)  # half the passes of int64
    bounds = torch.searchsorted(experts, torch.arange(len(up) + 1, dtype=torch.int32)).tolist()
    order, bounds = order[bounds[0] : bounds[-1]], [bound - bounds[0] for bound in bounds]
    slots = torch.full((indices.numel(),), -1).scatter_(0, order, torch.arange(len(order))).view_as(indices)
    tokens = order // indices.shape[1]
    z = rows.new_empty(len(order), up.shape[2])
    outputs = rows.new_empty(len(order), down.shape[2])
    for some, segments in _blocks(bounds, up.shape[2]):
        _multiply(rows.index_select(0, tokens[some]), up, segments, z[some])
        u, v = z[some].chunk(2, 1)
        _multiply(getattr(torch.ops.aten, name)(u).mul_(v), down, segments, outputs[some])
    one = len(rows) == 1  # then the call of a kernel takes longer than the sum
    output = torch.mm(weights.index_select(1, order), outputs) if one else gather_sum(weights, outputs, slots)
    return output, bounds, (z, outputs, order, tokens, slots)


def _gradient_like(weight: Tensor, bounds: list[int]) -> Tensor:
    """Memory for the gradient at ``weight`` (E, n, o), in its order, which autograd would else copy; 0 without rows."""
    if bounds[-1] >= FEW_ROWS * len(weight) and all(begin < end for begin, end in pairwise(bounds)):
        return torch.empty_like(weight)
    memory = np.zeros(weight.nbytes + LINE, np.uint8)  # in large pages, which the system fills when they are touched
    start, size = -memory.ctypes.data % LINE, weight.nbytes // len(weight)
    for e, (begin, end) in enumerate(pairwise(bounds)):
        if begin < end:  # one thread touches new pages first: two that meet at one wait for each other
            memory[start + e * size : start + (e + 1) * size : LARGE_PAGE] = 0
    numbers = torch.from_numpy(memory[start : start + weight.nbytes]).view(weight.dtype)
    return numbers.as_strided(weight.shape, torch.empty_like(weight, device="meta").stride())


def _blocks(bounds: list[int], width: int) -> Iterator[tuple[slice, list[Segment]]]:
    """Rows of consecutive experts, few enough for the cache unless they are one expert's, with the segment of each."""
    begin, segments = 0, []
    for e, (first, last) in enumerate(pairwise(bounds)):
        if first < last:
            segments.append((e, first - begin, last - begin))
        if segments and ((last - begin) * width >= NUMBERS_AT_ONCE or last == bounds[-1]):
            yield slice(begin, last), segments
            begin, segments = last, []


def _multiply(x: Tensor, weight: Tensor, segments: list[Segment], out: Tensor) -> None:
    """Rows of x (p, n) times the matrix of their expert in weight (E, n, o), into ``out`` (p, o)."""
    for e, begin, end in segments:
        torch.mm(x[begin:end], weight[e], out=out[begin:end])


def _multiply_across(x: Tensor, y: Tensor, segments: list[Segment], out: Tensor) -> None:
    """Rows of x (p, n), transposed, times rows of y (p, o) of each expert, into its matrix in ``out`` (E, n, o)."""
    for e, begin, end in segments:
        torch.mm(x[begin:end].T, y[begin:end], out=out[e])


def _composed(
    function: Composed, inputs: tuple[Tensor, ...], needs: tuple[bool, ...], gradient: Tensor
) -> list[Tensor | None]:
    """Gradients of ``function`` at the inputs that need them, themselves differentiable."""
    with torch.enable_grad():
        inputs = tuple(each.view_as(each) for each in inputs)  # one may depend on another, or be it
        outputs = function(*inputs)
    wanted = [each for each, need in zip(inputs, needs, strict=True) if need]
    found = iter(torch.autograd.grad(outputs, wanted, gradient, create_graph=torch.is_grad_enabled()))
    return [next(found) if need else None for need in needs]
