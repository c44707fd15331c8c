"""Change of a network's value as each coordinate of a point is flipped."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def flip_differences(
    X: NDArray[np.int8],
    Z: NDArray[np.float64],
    W: NDArray[np.float64],
    u: NDArray[np.float64],
    reach: NDArray[np.float64],
    differences: NDArray[np.float64],
    n_threads: int,
) -> None:
    """Fill ``differences`` (m, n) of points X with pre-activations Z (m, s); this order of additions is the definition.

    No flip moves a pre-activation of unit j by more than ``reach[j] = 2 max_i |w_ji|``. Units that stay off add nothing
    and are skipped, which changes no bit. Units that stay on are linear there. Those between are added one by one.
    """
    for x, z, difference in zip(X.astype(np.float64), Z, differences, strict=True):
        stays_on = z >= reach
        slopes = np.zeros(len(x))
        for j in np.flatnonzero(stays_on):
            slopes += u[j] * W[j]
        difference[:] = 0.0
        for j in np.flatnonzero(~stays_on & (z > -reach)):
            difference += u[j] * (max(z[j], 0.0) - np.maximum(z[j] - W[j] * (2 * x), 0))
        difference += slopes * (2 * x)


def sparse_flip_differences(
    X: NDArray[np.int8],
    Z: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    u: NDArray[np.float64],
    reach: NDArray[np.float64],
    differences: NDArray[np.float64],
    n_threads: int,
) -> None:
    """:func:`flip_differences` with the three parts of a CSR array; a weight of 0 adds 0, so the bits are the same."""
    W = sp.csr_array((weights, indices, indptr), shape=(len(u), X.shape[1]))
    flip_differences(X, Z, W.toarray(), u, reach, differences, n_threads)
