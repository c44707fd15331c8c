"""What each target of a fitted model consists of: terms with intervals, influences of columns, held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding
from sparsact.datasets.columns import Classes, LogReal, Real
from sparsact.fit.fold_sums import Prediction, as_numbers
from sparsact.fit.scores import Confusion, FoldScores, NoiseCeiling
from sparsact.fit.table_model import class_numbers
from sparsact.fit.term import CONFIDENCE, Term
from sparsact.fourier.hoeffding import Anova
from sparsact.hypercube import Subset
from sparsact.learners import CubeGPRegressor
from sparsact.learners.cube_ensemble import LARGEST_CUBE as LARGEST_SPECTRUM
from sparsact.learners.cube_ensemble import CubeEnsemble
from sparsact.learners.on_cube import OnCube
from sparsact.learners.predictor import predictor

TERMS_KEPT: Final = 200
TERMS_EXPLAINED: Final = 20  # whose aliases are looked for
LARGEST_CUBE: Final = 24
DRAWS, ROWS_DRAWN = 200, 5_000  # of functions from a posterior, and the most rows for which they are quick
LEAST_SHARE: Final = 0.001  # of a degree that is listed
ROWS_FLIPPED: Final = 200_000  # predictions for the influences


@dataclass(frozen=True)
class TargetResult:
    """One target (or one class): how well it is predicted, and what the polynomial holds.

    ``weights[j]`` is the sum of squared coefficients of degree ``j + 1``, where the rows are the whole cube; else it is
    empty, as squares of coefficients are then no shares of a variance. ``influences`` are, column by column, the mean
    square over the rows of the part of the polynomial that holds it (empty where some column is a real number);
    ``actual`` and ``predicted`` are held-out rows, or a sample; ``predicted`` is None where none was made.
    ``constant`` is the term of no columns, which ``terms`` leave out: with it they add up to the function.
    ``relative_error`` is the mean size of predicted / actual - 1 over these, of a target whose logarithm is learned;
    ``ceiling`` is the R2 that rows of equal columns leave possible, where they are enough. ``posterior_shares`` are, of
    a Gaussian process, the share of each degree from 1 in the variance over the cube, and its 95 % interval. ``anova``
    are, where sites have letters, the components of the fitted function over all their combinations, with the names and
    letters of the ``sites``: ``weights`` and ``influences`` are then its variances by number of sites, and by site.
    """

    name: str
    r2: FoldScores
    linear_r2: FoldScores
    variance: float
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    weights: tuple[float, ...] = ()
    terms: tuple[Term, ...] = ()
    constant: Term | None = None
    influences: tuple[tuple[str, float], ...] = ()
    relative_error: float | None = None
    ceiling: NoiseCeiling | None = None
    posterior_shares: tuple[tuple[float, float, float], ...] = ()
    anova: Anova | None = None
    sites: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def of_letters(self) -> bool:
        """Whether the terms are effects of letters, not of bits."""
        return self.anova is not None and all(not term.n_bits for term in self.terms)

    @property
    def learned(self) -> bool:
        """Whether the held-out R2 is above 0, the R2 of the mean, by more than its spread."""
        return self.r2.mean > self.r2.deviation

    @property
    def more_scores(self) -> list[str]:
        """The noise ceiling and the relative error on held-out rows, for a person."""
        found = [] if self.ceiling is None else [f"noise ceiling: {self.ceiling}"]
        return found + (
            [] if self.relative_error is None else [f"mean relative error on held-out rows: {self.relative_error:.2%}"]
        )

    def listed(self, n_terms: int | None = None) -> list[Term]:
        """The largest terms, by default all that are kept, and last the constant."""
        return [*self.terms[:n_terms], *([] if self.constant is None else [self.constant])]

    def to_dict(self, n_terms: int) -> dict[str, Any]:
        """As JSON holds it, with the largest terms only, and the constant."""
        return {
            "name": self.name,
            **self.r2.to_dict(),
            "relative_error": self.relative_error,
            "noise_ceiling": self.ceiling and asdict(self.ceiling),
            "terms": [term.to_dict() for term in self.listed(n_terms)],
            "not_identified": {t.label: list(t.aliases) for t in self.terms[:n_terms] if not t.identified},
            "weight_by_degree": list(self.weights),
            "posterior_shares": [
                dict(zip(("share", "low", "high"), one, strict=True)) for one in self.posterior_shares
            ],
            "influences": dict(self.influences),
            "variance_by_pair": None if self.anova is None else self.anova.variance_by_pair().tolist(),
        }

    def lines(self, n_terms: int) -> list[str]:
        """The largest terms, for a person."""
        known = "   [95 % interval]" if any(term.low is not None or not term.identified for term in self.terms) else ""
        found = [f"    effect  columns{known}"] if self.terms else []
        found += [f"{term.effect:>+10.4g}  {term.label}{term.bounds}" for term in self.listed(n_terms) if found]
        if any(not term.identified for term in self.terms[:n_terms]):
            found.append("Other products could replace those that are not identified, with the same predictions here.")
        return found


def terms(
    model: Any, target: int, encoding: Encoding, n_terms: int = TERMS_KEPT, n_explained: int = 0
) -> tuple[Term, ...]:
    """The largest coefficients of a target, by absolute value, with their intervals where the fit allows them.

    Of the first ``n_explained`` those that the rows do not identify have the products that equal theirs up to sign.
    """
    coef, subsets, names = coefficients(model, target), model.subsets_, encoding.feature_names
    signs = sign_features(model, encoding)
    largest = np.argsort(-np.abs(coef), kind="stable")[:n_terms]
    if model.solver_ == "lasso":
        largest = largest[coef[largest] != 0]
    chosen = [subsets[i] for i in largest]
    of_tests, n_tested = q_values(model, target, largest)
    joint = intervals(model, target, chosen, 1 - (1 - CONFIDENCE) / max(1, n_tested))
    found = zip(
        chosen, largest, intervals(model, target, chosen), of_tests, joint, identification(model, chosen), strict=True
    )

    def label(subset: Subset) -> tuple[str, ...]:
        return tuple(names[i] for i in subset)

    return tuple(
        Term(
            label(subset),
            float(coef[place]),
            low=bounds[0],
            high=bounds[1],
            identified=bool(known),
            aliases=tuple(" × ".join(label(other)) or "a constant" for other in model.aliases(subset))
            if rank < n_explained and not known
            else (),
            q_value=q_value,
            joint_low=of_all[0],
            joint_high=of_all[1],
            n_bits=sum(signs[i] for i in subset),
        )
        for rank, (subset, place, bounds, q_value, of_all, known) in enumerate(found)
    )


def q_values(model: Any, target: int, listed: NDArray[np.intp]) -> tuple[list[float | None], int]:
    """q-values of some coefficients by Benjamini and Hochberg's rule over all of them, and how many can be tested.

    Where only those listed have standard errors, p-values of the others count as 1.
    """
    from scipy.stats import false_discovery_control, t  # loads slowly

    coef, subsets = coefficients(model, target), model.subsets_
    error, everything = np.full(len(coef), np.nan), np.arange(len(coef))
    for places in (everything, listed):
        try:
            found = np.asarray(model.standard_errors([subsets[i] for i in places]))
        except ValueError:  # no freedom is left, or too many are asked for
            continue
        error[places] = found if found.ndim == 1 else found[target]
        break
    tested = np.isfinite(error)
    if not tested.any():
        return [None] * len(listed), len(coef)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.abs(coef / error), nan=0.0, posinf=np.inf)  # 0 / 0 is no evidence
    p = np.where(tested, 2 * t.sf(ratio, max(model._fitted.residual_degrees_of_freedom, 1.0)), 1.0)
    family = tested if places is everything else everything
    q = np.full(len(coef), np.nan)
    q[family] = false_discovery_control(p[family])
    return [float(q[i]) if tested[i] else None for i in listed], len(p[family])


def sign_features(model: Any, encoding: Encoding) -> list[bool]:
    """For each feature, whether it is a bit that the polynomial takes as a sign, not as a number."""
    if model.domain_ == "real" and not encoding.real:
        return [False] * len(encoding.feature_names)  # bits that the caller wants as numbers, 0 and 1
    return [not isinstance(column, Real) for column in encoding.columns for _ in column.features]


def identification(model: Any, subsets: list[Subset]) -> NDArray[np.bool_]:
    """Whether the rows identify the coefficients; True for a file that does not say."""
    try:
        return np.asarray(model.identified(subsets))
    except ValueError:  # a file of an earlier version, without its statistic
        return np.ones(len(subsets), dtype=bool)


def constant(model: Any, target: int) -> Term:
    """The term of no columns: of a polynomial its intercept, else the mean over the cube."""
    if isinstance(model, OnCube):
        value = float(model._coefficients([()])[0][0])
    elif isinstance(model, CubeEnsemble):
        value = model.spectrum_[()]
    else:
        value = float(np.atleast_1d(model.intercept_)[target])
    return Term((), value, *intervals(model, target, [()])[0], n_bits=0)


def coefficients(model: Any, target: int) -> NDArray[np.float64]:
    """Coefficients of one target, in the order of ``subsets_``."""
    return np.asarray(np.atleast_2d(model.coefficients_)[target])


def intervals(
    model: Any, target: int, subsets: list[Subset], confidence: float = CONFIDENCE
) -> list[tuple[float | None, float | None]]:
    """Confidence intervals of some coefficients; ends of None without residual degrees of freedom."""
    try:
        bounds = np.asarray(model.confidence_intervals(subsets, confidence))
    except ValueError:  # as many parameters as rows
        return [(None, None)] * len(subsets)
    of_target = bounds if bounds.ndim == 2 else bounds[target]
    return [(float(low), float(high)) if np.isfinite(low + high) else (None, None) for low, high in of_target]


def shares(model: Any, target: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums of squared coefficients: by degree from 1, and by column."""
    squares, subsets = coefficients(model, target) ** 2, model.subsets_
    sizes = np.array([len(subset) for subset in subsets])
    members = np.array([i for subset in subsets for i in subset], dtype=np.intp)
    by_degree: NDArray[Any] = np.bincount(sizes, squares, minlength=2)[1:]
    by_column: NDArray[Any] = np.bincount(members, np.repeat(squares, sizes), minlength=n)
    return by_degree, by_column


