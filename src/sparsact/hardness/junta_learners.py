r"""Juntas: functions of p among n variables, learned from uniform examples by correlations and polynomials over GF(2).

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Conjecture 12 and Theorem 13.
.. [M] E. Mossel, R. O'Donnell, R. Servedio, "Learning functions of k relevant variables", 2004.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log, log1p
from operator import index
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.constructions import junta
from sparsact.fourier.spectrum import Spectrum, spectrum_of
from sparsact.hardness.elimination import InconsistentLabelsError, solve_packed
from sparsact.hardness.statistical_oracle import hoeffding_samples
from sparsact.hypercube import WORD, Masks, Subset, n_subsets, n_words, subset_masks, subsets_of
from sparsact.learners.points import Points, pack
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_sign_examples, checked_signs
from sparsact.validation.parameters import checked_option, checked_probability

Method = Literal["restrictions", "brute force"]
MAX_VARIABLES: Final = 30


@dataclass
class Work:
    """Cost of a search.

    Attributes
    ----------
    correlations, unknowns, word_operations : int
        Correlations computed, unknowns of the largest linear system, and words of 64 bits combined.
    """

    correlations: int = 0
    unknowns: int = 0
    word_operations: int = 0


@dataclass(frozen=True, eq=False)
class LearnedJunta:
    """A function of few variables that has all labels.

    Attributes
    ----------
    variables : tuple of int
        The variables on which it depends, sorted, among ``n``.
    table : ndarray of shape (2 ** len(variables),)
        Its values +-1, in table order over ``variables``.
    n, work : int, and Work
        Number of coordinates of a point, and cost of the search.
    """

    variables: Subset
    table: NDArray[np.float64]
    n: int
    work: Work

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (rows,) at the rows of ``X``, signs (rows, n)."""
        return self.table[_places(checked_signs(X, self.n), self.variables)]

    def network(self) -> SparselyActivatedNetwork:
        """The same function as a one-sparse network (:func:`sparsact.constructions.junta`)."""
        return junta(self.table, self.variables, self.n)


@spectrum_of.register
def spectrum_of_junta(learned: LearnedJunta) -> Spectrum:
    """Spectrum of a junta: the coefficients of its table, named by its variables."""
    coefficients = Spectrum.of(learned.table).items()
    named = {tuple(learned.variables[i] for i in subset): value for subset, value in coefficients}
    return Spectrum.of(named, n=learned.n)


def learn_junta(
    X: ArrayLike, y: ArrayLike, p: int, *, method: Method = "restrictions", failure_probability: float = 0.01
) -> LearnedJunta:
    r"""The function of at most p variables that has the given labels, from uniform examples without noise.

    Parameters
    ----------
    X, y : array-like of shape (rows, n) and (rows,)
        Uniform points and their labels, signs.
    p : int
        Maximum number of variables, from 1 to n.
    method : {"restrictions", "brute force"}
        "brute force": correlations of order 1, 2, ... up to p, about n^p of them in the worst case, a parity.
        "restrictions": the method of [M]_, below.
    failure_probability : float
        The chance, over uniform examples, of an error or a wrong answer; it sets the number of examples required.

    Returns
    -------
    junta : LearnedJunta

    Raises
    ------
    InconsistentLabelsError
        If no function of p variables was found that has all labels: more variables, or noise.
    ValueError
        If there are fewer examples than :func:`junta_samples`.

    Notes
    -----
    A function of k bits that is not constant has a nonzero Fourier coefficient of order 1 to d, or a degree over GF(2)
    of at most k - d (proof: :mod:`sparsact.hardness.gf2_polynomial`). Either shows relevant variables: of the
    coefficient, found among n^d correlations; or of the polynomial, found by a linear system with about n^(k-d)
    unknowns, in n^(omega (k-d)) steps. Fixing the variables found so far such that the labels stay mixed, the search
    goes on with the rest. Balanced at d = omega k / (omega + 1) that is n^(omega p / (omega + 1)), up to factors of p
    alone: n^(3p/4) for our elimination with omega = 3, on words of 64 bits; fast matrix multiplication would give about
    n^(0.70 p).

    Examples
    --------
    >>> X = np.random.default_rng(0).choice([1, -1], (3000, 20))
    >>> learned = learn_junta(X, X[:, 3] * X[:, 8] * X[:, 15], 3)
    >>> learned.variables, learned.table.astype(int).tolist()
    ((3, 8, 15), [1, -1, -1, 1, -1, 1, 1, -1])
    """
    points, labels = checked_sign_examples(X, y)
    n, p = points.shape[1], index(p)
    checked_option(method, "`method`", get_args(Method))
    needed = junta_samples(n, p, failure_probability=failure_probability)
    if len(points) < needed:
        raise ValueError(
            f"a junta of {p} among {n} variables is learned with failure probability {failure_probability} from "
            f"{needed:,} examples; got {len(points):,}: pass more, or allow a larger `failure_probability`."
        )
    examples = pack(np.column_stack([points, labels]), "signs")
    work, chance = Work(), failure_probability / (4 * p)
    variables: Subset = ()
    order = 0  # of the correlations that brute force has computed
    while len(variables) <= p and (rows := _mixed(points, labels, variables)) is not None and order < p:
        order += 1
        if method == "brute force":
            new = _correlated_variables(examples, p, order, work)
        else:
            free = [i for i in range(n) if i not in variables]
            here = examples[rows] if variables else examples
            here = Points(np.ascontiguousarray(here.columns[[*free, -1]]), here.n_rows)
            new = [free[i] for i in _relevant(here, p - len(variables), chance, work)] if len(variables) < p else []
            if not new:
                break
        variables = tuple(sorted({*variables, *new}))
    if rows is not None or len(variables) > p:
        raise InconsistentLabelsError(
            f"no function of at most {p} variables was found that has these labels: raise `p`, or remove noise."
        )
    return tabulated(points, labels, variables, work)


