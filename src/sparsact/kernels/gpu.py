"""Kernels of routed layers on a GPU, in Triton, which CUDA builds of torch bring: operators of torch call them.

Nothing waits for the device, so that a CUDA graph may hold a step of training. Numbers are added in float32, in an
order that the shapes and the selection fix: no atomic additions. A row that does not exist gives NaN.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor

DTYPES: Final[tuple[torch.dtype, ...]] = (torch.float32, torch.bfloat16, torch.float16)
TILE: Final[dict[str, Any]] = {"ROWS": 64, "COLUMNS": 64, "DEPTH": 32}
MOST_COLUMNS: Final = 1024  # of a row at once
CROWDED: Final = 64  # contributions to a row, on average, beyond which one program would add too many
FUSED: Final = {"enable_fp_fusion": True}  # else each version of Triton has a default of its own


@triton.jit
def sums_of_rows(a, values, indices, out, t, n, k, COLUMNS: tl.constexpr):
    """out[i]: sum over the places j of a[i, j] * values[indices[i, j]]."""
    i, columns = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for j in range(k):
        row, factor = tl.load(indices + i * k + j), tl.load(a + i * k + j).to(tl.float32)
        column = tl.where((row >= 0) & (row < t), columns, n)
        numbers = tl.load(values + row * n + column, mask=column < n, other=0)
        total += tl.where(row < 0, 0.0, tl.where(row < t, factor * numbers.to(tl.float32), float("nan")))
    tl.store(out + i * n + columns, total.to(out.dtype.element_ty), mask=columns < n)


@triton.jit
def dots_of_rows(x, weight, indices, out, t, n, k, COLUMNS: tl.constexpr):
    """out[i, j]: <x[i], weight[indices[i, j]]>."""
    i, j = tl.program_id(0).to(tl.int64) // k, tl.program_id(0) % k
    row, total = tl.load(indices + i * k + j), tl.zeros((COLUMNS,), dtype=tl.float32)
    for first in range(0, n, COLUMNS):
        columns = tl.where((row >= 0) & (row < t), first + tl.arange(0, COLUMNS), n)
        left = tl.load(x + i * n + columns, mask=columns < n, other=0).to(tl.float32)
        total += left * tl.load(weight + row * n + columns, mask=columns < n, other=0).to(tl.float32)
    dot = tl.where(row < t, tl.sum(total, axis=0), float("nan"))
    tl.store(out + i * k + j, dot.to(out.dtype.element_ty))


@triton.jit
def sums_of_places(a, x, places, bounds, out, n, k, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr):
    """out[r]: sum of a[i, j] * x[i] over the places (i, j) that name row r, which come one after the other."""
    r, columns = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin, end = tl.load(bounds + r), tl.load(bounds + r + 1)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for first in range(begin, end, AT_ONCE):
        at = first + tl.arange(0, AT_ONCE)
        place = tl.load(places + at, mask=at < end, other=0)
        factors = tl.load(a + place, mask=at < end, other=0).to(tl.float32)
        wanted = (at < end)[:, None] & (columns < n)[None, :]
        rows = tl.load(x + (place // k)[:, None] * n + columns[None, :], mask=wanted, other=0)
        total += tl.sum(factors[:, None] * rows.to(tl.float32), axis=0)
    tl.store(out + r * n + columns, total.to(out.dtype.element_ty), mask=columns < n)


@triton.jit
def largest(values, places, t, k, UNITS: tl.constexpr, BITS: tl.constexpr):
    """places[i]: the k largest of a row, in increasing order; NaN is the largest, of equal ones the first are taken."""
    i, units = tl.program_id(0).to(tl.int64), tl.arange(0, UNITS)
    numbers = tl.load(values + i * t + units, mask=units < t, other=0).to(tl.float32)
    bits = tl.where(numbers == 0, 0.0, numbers).to(tl.int32, bitcast=True)
    keys = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64) + 2147483648  # in the order of the numbers
    keys = tl.where(units < t, tl.where(numbers != numbers, 4294967295, keys), -1)
    least = tl.full((), 0, tl.int64)
    for step in range(BITS):
        higher = least + (tl.full((), 2147483648, tl.int64) >> step)
        least = tl.where(tl.sum((keys >= higher).to(tl.int32), axis=0) >= k, higher, least)
    keys, least = keys >> (32 - BITS), least >> (32 - BITS)  # the rest is 0, but 1 in keys of negative numbers
    above, equal = keys > least, keys == least
    room = k - tl.sum(above.to(tl.int32), axis=0)
    taken = above | (equal & (tl.cumsum(equal.to(tl.int32), axis=0) <= room))
    place = tl.cumsum(taken.to(tl.int32), axis=0) - 1
    tl.store(places + i * k + place, units.to(tl.int64), mask=taken)


@triton.jit
def with_gate(gradient, z, out, h, GELU: tl.constexpr, COLUMNS: tl.constexpr):
    """out[i]: f(u) v of z[i] = (u, v), for f SiLU or GELU; where a gradient at that is given, the one at z[i]."""
    i, columns = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    u = tl.load(z + i * 2 * h + columns, mask=columns < h, other=0).to(tl.float32)
    v = tl.load(z + i * 2 * h + h + columns, mask=columns < h, other=0).to(tl.float32)
    if GELU:
        share = 0.5 + 0.5 * tl.erf(u * 0.7071067811865476)
        slope = share + u * 0.3989422804014327 * tl.exp(-0.5 * u * u)
    else:
        share = 1 / (1 + tl.exp(-u))
        slope = share * (1 + u * (1 - share))
    if gradient is None:
        tl.store(out + i * h + columns, (u * share * v).to(out.dtype.element_ty), mask=columns < h)
    else:
        given = tl.load(gradient + i * h + columns, mask=columns < h, other=0).to(tl.float32)
        tl.store(out + i * 2 * h + columns, (given * v * slope).to(out.dtype.element_ty), mask=columns < h)
        tl.store(out + i * 2 * h + h + columns, (given * u * share).to(out.dtype.element_ty), mask=columns < h)


@triton.jit
def products(
    x, weight, starts, out, m, n, o, n_segments, x_row, x_column, segment_step, w_row, w_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SEGMENTS: tl.constexpr, PRECISION: tl.constexpr,
    WIDEN: tl.constexpr,
):  # fmt: skip
    """Compute a tile of the products (m, o): rows of each segment with that segment's matrix."""
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
    """Compute a tile of one segment's product (n, o): its rows of x, transposed, with its rows of y."""
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


