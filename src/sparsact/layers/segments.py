"""Products of matrices, one for each segment of rows: tokens in the order of their experts.

``starts`` (E + 1,) holds where each segment begins and the last ends; rows outside every segment give 0. Only
segments that hold rows are computed. The two operators are each other's derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from sparsact.layers.gather import register_gradients


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


register_gradients(
    segment_matmul,
    lambda gradient, x, weight, starts: segment_matmul(gradient, weight.transpose(1, 2), starts),
    lambda gradient, x, weight, starts: segment_outer(x, gradient, starts),
)
register_gradients(
    segment_outer,
    lambda gradient, x, y, starts: segment_matmul(y, gradient.transpose(1, 2), starts),
    lambda gradient, x, y, starts: segment_matmul(x, gradient, starts),
)


def _segments(starts: Tensor) -> Iterator[tuple[int, slice]]:
    """Segments that hold rows."""
    for e, (begin, end) in enumerate(pairwise(starts.tolist())):
        if begin < end:
            yield e, slice(begin, end)
