r"""Exact signs of :math:`\langle w_j, x \rangle - b_j`, where rounding could decide otherwise.

A float64 is a rational number, so the sign is a fact about the numbers stored. Floating point finds it unless the
result lies within the rounding error of its sum; only such sums are done again, without rounding.

References
----------
.. [H] N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, Section 3.1.
.. [S] J. R. Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Weights: TypeAlias = Any  # an (s, n) float64 array or scipy.sparse.csr_array


def dense(W: Weights) -> NDArray[np.float64]:
    """The weights as an array."""
    return np.asarray(W.toarray() if isinstance(W, sp.csr_array) else W)


def exact_signs(X: NDArray[np.float64], W: Weights, b: NDArray[np.float64]) -> NDArray[np.int8]:
    """Sign (-1, 0 or 1) of every pre-activation at the rows of ``X``, shape (m, s).

    At signs: one product of matrices, and two for units that rounding could mislead, each of them exact. At other
    points, and for numbers of very different sizes: a product for the bounds of the error, and an exact sum for each
    pre-activation that lies within its bound.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is unsure
        values = np.asarray((W @ X.T).T) - b
    signs = (values > 0).astype(np.int8) - (values < 0).astype(np.int8)
    if _are_signs(X):
        units = np.flatnonzero(~is_exact(W, b))
        (high, high_b), (low, low_b), fits = two_parts(W[units], b[units])
        sums = (np.asarray((high @ X.T).T) - high_b) + (np.asarray((low @ X.T).T) - low_b)
        signs[:, units[fits]] = np.sign(sums[:, fits])
        units = units[~fits]
    else:  # no longer sums of +-w
        units = np.flatnonzero(abs(W).max(axis=1) > 0 if isinstance(W, np.ndarray) else np.diff(W.indptr) > 0)
    if not len(units):
        return signs
    terms = W.shape[1] + 1
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.asarray((abs(W[units]) @ np.abs(X).T).T) + np.abs(b[units])
        bound *= 2 * terms * np.finfo(np.float64).eps
        bound += terms * np.finfo(np.float64).smallest_normal  # products that underflow
        doubt = ~(np.abs(values[:, units]) > bound)
    for row, place in np.argwhere(doubt):
        signs[row, units[place]] = _sign(X[row], *_row(W, units[place]), b[units[place]])
    return signs


def tolerances(X: NDArray[Any], W: Weights, b: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far rounding can move each unit's pre-activation at any row of ``X``, (s,).

    0 if all its sums are exact; infinite if one could overflow.
    """
    largest = float(max(X.max(initial=0), -float(X.min(initial=0))))
    terms = W.shape[1] + 1
    with np.errstate(over="ignore"):
        bound = np.asarray(abs(W).sum(axis=1)) * largest + np.abs(b)
        bound = bound * (2 * terms * np.finfo(np.float64).eps) + terms * np.finfo(np.float64).smallest_normal
    if largest <= 1 and _are_signs(X):
        bound[is_exact(W, b)] = 0.0
    return np.asarray(bound)


def _are_signs(X: NDArray[Any]) -> bool:
    """Whether every number is -1, 0 or 1; a part at a time, so that what it writes stays in the cache."""
    parts = (X[start : start + 64] for start in range(0, len(X), 64))
    return all(np.array_equal(part, np.sign(part)) for part in parts)


def is_exact(W: Weights, b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Units whose sums ``+-w_1 +- ... +- w_n - b`` floating point finds without rounding, in any order, (s,)."""
    lowest, span = grids(W, b)
    return np.asarray(span - lowest <= 53)


def two_parts(
    W: Weights, b: NDArray[np.float64]
) -> tuple[tuple[Weights, NDArray[np.float64]], tuple[Weights, NDArray[np.float64]], NDArray[np.bool_]]:
    """Weights and thresholds as sums ``high + low`` of parts whose own sums are exact: (W, b) high, (W, b) low, (s,).

    So the sign of ``(W_high x - b_high) + (W_low x - b_low)`` is the true one at every point of the cube, by two
    products of matrices. That holds for units whose numbers span about 100 binary digits or fewer: the last array.
    """
    lowest, span = grids(W, b)
    step = span - 52
    high_b = np.ldexp(np.rint(np.ldexp(b, -step)), step)
    if isinstance(W, sp.csr_array):
        shift = np.repeat(step, np.diff(W.indptr))
        data = np.ldexp(np.rint(np.ldexp(W.data, -shift)), shift)
        high: Weights = sp.csr_array((data, W.indices, W.indptr), shape=W.shape)
        low: Weights = sp.csr_array((W.data - data, W.indices, W.indptr), shape=W.shape)
    else:
        high = np.ldexp(np.rint(np.ldexp(W, -step[:, None])), step[:, None])
        low = W - high
    fits = span - lowest + int(W.shape[1]).bit_length() <= 104
    return (high, high_b), (low, b - high_b), np.asarray(fits)


def grids(W: Weights, b: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The grid of each unit, (s,) and (s,): all its numbers are multiples of 2**lowest with magnitudes below 2**span.

    The span is that of the sum of magnitudes, and so of every pre-activation on the cube; a unit of zeros has (0, 0).
    """
    unit, magnitude = _entries(W, b)
    mantissa, exponent = np.frexp(magnitude)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.full(len(b), 2000, dtype=np.int64)
    np.minimum.at(lowest, unit, exponent - 53 + np.bitwise_count((digits & -digits) - 1).astype(np.int64))
    total = np.bincount(unit, weights=magnitude, minlength=len(b))
    _, span = np.frexp(total)
    lowest[lowest == 2000] = 0
    return lowest, np.where(np.isinf(total), 2000, span.astype(np.int64))


def integers_of(values: NDArray[np.float64]) -> tuple[NDArray[Any], int]:
    """Python integers and an exponent e, such that the values are these times 2**e."""
    mantissa, exponent = np.frexp(values)
    lowest = int((exponent - 53).min(initial=0, where=values != 0)) if values.size else 0
    digits = np.ldexp(mantissa, 53).astype(np.int64).astype(object)
    shifts = np.where(values != 0, exponent - 53 - lowest, 0).astype(object)
    return digits * 2**shifts, lowest


def _entries(W: Weights, b: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Unit and magnitude of every weight and threshold that is not zero."""
    if isinstance(W, sp.csr_array):
        unit, weights = np.repeat(np.arange(len(b)), np.diff(W.indptr)), W.data
    else:
        unit, weights = np.repeat(np.arange(len(b)), W.shape[1]), W.ravel()
    unit, magnitude = np.concatenate([unit, np.arange(len(b))]), np.abs(np.concatenate([weights, b]))
    return unit[magnitude > 0], magnitude[magnitude > 0]


def _row(W: Weights, j: int) -> tuple[slice | NDArray[np.integer], NDArray[np.float64]]:
    """Inputs of unit j and their weights."""
    if isinstance(W, sp.csr_array):
        here = slice(W.indptr[j], W.indptr[j + 1])
        return W.indices[here], W.data[here]
    return slice(None), W[j]


def _sign(x: NDArray[np.float64], inputs: slice | NDArray[np.integer], weights: NDArray[np.float64], b: float) -> int:
    signs = x[inputs]
    if np.array_equal(signs, np.sign(signs)):
        total: float | Fraction = fsum([*(weights * signs).tolist(), -b])  # correctly rounded, hence of the right sign
    else:
        total = sum((Fraction(w) * Fraction(v) for w, v in zip(weights, signs, strict=True)), -Fraction(b))
    return (total > 0) - (total < 0)
