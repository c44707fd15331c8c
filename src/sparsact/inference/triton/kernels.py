"""The kernels: one program an input, or 16, and a segment of units, which finds the active among them in registers.

Triton compiles these functions for the device: parameters are pointers and numbers of a launch, in capitals the
constants of the compiler. Numbers are added in float32, products of int8 weights in int32.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from typing import Final

import triton
import triton.language as tl

INFINITY: Final = tl.constexpr(float("inf"))
LARGEST: Final = tl.constexpr(3.4028234663852886e38)  # float32
ROUNDING: Final = tl.constexpr(
    1.5 * 2.0**23
)  # added and taken away again, it rounds to the nearest integer, halves to even


@triton.jit
def units_at(places, active, units, start, AT_ONCE: tl.constexpr):
    """The units (AT_ONCE,) at places start, start + 1, ... among the active ones of a segment; 0 past the last."""
    wanted = start + tl.arange(0, AT_ONCE)
    here = (places[None, :] == wanted[:, None]) & active[None, :]
    return tl.sum(tl.where(here, units[None, :], 0), axis=1).to(tl.int64)


@triton.jit
def quantization(low, high):
    """Scale and zero point for inputs between two numbers, as int8_codes.hpp chooses them; NaN and 0 if not finite."""
    low, high = low.to(tl.float32), high.to(tl.float32)
    finite = (tl.abs(low) < INFINITY) & (tl.abs(high) < INFINITY)
    low, high = tl.minimum(low, 0.0), tl.maximum(high, 0.0)
    cutoff, tenth = tl.full((), 6.1e-5, tl.float32), tl.full((), 0.1, tl.float64)
    scale = (high.to(tl.float64) - low.to(tl.float64)) / 127
    scale = tl.where((1 / scale.to(tl.float32).to(tl.float64)).to(tl.float32) == INFINITY, tenth, scale)
    small, amplified = scale < cutoff, (cutoff.to(tl.float64) / scale.to(tl.float32)).to(tl.float32)
    both, none_below = (low != 0) & (high != 0), low == 0
    high = tl.where(small, tl.where(both, high * amplified, tl.where(none_below, cutoff * 127, high)), high)
    low = tl.where(small, tl.where(both, low * amplified, tl.where(none_below, low, -cutoff * 127)), low)
    scale = tl.where(small, cutoff.to(tl.float64), scale)
    below, above = low / scale, high / scale
    zero = tl.where(-tl.abs(below) < 127 - tl.abs(above), -below, 127 - above)
    rounding = tl.full((), 1.5 * 2.0**52, tl.float64)
    zero = tl.minimum(tl.maximum(zero, 0.0), 127.0) + rounding - rounding
    return tl.where(finite, scale.to(tl.float32), float("nan")), tl.where(finite, zero.to(tl.float32), 0.0)


@triton.jit
def factors(numbers, scale, zero, INTEGER: tl.constexpr):
    """What multiplies the weights: the numbers themselves or, of int8 weights, their codes less that of 0."""
    if INTEGER:
        none = tl.zeros_like(numbers).to(tl.float32)
        inverse, zeros = (1 / scale.to(tl.float64)).to(tl.float32)[:, None] + none, zero[:, None] + none
        codes = tl.fma(numbers.to(tl.float32), inverse, zeros) + ROUNDING - ROUNDING
        numbers = (tl.maximum(codes, 0.0) - zeros).to(tl.int8)
    return numbers


@triton.jit
def partial_sums(
    h, least, largest, values, partial, m, s, n, span,
    SEGMENT: tl.constexpr, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr, GATHER: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """partial[part, i]: sum of h[i, j] values[j] over the units j of a part at which one of ROWS inputs is not 0."""
    group, part, tile = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    INTEGER: tl.constexpr = least is not None
    i = group * ROWS + tl.arange(0, ROWS)
    scale, zero = 1.0, 0.0
    if INTEGER:
        low, high = tl.load(least + i, mask=i < m, other=0), tl.load(largest + i, mask=i < m, other=0)
        scale, zero = quantization(low, high)
    numbers = h + i.to(tl.int64)[:, None] * s
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), dtype=partial.dtype.element_ty)
    for first in range(part * span, tl.minimum(s, (part + 1) * span), SEGMENT):
        units = first + tl.arange(0, SEGMENT)
        active = units < s
        if GATHER:
            segment = tl.load(numbers + units[None, :], mask=(i < m)[:, None] & active[None, :], other=0)
            active = tl.max((factors(segment, scale, zero, INTEGER) != 0).to(tl.int32), axis=0) != 0
        places = tl.cumsum(active.to(tl.int32), axis=0) - 1
        count = tl.sum(active.to(tl.int32), axis=0)
        for start in range(0, count, AT_ONCE):
            unit = units_at(places, active, units, start, AT_ONCE)
            taken = start + tl.arange(0, AT_ONCE) < count
            given = tl.load(numbers + unit[None, :], mask=(i < m)[:, None] & taken[None, :], other=0)
            factor = factors(given, scale, zero, INTEGER)
            wanted = taken[:, None] & (columns < n)[None, :]
            rows = tl.load(values + unit[:, None] * n + columns[None, :], mask=wanted, other=0)
            if ROWS == 1:
                sums += tl.sum(tl.trans(factor).to(sums.dtype) * rows.to(sums.dtype), axis=0)[None, :]
            elif NARROW:
                sums = tl.dot(factor, rows, sums, input_precision="ieee", out_dtype=sums.dtype)
            else:
                sums = tl.dot(factor.to(tl.float32), rows.to(tl.float32), sums, input_precision="ieee")
    row = part.to(tl.int64) * m + i
    tl.store(partial + row[:, None] * n + columns[None, :], sums, mask=(i < m)[:, None] & (columns < n)[None, :])


@triton.jit
def total(partial, least, largest, scales, bias, out, n, parts, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr):
    """out[i]: the partial sums of all parts, times the scales of int8 weights and inputs, and bias."""
    i, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = tile * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((COLUMNS,), dtype=partial.dtype.element_ty)
    for start in range(0, parts, AT_ONCE):
        part = start + tl.arange(0, AT_ONCE)
        row = part.to(tl.int64) * tl.num_programs(0) + i
        wanted = (part < parts)[:, None] & (columns < n)[None, :]
        sums += tl.sum(tl.load(partial + row[:, None] * n + columns[None, :], mask=wanted, other=0), axis=0)
    added = tl.zeros((COLUMNS,), dtype=tl.float32)
    if bias is not None:
        added = tl.load(bias + columns, mask=columns < n, other=0).to(tl.float32)
    if least is not None:
        scale = quantization(tl.load(least + i), tl.load(largest + i))[0] * tl.load(
            scales + columns, mask=columns < n, other=0
        )
        scale = tl.where(scale == INFINITY, LARGEST, scale)  # so that a sum of 0 adds nothing
        result = tl.fma(sums.to(tl.float32), scale, added)
    else:
        result = sums + added
    tl.store(out + i * n + columns, result.to(out.dtype.element_ty), mask=columns < n)


@triton.jit
def dots(
    x, weight, bias, on, out, s, d,
    GATE: tl.constexpr, SEGMENT: tl.constexpr, AT_ONCE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """out[i, j]: <x[i], weight[j]> + bias[j] for the units j of a segment where on[i, j] is not zero, else 0.

    With GATE, NaN in place of 0 for an input that is not finite.
    """
    i, segment = tl.program_id(0).to(tl.int64), tl.program_id(1)
    units = segment * SEGMENT + tl.arange(0, SEGMENT)
    active = tl.load(on + i * s + units, mask=units < s, other=0) != 0
    off = tl.zeros((SEGMENT,), dtype=tl.float32)
    if GATE:
        for first in range(0, d, DEPTH):
            depth = first + tl.arange(0, DEPTH)
            numbers = tl.load(x + i * d + depth, mask=depth < d, other=0).to(tl.float32)
            off += tl.where(tl.min((tl.abs(numbers) < INFINITY).to(tl.int32), axis=0) == 0, float("nan"), 0.0)
    tl.store(out + i * s + units, off.to(out.dtype.element_ty), mask=(units < s) & (active == 0))
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
