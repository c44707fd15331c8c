"""Values of polynomials of multilinear monomials at many points."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, bits_to_signs, subsets_of
from sparsact.kernels import dispatch
from sparsact.kernels.packed_bits import unpacked_rows

Array = NDArray[np.float64]

BLOCK: Final = 4096  # rows whose columns stay in a processor's cache


def evaluate(X: Array, masks: Masks, coefficients: Array, *, n_threads: int = 1) -> Array:
    """Evaluate T polynomials, ``sum_S coefficients[S, t] * prod_{i in S} X[:, i]``, at rows X (m, n): values (m, T).

    The same bits on every kernel, instruction set and number of threads: a monomial is multiplied from its highest
    coordinate down, and monomials are added in the order of ``masks``.

    Parameters
    ----------
    X : ndarray of shape (m, n), float64
        Rows, C-contiguous.
    masks : ndarray of shape (N, words), uint64
        The subsets S.
    coefficients : ndarray of shape (N, T), float64
        One column per polynomial.
    n_threads : int
        Threads over rows.

    Returns
    -------
    values : ndarray of shape (m, T), float64
    """
    values = np.empty((len(X), coefficients.shape[1]))
    dispatch.chosen.evaluate(X, masks, coefficients, values, n_threads)
    return values


@dispatch.kernel
def _evaluate(X: Array, masks: Masks, coefficients: Array, values: Array, n_threads: int) -> None:
    subsets = subsets_of(masks)
    values[...] = 0.0
    for start in range(0, len(X), BLOCK):
        columns = np.ascontiguousarray(X[start : start + BLOCK].T)
        block = values[start : start + BLOCK]
        for subset, coefficient in zip(subsets, coefficients, strict=True):
            monomial = np.ones(len(block))
            for i in reversed(subset):
                monomial *= columns[i]
            block += monomial[:, None] * coefficient


def evaluate_packed(columns: Masks, n_rows: int, masks: Masks, coefficients: Array, *, n_threads: int = 1) -> Array:
    """Evaluate polynomials at points of the cube in packed columns (bit 1 is sign -1), to the bits of :func:`evaluate`.

    Parameters
    ----------
    columns : ndarray of shape (n, ceil(n_rows / 64)), uint64
        Packed columns.
    n_rows : int
        m.
    masks, coefficients, n_threads
        As for :func:`evaluate`.

    Returns
    -------
    values : ndarray of shape (m, T), float64
    """
    values = np.empty((n_rows, coefficients.shape[1]))
    dispatch.chosen.evaluate_packed(columns, masks, coefficients, values, n_threads)
    return values


@dispatch.kernel
def _evaluate_packed(columns: Masks, masks: Masks, coefficients: Array, values: Array, n_threads: int) -> None:
    signs = bits_to_signs(unpacked_rows(columns, len(values))).T.astype(np.float64)
    _evaluate(signs, masks, coefficients, values, n_threads)
