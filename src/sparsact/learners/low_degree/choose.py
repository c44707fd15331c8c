"""The choice of degree and penalty by held-out error, from one statistic per fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds import UnexplainedVariance, unexplained_variance
from sparsact.hypercube import bits_to_signs
from sparsact.learners.low_degree.accumulator import Accumulator, FitSpec
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family, Penalty
from sparsact.learners.low_degree.solvers.cells import MAX_CELLS_N
from sparsact.learners.low_degree.solvers.solver import choose_solver
from sparsact.learners.points import detect_encoding
from sparsact.statistics.statistic import Batch

_MAX_SHUFFLED = 1 << 16


@dataclass(frozen=True)
class CVSelection:
    """What cross-validation chose: degree, alpha, mean held-out R2, and the table of all candidates."""

    degree: int
    alpha: float
    score: float
    results: dict[str, NDArray[Any]]


def fold_scores(
    seen: Accumulator, spec: FitSpec, degrees: list[int], alphas: list[float], *, fit_intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Held-out mean squared errors (degrees, alphas, folds, T), and each fold's variance about its mean (folds, T).

    Of targets of size one, as :meth:`Accumulator.rescaled` gives them: else squares may overflow or vanish.
    """
    shape = (len(degrees), len(alphas), seen.n_folds, seen.n_targets)
    squared, everything = np.empty(shape), seen.total()
    for fold, held_out in enumerate(seen.statistics):
        training = everything.copy()
        training.merge(held_out, -1)
        squared[:, :, fold] = _scores(training, held_out, spec, degrees, alphas, fit_intercept)
    return squared, np.stack([held_out.variances() for held_out in seen.statistics])


def _scores(
    training: Any, held_out: Any, spec: FitSpec, degrees: list[int], alphas: list[float], fit_intercept: bool
) -> NDArray[np.float64]:
    squared = np.empty((len(degrees), len(alphas), held_out.n_targets))
    both: tuple[NormalEquations, NormalEquations] | None = None  # of the largest degree: lower ones are a part of it
    how: dict[str, Any] = {"fit_intercept": fit_intercept, "n_threads": spec.n_threads}
    for i in reversed(range(len(degrees))):
        wanted = spec.with_degree(degrees[i])
        size = wanted.size(training.n, training.n_rows, training.n_targets, training.kind)
        plan = choose_solver(spec.solver, size, spec.max_memory)
        family = training.family_of(wanted.family(training.n))
        if plan.explicit_gram:
            both = both or (training.normal_equations(family, **how), held_out.normal_equations(family, **how))
            squared[i] = _by_equations(*both, family, alphas)
            continue
        for j, alpha in enumerate(alphas):
            penalty = Penalty("ridge", alpha, fit_intercept)
            found = plan.solver.solve(training, family, penalty, plan, n_threads=spec.n_threads)
            error = held_out.squared_error(found.polynomial, n_threads=spec.n_threads)
            squared[i, j] = error / held_out.weight
    return squared


def _by_equations(
    training: NormalEquations, held_out: NormalEquations, family: Family, alphas: list[float]
) -> NDArray[np.float64]:
    """Mean squared errors (alphas, T) by quadratic forms in the held-out equations."""
    leading = slice(len(family))
    train, test = training.part(leading), held_out.part(leading)
    errors = []
    for alpha in alphas:
        coef = train.factor(alpha).solve(train.rhs)
        errors.append(test.squared_error(coef, train.feature_mean, train.target_mean) / test.weight)
    return np.stack(errors)


