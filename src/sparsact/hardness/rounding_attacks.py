"""Attacks on learning with rounding modulo a prime: linearisation after Arora and Ge, and lattice reduction by LLL.

References
----------
.. [AG] S. Arora, R. Ge, "New algorithms for learning in presence of errors", 2011.
.. [LLL] A. K. Lenstra, H. W. Lenstra, L. Lovasz, "Factoring polynomials with rational coefficients", 1982.
.. [APS] M. R. Albrecht, R. Player, S. Scott, "On the concrete hardness of learning with errors", 2015.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement
from math import ceil, comb, factorial, log, prod
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.constructions import rounded_products
from sparsact.hardness.elimination import InconsistentLabelsError, checked_prime, solve_modulo
from sparsact.hardness.learning_with_rounding import SecretSearch, checked_samples

Integers = NDArray[np.int64]
SPARE: Final = 1.1  # times the samples that give as many equations as unknowns in the mean
DELTA: Final = 0.99  # of Lovasz's condition
# Times the samples that determine the secret: fewer have other solutions, more cost dimensions.
MORE_THAN_NEEDED: Final = 1.2
LARGEST_ENTRY: Final = 2**20  # float64 Gram-Schmidt vectors of small dimensions are then precise enough to decide swaps


def linearisation_unknowns(m: int, p: int, q: int) -> int:
    """Number of unknowns of :func:`linearised_secret`, C(m + floor(q / p), m) - 1: monomials of the secret.

    Parameters
    ----------
    m, p, q : int
        Entries of a vector, and the moduli.

    Returns
    -------
    unknowns : int
        923 for m = 6, p = 2, q = 13.
    """
    return comb(m + q // p, m) - 1


def linearisation_samples(m: int, p: int, q: int) -> int:
    """Number of uniform samples with which :func:`linearised_secret` nearly always succeeds.

    Parameters
    ----------
    m, p, q : int
        Entries of a vector, and the moduli.

    Returns
    -------
    samples : int
        A tenth more samples than give, on average, as many equations as unknowns, and 10 q more.
    """
    shortest = [len(values) for values in _products_of_labels(p, q) if len(values) == q // p]
    return ceil(SPARE * q / sum(shortest) * linearisation_unknowns(m, p, q)) + 10 * q


def linearised_secret(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> SecretSearch:
    r"""The secret of rounded labels modulo a prime q, by linearisation after Arora and Ge.

    A label l leaves a set V_l of floor(q / p) or ceil(q / p) values for the product of vector and secret, so

    .. math:: \prod_{v \in V_l} (\langle w, y \rangle - v) \equiv 0 \pmod q

    is an equation of degree ``|V_l|`` in w. Each monomial of w becomes an unknown of a linear system over the field of
    q elements [AG]_. Samples with ceil(q / p) values, if there are others, are left out: they have more unknowns.

    Parameters
    ----------
    Y, labels : array-like of shape (rows, m) and (rows,)
        Residues modulo q, and labels in 0..p - 1 by the rule "round".
    p, q : int
        Moduli; q is prime.

    Returns
    -------
    search : SecretSearch
        Without a secret if the system does not determine w, or w does not have all labels.

    Notes
    -----
    N = C(m + D, m) - 1 unknowns with D = floor(q / p), and N^3 multiplications: a polynomial in m for fixed q / p, and
    exponential in m if q / p grows with m. No hardness rests on moduli with a constant quotient.

    Examples
    --------
    >>> from sparsact.hardness import LearningWithRounding
    >>> problem = LearningWithRounding([3, 1], p=2, q=5)
    >>> Y, labels = problem.residues(60, rng=np.random.default_rng(0))
    >>> linearised_secret(Y, labels, p=2, q=5).secret
    array([3, 1])
    """
    checked_prime(q)
    vectors, wanted = checked_samples(Y, labels, p, q)
    degree, m = q // p, vectors.shape[1]
    values = _products_of_labels(p, q)
    short = np.array([len(found) == degree for found in values])[wanted]
    powers = np.array([_coefficients(found, q) if len(found) == degree else [0] * (degree + 1) for found in values])
    chosen = _monomials_up_to(m, degree)
    scale = np.array([_multinomial(monomial) % q for monomial in chosen])
    of_degree = powers[wanted[short]][:, [len(monomial) for monomial in chosen]]
    system = monomials(vectors[short], degree, q) * scale % q * of_degree % q
    operations = len(system) * (len(chosen) - 1) ** 2
    try:
        solution = solve_modulo(system[:, 1:], -system[:, 0], q)
    except InconsistentLabelsError:
        return SecretSearch(None, operations)
    found = dict(zip(chosen[1:], solution.values, strict=True))
    return SecretSearch(_consistent(_secrets_with(found, m, degree, q), vectors, wanted, p, q), operations)


def carry_monomials(Y: ArrayLike, p: int) -> Integers:
    r"""Features whose linear combination modulo p gives rounded labels, for a prime p and q = p^2.

    The label is the second digit of :math:`\langle w, y \rangle` in base p. With :math:`y_i = a_i + p\,b_i` it is
    linear in b and of degree p in a, as a carry is: :func:`solve_modulo` learns it from samples.

    Parameters
    ----------
    Y, p : array-like of shape (rows, m), and int
        Residues modulo p^2, and the prime.

    Returns
    -------
    functions : ndarray of shape (rows, C(m + p, p) + m), int64
        Monomials of a of degree at most p, and b.

    Examples
    --------
    >>> carry_monomials([[3, 2]], p=2)
    array([[1, 1, 0, 1, 0, 0, 1, 1]])
    """
    high, low = np.divmod(np.asarray(Y, dtype=np.int64), checked_prime(p))
    return np.hstack([monomials(low, p, p), high])


def monomials(values: Integers, degree: int, prime: int) -> Integers:
    """Monomials of the columns modulo a prime, (rows, C(m + degree, m)): by degree, the constant first."""
    rows, m = values.shape
    place = {monomial: i for i, monomial in enumerate(_monomials_up_to(m, degree))}
    columns = np.ones((len(place), rows), dtype=np.int64)
    for monomial, i in place.items():
        if monomial:
            columns[i] = columns[place[monomial[:-1]]] * values[:, monomial[-1]] % prime
    return columns.T


def _secrets_with(found: dict[tuple[int, ...], np.int64], m: int, degree: int, q: int) -> Iterator[Integers]:
    """0, and the secrets whose monomials of the highest degree are as found up to a factor."""
    yield np.zeros(m, dtype=np.int64)
    # Coefficients of lower degrees may vanish modulo q, such as the linear one of (t - 8)(t - 9)(t - 10) modulo 11.
    base = next((i for i in range(m) if found[(i,) * degree]), None)
    if base is not None:
        ratios = np.array([found[tuple(sorted((*(base,) * (degree - 1), i)))] for i in range(m)])
        inverse = pow(int(found[(base,) * degree]), -1, q)
        yield from (ratios * inverse % q * value % q for value in range(1, q))


def _monomials_up_to(m: int, degree: int) -> list[tuple[int, ...]]:
    return [monomial for d in range(degree + 1) for monomial in combinations_with_replacement(range(m), d)]


def _multinomial(monomial: tuple[int, ...]) -> int:
    """Coefficient of the monomial in a power of the sum of all variables."""
    return factorial(len(monomial)) // prod(factorial(power) for power in Counter(monomial).values())


def _coefficients(roots: Iterable[int], q: int) -> list[int]:
    """Coefficients modulo q of the monic polynomial with these roots, the constant first."""
    coefficients = [1]
    for root in roots:
        shifted, scaled = [0, *coefficients], [*(root * c for c in coefficients), 0]
        coefficients = [(a - b) % q for a, b in zip(shifted, scaled, strict=True)]
    return coefficients


def _products_of_labels(p: int, q: int) -> list[list[int]]:
    """Products modulo q that have each label, by the rule "round": floor(q / p) or ceil(q / p) of them."""
    return [[v for v in range(q) if p * v // q == label] for label in range(p)]


def _consistent(candidates: Iterable[Integers], Y: Integers, labels: Integers, p: int, q: int) -> Integers | None:
    """The first candidate that gives every sample its label, if there is one."""
    right = (secret for secret in candidates if np.array_equal(rounded_products(secret, Y, p, q), labels))
    return next(right, None)


def lll(basis: ArrayLike, delta: float = DELTA) -> tuple[Integers, int]:
    r"""Reduced basis of a lattice, after Lenstra, Lenstra and Lovasz.

    Gram-Schmidt coefficients become at most 1/2 in size [LLL]_, and
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
        A basis of the same lattice, exact; Gram-Schmidt vectors are float64, so the conditions hold within rounding.
        Meant for a few dozen dimensions.
    operations : int
        Row operations, swaps included.

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
        for j in range(k - 1, -1, -1):  # bring the Gram-Schmidt coefficients of row k to at most 1/2
            factor = round(float(rows[k] @ orthogonal[j] / squares[j]))
            if factor:
                rows[k] -= factor * rows[j]
                operations += 1
        residual = rows[k].astype(np.float64)
        for _ in range(2):  # the second pass removes what rounding left in the first
            residual -= (orthogonal[:k] @ residual / squares[:k]) @ orthogonal[:k]
        orthogonal[k], squares[k] = residual, residual @ residual
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

    A label states :math:`\langle w, y \rangle \bmod q` up to an error of about q / (2 p). Among the vectors
    :math:`Y w \bmod q` the true one is near to the centres c that the labels state, and :math:`(c - Y w, M)` is a short
    vector of the lattice that Kannan's embedding spans. The reduced basis of :func:`lll` contains it if the dimension
    is small ([APS]_, Section 5).

    Parameters
    ----------
    Y, labels : array-like of shape (rows, m) and (rows,)
        Residues modulo q, and labels in 0..p - 1 by the rule "round".
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
    ends = np.array([(found[0], found[-1]) for found in _products_of_labels(p, q)])
    size = max(ceil(MORE_THAN_NEEDED * m * log(q) / log(p)), m + 1)
    margin = max(round((q / p) / 3**0.5), 1)  # twice the standard deviation of an error, as all is doubled
    secret, operations = None, 0
    for start in range(0, max(len(vectors) - size, 0) + 1, size):
        block, doubled = vectors[start : start + size], ends[wanted[start : start + size]].sum(axis=1)
        if not solve_modulo(block[:m], np.zeros(m, dtype=int), q).unique:
            continue  # the first m vectors must determine w; about one block in q is lost
        reduced, steps = lll(_embedding(block, doubled, margin, q))
        operations += steps * (len(block) + 1)
        found = [row * np.sign(row[-1]) for row in reduced if abs(row[-1]) == margin]
        products = [(doubled - row[:-1]) // 2 % q for row in found]
        candidates = [solve_modulo(block[:m], product[:m], q).values for product in products]
        secret = _consistent(candidates, vectors, wanted, p, q)
        if secret is not None:
            break
    return SecretSearch(secret, operations)


def _embedding(block: Integers, doubled: Integers, margin: int, q: int) -> Integers:
    """Basis of all (2 Y w mod 2 q, 0), and the row (twice the centres, margin)."""
    m, rest = block.shape[1], block[block.shape[1] :]
    combined = [solve_modulo(block[:m].T, vector, q).values for vector in rest]
    basis = np.zeros((len(block) + 1, len(block) + 1), dtype=np.int64)
    basis[:m, :m] = 2 * np.eye(m, dtype=np.int64)
    basis[:m, m:-1] = 2 * np.array(combined, dtype=np.int64).reshape(-1, m).T
    basis[m:-1, m:-1] = 2 * q * np.eye(len(rest), dtype=np.int64)
    basis[-1] = [*doubled, margin]
    return basis


def _checked_basis(basis: ArrayLike, delta: float) -> Integers:
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
