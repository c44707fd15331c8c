"""Juntas: functions of p among n variables, learned from uniform examples.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Conjecture 12 and Theorem 13.
.. [M] E. Mossel, R. O'Donnell, R. Servedio, "Learning functions of k relevant variables", 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from operator import index
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.constructions import junta
from sparsact.fourier import Spectrum
from sparsact.hardness.elimination import InconsistentLabelsError
from sparsact.hardness.junta_search import (
    Work,
    balanced_order,
    correlated_variables,
    correlation_samples,
    polynomial_samples,
    polynomial_variables,
)
from sparsact.hypercube import Subset
from sparsact.learners.points import Points, pack
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_sign_examples, checked_signs
from sparsact.validation.parameters import checked_option, checked_probability


@dataclass(frozen=True, eq=False)
class LearnedJunta:
    """A function of few variables that has all labels.

    Attributes
    ----------
    variables : tuple of int
        Those on which it depends, sorted.
    table : ndarray of shape (2 ** len(variables),)
        Its values +-1, in table order over ``variables``.
    n : int
        Number of coordinates of a point.
    work : Work
        What the search has cost: correlations, unknowns, words.
    """

    variables: Subset
    table: NDArray[np.float64]
    n: int
    work: Work

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (rows,) at the rows of ``X``, signs (rows, n)."""
        return self.table[places(checked_signs(X, self.n), self.variables)]

    def network(self) -> SparselyActivatedNetwork:
        """The same function as a one-sparse network (:func:`sparsact.constructions.junta`)."""
        return junta(self.table, self.variables, self.n)

    def __spectrum__(self) -> Spectrum:
        coefficients = Spectrum.of(self.table).items()
        named = {tuple(self.variables[i] for i in subset): value for subset, value in coefficients}
        return Spectrum.of(named, n=self.n)


def tabulated(points: NDArray[Any], labels: NDArray[Any], variables: Subset, work: Work) -> LearnedJunta:
    """The labels, a function of the variables, as a table over those on which it depends."""
    table = np.zeros(2 ** len(variables))
    table[places(points, variables)] = labels
    if not table.all():
        raise ValueError(f"no example shows some assignment of the variables {variables}; pass uniform examples.")
    for i in reversed(range(len(variables))):
        without, holding = np.moveaxis(table.reshape(-1, 2, 2**i), 1, 0)
        if np.array_equal(without, holding):
            table, variables = without.ravel(), variables[:i] + variables[i + 1 :]
    return LearnedJunta(variables, table, points.shape[1], work)


def places(points: NDArray[Any], variables: Subset) -> NDArray[np.intp]:
    """Where each point stands in a table over the variables."""
    return np.asarray((points[:, list(variables)] < 0) @ (1 << np.arange(len(variables))), dtype=np.intp)


Method = Literal["restrictions", "brute force"]
MOST_VARIABLES = 30


def learn_junta(
    X: ArrayLike,
    y: ArrayLike,
    p: int,
    *,
    method: Method = "restrictions",
    failure_probability: float = 0.01,
) -> LearnedJunta:
    r"""The function of at most p variables that has the given labels, from uniform examples without noise.

    Parameters
    ----------
    X : array-like of shape (rows, n)
        Uniform points, signs.
    y : array-like of shape (rows,)
        Labels, signs.
    p : int
        Most variables, from 1 to n.
    method : {"restrictions", "brute force"}
        "brute force": correlations of order 1, 2, ... up to p, about n^p of them in the worst case, a parity.
        "restrictions": that of [M]_, below.
    failure_probability : float
        The chance, over uniform examples, of an error or a wrong answer; it sets how many examples are asked for.

    Returns
    -------
    junta : LearnedJunta

    Raises
    ------
    InconsistentLabelsError
        If no function of p variables was found that has all labels: more variables, or noise.
    ValueError
        If there are fewer examples than :func:`junta_samples`, or arguments are out of range.

    Notes
    -----
    [M]_ rests on a theorem (:mod:`sparsact.hardness.binary_polynomial` has its proof): a function of k bits that is not
    constant has a Fourier coefficient of order 1 to d that is not 0, or a degree over GF(2) of at most k - d. In either
    case relevant variables show: those of that coefficient, found among n^d correlations; or those of the polynomial,
    found by a linear system with about n^(k-d) unknowns, in n^(omega (k-d)) steps. Fixing the variables found so far in
    a way that leaves the labels mixed, one goes on with the rest. Balanced at d = omega k / (omega + 1) that is
    n^(omega p / (omega + 1)), up to factors of p alone. Our elimination has omega = 3, hence n^(3p/4), with the words
    of 64 bits as a constant factor; fast matrix multiplication would give about n^(0.70 p).

    Examples
    --------
    >>> X = np.random.default_rng(0).choice([1, -1], (3000, 20))
    >>> learned = learn_junta(X, X[:, 3] * X[:, 8] * X[:, 15], 3)
    >>> learned.variables, learned.table.astype(int).tolist()
    ((3, 8, 15), [1, -1, -1, 1, -1, 1, 1, -1])
    """
    points, labels = checked_sign_examples(X, y)
    n = points.shape[1]
    p = _checked_size(p, n, failure_probability)
    checked_option(method, "`method`", get_args(Method))
    needed = junta_samples(n, p, failure_probability=failure_probability)
    if len(points) < needed:
        raise ValueError(
            f"a junta of {p} among {n} variables is learned with failure probability {failure_probability} from "
            f"{needed:,} examples; got {len(points):,}: pass more, or allow a larger `failure_probability`."
        )
    examples = pack(np.column_stack([points, labels]), "signs")
    work = Work()
    find = _all_at_once if method == "brute force" else _by_restrictions
    variables = find(points, labels, examples, p, failure_probability / (4 * p), work)
    return tabulated(points, labels, variables, work)


