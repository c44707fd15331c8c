"""Kernels of sparse layers: products with the few rows of a matrix that each input selects.

Numbers are float64, float32, or bfloat16 given as uint16; bfloat16 is added in float32 and rounded at the end.
``indices`` (m, k) names a row at each place, or -1 where a place is not taken. The order of every sum is fixed, so
that every kernel, instruction set and number of threads gives the same bits. The three are each other's derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch


def gather_dot(X: NDArray[Any], W: NDArray[Any], indices: NDArray[np.int64], *, n_threads: int = 1) -> NDArray[Any]:
    r"""Products :math:`\langle x_i, w_{r_{ij}} \rangle` of each input with the rows that it selects, (m, k).

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Inputs, C-contiguous.
    W : ndarray of shape (t, n), of the dtype of ``X``
        Rows to select from, C-contiguous.
    indices : ndarray of shape (m, k), int64
        The rows r, C-contiguous, each in ``range(t)``; the product is 0 where it is -1.

    Notes
    -----
    ``2 m k n`` operations; reads each selected row. Where places outnumber the rows, the rows are read in order, once.
    """
    dots = np.empty(indices.shape, dtype=X.dtype)
    dispatch.chosen().gather_dot(X, W, indices, dots, n_threads)
    return dots


def gather_sum(A: NDArray[Any], V: NDArray[Any], indices: NDArray[np.int64], *, n_threads: int = 1) -> NDArray[Any]:
    r"""Sums :math:`\sum_j a_{ij} v_{r_{ij}}` of the rows that each input selects, (m, n), in order from 0.

    ``A`` is (m, k) and ``V`` (t, n); else as in :func:`gather_dot`.
    """
    sums = np.empty((len(A), V.shape[1]), dtype=V.dtype)
    dispatch.chosen().gather_sum(A, V, indices, sums, n_threads)
    return sums


def scatter_outer(
    A: NDArray[Any], X: NDArray[Any], indices: NDArray[np.int64], rows: int, *, n_threads: int = 1
) -> NDArray[Any]:
    r"""Sums :math:`\sum_{(i, j):\, r_{ij} = r} a_{ij} x_i` for each row r, (rows, n); 0 for rows that none selects.

    ``A`` is (m, k) and ``X`` (m, n); else as in :func:`gather_dot`. Only rows that are selected are written to; the
    zeros of the others come from the operating system, which leaves the pages that hold nothing else untouched.
    """
    sums = np.zeros((rows, X.shape[1]), dtype=X.dtype)
    dispatch.chosen().scatter_outer(A, X, indices, sums, n_threads)
    return sums
