"""The one rule by which degrees and penalties are chosen, by held-out errors, from one statistic per fold.

``LowDegreeRegressor(degree="auto")``, ``LowDegreeRegressorCV`` and ``sparsact.fit_table`` follow it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds.unexplained import unexplained_variance
from sparsact.hypercube import bits_to_signs, n_subsets
from sparsact.learners.low_degree.accumulator import Accumulator, FitSpec
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.real_columns import CentredMoments, lost_in_words
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic, choose_solver
from sparsact.learners.points import detect_encoding
from sparsact.statistics.column_scales import exponents_of
from sparsact.statistics.exact_sum import LIMB_BITS
from sparsact.statistics.folds import deal
from sparsact.statistics.simplest import simplest
from sparsact.statistics.statistic import Batch

ALPHAS: Final = (0.0, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
# Monomials that cross-validation affords, over all folds and penalties, in about a minute on one core.
MAX_MONOMIALS: Final = 2500
MAX_MONOMIALS_OF_PAIRS: Final = 6000
MAX_MONOMIALS_OF_FEW_ROWS: Final = 20_000
MAX_MONOMIALS_OF_SELECTIONS: Final = 1500  # by the lasso, from the Gram matrix however few the rows
MAX_MONOMIALS_OF_NUMBERS: Final = 1000  # products of numbers are summed row by row
MAX_MONOMIALS_OF_HIGH_DEGREES: Final = 700  # above 4, where they seldom pay: all products of nine columns
FEW_ROWS: Final = 2000  # with so few the work depends on the rows, not on the monomials
MAX_MONOMIALS_OF_ONE_FIT: Final = 12_000  # of a degree beyond, for which uniform rows speak
LASSO_ALPHAS: Final = tuple(np.geomspace(1e-4, 0.5, 16).tolist())  # in standard deviations of the targets
EQUAL: Final = 1e-9  # of the variance: by less no degree is better than a lower one
ROUNDING: Final = 1e-14  # of the variance: by less no penalty is better than a larger one
CONSTANT: Final = 1e-28  # of the variance: a fold with less is constant up to rounding
_FOLDS: Final = 5  # of automatic choices


def affordable(n: int, degree: int, n_rows: int, *, real: bool, min_degree: int = 1, lasso: bool = False) -> bool:
    """Whether cross-validation has time for a degree."""
    most = MAX_MONOMIALS_OF_PAIRS if degree <= 2 else MAX_MONOMIALS
    if real or n_rows <= FEW_ROWS:
        most = MAX_MONOMIALS_OF_NUMBERS if real else MAX_MONOMIALS_OF_FEW_ROWS
    if lasso:
        most = min(most, MAX_MONOMIALS_OF_SELECTIONS)
    if degree > 4:
        most = min(most, MAX_MONOMIALS_OF_HIGH_DEGREES)
    return n_subsets(n, degree, max(1, min_degree)) <= most


def degrees_to_try(n: int, n_rows: int, *, real: bool, lasso: bool = False) -> tuple[int, ...]:
    """Degrees from 1 that cross-validation has time for, degree 1 in any case."""
    return 1, *takewhile(lambda degree: affordable(n, degree, n_rows, real=real, lasso=lasso), range(2, n + 1))


def degrees_in_reach(n: int, n_rows: int, n_targets: int, spec: FitSpec, *, real: bool) -> list[int]:
    """0, and the degrees for which there is time and memory; of listed subsets their largest size."""
    if spec.subsets is not None:
        return [max((len(subset) for subset in spec.subsets), default=0)]

    def in_time(degree: int) -> bool:
        lasso = spec.solver == "lasso"
        return affordable(n, degree, n_rows, real=real, min_degree=spec.min_degree, lasso=lasso)

    def in_memory(degree: int) -> bool:
        return _has_memory(spec, degree, n, n_rows, n_targets, real=real)

    return [0, *takewhile(in_memory, takewhile(in_time, range(1, n + 1)))]


def _has_memory(spec: FitSpec, degree: int, n: int, n_rows: int, n_targets: int, *, real: bool) -> bool:
    size = spec.with_degree(degree).size(n, n_rows, n_targets, "real" if real else "rows")
    try:
        choose_solver(spec.solver, size, spec.max_memory)
    except MemoryError:
        return False
    return True


def enough_rows(degrees: list[int], n: int, n_rows: int, spec: FitSpec, alphas: Sequence[float]) -> list[int]:
    """The degrees whose monomials are at most half as many as the rows, or all where there is a penalty."""
    if max(alphas) > 0 or spec.subsets is not None:
        return degrees
    return [d for d in degrees if d == 0 or n_subsets(n, d, max(1, spec.min_degree)) <= n_rows // 2 - 1]


@dataclass(frozen=True)
class CVSelection:
    """What cross-validation chose: degree, alpha, mean held-out R2, and the table of all candidates.

    ``r2_of_targets`` (candidates, folds, T), NaN where the targets of a fold are all equal, is not kept in files.
    """

    degree: int
    alpha: float
    score: float
    results: dict[str, NDArray[Any]]
    r2_of_targets: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def _scores(
    training: LowDegreeStatistic, held_out: LowDegreeStatistic, spec: FitSpec, degrees: list[int], alphas: list[float]
) -> NDArray[np.float64]:
    """Held-out mean squared errors (degrees, alphas, T)."""
    squared = np.empty((len(degrees), len(alphas), held_out.n_targets))
    both: tuple[NormalEquations, NormalEquations] | None = None  # of the largest degree: lower ones are a part of it
    how: dict[str, Any] = {"fit_intercept": spec.fit_intercept, "n_threads": spec.n_threads}
    for i in reversed(range(len(degrees))):
        wanted = spec.with_degree(degrees[i])
        size = wanted.size(training.n, training.n_rows, training.n_targets, training.kind)
        plan = choose_solver(spec.solver, size, spec.max_memory)
        family = wanted.family(training.n)
        if plan.explicit_gram or isinstance(held_out, CentredMoments):  # real columns write it out always
            both = both or (training.normal_equations(family, **how), held_out.normal_equations(family, **how))
            train, test = (equations.leading(len(family)) for equations in both)
            path = plan.solver.path(train, alphas)
            errors = [test.squared_error(coef, train.feature_mean, train.target_mean) for coef in path]
            squared[i] = np.stack(errors) / test.weight
            continue
        for j, alpha in enumerate(alphas):
            found = plan.solver.solve(training, family, spec.penalty(alpha), plan, n_threads=spec.n_threads)
            error = held_out.squared_error(found.polynomial, n_threads=spec.n_threads)
            squared[i, j] = error / held_out.weight
    return squared


def summary(
    degrees: list[int], alphas: list[float], squared: NDArray[np.float64], variance: NDArray[np.float64]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """Table of candidates, and R2 of each target; ``squared`` (degrees, alphas, folds, T) are mean squared errors.

    R2 of a target that is constant in a fold is NaN, and in the table 0, or 1 if there is no error, as in scikit-learn.
    """
    of_targets = 1 - squared / np.where(variance > 0, variance, np.nan)
    constant = np.where(squared == 0, 1.0, 0.0)
    r2 = np.where(variance > 0, of_targets, constant).reshape(-1, *squared.shape[2:]).mean(axis=-1)
    of_targets = of_targets.reshape(-1, *squared.shape[2:])
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
    }, of_targets


def searched(
    seen: Accumulator, total: LowDegreeStatistic, spec: FitSpec, degrees: list[int], alphas: Sequence[float] | None
) -> CVSelection:
    """The lowest degree as good as the best, and its penalty, by held-out errors as shares of each target's variance.

    Each degree has the penalty of least error, of equal ones the largest; the degree is then chosen by
    :func:`.simplest`. Folds are summed in ``seen``, and all of them in ``total``. Targets may have any size: they are
    scaled by a power of two, else squares may overflow or vanish, and errors are returned in their own units. Without
    ``alphas`` the solver's own penalties are compared.
    """
    penalty, exponent = spec.penalty(0.0), total.target_exponent()
    seen, unit = seen.rescaled(exponent, penalty.origin(total, exponent)), 2.0 ** (LIMB_BITS * exponent)
    degrees, everything = _told_apart(total, spec, degrees), seen.total()
    whole = everything.variances()
    if alphas is None and penalty.kind == "lasso":
        spread = unit * float(np.sqrt(whole).mean())
        alphas = [alpha * spread for alpha in LASSO_ALPHAS]
    alphas = list(ALPHAS if alphas is None else alphas)
    over_unit = [replace(penalty, alpha=alpha).over(unit).alpha for alpha in alphas]
    squared = np.empty((len(degrees), len(alphas), seen.n_folds, seen.n_targets))
    for fold, held_out in enumerate(seen.statistics):
        training = everything.copy()
        training.merge(held_out, -1)  # type: ignore[arg-type] # of one form
        squared[:, :, fold] = _scores(training, held_out, spec, degrees, over_unit)
    variance = np.stack([held_out.variances() for held_out in seen.statistics])  # of each fold about its mean
    variance = np.where(variance > CONSTANT * whole, variance, 0.0)
    results, r2_of_targets = summary(degrees, alphas, squared, variance)
    error = (squared / np.where(whole > 0, whole, 1.0)).mean(axis=-1)  # (degrees, alphas, folds)
    means = error.mean(axis=2)
    best = [int(np.flatnonzero(of_degree <= of_degree.min() + ROUNDING)[-1]) for of_degree in means]
    degree = simplest(error[np.arange(len(degrees)), best], EQUAL)
    score = float(results["mean_r2"][degree * len(alphas) + best[degree]])
    with np.errstate(over="ignore"):
        for name in ("mean_mse", "std_mse", "fold_mse"):
            results[name] = unit * (unit * results[name])
    return CVSelection(degrees[degree], alphas[best[degree]], score, results, r2_of_targets)


def _told_apart(statistic: LowDegreeStatistic, spec: FitSpec, degrees: list[int]) -> list[int]:
    """The degrees whose products of columns rounding has left; warns of the others, and refuses if all are such."""
    if not isinstance(statistic, CentredMoments) or not spec.fit_intercept:
        return degrees
    family = spec.with_degree(degrees[-1]).family(statistic.n)
    lost = statistic.lost_product(family)
    kept = [degree for degree in degrees if not lost or degree < len(lost)]
    if not kept:
        statistic.check_kept(family)
    if len(kept) < len(degrees):
        warnings.warn(f"degrees from {len(lost)} on are not tried: {lost_in_words(lost)}.", stacklevel=2)
    return kept


class Automatic(NamedTuple):
    """A degree and a penalty that were chosen, and one sentence on how the degree was."""

    degree: int
    reason: str
    alpha: float


def automatic(batch: Batch, spec: FitSpec, domain: str, degree: int | None, alpha: float | None) -> Automatic:
    """A degree and a penalty for some rows by five folds, where they are None.

    Parameters
    ----------
    batch : Batch
        Rows as the learner was given them, checked.
    spec : FitSpec
        Specification of the learner; its degree is ignored.
    domain : {"auto", "cube", "real"}
        Domain of the learner.
    degree, alpha : int, float or None
        None is to be chosen.
    """
    batch = batch.positive()
    (n_rows, n), n_targets, alphas = batch.X.shape, batch.y.shape[1], list(ALPHAS) if alpha is None else [alpha]
    n_folds = min(_FOLDS, n_rows)
    seen = Accumulator(n, n_targets, n_folds)
    rows = seen.recognized(batch.X, domain)
    real = seen.domain == "real"
    reach = degrees_in_reach(n, n_rows, n_targets, spec, real=real) if degree is None else [degree]
    degrees = enough_rows(reach, n, n_rows, spec, alphas) if degree is None else reach
    most = f"at most {degrees[-1]} is affordable for {n_rows:,} rows of {n} columns"
    reason = (
        "the degree was given."
        if degree is not None
        else f"least held-out error over degrees 0 to {degrees[-1]}; {most}."
    )
    if spec.subsets is not None:
        reason = "the subsets are listed."
    elif degrees == [0]:
        reason = f"the mean alone: {most}, for degree 1 has too many monomials for the rows, the memory or the time."
    if n_rows < 2 or (len(degrees) == 1 and len(alphas) == 1):
        return Automatic(degrees[0], reason, alphas[0])
    spec = spec.with_degree(degrees[-1])
    seen.change(spec, replace(batch, X=rows, folds=deal(0, n_rows, n_folds, 0)))
    seen = seen.resolved(spec)
    chosen = searched(seen, seen.total(), spec, degrees, alphas)
    if degree is None and spec.subsets is None and degrees[-1] < n:
        larger, note = _beyond(batch, spec, chosen.degree, degrees[-1] + 1, penalised=max(alphas) > 0, real=real)
        return Automatic(larger, f"{reason[:-1]}; {note}", chosen.alpha)
    return Automatic(chosen.degree, reason, chosen.alpha)


def _beyond(batch: Batch, spec: FitSpec, chosen: int, first: int, *, penalised: bool, real: bool) -> tuple[int, str]:
    """The chosen degree, or one that folds had no time for and pairs of uniform rows speak for; and what was not tried.

    One fit of such a degree is affordable where five folds are not.
    """
    (m, n), count = batch.X.shape, n_subsets(batch.X.shape[1], first, max(1, spec.min_degree))
    most = "degree" if first == n else f"degrees {first} to"
    note = f"{most} {n} not tried: degree {first} has {count:,} monomials."
    weighted = batch.weights is not None and bool(np.ptp(batch.weights) > 0)
    other = real or penalised or weighted or batch.y.shape[1] > 1 or spec.min_degree > 1
    if other or count >= min(m, MAX_MONOMIALS_OF_ONE_FIT) or not _has_memory(spec, first, n, m, 1, real=real):
        return chosen, note
    X = batch.X.toarray() if hasattr(batch.X, "tocsr") else batch.X
    signs = bits_to_signs(X) if detect_encoding(X)[0] == "bits" else X
    y = np.ldexp(batch.y[:, 0], -exponents_of(batch.y[:, 0]))  # of size one, so that squares are floats
    found = unexplained_variance(signs, y, rng=np.random.default_rng(0))
    if not found.uniform or len(found.values) <= first or not found.values[0] > 0:
        return chosen, f"{note[:-1]}, and the rows are not uniform, so that pairs of them do not show its weight."
    now, then = (found.predicted_errors(m) / found.values[0])[[chosen, first]]
    shares = f"by pairs of uniform rows it is predicted to leave {then:.2g} of the variance, degree {chosen} {now:.2g}"
    if not then < now:
        return chosen, f"{note[:-1]}; {shares}."
    return first, f"degree {first} ({count:,} monomials) was taken without folds: {shares}."
