"""Learning with rounding by linearisation: equations of low degree in the secret, solved with monomials as unknowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement
from math import ceil, comb, factorial, prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.hardness.elimination import InconsistentLabelsError, checked_prime, solve_modulo
from sparsact.hardness.rounding import SecretSearch, checked_samples, products_of_labels, search_result

Residues = NDArray[np.int64]
SPARE = 1.1  # times the samples that give as many equations as unknowns in the mean


def linearisation_unknowns(m: int, p: int, q: int) -> int:
    """Number of unknowns of :func:`linearised_secret`: monomials in m variables of degree 1 to floor(q / p).

    Parameters
    ----------
    m : int
        Entries of a vector.
    p, q : int
        Moduli.

    Returns
    -------
    unknowns : int
        C(m + floor(q / p), m) - 1.

    Examples
    --------
    >>> linearisation_unknowns(6, p=2, q=13)
    923
    """
    return comb(m + q // p, m) - 1


def linearisation_samples(m: int, p: int, q: int) -> int:
    """Number of uniform samples with which :func:`linearised_secret` nearly always succeeds.

    Parameters
    ----------
    m : int
        Entries of a vector.
    p, q : int
        Moduli.

    Returns
    -------
    samples : int
        A tenth more than give as many equations as unknowns in the mean, and 10 q.

    Examples
    --------
    >>> linearisation_samples(6, p=2, q=13)
    2330
    """
    shortest = [len(values) for values in products_of_labels(p, q) if len(values) == q // p]
    return ceil(SPARE * q / sum(shortest) * linearisation_unknowns(m, p, q)) + 10 * q


def linearised_secret(Y: ArrayLike, labels: ArrayLike, p: int, q: int) -> SecretSearch:
    r"""The secret of rounded labels modulo a prime q, by linearisation after Arora and Ge.

    A label l leaves a set V_l of floor(q / p) or ceil(q / p) values for the product of vector and secret, so

    .. math:: \prod_{v \in V_l} (\langle w, y \rangle - v) \equiv 0 \pmod q

    is an equation of degree ``|V_l|`` in w. Each monomial of w becomes an unknown of a linear system over the field of
    q elements [1]_. Samples with ceil(q / p) values, if there are others, are left out: they have more unknowns.

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
        Without a secret if the system does not determine w, or w does not have all labels.

    Notes
    -----
    N = C(m + D, m) - 1 unknowns with D = floor(q / p), and N^3 multiplications: a polynomial in m for fixed q / p, and
    exponential in m if q / p grows with m. No hardness rests on moduli with a constant quotient.

    References
    ----------
    .. [1] S. Arora, R. Ge, "New algorithms for learning in presence of errors", 2011.

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
    values = products_of_labels(p, q)
    short = np.array([len(found) == degree for found in values])[wanted]
    powers = np.array([_coefficients(found, q) if len(found) == degree else [0] * (degree + 1) for found in values])
    chosen = list(_monomials_up_to(m, degree))
    scale = np.array([_multinomial(monomial) % q for monomial in chosen])
    of_degree = powers[wanted[short]][:, [len(monomial) for monomial in chosen]]
    system = monomials(vectors[short], degree, q) * scale % q * of_degree % q
    operations = len(system) * (len(chosen) - 1) ** 2
    try:
        solution = solve_modulo(system[:, 1:], -system[:, 0], q)
    except InconsistentLabelsError:
        return SecretSearch(None, operations)
    found = dict(zip(chosen[1:], solution.residues, strict=True))
    return search_result(_secrets_with(found, m, degree, q), vectors, wanted, p, q, operations)


def carry_monomials(Y: ArrayLike, p: int) -> Residues:
    r"""Functions of which rounded labels are a linear combination modulo p, where p is a prime and q is p^2.

    The label is the second digit of :math:`\langle w, y \rangle` in base p. With :math:`y_i = a_i + p\,b_i` it is
    linear in b and of degree p in a, as a carry is: :func:`solve_modulo` learns it from samples.

    Parameters
    ----------
    Y : array-like of shape (rows, m)
        Residues modulo p^2.
    p : int
        A prime.

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


def monomials(values: Residues, degree: int, prime: int) -> Residues:
    """Monomials of the columns modulo a prime, (rows, C(m + degree, m)): by degree, the constant first."""
    rows, m = values.shape
    place = {monomial: i for i, monomial in enumerate(_monomials_up_to(m, degree))}
    columns = np.ones((len(place), rows), dtype=np.int64)
    for monomial, i in place.items():
        if monomial:
            columns[i] = columns[place[monomial[:-1]]] * values[:, monomial[-1]] % prime
    return columns.T


def _secrets_with(found: dict[tuple[int, ...], np.int64], m: int, degree: int, q: int) -> Iterator[Residues]:
    """0, and the secrets whose monomials of the highest degree are as found up to a factor.

    Coefficients of lower degrees may vanish modulo q, such as the linear one of (t - 8)(t - 9)(t - 10) modulo 11.
    """
    yield np.zeros(m, dtype=np.int64)
    base = next((i for i in range(m) if found[(i,) * degree]), None)
    if base is not None:
        ratios = np.array([found[tuple(sorted((*(base,) * (degree - 1), i)))] for i in range(m)])
        inverse = pow(int(found[(base,) * degree]), -1, q)
        yield from (ratios * inverse % q * value % q for value in range(1, q))


def _monomials_up_to(m: int, degree: int) -> Iterator[tuple[int, ...]]:
    for d in range(degree + 1):
        yield from combinations_with_replacement(range(m), d)


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
