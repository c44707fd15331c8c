"""The degree that ``degree="auto"`` takes: from what rows leave unexplained, if they can tell, or by held-out error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds import UnexplainedVariance, unexplained_variance
from sparsact.hypercube import bits_to_signs
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.folds import dealt, fold_scores, summary
from sparsact.learners.low_degree.plan import MAX_CELLS_N, plan
from sparsact.learners.low_degree.solve import Penalty
from sparsact.learners.low_degree.stream import Batch, Request, Stream
from sparsact.learners.points import recognized

MOST_MONOMIALS_OF_CELLS = 25_000
MOST_MONOMIALS = 6_000
MOST_MONOMIALS_OF_FOLDS = 2_500  # each is fitted once a fold
MOST_ERROR = 0.05
_FOLDS = 5
_EQUAL = 1e-9  # of the variance


def automatic_degree(X: NDArray[Any], batch: Batch, request: Request, penalty: Penalty) -> tuple[int, str]:
    """A degree for rows X (m, n), and one sentence on how it was chosen.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        As the learner was given them, checked.
    batch : Batch
        Targets (m, T) and weights.
    request : Request
        Of the learner; its degree is not looked at.
    penalty : Penalty
        Ridge.

    Notes
    -----
    *By theory*: least squares of degree d on m uniform rows has the mean squared error
    ``unexplained(d) * m / (m - D)`` on new ones; the degree with the least is taken, if the estimate at it is good to
    5 % of the variance. Where higher ones might do better within two standard errors, folds decide. *By folds*: five,
    dealt as by LowDegreeRegressorCV.
    """
    if request.subsets is not None:
        return max((len(subset) for subset in request.subsets), default=0), "the subsets are listed."
    if batch.weights is not None:
        X, batch = X[batch.weights > 0], batch.positive()
    batch = _of_size_one(batch, centred=penalty.fit_intercept)
    written, _ = recognized(X) if request.domain != "real" else ("real", None)
    degrees = list(_affordable(X.shape[1], batch, request, "dense" if written == "real" else request.solver, penalty))
    most = f"at most {degrees[-1]} is affordable for {len(X):,} rows of {X.shape[1]} columns"
    if degrees == [0]:
        return 0, f"the mean alone: {most}, for degree 1 has too many monomials for the rows, the memory or the time."
    low = max(1, request.min_degree)
    fast = [d for d in degrees if d < 2 or Family.count(X.shape[1], d, low) <= MOST_MONOMIALS_OF_FOLDS]
    obstacle, found = _by_theory(X, written, batch, request, penalty)
    if obstacle is None:
        degree = _least_predicted(found, len(X), degrees[-1])
        doubt = _largest_doubt(found, degree)
        if doubt <= MOST_ERROR:
            open_to = max([degree, *(int(d) for each in found for d in each.rivals(degree, len(X)))])
            rivals = [d for d in fast if degree <= d <= open_to]
            how = "least predicted error"
            if len(rivals) > 1:
                degree = _by_folds(X, batch, request, penalty, rivals)
                how = f"least held-out error of degrees {rivals[0]} to {rivals[-1]}, which theory leaves open"
            return degree, f"{how}; {_told(found, degree, degrees[-1])}; {most}."
        obstacle = f"pairs of rows tell what is unexplained to {doubt:.0%} of the variance only"
    degree = _by_folds(X, batch, request, penalty, fast)
    return degree, f"least held-out error over degrees {fast[0]} to {fast[-1]}, because {obstacle}; {most}."


def _of_size_one(batch: Batch, *, centred: bool) -> Batch:
    """Targets scaled by a power of two, so that squares are float64, and about their mean: the choice is the same."""
    _, exponent = np.frexp(np.abs(batch.y).max(initial=0.0))
    y = np.ldexp(batch.y, -int(exponent))
    return replace(batch, y=y - np.average(y, axis=0, weights=batch.weights) if centred else y)


def _affordable(n: int, batch: Batch, request: Request, solver: str, penalty: Penalty) -> Iterator[int]:
    """Degree 0, and every further one within reach of memory, time and, without a penalty, the rows."""
    m = len(batch.y)
    most = MOST_MONOMIALS_OF_CELLS if n <= MAX_CELLS_N and solver != "dense" else MOST_MONOMIALS
    if penalty.alpha == 0:
        most = min(most, m // 2 - 1)
    yield 0
    for degree in range(1, n + 1):
        if Family.count(n, degree, max(1, request.min_degree)) > most:
            return
        try:
            plan(request.of_degree(degree).size(n, m, batch.y.shape[1]), solver, request.max_memory)
        except MemoryError:
            return
        yield degree


def _by_theory(
    X: NDArray[Any], written: str, batch: Batch, request: Request, penalty: Penalty
) -> tuple[str | None, list[UnexplainedVariance]]:
    """What stands in the way of the theory, or None and what each target leaves unexplained."""
    if written == "real":
        return "the columns are real numbers", []
    if penalty.alpha > 0 or not penalty.fit_intercept or request.min_degree > 1:
        return "the theory is of least squares with an intercept on all subsets", []
    if batch.weights is not None and np.ptp(batch.weights) > 0:
        return "the rows have unequal weights", []
    if len(X) < 4 * _FOLDS:
        return "the rows are few", []
    signs = bits_to_signs(X) if written == "bits" else X.astype(np.int8)
    rng = np.random.default_rng(0)  # the same rows, the same choice
    found = [unexplained_variance(signs, target, rng=rng) for target in batch.y.T]
    if not found[0].uniform:
        return f"the rows are not uniform (bias {found[0].bias:.2g})", found
    if not all(each.values[0] > 0 for each in found):
        return "a target is constant", found
    return None, found


def _least_predicted(found: list[UnexplainedVariance], n_rows: int, most: int) -> int:
    """The degree, up to ``most``, of least predicted error; of each target's as a share of its variance, the mean."""
    errors = [each.predicted_errors(n_rows) / each.values[0] for each in found]
    return int(np.mean(errors, axis=0)[: most + 1].argmin())


