"""Exact sums of products of doubles on a fixed grid of exponents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def exponent_range(values: NDArray[np.float64]) -> tuple[int, int]:
    """(low, high) such that every value is a multiple of 2**low and below 2**high in magnitude; (0, 0) for zeros."""
    mantissa, exponent = _odd_mantissas(values[values != 0])
    if not len(mantissa):
        return 0, 0
    high = np.frexp(mantissa.astype(np.float64))[1] + exponent
    return int(exponent.min()), int(high.max())


def add_products(
    limbs: NDArray[np.int64],
    base: int,
    index: NDArray[np.uint64] | None,
    a: NDArray[np.float64],
    b: NDArray[np.float64] | None,
    c: NDArray[np.float64] | None,
) -> None:
    """Add the exact a[i] * b[i] * c[i] to column index[i] of ``limbs``: limb l counts units of 2**(32 * (base + l)).

    No rounding: each mantissa is cut into 27-bit halves, each product of halves into digits of 32 bits.
    """
    column = np.arange(len(a)) if index is None else index.astype(np.intp)
    parts = _halves(a)
    for factor in (b, c):
        if factor is not None:
            parts = [
                (half * y, exponent + y_exponent)
                for mantissa, exponent in parts
                for half, exponent in _halved(mantissa, exponent)
                for y, y_exponent in _halves(factor)
            ]
    for mantissa, exponent in parts:
        _add_scaled(limbs, base, column, mantissa, exponent)


def _odd_mantissas(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.where(mantissa == 0, 0, np.bitwise_count((mantissa & -mantissa) - 1)).astype(np.int64)
    return mantissa >> zeros, exponent + zeros - 53


def _halves(values: NDArray[np.float64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    return _halved(*_odd_mantissas(values))


def _halved(
    mantissa: NDArray[np.int64], exponent: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    magnitude, sign = np.abs(mantissa), np.sign(mantissa)
    return [(sign * (magnitude & (2**27 - 1)), exponent), (sign * (magnitude >> 27), exponent + 27)]


def _add_scaled(
    limbs: NDArray[np.int64],
    base: int,
    column: NDArray[np.intp],
    mantissa: NDArray[np.int64],
    exponent: NDArray[np.int64],
) -> None:
    magnitude, sign = np.abs(mantissa), np.sign(mantissa)
    limb, shift = np.divmod(exponent - 32 * base, 32)
    for half in range(2):
        digits = (magnitude >> 32 * half & 0xFFFFFFFF) << shift
        for place, digit in ((half, digits & 0xFFFFFFFF), (half + 1, digits >> 32)):
            some = digit != 0
            np.add.at(limbs, (limb[some] + place, column[some]), sign[some] * digit[some])
