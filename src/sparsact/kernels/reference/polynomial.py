"""Values of a polynomial of multilinear monomials at many points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, bits_to_signs, subsets_of
from sparsact.kernels.reference.packed import unpacked_rows

BLOCK = 4096  # rows whose columns stay in a processor's cache


def evaluate(
    X: NDArray[np.float64], masks: Masks, coefficients: NDArray[np.float64], values: NDArray[np.float64], n_threads: int
) -> None:
    """Fill ``values`` (m, T); this order of products and of sums defines the rounding.

    A monomial is multiplied from its highest coordinate down; monomials are added in the given order, from 0.
    """
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


def evaluate_packed(
    columns: NDArray[np.uint64],
    masks: Masks,
    coefficients: NDArray[np.float64],
    values: NDArray[np.float64],
    n_threads: int,
) -> None:
    """:func:`evaluate` at the signs of packed columns."""
    signs = bits_to_signs(unpacked_rows(columns, len(values))).T.astype(np.float64)
    evaluate(signs, masks, coefficients, values, n_threads)
