"""Networks of ReLU units: values, numbers of active units, and the effect of flipping each coordinate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Weights: TypeAlias = NDArray[np.float64] | csr_array  # (s, n)

Array = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]

PREACTIVATIONS_AT_ONCE: Final = 2**20
DIFFERENCES_AT_ONCE: Final = 2**21


def network_values(X: NDArray[Any], W: Weights, u: Array, b: Array, *, n_threads: int = 1) -> Array:
    """Evaluate the network ``sum_j u[j] * relu(W[j] @ x - b[j])`` at m rows; W is an array or a csr_array.

    Sparse weights: a product and a sum per non-zero and row, with the same bits on every kernel, instruction set and
    number of threads. Dense weights: products of matrices, by BLAS and its threads.
    """
    if isinstance(W, np.ndarray):
        return _dense_values(X, W, u, b)
    values = np.empty(len(X))
    dispatch.chosen.sparse_network_values(_rows(X), *_parts(W), u, b, values, n_threads)
    return values


def _dense_values(X: NDArray[Any], W: Array, u: Array, b: Array) -> Array:
    """Values (m,) of a network with dense weights: products of matrices, never m x s numbers at once."""
    values = np.empty(len(X))
    rows = max(1, PREACTIVATIONS_AT_ONCE // max(1, len(u)))
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        values[block] = u @ np.maximum(W @ X[block].T.astype(np.float64, copy=False) - b[:, None], 0)
    return values


@dispatch.kernel
def _sparse_network_values(
    X: NDArray[Any],
    indptr: Integers,
    indices: Integers,
    weights: Array,
    u: Array,
    b: Array,
    values: Array,
    n_threads: int,
) -> None:
    """Fill ``values`` (m,); this order of additions defines the rounding.

    A unit's products are added from 0 in the order stored, its threshold last; units are added in order, from 0.
    """
    values[:] = 0.0
    for j, z in enumerate(_preactivations(X, indptr, indices, weights, b)):
        values += u[j] * np.maximum(z, 0)


def active_units(
    X: NDArray[Any], W: csr_array, b: Array, tolerance: Array, *, n_threads: int = 1
) -> tuple[Integers, Integers]:
    """Count the units that are surely, and possibly, active at each row, (m,) each; sums as in :func:`network_values`.

    Surely where ``W[j] @ x - b[j] > tolerance[j]``, possibly where ``W[j] @ x - b[j] > -tolerance[j]``.
    """
    lower, upper = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.int64)
    dispatch.chosen.sparse_active_units(_rows(X), *_parts(W), b, tolerance, lower, upper, n_threads)
    return lower, upper


@dispatch.kernel
def _sparse_active_units(
    X: NDArray[Any],
    indptr: Integers,
    indices: Integers,
    weights: Array,
    b: Array,
    tolerance: Array,
    lower: Integers,
    upper: Integers,
    n_threads: int,
) -> None:
    """Fill ``lower`` and ``upper`` (m,) with the units above their tolerance, and above minus that."""
    lower[:] = upper[:] = 0
    for j, z in enumerate(_preactivations(X, indptr, indices, weights, b)):
        lower += z > tolerance[j]
        upper += z > -tolerance[j]


def _preactivations(X: NDArray[Any], indptr: Integers, indices: Integers, weights: Array, b: Array) -> Iterator[Array]:
    """Pre-activations (m,) of each unit in turn."""
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    for j, threshold in enumerate(b):
        z = np.zeros(len(X))
        for k in range(indptr[j], indptr[j + 1]):
            z += weights[k] * columns[indices[k]]
        yield z - threshold


def flip_differences(X: NDArray[Any], W: Weights, u: Array, b: Array, *, n_threads: int = 1) -> Array:
    r"""Changes :math:`h(x) - h(x^{\oplus i})` of a network when coordinate i of a point is flipped, (m, n).

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


def flip_squares(X: NDArray[Any], W: Weights, u: Array, b: Array, *, n_threads: int = 1) -> Array:
    r"""Sensitivity :math:`\frac14 \sum_i (h(x) - h(x^{\oplus i}))^2` at every point, (m,).

    Takes the arguments, and has the cost, of :func:`flip_differences`, but never holds its result as a whole.
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


def _reach(W: Weights) -> Array:
    """Largest change of each pre-activation by one flip, (s,)."""
    if isinstance(W, np.ndarray):
        return np.asarray(2 * np.abs(W).max(axis=1))
    sizes: Any = abs(W)
    return np.asarray(2 * sizes.max(axis=1).toarray().ravel())


def _fill_differences(
    X: NDArray[Any], W: Weights, u: Array, b: Array, reach: Array, differences: Array, n_threads: int
) -> None:
    Z = np.ascontiguousarray(X.astype(np.float64) @ W.T - b)
    signs = np.ascontiguousarray(X, dtype=np.int8)
    if isinstance(W, np.ndarray):
        dispatch.chosen.flip_differences(signs, Z, W, u, reach, differences, n_threads)
    else:
        dispatch.chosen.sparse_flip_differences(signs, Z, *_parts(W), u, reach, differences, n_threads)


@dispatch.kernel
def _flip_differences(
    X: NDArray[Any], Z: Array, W: Array, u: Array, reach: Array, differences: Array, n_threads: int
) -> None:
    """Differences (m, n) of points X with pre-activations Z (m, s); this order of additions defines the rounding.

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


@dispatch.kernel
def _sparse_flip_differences(
    X: NDArray[Any],
    Z: Array,
    indptr: Integers,
    indices: Integers,
    weights: Array,
    u: Array,
    reach: Array,
    differences: Array,
    n_threads: int,
) -> None:
    """:func:`flip_differences` with the three parts of a CSR array; a weight of 0 adds 0, so the bits are the same."""
    from scipy.sparse import csr_array  # loads slowly, and tables of data need none

    W: Any = csr_array((weights, indices, indptr), shape=(len(u), X.shape[1]))
    _flip_differences(X, Z, W.toarray(), u, reach, differences, n_threads)


def _rows(X: NDArray[Any]) -> NDArray[Any]:
    """``X``, C-contiguous; int8 and float32 stay, and all else becomes float64."""
    return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.int8, np.float32) else np.float64)


def _parts(W: csr_array) -> tuple[Integers, Integers, Array]:
    """Start of each row, columns and weights."""
    return W.indptr.astype(np.int64, copy=False), W.indices.astype(np.int32, copy=False), W.data
