"""Kernels of networks of ReLU units: values, active units over the whole cube, and flips of coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.kernels import dispatch, reference

# Rounding of a pre-activation in `count_active`: n additions at half an eps each, n <= 26, and some room.
ROUNDING_STEPS = 16
DIFFERENCES_AT_ONCE = 2**21


class ActiveCounts(NamedTuple):
    """How many points of the cube switch on how many units: surely, and possibly.

    ``lower_histogram[k]`` is the number of points that switch on k units surely, of shape (s + 1,), and
    ``lower_witness`` the smallest number of a point with the most of them; ``upper`` counts possible ones too.
    """

    lower_histogram: NDArray[np.int64]
    upper_histogram: NDArray[np.int64]
    lower_witness: int
    upper_witness: int


def count_active(
    W: NDArray[np.float64], b: NDArray[np.float64], tolerance: NDArray[np.float64], *, n_threads: int = 1
) -> ActiveCounts:
    r"""Number of active units at each of the 2**n points of the cube, as histograms.

    Unit j is surely active where :math:`z_j > t_j`, and possibly where :math:`z_j > -t_j`, for the computed
    :math:`z_j = \langle w_j, x \rangle - b_j` and the tolerance :math:`t_j \ge 0`.

    Parameters
    ----------
    W : ndarray of shape (s, n), float64
        Input weights, C-contiguous, n >= 1, s < 2**15.
    b : ndarray of shape (s,), float64
        Thresholds.
    tolerance : ndarray of shape (s,), float64
        0 for a unit whose sums are exact in floating point: the sign of its computed pre-activation is then the true
        one, and ties are off. Else at least ``ROUNDING_STEPS * eps * (sum_i |w_ji| + |b_j|)`` holds the truth between
        the two counts.

    Notes
    -----
    Each half of the coordinates has its own table of :math:`2^{n/2}` signed sums, so that z is one sum of a low and a
    high entry: no step depends on the step before it, as in a Gray code, and rounding does not pile up. For a fixed
    high half the low entries that switch a unit on are the last of the sorted ones; the native kernel compares their
    places, small integers, in place of the sums. Cost: ``s * 2**n`` comparisons, and memory ``s * 2**(n/2)``.
    """
    s, n = W.shape
    if s >= 2**15 or n > 30:
        raise ValueError(
            f"enumeration takes fewer than {2**15} units on at most 30 inputs; got {s} units on {n} inputs."
        )
    histograms = np.zeros((2, s + 1), dtype=np.int64)
    lower_witness, upper_witness = dispatch.chosen().count_active(W, b, tolerance, histograms, n_threads)
    return ActiveCounts(histograms[0], histograms[1], lower_witness, upper_witness)


def network_values(
    X: NDArray[Any], W: Any, u: NDArray[np.float64], b: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    """Values (m,) of the network ``sum_j u[j] * relu(W[j] @ x - b[j])``; W is an array or a csr_array.

    Sparse weights: the same bits on every kernel, instruction set and number of threads, at a product and a sum for
    each non-zero and row. Dense weights: products of matrices, by BLAS and its threads.
    """
    if not isinstance(W, sp.csr_array):
        return reference.network_values(X, W, u, b)
    values = np.empty(len(X))
    dispatch.chosen().sparse_network_values(_rows(X), *_parts(W), u, b, values, n_threads)
    return values


def active_units(
    X: NDArray[Any], W: sp.csr_array, b: NDArray[np.float64], tolerance: NDArray[np.float64], *, n_threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of units that each row surely switches on, and possibly, (m,) each; sums as in :func:`network_values`.

    Surely where ``W[j] @ x - b[j] > tolerance[j]``, possibly where ``W[j] @ x - b[j] > -tolerance[j]``.
    """
    lower, upper = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.int64)
    dispatch.chosen().sparse_active_units(_rows(X), *_parts(W), b, tolerance, lower, upper, n_threads)
    return lower, upper


def flip_differences(
    X: NDArray[Any], W: Any, u: NDArray[np.float64], b: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    r"""Changes :math:`h(x) - h(x^{\oplus i})` of a network as each coordinate of each point is flipped, (m, n).

    .. math:: \sum_j u_j \left( \sigma(z_j) - \sigma(z_j - 2 w_{ji} x_i) \right)

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Signs, of any dtype.
    W : ndarray, C-contiguous, or csr_array, of shape (s, n), float64
        Input weights.

    Notes
    -----
    Pre-activations cost one product of matrices. Of each point only the units that are on, or that some flip switches
    on, are visited: n (or their non-zeros) operations each. Given the pre-activations, the bits are the same on every
    kernel, instruction set and number of threads.
    """
    differences, reach = np.empty(X.shape), _reach(W)
    for block in _blocks(X):
        _fill_differences(X[block], W, u, b, reach, differences[block], n_threads)
    return differences


def flip_squares(
    X: NDArray[Any], W: Any, u: NDArray[np.float64], b: NDArray[np.float64], *, n_threads: int = 1
) -> NDArray[np.float64]:
    r"""Sensitivity :math:`\frac14 \sum_i (h(x) - h(x^{\oplus i}))^2` at every point, (m,).

    Arguments and cost are those of :func:`flip_differences`, whose result is never held as a whole.
    """
    squares, reach = np.empty(len(X)), _reach(W)
    for block in _blocks(X):
        differences = np.empty(X[block].shape)
        _fill_differences(X[block], W, u, b, reach, differences, n_threads)
        squares[block] = np.einsum("ri,ri->r", differences, differences) / 4
    return squares


def _blocks(X: NDArray[Any]) -> Iterator[slice]:
    rows = max(1, DIFFERENCES_AT_ONCE // X.shape[1])
    for start in range(0, len(X), rows):
        yield slice(start, min(start + rows, len(X)))


def _reach(W: Any) -> NDArray[np.float64]:
    """The most that one flip moves each pre-activation, (s,)."""
    largest = abs(W).max(axis=1)
    return np.asarray(2 * (largest.toarray() if isinstance(W, sp.csr_array) else largest))


def _fill_differences(
    X: NDArray[Any],
    W: Any,
    u: NDArray[np.float64],
    b: NDArray[np.float64],
    reach: NDArray[np.float64],
    differences: NDArray[np.float64],
    n_threads: int,
) -> None:
    Z = np.ascontiguousarray(X.astype(np.float64) @ W.T - b)
    signs = np.ascontiguousarray(X, dtype=np.int8)
    if isinstance(W, sp.csr_array):
        dispatch.chosen().sparse_flip_differences(signs, Z, *_parts(W), u, reach, differences, n_threads)
    else:
        dispatch.chosen().flip_differences(signs, Z, W, u, reach, differences, n_threads)


def _rows(X: NDArray[Any]) -> NDArray[Any]:
    """``X``, C-contiguous, as numbers that the kernels of sparse units read without a float64 copy, if it is that."""
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.int8, np.float32) else np.float64)


def _parts(W: sp.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Where each row starts, columns and weights."""
    return W.indptr.astype(np.int64, copy=False), W.indices.astype(np.int32, copy=False), W.data
