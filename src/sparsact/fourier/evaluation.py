"""Temporary stand-in for ``sparsact.kernels.evaluate``, which is written on another branch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, subsets_of


def evaluate(
    X: NDArray[np.float64], masks: Masks, coefficients: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    """Values (m, T) of T polynomials at m points."""
    values = np.zeros((len(X), coefficients.shape[1]))
    for subset, row in zip(subsets_of(masks), coefficients, strict=True):
        values += X[:, list(subset)].prod(axis=1)[:, None] * row
    return values