def junta_samples(n: int, p: int, *, failure_probability: float = 0.01) -> int:
    r"""Examples from which :func:`learn_junta` succeeds with the stated probability; about :math:`p\, 4^p \ln n`.

    A quarter of the failure probability goes to correlations, a quarter to polynomials, the rest to restrictions that
    get less than half of their share of examples, or of whose two labels one does not occur.

    Parameters
    ----------
    n, p : int
        Coordinates, and maximum number of variables of the junta.
    failure_probability : float
        Above 0 and below 1.

    Returns
    -------
    count : int
        Number of uniform examples without noise; 1919 for 3 among 20 variables.
    """
    if not 1 <= index(p) <= min(n, MAX_VARIABLES):
        raise ValueError(
            f"`p` must lie between 1 and the number of variables, {n}, and be at most {MAX_VARIABLES}, as more than "
            f"4**p examples are needed; got {p}."
        )
    checked_probability(failure_probability, "`failure_probability`")
    p = index(p)
    chance = failure_probability / (4 * p)
    needed: list[float] = [8 * 2**p * log(2 ** (p + 2) / failure_probability)]
    for fixed in range(p):
        free, k = n - fixed, p - fixed
        degree = k - balanced_order(free, k, chance)
        largest = max(correlation_samples(free, k, chance), polynomial_samples(free, degree, chance))
        needed.append(largest * (2 ** (fixed + 1) if fixed else 1))
    return ceil(max(needed))


def correlation_samples(n: int, k: int, chance: float) -> int:
    r"""Uniform examples from which all correlations of a function of k among n variables are judged, but by ``chance``.

    The coefficients are multiples of :math:`2^{1 - k}`, so an estimate within :math:`2^{-k}` decides which are 0.
    """
    return hoeffding_samples(0.5**k, chance / n_subsets(n, k, 1))


def polynomial_samples(n: int, degree: int, chance: float) -> int:
    r"""Uniform examples that determine a polynomial over GF(2) of n bits, but by ``chance``.

    Another polynomial of degree e differs at a share of at least :math:`2^{-e}` of all points, so that it agrees at m
    of them with probability at most :math:`(1 - 2^{-e})^m`; there are :math:`2^D` with D monomials.
    """
    if degree == 0:
        return 1
    return ceil((n_subsets(n, degree) * log(2) - log(chance)) / -log1p(-(0.5**degree)))


def balanced_order(n: int, k: int, chance: float) -> int:
    r"""Order d of correlations, leaving degree k - d to elimination, at which both together combine the fewest words.

    As n grows it tends to :math:`\frac{\omega}{\omega + 1} k` with :math:`\omega = 3`, the exponent of our elimination.
    """
    words = correlation_samples(n, k, chance) / WORD

    def cost(order: int) -> float:
        unknowns, rows = n_subsets(n, k - order), polynomial_samples(n, k - order, chance)
        return n_subsets(n, order, 1) * words + unknowns * rows / 2 * (unknowns + 1) / WORD

    return min(range(1, k), key=cost, default=1)


