"""Learning with rounding by lattice reduction: LLL, and the primal attack by Kannan's embedding."""

from __future__ import annotations

from math import ceil, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.hardness.elimination import checked_prime, solve_modulo
from sparsact.hardness.rounding import SecretSearch, checked_samples, products_of_labels, search_result

DELTA = 0.99  # of Lovasz's condition
MORE_THAN_NEEDED = 1.2  # times the samples that determine the secret: fewer have other solutions, more cost dimensions
LARGEST_ENTRY = 2**20  # float64 Gram-Schmidt vectors of small dimensions are then precise enough to decide swaps

Basis = NDArray[np.int64]


def lll(basis: ArrayLike, delta: float = DELTA) -> tuple[Basis, int]:
    r"""A reduced basis of a lattice, after Lenstra, Lenstra and Lovasz.

    Gram-Schmidt coefficients become at most 1/2 in size [1]_, and
    :math:`\|b_k^*\|^2 \ge (\delta - \mu_{k,k-1}^2) \|b_{k-1}^*\|^2`.

    Parameters
    ----------
    basis : array-like of shape (d, n)
        Independent integer vectors, entries up to 2**20.
    delta : float
        Above 1/4 and below 1.

    Returns
    -------
    reduced : ndarray of shape (d, n), int64
        A basis of the same lattice: rows are changed by integer row operations alone.
    operations : int
        Row operations, swaps included.

    Notes
    -----
    Gram-Schmidt vectors are float64 (rows of the basis are exact), so the conditions hold within rounding. Meant for a
    few dozen dimensions.

    References
    ----------
    .. [1] A. K. Lenstra, H. W. Lenstra, L. Lovasz, "Factoring polynomials with rational coefficients", 1982.

    Examples
    --------
    >>> lll([[1, 0], [7, 2]])[0]
    array([[1, 0],
           [0, 2]])
    """
    rows = _checked_basis(basis, delta)
    orthogonal, squares = np.zeros(rows.shape), np.zeros(len(rows))
    operations, k = 0, 0
    while k < len(rows):
        operations += _size_reduce(rows, k, orthogonal, squares)
        orthogonal[k], squares[k] = _residual(rows[k], orthogonal[:k], squares[:k])
        if squares[k] < 1e-6:  # independent integer vectors of moderate size lie much farther from each other's span
            raise ValueError("the rows of `basis` are dependent: pass independent vectors.")
        mu = rows[k] @ orthogonal[k - 1] / squares[k - 1] if k else 0.0
        if k and squares[k] < (delta - mu**2) * squares[k - 1]:
            rows[[k - 1, k]] = rows[[k, k - 1]]
            operations, k = operations + 1, k - 1
        else:
            k += 1
    return rows, operations


