"""The kernels: one program an input and a segment of units, which finds the active ones among them in registers.

Triton compiles these functions for the device: parameters are pointers and numbers of a launch, in capitals the
constants of the compiler. Numbers are added in float32.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

import triton
import triton.language as tl


@triton.jit
def units_at(places, active, units, start, AT_ONCE: tl.constexpr):
    """The units (AT_ONCE,) at places start, start + 1, ... among the active ones of a segment; 0 past the last."""
    wanted = start + tl.arange(0, AT_ONCE)
    here = (places[None, :] == wanted[:, None]) & active[None, :]
    return tl.sum(tl.where(here, units[None, :], 0), axis=1).to(tl.int64)


@triton.jit
def partial_sums(h, values, partial, s, n, SEGMENT: tl.constexpr, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr):
    """partial[segment, i]: sum of h[i, j] values[j] over the units j of a segment at which h[i] is not zero."""
    i, segment, tile = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    numbers = h + i.to(tl.int64) * s
    units = segment * SEGMENT + tl.arange(0, SEGMENT)
    active = tl.load(numbers + units, mask=units < s, other=0) != 0
    places = tl.cumsum(active.to(tl.int32), axis=0) - 1
    count = tl.sum(active.to(tl.int32), axis=0)
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(0, count, AT_ONCE):
        unit = units_at(places, active, units, start, AT_ONCE)
        taken = start + tl.arange(0, AT_ONCE) < count
        factor = tl.load(numbers + unit, mask=taken, other=0).to(tl.float32)
        wanted = taken[:, None] & (columns < n)[None, :]
        rows = tl.load(values + unit[:, None] * n + columns[None, :], mask=wanted, other=0).to(tl.float32)
        sums += tl.sum(factor[:, None] * rows, axis=0)
    row = segment.to(tl.int64) * tl.num_programs(0) + i
    tl.store(partial + row * n + columns, sums, mask=columns < n)


@triton.jit
def total(partial, bias, out, n, segments, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr):
    """out[i]: the partial sums of all segments, and bias."""
    i, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((COLUMNS,), dtype=tl.float32)
    for start in range(0, segments, AT_ONCE):
        segment = start + tl.arange(0, AT_ONCE)
        row = segment.to(tl.int64) * tl.num_programs(0) + i
        wanted = (segment < segments)[:, None] & (columns < n)[None, :]
        sums += tl.sum(tl.load(partial + row[:, None] * n + columns[None, :], mask=wanted, other=0), axis=0)
    if bias is not None:
        sums += tl.load(bias + columns, mask=columns < n, other=0).to(tl.float32)
    tl.store(out + i * n + columns, sums.to(out.dtype.element_ty), mask=columns < n)


@triton.jit
def dots(x, weight, bias, on, out, s, d, SEGMENT: tl.constexpr, AT_ONCE: tl.constexpr, DEPTH: tl.constexpr):
    """out[i, j]: <x[i], weight[j]> + bias[j] for the units j of a segment where on[i, j] is not zero, else 0."""
    i, segment = tl.program_id(0).to(tl.int64), tl.program_id(1)
    units = segment * SEGMENT + tl.arange(0, SEGMENT)
    active = tl.load(on + i * s + units, mask=units < s, other=0) != 0
    tl.store(out + i * s + units, tl.zeros((SEGMENT,), out.dtype.element_ty), mask=(units < s) & (active == 0))
    places = tl.cumsum(active.to(tl.int32), axis=0) - 1
    count = tl.sum(active.to(tl.int32), axis=0)
    for start in range(0, count, AT_ONCE):
        unit = units_at(places, active, units, start, AT_ONCE)
        taken = start + tl.arange(0, AT_ONCE) < count
        sums = tl.zeros((AT_ONCE,), dtype=tl.float32)
        for first in range(0, d, DEPTH):
            depth = first + tl.arange(0, DEPTH)
            numbers = tl.load(x + i * d + depth, mask=depth < d, other=0).to(tl.float32)
            wanted = taken[:, None] & (depth < d)[None, :]
            rows = tl.load(weight + unit[:, None] * d + depth[None, :], mask=wanted, other=0).to(tl.float32)
            sums += tl.sum(numbers[None, :] * rows, axis=1)
        if bias is not None:
            sums += tl.load(bias + unit, mask=taken, other=0).to(tl.float32)
        tl.store(out + i * s + unit, sums.to(out.dtype.element_ty), mask=taken)
