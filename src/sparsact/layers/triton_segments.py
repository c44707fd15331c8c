"""Products of segments on a GPU, in one launch and without waiting for it: what no operator of torch has in float32.

Sums are made in float32, in an order that the shapes fix. Needs Triton, which CUDA builds of torch bring.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import os
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
TILE: dict[str, Any] = {"ROWS": 64, "COLUMNS": 64, "DEPTH": 32}


@triton.jit
def products(
    x, weight, starts, out, m, n, o, n_segments, x_row, x_column, segment_step, w_row, w_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SEGMENTS: tl.constexpr, PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """A tile of the products (m, o): of its rows those of each segment with that segment's matrix."""
    top = tl.program_id(0) * ROWS
    rows, columns = (top + tl.arange(0, ROWS)).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    segments = tl.arange(0, SEGMENTS)
    ends = tl.load(starts + 1 + segments, mask=segments < n_segments, other=m + ROWS)
    first, last = tl.sum((ends <= top).to(tl.int32)), tl.sum((ends < tl.minimum(top + ROWS, m)).to(tl.int32))
    found = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for segment in range(first, tl.minimum(last + 1, n_segments)):
        here = (rows >= tl.load(starts + segment)) & (rows < tl.load(starts + segment + 1))
        matrix = weight + (tl.full((), 0, tl.int64) + segment) * segment_step
        sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for begin in range(0, n, DEPTH):
            depth = (begin + tl.arange(0, DEPTH)).to(tl.int64)
            a = x + rows[:, None] * x_row + depth[None, :] * x_column
            b = matrix + depth[:, None] * w_row + columns[None, :] * w_column
            left = tl.load(a, mask=here[:, None] & (depth < n)[None, :], other=0)
            right = tl.load(b, mask=(depth < n)[:, None] & (columns < o)[None, :], other=0)
            if WIDEN:
                left, right = left.to(tl.float32), right.to(tl.float32)
            sums = tl.dot(left, right, sums, input_precision=PRECISION)
        found = tl.where(here[:, None], sums, found)
    into = out + rows[:, None] * o + columns[None, :]
    tl.store(into, found.to(out.dtype.element_ty), mask=(rows < m)[:, None] & (columns < o)[None, :])


@triton.jit
def outers(
    x, y, starts, out, n, o, x_row, x_column, y_row, y_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """A tile of one segment's product (n, o): its rows of x, transposed, with those of y."""
    segment = tl.program_id(0).to(tl.int64)
    rows = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    columns = (tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    begin, end = tl.load(starts + segment).to(tl.int32), tl.load(starts + segment + 1).to(tl.int32)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for first in range(begin, end, DEPTH):
        depth = (first + tl.arange(0, DEPTH)).to(tl.int64)
        a = x + rows[:, None] * x_column + depth[None, :] * x_row
        b = y + depth[:, None] * y_row + columns[None, :] * y_column
        left = tl.load(a, mask=(rows < n)[:, None] & (depth < end)[None, :], other=0)
        right = tl.load(b, mask=(depth < end)[:, None] & (columns < o)[None, :], other=0)
        if WIDEN:
            left, right = left.to(tl.float32), right.to(tl.float32)
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    into = out + segment * n * o + rows[:, None] * o + columns[None, :]
    tl.store(into, sums.to(out.dtype.element_ty), mask=(rows < n)[:, None] & (columns < o)[None, :])


def matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    """Rows of x (m, n) of segment e times weight[e], of weight (E, n, o): (m, o)."""
    (m, n), (n_segments, _, o) = x.shape, weight.shape
    out = x.new_empty(m, o)
    if out.numel():
        grid = triton.cdiv(m, TILE["ROWS"]), triton.cdiv(o, TILE["COLUMNS"])
        settings = {**_settings(), "SEGMENTS": triton.next_power_of_2(n_segments)}
        with torch.cuda.device(x.get_device()):
            products[grid](x, weight, starts, out, m, n, o, n_segments, *x.stride(), *weight.stride(), **settings)
    return out


def outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    """Products (E, n, o) of the rows of x (m, n), transposed, with those of y (m, o), for each segment."""
    n, o, n_segments = x.shape[1], y.shape[1], len(starts) - 1
    out = x.new_empty(n_segments, n, o)
    if out.numel():
        grid = n_segments, triton.cdiv(n, TILE["ROWS"]), triton.cdiv(o, TILE["COLUMNS"])
        with torch.cuda.device(x.get_device()):
            outers[grid](x, y, starts, out, n, o, *x.stride(), *y.stride(), **_settings())
    return out


def _settings() -> dict[str, Any]:
    """Tiles; and float32 multiplied as torch does it: exactly, unless it was told that TF32 will do."""
    precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    widen = os.environ.get("TRITON_INTERPRET") == "1"  # the interpreter multiplies no bfloat16
    return {**TILE, "PRECISION": precision, "WIDEN": widen, "enable_fp_fusion": True}
