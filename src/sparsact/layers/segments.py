"""Products of matrices, one for each segment of rows: tokens in the order of their experts.

``starts`` (E + 1,) holds where each segment begins and the last ends; rows outside every segment give 0. Only
segments that hold rows are computed. The two operators are each other's derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("sparsact::segment_matmul", mutates_args=())
def segment_matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    """Rows of x (p, n) of segment e times weight[e], of weight (E, n, o): (p, o)."""
    products = x.new_zeros(x.shape[0], weight.shape[2])
    for e, rows in _segments(starts):
        products[rows] = x[rows] @ weight[e]
    return products


@torch.library.custom_op("sparsact::segment_outer", mutates_args=())
def segment_outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    """Products (E, n, o) of the rows of x (p, n), transposed, with those of y (p, o), for each segment."""
    products = x.new_zeros(starts.shape[0] - 1, x.shape[1], y.shape[1])
    for e, rows in _segments(starts):
        products[e] = x[rows].T @ y[rows]
    return products


@segment_matmul.register_fake
def _(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[2])


@segment_outer.register_fake
def _(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    return x.new_empty(starts.shape[0] - 1, x.shape[1], y.shape[1])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _matmul_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, starts = ctx.saved_tensors
    return (
        segment_matmul(gradient, weight.transpose(1, 2), starts) if ctx.needs_input_grad[0] else None,
        segment_outer(x, gradient, starts) if ctx.needs_input_grad[1] else None,
        None,
    )


def _outer_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, y, starts = ctx.saved_tensors
    return (
        segment_matmul(y, gradient.transpose(1, 2), starts) if ctx.needs_input_grad[0] else None,
        segment_matmul(x, gradient, starts) if ctx.needs_input_grad[1] else None,
        None,
    )


segment_matmul.register_autograd(_matmul_gradients, setup_context=_save)
segment_outer.register_autograd(_outer_gradients, setup_context=_save)


def _segments(starts: Tensor) -> Iterator[tuple[int, slice]]:
    """Segments that hold rows."""
    for e, (begin, end) in enumerate(pairwise(starts.tolist())):
        if begin < end:
            yield e, slice(begin, end)