def tabulated(points: NDArray[Any], labels: NDArray[Any], variables: Subset, work: Work) -> LearnedJunta:
    """The labels, a function of the variables, as a table over the variables that they depend on."""
    table = np.zeros(2 ** len(variables))
    table[_places(points, variables)] = labels
    if not table.all():
        raise ValueError(f"no example shows some assignment of the variables {variables}; pass uniform examples.")
    for i in reversed(range(len(variables))):
        without, holding = np.moveaxis(table.reshape(-1, 2, 2**i), 1, 0)
        if np.array_equal(without, holding):
            table, variables = without.ravel(), variables[:i] + variables[i + 1 :]
    return LearnedJunta(variables, table, points.shape[1], work)


def _relevant(examples: Points, k: int, chance: float, work: Work) -> list[int]:
    """Some relevant variables of a function of k that is not constant; ``examples`` hold the labels last."""
    last = balanced_order(examples.n - 1, k, chance)
    for order in range(1, last + 1):
        if found := _correlated_variables(examples, k, order, work):
            return found
    try:
        return _polynomial_variables(examples, k - last, chance, work)
    except InconsistentLabelsError:
        return []


def _correlated_variables(examples: Points, k: int, order: int, work: Work) -> list[int]:
    """Variables of all subsets of exactly this order whose coefficient, in a function of k variables, is not 0."""
    n, m = examples.n - 1, examples.n_rows
    n_row_words = examples.columns.shape[1]
    everything = np.full((1, n_row_words), ~np.uint64(0))
    found: set[int] = set()
    for masks in _with_label(n, order):
        odd = kernels.parity_counts(examples.columns, everything, masks)[0]
        heavy = np.abs(m - 2 * odd) >= m * 0.5**k
        found.update(i for subset in subsets_of(masks[heavy]) for i in subset if i < n)
        work.correlations += len(masks)
        work.word_operations += len(masks) * n_row_words
    return sorted(found)


def _with_label(n: int, order: int) -> Iterator[Masks]:
    """Masks of all subsets of n coordinates of one size, each with the label n added; by their last coordinate."""
    for last in range(order - 1, n):
        below = subset_masks(last, order - 1, order - 1)
        masks = np.zeros((len(below), n_words(n + 1)), dtype=np.uint64)
        masks[:, : below.shape[1]] = below
        for i in (last, n):
            masks[:, i // WORD] |= np.uint64(1) << np.uint64(i % WORD)
        yield masks


def _polynomial_variables(examples: Points, degree: int, chance: float, work: Work) -> list[int]:
    """Variables of the polynomial over GF(2) of this degree that has the labels; it is not unique with a ``chance``."""
    n = examples.n - 1
    rows = examples[0 : -(-polynomial_samples(n, degree, chance) // WORD) * WORD]
    monomials = subsets_of(subset_masks(n, degree))
    columns = np.stack([np.bitwise_and.reduce(rows.columns[list(M)], axis=0) for M in monomials])
    # The empty monomial is 1; padding bits are 0.
    columns[0] = kernels.pack_columns(np.ones((rows.n_rows, 1), dtype=np.uint8), 0, 1)[0][0]
    solution = solve_packed(np.concatenate([columns, rows.columns[n:]]), rows.n_rows)
    work.unknowns = max(work.unknowns, len(monomials))
    work.word_operations += solution.word_operations
    if not solution.unique:
        raise ValueError(
            f"{rows.n_rows} examples leave several polynomials of degree {degree} in {n} variables; pass more examples."
        )
    return sorted({i for M, bit in zip(monomials, solution.values, strict=True) if bit for i in M})


def _mixed(points: NDArray[Any], labels: NDArray[Any], variables: Subset) -> NDArray[np.intp] | None:
    """Rows of the first assignment of the variables at which both labels occur; None if there is none."""
    place = _places(points, variables)
    ones = np.bincount(place, weights=labels < 0, minlength=2 ** len(variables))
    total = np.bincount(place, minlength=2 ** len(variables))
    mixed = np.flatnonzero((ones > 0) & (ones < total))
    return np.flatnonzero(place == mixed[0]) if len(mixed) else None


def _places(points: NDArray[Any], variables: Subset) -> NDArray[np.intp]:
    """Index of each point in a table over the variables."""
    return np.asarray((points[:, list(variables)] < 0) @ (1 << np.arange(len(variables))), dtype=np.intp)