def summary(
    degrees: list[int], alphas: list[float], squared: NDArray[np.float64], variance: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Table of candidates; ``squared`` (degrees, alphas, folds, T) are held-out mean squared errors."""
    constant = np.where(squared == 0, 1.0, 0.0)  # scikit-learn's R2 of a constant target
    r2 = np.where(variance > 0, 1 - squared / np.where(variance > 0, variance, 1.0), constant)
    r2 = r2.mean(axis=-1).reshape(-1, squared.shape[2])
    mse = squared.mean(axis=-1).reshape(-1, squared.shape[2])
    grid_degree, grid_alpha = np.meshgrid(degrees, alphas, indexing="ij")
    return {
        "degree": grid_degree.ravel(),
        "alpha": grid_alpha.ravel(),
        "mean_mse": mse.mean(axis=1),
        "std_mse": mse.std(axis=1),
        "mean_r2": r2.mean(axis=1),
        "std_r2": r2.std(axis=1),
        "fold_mse": mse,
        "fold_r2": r2,
    }


def assign_folds(first: int, n_rows: int, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Folds of rows first..first + n_rows - 1 of a stream: each block of ``n_folds`` rows is a random permutation.

    Depends on the row's number and the seed alone, not on how the stream was cut. Blocks of very many folds are never
    written out: their permutations are affine, with a random multiplier and shift.
    """
    if n_folds > _MAX_SHUFFLED:
        return np.array([_affine(row // n_folds, row % n_folds, n_folds, seed) for row in range(first, first + n_rows)])
    block = np.arange(first // n_folds, (first + n_rows - 1) // n_folds + 1)
    numbers = block[:, None] * n_folds + np.arange(n_folds)
    keys = _mixed(numbers.astype(np.uint64), seed)
    folds = keys.argsort(axis=1, kind="stable").ravel()
    return folds[first % n_folds :][:n_rows]


def _affine(block: int, place: int, n_folds: int, seed: int) -> int:
    """Where a permutation that depends on the block and the seed takes a place."""
    for draw in count():
        shift, factor = (int(word) for word in _mixed(np.array([block, draw + 1], dtype=np.uint64), seed))
        if gcd(factor, n_folds) == 1:
            return (factor * place + shift) % n_folds
    raise AssertionError  # some odd number in 64 bits is prime to n_folds


def _mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014): random-looking words that depend on the number and the seed alone."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(int(seed) % 2**64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


MAX_MONOMIALS_OF_CELLS = 25_000
MAX_MONOMIALS = 6_000
MAX_MONOMIALS_OF_FOLDS = 2_500  # each is fitted once a fold
MAX_ERROR = 0.05
_FOLDS = 5
_EQUAL = 1e-9  # of the variance


def automatic_degree(batch: Batch, spec: FitSpec, penalty: Penalty) -> tuple[int, str]:
    """A degree for some rows, and one sentence on how it was chosen.

    Parameters
    ----------
    batch : Batch
        Rows as the learner was given them, checked.
    spec : FitSpec
        Of the learner; its degree is not looked at.
    penalty : Penalty
        Ridge.

    Notes
    -----
    *By theory*: least squares of degree d on m uniform rows has the mean squared error
    ``unexplained(d) * m / (m - D)`` on new ones; the degree with the least is taken, if the estimate at it is good to
    5 % of the variance. Where higher ones might do better within two standard errors, folds decide. *By folds*: five,
    assigned as by LowDegreeRegressorCV.
    """
    if spec.subsets is not None:
        return max((len(subset) for subset in spec.subsets), default=0), "the subsets are listed."
    batch = _of_size_one(batch.positive(), centred=penalty.fit_intercept)
    n = batch.X.shape[1]
    encoding = "real" if spec.domain == "real" else detect_encoding(batch.X)[0]
    degrees = list(_affordable(n, batch, spec, "real" if encoding == "real" else "rows", penalty))
    most = f"at most {degrees[-1]} is affordable for {len(batch):,} rows of {n} columns"
    if degrees == [0]:
        return 0, f"the mean alone: {most}, for degree 1 has too many monomials for the rows, the memory or the time."
    low = max(1, spec.min_degree)
    fast = [d for d in degrees if d < 2 or Family.count(n, d, low) <= MAX_MONOMIALS_OF_FOLDS]
    obstacle, found = _by_theory(encoding, batch, spec, penalty)
    if obstacle is None:
        degree = _least_predicted(found, len(batch), degrees[-1])
        doubt = _largest_doubt(found, degree)
        if doubt <= MAX_ERROR:
            open_to = max([degree, *(int(d) for each in found for d in each.rivals(degree, len(batch)))])
            rivals = [d for d in fast if degree <= d <= open_to]
            how = "least predicted error"
            if len(rivals) > 1:
                degree = _by_folds(batch, spec, penalty, rivals)
                how = f"least held-out error of degrees {rivals[0]} to {rivals[-1]}, which theory leaves open"
            return degree, f"{how}; {_statement(found, degree, degrees[-1])}; {most}."
        obstacle = f"pairs of rows show what is unexplained to {doubt:.0%} of the variance only"
    degree = _by_folds(batch, spec, penalty, fast)
    return degree, f"least held-out error over degrees {fast[0]} to {fast[-1]}, because {obstacle}; {most}."


def _of_size_one(batch: Batch, *, centred: bool) -> Batch:
    """Targets scaled by a power of two, so that squares are float64, and about their mean: the choice is the same."""
    _, exponent = np.frexp(np.abs(batch.y).max(initial=0.0))
    y = np.ldexp(batch.y, -int(exponent))
    return replace(batch, y=y - np.average(y, axis=0, weights=batch.weights) if centred else y)


def _affordable(n: int, batch: Batch, spec: FitSpec, form: str, penalty: Penalty) -> Iterator[int]:
    """Degree 0, and every further one within reach of memory, time and, without a penalty, the rows."""
    m = len(batch.y)
    most = MAX_MONOMIALS_OF_CELLS if n <= MAX_CELLS_N and form != "real" else MAX_MONOMIALS
    if penalty.alpha == 0:
        most = min(most, m // 2 - 1)
    yield 0
    for degree in range(1, n + 1):
        if Family.count(n, degree, max(1, spec.min_degree)) > most:
            return
        try:
            choose_solver(spec.solver, spec.with_degree(degree).size(n, m, batch.y.shape[1], form), spec.max_memory)
        except MemoryError:
            return
        yield degree


def _by_theory(
    encoding: str, batch: Batch, spec: FitSpec, penalty: Penalty
) -> tuple[str | None, list[UnexplainedVariance]]:
    """What stands in the way of the theory, or None and what each target leaves unexplained."""
    if encoding == "real":
        return "the columns are real numbers", []
    if penalty.alpha > 0 or not penalty.fit_intercept or spec.min_degree > 1:
        return "the theory is of least squares with an intercept on all subsets", []
    if batch.weights is not None and np.ptp(batch.weights) > 0:
        return "the rows have unequal weights", []
    if len(batch) < 4 * _FOLDS:
        return "the rows are few", []
    signs = bits_to_signs(batch.X) if encoding == "bits" else batch.X.astype(np.int8)
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


def _statement(found: list[UnexplainedVariance], degree: int, most: int) -> str:
    """What a degree leaves, and what one out of reach would, if that is beyond doubt."""
    share = np.mean([each.values[degree] / each.values[0] for each in found])
    stated = (
        f"degree {degree} leaves {share:.2%} of the variance unexplained (standard error "
        f"{_largest_doubt(found, degree):.1%}), as pairs of uniform rows show"
    )
    if degree < most or len(found) > 1 or len(found[0].values) <= most + 1:
        return stated
    weight, error = found[0].weights()[most], found[0].weight_errors[most]
    if weight <= 3 * error:
        return stated
    return f"{stated}, and degree {most + 1} would leave {weight / found[0].values[0]:.0%} less"


def _by_folds(batch: Batch, spec: FitSpec, penalty: Penalty, degrees: list[int]) -> int:
    n_folds = min(_FOLDS, len(batch))
    spec, seen = spec.with_degree(degrees[-1]), Accumulator(batch.X.shape[1], batch.y.shape[1], n_folds)
    seen.change(spec, replace(batch, folds=assign_folds(0, len(batch), n_folds, 0)))
    alphas = [penalty.alpha]
    squared, variance = fold_scores(seen.resolved(spec), spec, degrees, alphas, fit_intercept=penalty.fit_intercept)
    errors = summary(degrees, alphas, squared, variance)["mean_mse"]
    equal = errors <= errors.min() + _EQUAL * variance.mean()  # of degrees that all fit exactly, the lowest
    return degrees[int(equal.argmax())]
