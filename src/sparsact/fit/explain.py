"""What each target of a fitted model consists of: terms with intervals, influences of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Encoding, LogReal, Real
from sparsact.fit.fold_sums import as_numbers
from sparsact.fit.reference import has_reference
from sparsact.fit.scores import Confusion, FoldScores
from sparsact.fit.table_model import class_numbers
from sparsact.fit.target_result import TargetResult
from sparsact.fit.term import CONFIDENCE, TERMS_KEPT, Term
from sparsact.fourier import Spectrum
from sparsact.fourier.measure import DATA, UNIFORM
from sparsact.hypercube import Subset
from sparsact.learners.cube_ensemble import CubeEnsemble
from sparsact.learners.latent import LatentRegressor
from sparsact.learners.low_degree.compact_sums import Cells, distinct_points_of
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.learners.on_cube import OnCube
from sparsact.learners.predictor import predictor

TERMS_EXPLAINED: Final = 20  # whose aliases are looked for
LARGEST_CUBE: Final = 24
ROWS_FLIPPED: Final = 200_000  # predictions for the influences
ROWS_AT_ONCE: Final = 1 << 12
Array = NDArray[np.float64]
Expanded = LowDegree | OnCube | CubeEnsemble  # models with coefficients of sets of columns


def terms(
    model: LowDegree, target: int, encoding: Encoding, n_terms: int = TERMS_KEPT, n_explained: int = 0
) -> tuple[Term, ...]:
    """The largest coefficients of a target, by absolute value, with their intervals where the fit allows them.

    Terms among the first ``n_explained`` that the rows do not identify list the products that equal theirs up to sign.
    """
    coef, subsets, names = coefficients(model, target), model.subsets_, encoding.feature_names
    signs = sign_features(model, encoding)
    largest = np.argsort(-np.abs(coef), kind="stable")[:n_terms]
    if model.solver_ == "lasso":
        largest = largest[coef[largest] != 0]
    chosen = [subsets[i] for i in largest]
    of_tests, n_tested = q_values(model, target, largest)
    known = identification(model, chosen)
    aliases = [
        tuple(" × ".join(names[i] for i in other) or "a constant" for other in model.aliases(subset))
        if rank < n_explained and not known[rank]
        else ()
        for rank, subset in enumerate(chosen)
    ]
    found = tested_terms(model, target, encoding, chosen, coef[largest], of_tests, n_tested)
    return tuple(
        replace(term, identified=bool(one), aliases=others, n_bits=sum(signs[i] for i in subset))
        for term, subset, one, others in zip(found, chosen, known, aliases, strict=True)
    )


def tested_terms(
    model: Expanded,
    target: int,
    encoding: Encoding,
    subsets: Sequence[Subset],
    coef: Array,
    q_values: Sequence[float | None],
    n_tested: int,
) -> list[Term]:
    """Terms of sets of bits with their q-values and intervals, each by itself and for ``n_tested`` at once.

    Where held-out rows have errors in the units of the coefficients, the intervals are as wide as these require.
    """
    own = intervals(model, target, subsets)
    joint = intervals(model, target, subsets, 1 - (1 - CONFIDENCE) / max(1, n_tested))
    names, rows = encoding.feature_names, None if encoding.design is None else encoding.design.held_out
    found = [
        Term(
            tuple(names[i] for i in subset),
            float(value),
            *ends,
            q_value=q_value,
            joint_low=of_all[0],
            joint_high=of_all[1],
            n_bits=len(subset),
            n_rows=None if rows is None else rows.n_on(subset),
        )
        for subset, value, ends, q_value, of_all in zip(subsets, coef, own, q_values, joint, strict=True)
    ]
    if rows is None or isinstance(model, LatentRegressor) or (isinstance(model, LowDegree) and model.domain_ == "real"):
        return found
    errors = [rows.coefficient_error(subset, target) for subset in subsets]
    return [term.widened(error, n_tested) if error else term for term, error in zip(found, errors, strict=True)]


def q_values(model: LowDegree, target: int, listed: NDArray[np.intp]) -> tuple[list[float | None], int]:
    """q-values of some coefficients by Benjamini and Hochberg's rule over all of them, and how many can be tested.

    If only the listed coefficients have standard errors, p-values of the others count as 1.
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