def _largest_doubt(found: list[UnexplainedVariance], degree: int) -> float:
    return max(float(each.standard_errors[degree] / each.values[0]) for each in found)


def _told(found: list[UnexplainedVariance], degree: int, most: int) -> str:
    """What a degree leaves, and what one out of reach would, if that is beyond doubt."""
    share = np.mean([each.values[degree] / each.values[0] for each in found])
    told = (
        f"degree {degree} leaves {share:.2%} of the variance unexplained (standard error "
        f"{_largest_doubt(found, degree):.1%}), as pairs of uniform rows tell"
    )
    if degree < most or len(found) > 1 or len(found[0].values) <= most + 1:
        return told
    weight, error = found[0].weights()[most], found[0].weight_errors[most]
    if weight <= 3 * error:
        return told
    return f"{told}, and degree {most + 1} would leave {weight / found[0].values[0]:.0%} less"


def _by_folds(X: NDArray[Any], batch: Batch, request: Request, penalty: Penalty, degrees: list[int]) -> int:
    folds = dealt(0, len(X), min(_FOLDS, len(X)), 0)
    wanted = request.of_degree(degrees[-1])
    stream = Stream(X.shape[1], batch.y.shape[1], min(_FOLDS, len(X)))
    stream.add(wanted, X, Batch(batch.y, batch.weights, folds))
    squared, variance = fold_scores(
        stream.settled(wanted), wanted, degrees, [penalty.alpha], fit_intercept=penalty.fit_intercept
    )
    errors = summary(degrees, [penalty.alpha], squared, variance)["mean_mse"]
    equal = errors <= errors.min() + _EQUAL * variance.mean()  # of degrees that all fit exactly, the lowest
    return degrees[int(equal.argmax())]