def lattice_secret(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> SecretSearch:
    r"""The secret of rounded labels modulo a prime q, by a short vector of a lattice: the primal attack.

    A label says :math:`\langle w, y \rangle \bmod q` up to an error of about q / (2 p). Among the vectors
    :math:`Y w \bmod q` the true one is near to the centres c that the labels say, and
    :math:`(c - Y w, M)` is a short vector of the lattice that Kannan's embedding spans. The reduced basis of
    :func:`lll` contains it if the dimension is small [1]_.

    Parameters
    ----------
    Y : array-like of shape (rows, m)
        Residues modulo q.
    labels : array-like of shape (rows,)
        Labels in 0..p - 1 by the rule "round".
    p, q : int
        Moduli; q is prime.

    Returns
    -------
    search : SecretSearch
        Without a secret if no block of samples gave one that has all labels.

    Notes
    -----
    A block has 1.2 m log(q) / log(p) samples; all blocks of the samples are tried in turn. Operations count the entries
    of the row operations. LLL takes polynomial time and finds the vector in small dimensions only; block reduction
    (BKZ) would reach farther.

    References
    ----------
    .. [1] M. R. Albrecht, R. Player, S. Scott, "On the concrete hardness of learning with errors", 2015, Section 5.

    Examples
    --------
    >>> from sparsact.hardness import LearningWithRounding
    >>> problem = LearningWithRounding([3, 5, 1], p=2, q=7)
    >>> Y, labels = problem.residues(60, rng=np.random.default_rng(0))
    >>> lattice_secret(Y, labels, p=2, q=7).secret
    array([3, 5, 1])
    """
    checked_prime(q)
    vectors, wanted = checked_samples(Y, labels, p, q)
    m = vectors.shape[1]
    ends = np.array([(found[0], found[-1]) for found in products_of_labels(p, q)])
    size = max(ceil(MORE_THAN_NEEDED * m * log(q) / log(p)), m + 1)
    margin = max(round((q / p) / 3**0.5), 1)  # twice the standard deviation of an error, as all is doubled
    search, operations = SecretSearch(None, 0), 0
    for start in range(0, max(len(vectors) - size, 0) + 1, size):
        block, doubled = vectors[start : start + size], ends[wanted[start : start + size]].sum(axis=1)
        if not solve_modulo(block[:m], np.zeros(m, dtype=int), q).unique:
            continue  # the first m vectors must determine w; about one block in q is lost
        reduced, steps = lll(_embedding(block, doubled, margin, q))
        operations += steps * (len(block) + 1)
        found = [row * np.sign(row[-1]) for row in reduced if abs(row[-1]) == margin]
        products = [(doubled - row[:-1]) // 2 % q for row in found]
        candidates = [solve_modulo(block[:m], product[:m], q).residues for product in products]
        search = search_result(candidates, vectors, wanted, p, q, operations)
        if search.secret is not None:
            break
    return search


def _embedding(block: Basis, doubled: Basis, margin: int, q: int) -> Basis:
    """Basis of all (2 Y w mod 2 q, 0), and the row (twice the centres, margin)."""
    m, rest = block.shape[1], block[block.shape[1] :]
    combined = [solve_modulo(block[:m].T, vector, q).residues for vector in rest]
    basis = np.zeros((len(block) + 1, len(block) + 1), dtype=np.int64)
    basis[:m, :m] = 2 * np.eye(m, dtype=np.int64)
    basis[:m, m:-1] = 2 * np.array(combined, dtype=np.int64).reshape(-1, m).T
    basis[m:-1, m:-1] = 2 * q * np.eye(len(rest), dtype=np.int64)
    basis[-1] = [*doubled, margin]
    return basis


def _size_reduce(rows: Basis, k: int, orthogonal: NDArray[np.float64], squares: NDArray[np.float64]) -> int:
    """Bring the coefficients of row k to at most 1/2, and return the number of row operations."""
    operations = 0
    for j in range(k - 1, -1, -1):
        factor = round(float(rows[k] @ orthogonal[j] / squares[j]))
        if factor:
            rows[k] -= factor * rows[j]
            operations += 1
    return operations


def _residual(
    row: Basis, orthogonal: NDArray[np.float64], squares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """The part of a vector that is orthogonal to others, and its square norm."""
    residual = row.astype(np.float64)
    for _ in range(2):  # the second pass removes what rounding left in the first
        residual -= (orthogonal @ residual / squares) @ orthogonal
    return residual, float(residual @ residual)


def _checked_basis(basis: ArrayLike, delta: float) -> Basis:
    array = np.array(basis)
    if array.ndim != 2 or array.dtype.kind not in "iu" or not 0 < len(array) <= array.shape[1]:
        raise ValueError(
            f"`basis` must hold independent integer vectors, shape (d, n) with d <= n; got {array.dtype} {array.shape}."
        )
    if np.abs(array.astype(np.float64)).max() > LARGEST_ENTRY:
        raise ValueError("entries of `basis` may be up to 2**20, which float64 Gram-Schmidt vectors bear: use fpylll.")
    if not 0.25 < delta < 1:
        raise ValueError(f"`delta` must lie above 1/4 and below 1; got {delta}.")
    return array.astype(np.int64)