def sign_features(model: LowDegree, encoding: Encoding) -> list[bool]:
    """For each feature, whether it is a bit that the polynomial takes as a sign, not as a number."""
    if model.domain_ == "real" and not encoding.real:
        return [False] * len(encoding.feature_names)  # bits that the caller wants as numbers, 0 and 1
    return [not isinstance(column, Real) for column in encoding.columns for _ in column.features]


def identification(model: LowDegree, subsets: list[Subset]) -> NDArray[np.bool_]:
    """Whether the rows identify the coefficients; True for a file that does not say."""
    try:
        return np.asarray(model.identified(subsets))
    except ValueError:  # a file of an earlier version, without its statistic
        return np.ones(len(subsets), dtype=bool)


def constant(model: Expanded, target: int) -> Term:
    """The term of no columns: of a polynomial its intercept, else the mean over the cube."""
    if isinstance(model, CubeEnsemble):
        value = Spectrum.of(model)[()]
    elif isinstance(model, OnCube):
        value = float(model._coefficients([()])[0][0])
    else:
        value = float(np.atleast_1d(model.intercept_)[target])
    return Term((), value, *intervals(model, target, [()])[0], n_bits=0)


def coefficients(model: LowDegree, target: int) -> NDArray[np.float64]:
    """Coefficients of one target, in the order of ``subsets_``."""
    return np.asarray(np.atleast_2d(model.coefficients_)[target])


def intervals(
    model: Expanded, target: int, subsets: Sequence[Subset], confidence: float = CONFIDENCE
) -> list[tuple[float | None, float | None]]:
    """Confidence intervals of some coefficients; ends of None without residual degrees of freedom."""
    try:
        bounds = np.asarray(model.confidence_intervals(subsets, confidence))
    except ValueError:  # as many parameters as rows
        return [(None, None)] * len(subsets)
    of_target = bounds if bounds.ndim == 2 else bounds[target]
    return [(float(low), float(high)) if np.isfinite(low + high) else (None, None) for low, high in of_target]


def function_of(model: LowDegree, target: int) -> Spectrum:
    """The polynomial of one target."""
    values = np.append(np.atleast_1d(model.intercept_)[target], coefficients(model, target))
    return Spectrum.from_coefficients(values, [(), *model.subsets_], model.n_features_in_)


def shares(model: LowDegree, target: int, measure: str = UNIFORM) -> tuple[Array, Array]:
    """Variances under a measure (of real columns, sums of squared coefficients) by degree from 1, and by column."""
    spectrum = function_of(model, target)
    if measure == DATA:
        spectrum = spectrum.under(model.frequencies_)
    return spectrum.weight_by_degree()[1 : max(map(len, model.subsets_), default=1) + 1], spectrum.influences()


def covers_cube(model: LowDegree) -> bool:
    """Whether every point of the cube was seen, and all equally often: squared coefficients are then shares."""
    n = model.n_features_in_
    if model.domain_ == "real" or n > LARGEST_CUBE or model.n_samples_seen_ < 2**n:
        return False
    statistic = model.accumulator_.total()
    if not isinstance(statistic, Cells | DistinctPoints):
        return False
    rows = distinct_points_of(statistic)
    rows.deduplicate()
    weights = rows.weights.take(np.flatnonzero(rows.weights.nonzero())).to_float()
    return bool(len(weights) == 2**n and (weights == weights[0]).all())