def junta_samples(n: int, p: int, *, failure_probability: float = 0.01) -> int:
    r"""Examples from which :func:`learn_junta` succeeds with the stated probability; about :math:`p\, 4^p \ln n`.

    A quarter of the failure probability goes to correlations, a quarter to polynomials, the rest to restrictions that
    get less than half of their share of examples, or of whose two labels one is not seen.

    Parameters
    ----------
    n : int
        Coordinates.
    p : int
        Variables of the junta, at most.
    failure_probability : float
        Above 0 and below 1.

    Returns
    -------
    count : int
        Of uniform examples without noise.

    Examples
    --------
    >>> junta_samples(20, 3)
    1919
    """
    p = _checked_size(p, n, failure_probability)
    chance = failure_probability / (4 * p)
    needed: list[float] = [8 * 2**p * log(2 ** (p + 2) / failure_probability)]
    for fixed in range(p):
        free, k = n - fixed, p - fixed
        degree = k - balanced_order(free, k, chance)
        most = max(correlation_samples(free, k, chance), polynomial_samples(free, degree, chance))
        needed.append(most * (2 ** (fixed + 1) if fixed else 1))
    return ceil(max(needed))


def _all_at_once(
    points: NDArray[Any], labels: NDArray[Any], examples: Points, p: int, chance: float, work: Work
) -> Subset:
    """Variables of correlations of order 1, 2, ..., until the labels are a function of them."""
    found: set[int] = set()
    for order in range(1, p + 1):
        if _mixed(points, labels, tuple(sorted(found))) is None:
            break
        found.update(correlated_variables(examples, p, order, work))
        if len(found) > p:
            _refuse(p)
    if _mixed(points, labels, tuple(sorted(found))) is not None:
        _refuse(p)
    return tuple(sorted(found))


def _by_restrictions(
    points: NDArray[Any], labels: NDArray[Any], examples: Points, p: int, chance: float, work: Work
) -> Subset:
    """Variables found one restriction after another, until every restriction is constant."""
    found: set[int] = set()
    while (rows := _mixed(points, labels, tuple(sorted(found)))) is not None:
        if len(found) == p:
            _refuse(p)
        free = [i for i in range(points.shape[1]) if i not in found]
        here = examples[rows] if found else examples
        here = Points(np.ascontiguousarray(here.columns[[*free, -1]]), here.n_rows)
        new = _relevant(here, p - len(found), chance, work)
        if not new or len(found) + len(new) > p:
            _refuse(p)
        found.update(free[i] for i in new)
    return tuple(sorted(found))


def _relevant(examples: Points, k: int, chance: float, work: Work) -> list[int]:
    """Some relevant variables of a function of k that is not constant."""
    n = examples.n - 1
    last = balanced_order(n, k, chance)
    for order in range(1, last + 1):
        found = correlated_variables(examples, k, order, work)
        if found:
            return found
    try:
        return polynomial_variables(examples, k - last, chance, work)
    except InconsistentLabelsError:
        return []


def _mixed(points: NDArray[Any], labels: NDArray[Any], variables: Subset) -> NDArray[np.intp] | None:
    """Rows of the first assignment of the variables at which both labels occur; None if there is none."""
    place = places(points, variables)
    ones = np.bincount(place, weights=labels < 0, minlength=2 ** len(variables))
    total = np.bincount(place, minlength=2 ** len(variables))
    mixed = np.flatnonzero((ones > 0) & (ones < total))
    return np.flatnonzero(place == mixed[0]) if len(mixed) else None


def _checked_size(p: int, n: int, failure_probability: float) -> int:
    if not 1 <= index(p) <= min(n, MOST_VARIABLES):
        raise ValueError(
            f"`p` must lie between 1 and the number of variables, {n}, and be at most {MOST_VARIABLES}, as more than "
            f"4**p examples are needed; got {p}."
        )
    checked_probability(failure_probability, "`failure_probability`")
    return int(p)


def _refuse(p: int) -> NoReturn:
    raise InconsistentLabelsError(
        f"no function of at most {p} variables was found that has these labels: raise `p`, or remove noise."
    )