@triton.jit
def clear(out, end, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Zeros in the rows from the number at ``end`` on."""
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    wanted = ((rows >= tl.load(end)) & (rows < m))[:, None] & (columns < n)[None, :]
    into = out + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(into, tl.zeros((ROWS, COLUMNS), dtype=out.dtype.element_ty), mask=wanted)


def gather_sum(a: Tensor, values: Tensor, indices: Tensor) -> Tensor:
    """Sums (m, n) of the rows of values (t, n) that indices (m, k) name, each times its number in a (m, k)."""
    (m, k), (t, n) = indices.shape, values.shape
    out, columns = a.new_empty(m, n), _columns(n)
    launch(sums_of_rows, (m, triton.cdiv(n, columns)), a, values, indices, out, t, n, k, COLUMNS=columns)
    return out


def gather_dot(x: Tensor, weight: Tensor, indices: Tensor) -> Tensor:
    """Products (m, k) of inputs x (m, n) with the rows of weight (t, n) that indices (m, k) name; 0 where -1."""
    (m, k), (t, n) = indices.shape, weight.shape
    out = x.new_empty(m, k)
    launch(dots_of_rows, (m * k,), x, weight, indices, out, t, n, k, COLUMNS=_columns(n))
    return out


def scatter_outer(a: Tensor, x: Tensor, indices: Tensor, rows: int) -> Tensor | None:
    """Sums (rows, n) of a[i, j] * x[i] over the places of indices (m, k) that name each row; None where too many do."""
    n, n_places = x.shape[1], indices.numel()
    if n_places > CROWDED * rows:
        return None
    named, places = torch.sort(indices.flatten().int(), stable=True)
    bounds = torch.searchsorted(named, torch.arange(rows + 1, device=x.device, dtype=torch.int32))
    out, at_once = x.new_empty(rows, n), 1 if n_places <= rows else 8
    columns = min(_columns(n), MOST_COLUMNS // at_once)
    grid = rows, triton.cdiv(n, columns)
    settings: dict[str, Any] = {"AT_ONCE": at_once, "COLUMNS": columns}
    launch(sums_of_places, grid, a, x, places, bounds, out, n, indices.shape[1], **settings)
    return out


def top_k(values: Tensor, k: int) -> Tensor:
    """Places (m, k), in increasing order, of the k largest of each row of values (m, t), of t up to 32,768."""
    m, t = values.shape
    places = torch.empty((m, k), dtype=torch.int64, device=values.device)
    units = triton.next_power_of_2(t)
    settings: dict[str, Any] = {"UNITS": units, "BITS": 16 if values.dtype == torch.bfloat16 else 32}
    launch(largest, (m,), values, places, t, k, **settings, num_warps=min(16, max(1, units // 512)))
    return places


def gated(z: Tensor, name: str, gradient: Tensor | None = None) -> Tensor:
    """``f(u) * v`` (m, h) of z (m, 2 h) = (u, v), with f "silu" or "gelu"; given a gradient at it, that at z."""
    m, h = len(z), z.shape[1] // 2
    out, columns = z.new_empty(m, h if gradient is None else 2 * h), _columns(h)
    launch(with_gate, (m, triton.cdiv(h, columns)), gradient, z, out, h, GELU=name == "gelu", COLUMNS=columns)
    return out


def segment_matmul(x: Tensor, weight: Tensor, starts: Tensor) -> Tensor:
    """Rows of x (m, n) of segment e times weight[e], of weight (E, n, o): (m, o); 0 past the last segment."""
    (m, n), (n_segments, _, o) = x.shape, weight.shape
    out = x.new_empty(m, o)
    grid = triton.cdiv(m, TILE["ROWS"]), triton.cdiv(o, TILE["COLUMNS"])
    settings = {**_tiles(), "SEGMENTS": triton.next_power_of_2(n_segments)}
    sizes = m, n, o, n_segments, *x.stride(), *weight.stride()
    launch(products, grid, x, weight, starts, out, *sizes, contiguous=False, **settings)
    return out


def segment_outer(x: Tensor, y: Tensor, starts: Tensor) -> Tensor:
    """Products (E, n, o) of the rows of x (m, n), transposed, with the rows of y (m, o), for each segment."""
    n, o, n_segments = x.shape[1], y.shape[1], len(starts) - 1
    out = x.new_empty(n_segments, n, o)
    grid = n_segments, triton.cdiv(n, TILE["ROWS"]), triton.cdiv(o, TILE["COLUMNS"])
    launch(outers, grid, x, y, starts, out, n, o, *x.stride(), *y.stride(), contiguous=False, **_tiles())
    return out


def clear_from(out: Tensor, end: Tensor) -> None:
    """Put zeros into the rows of ``out`` (m, n), contiguous, from the number ``end`` (1,) on."""
    m, n = out.shape
    grid = triton.cdiv(m, TILE["ROWS"]), triton.cdiv(n, TILE["COLUMNS"])
    launch(clear, grid, out, end, m, n, ROWS=TILE["ROWS"], COLUMNS=TILE["COLUMNS"], contiguous=False)


@cache
def works(device: torch.device) -> bool:
    """Whether Triton compiles for a device and its kernels run there: it needs a C compiler, and not too old a GPU."""
    try:
        one = torch.ones(1, 1, device=device)
        gather_sum(one, one, torch.zeros(1, 1, dtype=torch.int64, device=device))
    except Exception:  # of the compiler, the system or the driver, in each version others
        return False
    return True


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, contiguous: bool = True, **settings: Any) -> None:
    """Run a kernel, on the device of its first tensor, unless there is nothing to do."""
    if contiguous:
        arguments = tuple(one.contiguous() if isinstance(one, Tensor) else one for one in arguments)
    if 0 not in grid:
        with torch.cuda.device(next(one for one in arguments if one is not None).get_device()):
            kernel[grid](*arguments, **settings, **FUSED)


def _columns(n: int) -> int:
    return min(MOST_COLUMNS, max(16, int(triton.next_power_of_2(n))))


def _tiles() -> dict[str, Any]:
    """Tiles; and float32 multiplied as torch does it: exactly, unless TF32 is allowed."""
    backends: Any = torch.backends
    asked = getattr(backends.cuda.matmul, "fp32_precision", None)  # since torch 2.9; the getters of before then raise
    if asked == "none":  # as for all backends
        asked = backends.fp32_precision
    is_tf32 = backends.cuda.matmul.allow_tf32 if asked is None else asked == "tf32"
    precision = "tf32" if is_tf32 else "ieee"
    widen = os.environ.get("TRITON_INTERPRET") == "1"  # the interpreter multiplies no bfloat16
    return {**TILE, "PRECISION": precision, "WIDEN": widen}