def influences(model: Expanded, points: NDArray[Any]) -> NDArray[np.float64]:
    r"""Mean square, over rows of the table, of the part of each function that holds a column, (functions, columns).

    That part is :math:`(f(x) - f(x^i)) / 2`, with bit i of x flipped; over all points of the cube, equally often, its
    mean square is the influence of column i.
    """
    n = points.shape[1]
    points = points[: max(1, ROWS_FLIPPED // n)]
    values, m = predictor(model).values, len(points)
    whole = values(points)
    found = np.empty((whole.shape[1], n))
    for columns in np.array_split(np.arange(n), min(n, 1 + n * m // ROWS_AT_ONCE)):
        flipped = np.repeat(points[None], len(columns), axis=0)
        places = np.arange(len(columns)), slice(None), columns
        flipped[places] = 1 - flipped[places] if model.encoding_ == "bits" else -flipped[places]
        changes = whole - values(flipped.reshape(-1, n)).reshape(len(columns), m, -1)
        found[:, columns] = ((changes / 2) ** 2).mean(axis=1).T
    return found


def scored_targets(
    encoding: Encoding, y: Array, predicted: Array | None, r2: Sequence[FoldScores], linear_r2: Sequence[FoldScores]
) -> tuple[TargetResult, ...]:
    """Every target (or class) with its scores and its held-out rows."""
    actual = as_numbers(encoding.targets[0], y).reshape(len(y), -1)
    relative = None
    if isinstance(encoding.targets[0], LogReal) and predicted is not None:
        relative = np.abs(np.expm1(predicted - actual)).mean(axis=0).tolist()
    return tuple(
        TargetResult(
            name=name,
            r2=r2[i],
            linear_r2=linear_r2[i],
            variance=float(actual[:, i].var()) or 1.0,
            actual=actual[:, i],
            predicted=None if predicted is None else predicted[:, i],
            relative_error=relative and relative[i],
        )
        for i, name in enumerate(function_names(encoding))
    )


def explained(
    targets: Sequence[TargetResult], model: LowDegree, encoding: Encoding, points: NDArray[Any]
) -> tuple[TargetResult, ...]:
    """The targets with the terms of a polynomial; of columns of bits also with influences of the columns."""
    if covers_cube(model):
        targets = [replace(target, weights=tuple(shares(model, i)[0].tolist())) for i, target in enumerate(targets)]

    def own_terms(target: int) -> tuple[Term, ...]:
        return terms(model, target, encoding, n_explained=TERMS_EXPLAINED)

    return with_terms(targets, own_terms, model, encoding, points)


def with_terms(
    targets: Sequence[TargetResult],
    own_terms: Callable[[int], tuple[Term, ...]],
    model: Expanded,
    encoding: Encoding,
    points: NDArray[Any],
) -> tuple[TargetResult, ...]:
    """The targets with their terms and constants, and with influences of the columns unless these are numbers.

    The terms are the model's own, unless effects from a reference will take their place.
    """
    shown: list[tuple[tuple[str, float], ...]] = [()] * len(targets)
    if not (isinstance(model, LowDegree) and model.domain_ == "real"):
        shown = [tuple(zip(encoding.feature_names, one, strict=True)) for one in influences(model, points).tolist()]
    return tuple(
        replace(target, terms=found, constant=constant(model, i), influences=shown[i])
        for i, target in enumerate(targets)
        for found in [() if has_reference(encoding) else own_terms(i)]
    )


def function_names(encoding: Encoding) -> tuple[str, ...]:
    """Names of the fitted functions: the targets; of two classes the second, which is the positive one; else each."""
    target = encoding.targets[0]
    if not isinstance(target, Classes):
        return encoding.target_names
    return target.values if len(target.values) > 2 else target.values[1:]


def confusion(y: Array, predicted: Array | None, encoding: Encoding) -> Confusion | None:
    """Actual against predicted classes, if the target holds classes."""
    target = encoding.targets[0]
    if not isinstance(target, Classes) or predicted is None:
        return None
    n = len(target.values)
    pairs = y.astype(np.intp) * n + class_numbers(predicted)
    return Confusion(target.values, np.bincount(pairs, minlength=n * n).reshape(n, n))