def covers_cube(model: Any) -> bool:
    """Whether every point of the cube was seen, and all equally often: squared coefficients are then shares."""
    n = model.n_features_in_
    if model.domain_ == "real" or n > LARGEST_CUBE or model.n_samples_seen_ < 2**n:
        return False
    rows = model.accumulator_.total().as_points()
    rows.deduplicate()
    weights = rows.weights.take(np.flatnonzero(rows.weights.nonzero())).to_float()
    return bool(len(weights) == 2**n and (weights == weights[0]).all())


def _is_cube(points: NDArray[Any]) -> bool:
    """Whether rows of bits are all points of the cube, once each."""
    n_rows, n = points.shape
    return bool(n_rows == 2**n) and len(np.unique(np.packbits(points, axis=1), axis=0)) == n_rows


def influences(model: Any, points: NDArray[Any]) -> NDArray[np.float64]:
    r"""Mean square, over rows of the table, of the part of each function that holds a column, (functions, columns).

    That part is :math:`(f(x) - f(x^i)) / 2`, with bit i of x flipped; over all points of the cube, equally often, its
    mean square is the influence of column i.
    """
    n = points.shape[1]
    points = points[: max(1, ROWS_FLIPPED // n)]
    values = predictor(model).values
    whole = values(points)
    found = np.empty((whole.shape[1], n))
    for i in range(n):
        flipped = points.copy()
        flipped[:, i] = 1 - points[:, i] if model.encoding_ == "bits" else -points[:, i]
        found[:, i] = (((whole - values(flipped)) / 2) ** 2).mean(axis=0)
    return found


def scored_targets(
    encoding: Encoding, held_out: Prediction, r2: Sequence[FoldScores], linear_r2: Sequence[FoldScores]
) -> tuple[TargetResult, ...]:
    """Every target (or class) with its scores and its held-out rows."""
    actual = as_numbers(encoding.targets[0], held_out.actual).reshape(len(held_out.actual), -1)
    relative = None
    if isinstance(encoding.targets[0], LogReal) and held_out.predicted is not None:
        relative = np.abs(np.expm1(held_out.predicted - actual)).mean(axis=0).tolist()
    return tuple(
        TargetResult(
            name=name,
            r2=r2[i],
            linear_r2=linear_r2[i],
            variance=float(actual[:, i].var()) or 1.0,
            actual=actual[:, i],
            predicted=None if held_out.predicted is None else held_out.predicted[:, i],
            relative_error=relative and relative[i],
        )
        for i, name in enumerate(function_names(encoding))
    )


def explained(
    targets: Sequence[TargetResult],
    model: Any,
    encoding: Encoding,
    points: NDArray[Any],
    found_terms: tuple[Term, ...] | None = None,
) -> tuple[TargetResult, ...]:
    """The targets with terms, those of a polynomial if none are given; of columns of bits also with influences."""
    of_bits = found_terms is not None or model.domain_ != "real"
    by_column = influences(model, points) if of_bits else None
    names = encoding.feature_names
    whole_cube = covers_cube(model) if found_terms is None else _is_cube(points)
    found = []
    for i, target in enumerate(targets):
        weights: tuple[float, ...] = ()
        if whole_cube:
            of_terms = found_terms is None
            by_degree = shares(model, i, len(names))[0] if of_terms else model.spectrum_.weight_by_degree()[1:]
            weights = tuple(by_degree.tolist())
        of_columns = () if by_column is None else tuple(zip(names, by_column[i].tolist(), strict=True))
        of_target = found_terms
        if of_target is None:
            of_target = terms(model, i, encoding, n_explained=TERMS_EXPLAINED)
        target = replace(target, weights=weights, terms=of_target, constant=constant(model, i), influences=of_columns)
        found.append(replace(target, posterior_shares=posterior_shares(model)))
    return tuple(found)


def posterior_shares(model: Any) -> tuple[tuple[float, float, float], ...]:
    """Shares of the degrees in the variance with 95 % intervals, of a Gaussian process of not too many rows."""
    if not isinstance(model, CubeGPRegressor):
        return ()
    if model.n_features_in_ > LARGEST_SPECTRUM or len(model.X_train_) > ROWS_DRAWN:
        return ()
    shares = model.variance_decomposition(DRAWS).shares
    means, ends = shares.mean(), shares.interval()
    n_shown = int(np.flatnonzero(ends[:, 1] >= LEAST_SHARE).max(initial=0)) + 1
    return tuple((float(mean), float(low), float(high)) for mean, (low, high) in zip(means, ends, strict=True))[
        :n_shown
    ]


def function_names(encoding: Encoding) -> tuple[str, ...]:
    """Names of the fitted functions: the targets; of two classes the second, which is the positive one; else each."""
    target = encoding.targets[0]
    if not isinstance(target, Classes):
        return encoding.target_names
    return target.values if len(target.values) > 2 else target.values[1:]


def confusion(held_out: Prediction, encoding: Encoding) -> Confusion | None:
    """Actual against predicted classes, if the target holds classes."""
    target = encoding.targets[0]
    if not isinstance(target, Classes) or held_out.predicted is None:
        return None
    n = len(target.values)
    pairs = held_out.actual[:, 0].astype(np.intp) * n + class_numbers(held_out.predicted)
    return Confusion(target.values, np.bincount(pairs, minlength=n * n).reshape(n, n))
