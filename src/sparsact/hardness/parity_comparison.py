"""One parity, several learners: which of them find it, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

import numpy as np

from sparsact.fourier import Spectrum
from sparsact.hardness.distribution import LiftedFunction
from sparsact.hardness.kushilevitz_mansour import heavy_coefficients
from sparsact.hardness.low_degree_queries import low_degree_by_queries
from sparsact.hardness.parity import learn_parity, parity_distribution
from sparsact.hardness.queries import MembershipOracle, StatisticalQueryOracle
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressor
from sparsact.validation.arrays import checked_subset
from sparsact.validation.parameters import checked_generator, checked_share

Access = Literal["statistical queries", "examples", "membership queries"]
SPARE_EXAMPLES = 20  # beyond the rank: elimination fails to determine the parity with probability 2**-20
TEST_EXAMPLES = 4000
LARGEST_COUNT = 1023  # bits: 2**m is a float


@dataclass(frozen=True)
class ContestRow:
    """What one learner needed and reached.

    Attributes
    ----------
    learner, inputs : str
        Who, and what it saw: "bits" y, or the "lifted" x(y) on which the parity is a one-sparse network.
    access : str
        How it saw them.
    queries, examples : int
        What it used of each. Of a learner whose queries do not fit its ledger: what it would have used.
    error : float or None
        Share of wrong signs at fresh points, 1/2 where it says 0; None if its queries do not fit its ledger.
    """

    learner: str
    inputs: str
    access: Access
    queries: int
    examples: int
    error: float | None


def statistical_queries_needed(m: int, tolerance: float) -> float:
    r"""Queries without which no learner finds every parity of m bits to error 1/3: :math:`\tau^2 (2^m - 9)`, or 0.

    [A]_, Theorem 14, states :math:`\Omega(2^m \tau^2)`; :mod:`sparsact.hardness.parity` derives the constant.

    Parameters
    ----------
    m : int
        Number of bits.
    tolerance : float
        tau, of each answer.

    Returns
    -------
    count : float
        From 0.

    Examples
    --------
    >>> statistical_queries_needed(20, tolerance=0.125)
    16383.859375
    """
    if not 1 <= index(m) <= LARGEST_COUNT:
        raise ValueError(f"`m` must lie between 1 and {LARGEST_COUNT}, where the count still is a float; got {m}.")
    checked_share(tolerance, "`tolerance`", ", as queries have values in [-1, 1]")
    return max(0.0, tolerance**2 * (2.0**m - 9))


def parity_contest(
    m: int,
    subset: Iterable[int],
    *,
    rng: np.random.Generator,
    tolerance: float = 0.1,
    budget: int = 100_000,
    n_examples: int = 3000,
    answers: Literal["adversarial", "sampling"] = "adversarial",
) -> list[ContestRow]:
    r"""Learners of one parity :math:`\chi_S` of m uniform bits, on the bits and on their quadratic lift.

    Statistical-query learners: low degree on the bits, at every degree up to \|S\|, and on the lift at degrees 1 and 2.
    With examples: :class:`~sparsact.learners.LowDegreeRegressor` (all that it uses of them are averages) and
    elimination over GF(2). With membership queries: :func:`~sparsact.hardness.heavy_coefficients`.

    Parameters
    ----------
    m : int
        Number of bits.
    subset : iterable of int
        S, at least one coordinate.
    rng : numpy.random.Generator
        Source of all examples and points.
    tolerance : float
        Of the statistical queries.
    budget : int
        Most statistical queries of one learner.
    n_examples : int
        Training examples of the regression.
    answers : {"adversarial", "sampling"}
        How the statistical-query oracle answers.

    Returns
    -------
    rows : list of ContestRow

    Examples
    --------
    >>> rows = parity_contest(8, (0, 2, 3, 6, 7), rng=np.random.default_rng(0), n_examples=500)
    >>> sorted({row.learner for row in rows if row.error is not None and row.error < 1 / 3})
    ['elimination', 'heavy coefficients', 'low degree, d = 5']
    """
    members = checked_subset(subset)
    if not members:
        raise ValueError("the empty parity is the constant 1, which needs no learner: name at least one coordinate.")
    checked_generator(rng)
    on_bits, on_lift = (parity_distribution(members, m, lifted=lifted) for lifted in (False, True))

    def rows() -> Iterator[ContestRow]:
        for inputs, distribution, degrees in (
            ("bits", on_bits, range(1, len(members) + 1)),
            ("lifted", on_lift, range(1, min(2, on_lift.n) + 1)),
        ):
            for degree in degrees:
                yield _low_degree(inputs, distribution, degree, tolerance, budget, answers, rng)
            yield _regression(inputs, distribution, n_examples, rng)
            yield _elimination(inputs, distribution, rng)
        yield _membership(on_bits, rng)

    return sorted(rows(), key=lambda row: row.access, reverse=True)


def _low_degree(
    inputs: str,
    distribution: LiftedFunction,
    degree: int,
    tolerance: float,
    budget: int,
    answers: Literal["adversarial", "sampling"],
    rng: np.random.Generator,
) -> ContestRow:
    name = f"low degree, d = {degree}"
    needed = n_subsets(distribution.n, degree)
    if needed > budget:
        return ContestRow(name, inputs, "statistical queries", needed, 0, None)
    oracle = StatisticalQueryOracle(distribution, tolerance, answers, budget=budget, rng=rng)
    hypothesis = low_degree_by_queries(oracle, degree)
    error = _error(hypothesis, distribution, rng)
    return ContestRow(name, inputs, "statistical queries", oracle.ledger.n_queries, oracle.ledger.n_samples, error)


def _regression(inputs: str, distribution: LiftedFunction, n_examples: int, rng: np.random.Generator) -> ContestRow:
    degree = 2 if inputs == "bits" else 1  # the same functions of the bits
    X, y = distribution.sample(n_examples, rng=rng)
    model = LowDegreeRegressor(degree).fit(X, y)
    error = _error(model.predict, distribution, rng)
    return ContestRow(f"regression, d = {degree}", inputs, "examples", 0, n_examples, error)


def _elimination(inputs: str, distribution: LiftedFunction, rng: np.random.Generator) -> ContestRow:
    X, y = distribution.sample(distribution.m + SPARE_EXAMPLES, rng=rng)
    return ContestRow("elimination", inputs, "examples", 0, len(y), _error(learn_parity(X, y), distribution, rng))


def _membership(distribution: LiftedFunction, rng: np.random.Generator) -> ContestRow:
    oracle = MembershipOracle(distribution.labels, distribution.m)
    found: Spectrum = heavy_coefficients(oracle, 0.9, rng=rng, failure_probability=1e-6)
    error = _error(found, distribution, rng)
    return ContestRow("heavy coefficients", "bits", "membership queries", oracle.ledger.n_queries, 0, error)


def _error(hypothesis: Callable[..., Any], distribution: LiftedFunction, rng: np.random.Generator) -> float:
    """Share of wrong signs at fresh examples; 0 is half wrong."""
    X, y = distribution.sample(TEST_EXAMPLES, rng=rng)
    return float(np.mean((1 - np.sign(hypothesis(X)) * y) / 2))
