"""Exact sums of products of doubles on a fixed grid of exponents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def exponent_range(values: Array) -> tuple[int, int]:
    """Exponents (low, high): all values are multiples of 2**low and below 2**high in size; (0, 0) if all are 0.

    Parameters
    ----------
    values : ndarray, float64
        Finite numbers.

    Returns
    -------
    low, high : int
        Exponents of 2.
    """
    low, high = dispatch.chosen.exponent_range(values)
    return low, high


@dispatch.kernel
def _exponent_range(values: Array) -> tuple[int, int]:
    mantissa, exponent = _odd_mantissas(values[values != 0])
    if not len(mantissa):
        return 0, 0
    high = np.frexp(mantissa.astype(np.float64))[1] + exponent
    return int(exponent.min()), int(high.max())


def add_products(
    limbs: Integers, base: int, index: NDArray[np.uint64] | None, a: Array, b: Array | None, c: Array | None = None
) -> None:
    """Add a[i] * b[i] * c[i] exactly to column index[i] of ``limbs`` (L, cells), in place; None is column i.

    Limb l counts units of 2**(32 * (base + l)); the caller has made room for every digit of every product.

    Parameters
    ----------
    limbs : ndarray of shape (L, cells), int64
        Changed in place.
    base : int
        Place of the lowest limb.
    index : ndarray of shape (m,), uint64, or None
        Columns of ``limbs``.
    a : ndarray of shape (m,), float64
        First factors.
    b : ndarray of shape (m,), float64, or None
        Second factors; None for ones.
    c : ndarray of shape (m,), float64, or None
        Third factors, only with second ones; None for ones.
    """
    dispatch.chosen.add_products(limbs, base, index, a, b, c)


@dispatch.kernel
def _add_products(
    limbs: Integers, base: int, index: NDArray[np.uint64] | None, a: Array, b: Array | None, c: Array | None
) -> None:
    # No rounding: each mantissa is cut into 27-bit halves, each product of halves into digits of 32 bits.
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


def _odd_mantissas(values: Array) -> tuple[Integers, Integers]:
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.where(mantissa == 0, 0, np.bitwise_count((mantissa & -mantissa) - 1)).astype(np.int64)
    return mantissa >> zeros, exponent + zeros - 53


def _halves(values: Array) -> list[tuple[Integers, Integers]]:
    return _halved(*_odd_mantissas(values))


def _halved(mantissa: Integers, exponent: Integers) -> list[tuple[Integers, Integers]]:
    magnitude, sign = np.abs(mantissa), np.sign(mantissa)
    return [(sign * (magnitude & (2**27 - 1)), exponent), (sign * (magnitude >> 27), exponent + 27)]


def _add_scaled(limbs: Integers, base: int, column: NDArray[np.intp], mantissa: Integers, exponent: Integers) -> None:
    magnitude, sign = np.abs(mantissa), np.sign(mantissa)
    limb, shift = np.divmod(exponent - 32 * base, 32)
    for half in range(2):
        digits = (magnitude >> 32 * half & 0xFFFFFFFF) << shift
        for place, digit in ((half, digits & 0xFFFFFFFF), (half + 1, digits >> 32)):
            some = digit != 0
            np.add.at(limbs, (limb[some] + place, column[some]), sign[some] * digit[some])
