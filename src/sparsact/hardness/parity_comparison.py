"""One parity, several learners: which find it, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from sparsact.hardness.distribution import LiftedFunction
from sparsact.hardness.parity import learn_parity, parity_distribution
from sparsact.hardness.queries import MembershipOracle
from sparsact.hardness.query_learners import heavy_coefficients, low_degree_by_queries
from sparsact.hardness.statistical_oracle import StatisticalQueryOracle
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressor
from sparsact.validation.arrays import checked_subset
from sparsact.validation.parameters import checked_generator, checked_share, checked_size

Access = Literal["statistical queries", "examples", "membership queries"]
SPARE_EXAMPLES: Final = 20  # beyond the rank: elimination fails to determine the parity with probability 2**-20
TEST_EXAMPLES: Final = 4000
LARGEST_COUNT: Final = 1023  # bits: 2**m is a float


@dataclass(frozen=True)
class ContestRow:
    """Cost and error of one learner.

    Attributes
    ----------
    learner, inputs, access : str
        Its name; its inputs, "bits" y, or the "lifted" x(y) on which the parity is a one-sparse network; and how it
        gets them.
    queries, examples : int
        Numbers used, or that would be used by a learner whose queries exceed the budget.
    error : float or None
        Share of wrong signs at fresh points, 1/2 where it returns 0; None if its queries exceed the budget.
    """

    learner: str
    inputs: str
    access: Access
    queries: int
    examples: int
    error: float | None


def statistical_queries_needed(m: int, tolerance: float) -> float:
    r"""Queries without which no learner finds every parity of m bits to error 1/3: :math:`\tau^2 (2^m - 9)`, or 0.

    Theorem 14 of paper A states :math:`\Omega(2^m \tau^2)`; :mod:`sparsact.hardness.parity` derives the constant.

    Parameters
    ----------
    m, tolerance : int, and float
        Number of bits, and tau, of each answer.

    Returns
    -------
    count : float
    """
    checked_size(m, "`m`", maximum=LARGEST_COUNT)
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
    With examples: :class:`~sparsact.learners.LowDegreeRegressor` (it uses only averages of them) and elimination over
    GF(2). With membership queries: :func:`~sparsact.hardness.heavy_coefficients`.

    Parameters
    ----------
    m, subset : int, and iterable of int
        Number of bits, and S, at least one coordinate.
    rng : numpy.random.Generator
        Source of all examples and points.
    tolerance, budget, answers : float, int, and {"adversarial", "sampling"}
        Options of the statistical queries of each learner.
    n_examples : int
        Training examples of the regression.

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
    rows = []
    for inputs, distribution, degrees, same in (  # regression: the same functions of the bits
        ("bits", on_bits, range(1, len(members) + 1), 2),
        ("lifted", on_lift, range(1, min(2, on_lift.n) + 1), 1),
    ):
        for degree in degrees:
            name, needed = f"low degree, d = {degree}", n_subsets(distribution.n, degree)
            if needed > budget:
                rows.append(ContestRow(name, inputs, "statistical queries", needed, 0, None))
                continue
            asked = StatisticalQueryOracle(distribution, tolerance, answers, budget=budget, rng=rng)
            error = _error(low_degree_by_queries(asked, degree), distribution, rng)
            used = asked.ledger
            rows.append(ContestRow(name, inputs, "statistical queries", used.n_queries, used.n_samples, error))
        X, y = distribution.sample(n_examples, rng=rng)
        error = _error(LowDegreeRegressor(same).fit(X, y).predict, distribution, rng)
        rows.append(ContestRow(f"regression, d = {same}", inputs, "examples", 0, n_examples, error))
        X, y = distribution.sample(m + SPARE_EXAMPLES, rng=rng)
        error = _error(learn_parity(X, y), distribution, rng)
        rows.append(ContestRow("elimination", inputs, "examples", 0, len(y), error))
    oracle = MembershipOracle(on_bits.labels, m)
    error = _error(heavy_coefficients(oracle, 0.9, rng=rng, failure_probability=1e-6), on_bits, rng)
    rows.append(ContestRow("heavy coefficients", "bits", "membership queries", oracle.ledger.n_queries, 0, error))
    return sorted(rows, key=lambda row: row.access, reverse=True)


def _error(hypothesis: Callable[..., Any], distribution: LiftedFunction, rng: np.random.Generator) -> float:
    """Share of wrong signs at fresh examples; 0 is half wrong."""
    X, y = distribution.sample(TEST_EXAMPLES, rng=rng)
    return float(np.mean((1 - np.sign(hypothesis(X)) * y) / 2))
