"""What a fitted model consists of and how well it does, as the plain data of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.choose import as_numbers
from sparsact.cli.fitting.folds import Prediction, RowSample, class_numbers, values
from sparsact.cli.fitting.held_out import LEVELS, HeldOut
from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Classes, Real
from sparsact.hypercube import Subset
from sparsact.kernels.bucket_statistics import n_sums
from sparsact.reports import Confusion, Spread, TargetSummary, Term
from sparsact.reports.model_summary import ColumnWeight, LSHSummary, TriedLayout

TERMS_KEPT = 200
TERMS_EXPLAINED = 20  # whose aliases are looked for
LARGEST_CUBE = 24
ROWS_FLIPPED = 200_000  # predictions for the influences
CONFIDENCE = 0.95


def terms(model: Any, target: int, names: Sequence[str], n_terms: int = TERMS_KEPT) -> tuple[Term, ...]:
    """The largest coefficients of a target, by absolute value, with their intervals where the fit allows them."""
    coef, subsets = coefficients(model, target), model.subsets_
    largest = np.argsort(-np.abs(coef), kind="stable")[:n_terms]
    chosen = [subsets[i] for i in largest]
    bounds, identified = intervals(model, target, chosen), identification(model, chosen)
    return tuple(
        Term(tuple(names[i] for i in subset), float(coef[place]), *bound, identified=bool(known))
        for subset, place, bound, known in zip(chosen, largest, bounds, identified, strict=True)
    )


def identification(model: Any, subsets: list[Subset]) -> NDArray[np.bool_]:
    """Whether the rows identify the coefficients; taken for granted of a file that does not say."""
    try:
        found: NDArray[np.bool_] = model.identified(subsets)
    except ValueError:  # a file of an earlier version, without its statistic
        return np.ones(len(subsets), dtype=bool)
    return found


def with_aliases(model: Any, found: Sequence[Term], names: Sequence[str]) -> tuple[Term, ...]:
    """The terms, with the products that equal, up to sign, one that the rows do not identify."""
    place = {name: i for i, name in enumerate(names)}
    return tuple(
        term
        if term.identified
        else replace(
            term,
            aliases=tuple(
                " × ".join(names[i] for i in subset) or "a constant"
                for subset in model.aliases([place[name] for name in term.subset])
            ),
        )
        for term in found
    )


def coefficients(model: Any, target: int) -> NDArray[np.float64]:
    """Coefficients of one target, in the order of ``subsets_``."""
    coef: NDArray[np.float64] = np.atleast_2d(model.coef_)[target]
    return coef


def intervals(model: Any, target: int, subsets: list[Subset]) -> list[tuple[float | None, float | None]]:
    """Confidence intervals of some coefficients; of None where nothing is left to judge by."""
    try:
        bounds = np.asarray(model.confidence_intervals(subsets, CONFIDENCE))
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


def influences(model: Any, points: NDArray[Any]) -> NDArray[np.float64]:
    r"""Mean square, over rows of the table, of the part of each function that holds a column, (functions, columns).

    That part is :math:`(f(x) - f(x^i)) / 2`, with bit i of x flipped; over all points of the cube, equally often, its
    mean square is the influence of column i.
    """
    n = points.shape[1]
    points = points[: max(1, ROWS_FLIPPED // n)]
    whole = values(model, points)
    found = np.empty((whole.shape[1], n))
    for i in range(n):
        flipped = points.copy()
        flipped[:, i] = 1 - points[:, i] if model.encoding_ == "bits" else -points[:, i]
        found[:, i] = (((whole - values(model, flipped)) / 2) ** 2).mean(axis=0)
    return found


def target_summary(
    model: Any,
    target: int,
    name: str,
    names: Sequence[str],
    held_out: Prediction,
    r2: tuple[Spread, Spread],
    *,
    by_column: NDArray[np.float64] | None,
    whole_cube: bool,
) -> TargetSummary:
    """One target: its scores, its terms, the influence of each column of bits, and its held-out rows."""
    actual = held_out.actual[:, target]
    found = terms(model, target, names)
    return TargetSummary(
        name=name,
        r2=r2[0],
        linear_r2=r2[1],
        variance=float(actual.var()) or 1.0,
        weights=tuple(shares(model, target, len(names))[0].tolist()) if whole_cube else (),
        terms=(*with_aliases(model, found[:TERMS_EXPLAINED], names), *found[TERMS_EXPLAINED:]),
        influences=() if by_column is None else tuple(zip(names, by_column[target].tolist(), strict=True)),
        actual=actual,
        predicted=None if held_out.predicted is None else held_out.predicted[:, target],
    )


def measured_target(
    name: str, place: int, held_out: HeldOut, linear_r2: Spread, target: Real | Classes
) -> TargetSummary:
    """One target (or class) of a model without coefficients: its scores, and its held-out rows.

    Classes share the mean R2 of their indicators, as cross-validation of low-degree models has it.
    """
    rows = held_out.sample
    actual = as_numbers(target, rows.actual[:, 0]).reshape(len(rows.actual), -1)
    seen = (rows.actual if isinstance(target, Real) else actual)[:, place]
    return TargetSummary(
        name=name,
        r2=held_out.r2[place] if isinstance(target, Real) else held_out.mean_r2,
        linear_r2=linear_r2,
        variance=float(seen.var()) or 1.0,
        weights=(),
        terms=(),
        influences=(),
        actual=seen,
        predicted=None if rows.predicted is None else rows.predicted[:, place],
    )


def r2_by_fold(held_out: Prediction, target: int) -> Spread:
    """R2 of one target in every fold of the sample."""
    if held_out.predicted is None:
        raise ValueError("held-out rows were not predicted; learn with at least two folds.")
    folds = []
    for fold in np.unique(held_out.fold):
        rows = held_out.fold == fold
        actual, predicted = held_out.actual[rows, target], held_out.predicted[rows, target]
        folds.append(
            1 - float(((actual - predicted) ** 2).sum()) / (float(((actual - actual.mean()) ** 2).sum()) or 1.0)
        )
    return Spread(tuple(folds))


def function_names(encoding: Encoding) -> tuple[str, ...]:
    """Names of the fitted functions: the targets; of two classes the second, which is the positive one; else each."""
    target = encoding.targets[0]
    if not isinstance(target, Classes):
        return encoding.target_names
    return target.values if len(target.values) > 2 else target.values[1:]


def confusion(held_out: Prediction, encoding: Encoding) -> Confusion | None:
    """Actual against predicted classes, where the target is one of classes."""
    target = encoding.targets[0]
    if not isinstance(target, Classes) or held_out.predicted is None:
        return None
    n = len(target.values)
    pairs = held_out.actual[:, 0].astype(np.intp) * n + class_numbers(held_out.predicted)
    return Confusion(target.values, np.bincount(pairs, minlength=n * n).reshape(n, n))


BYTES_OF_KEY_AND_COUNT = 16


def lsh_summary(
    model: Any, columns: tuple[ColumnWeight, ...], n_laid_out: int | None = None, held_out: HeldOut | None = None
) -> LSHSummary:
    """The tables of a model; of one that was just fitted also on how many rows, and how it does on held-out ones."""
    layout = model.table_.layout
    rows, buckets = np.unique(model.bucket_counts_, return_counts=True)
    return LSHSummary(
        directions=str(model.directions_),
        n_tables=int(layout.n_tables),
        n_local=int(layout.n_local),
        degree=int(layout.degree),
        bucket_width=float(model.bucket_width_),
        alpha=float(model.alpha_),
        n_buckets=int(model.n_buckets_),
        n_bytes=_bytes(int(model.n_buckets_), layout, layout.n_local),
        load=tuple(zip(rows.tolist(), buckets.tolist(), strict=True)),
        miss_rate=float(model.miss_rate_),
        trials=tried(model),
        columns=columns,
        rows_laid_out=n_laid_out,
        missed_everywhere=None if held_out is None else held_out.missed,
        coverage=tuple(zip(LEVELS, held_out.coverage, strict=False)) if held_out else (),
    )


def as_plain(tables: LSHSummary) -> dict[str, Any]:
    """Tables as JSON holds them."""
    return asdict(tables) | {
        "load": {"rows": [rows for rows, _ in tables.load], "buckets": [buckets for _, buckets in tables.load]},
        "median_load": tables.median_load,
        "coverage": [{"probability": level, "inside": inside} for level, inside in tables.coverage],
    }


def tried(model: Any) -> tuple[TriedLayout, ...]:
    """Layouts that were tried, each once, with the chosen one marked."""
    layout = model.table_.layout
    found = {
        (t.directions, round(t.rows_per_bucket * t.n_buckets / layout.n_tables), t.bucket_width, t.alpha): t
        for t in model.trials_
        if np.isfinite(t.error)
    }
    mine = [key for key in found if (key[0], key[2], key[3]) == (model.directions_, model.bucket_width_, model.alpha_)]
    chosen = max(mine, key=lambda key: key[1], default=None)
    return tuple(
        TriedLayout(*key, t.n_buckets, _bytes(t.n_buckets, layout, t.n_hashes), t.error, key == chosen)
        for key, t in sorted(found.items())
    )


def _bytes(n_buckets: int, layout: Any, n_local: int) -> int:
    """Bytes of the sums, counts and keys of a number of buckets."""
    return n_buckets * (8 * n_sums(n_local, layout.degree, layout.n_targets) + BYTES_OF_KEY_AND_COUNT)


def standardised_weights(model: Any, table: Table, sample: RowSample) -> tuple[ColumnWeight, ...]:
    """Weights of columns in units of their own deviations and of the target's, as a sample of the rows has them."""
    X, y, _ = sample.rows()
    answers = as_numbers(table.encoding.targets[0], y).reshape(len(y), -1)
    return column_weights(model, table.feature_names, X.std(axis=0), answers.std(axis=0))


def column_weights(
    model: Any, names: Sequence[str], spread: NDArray[np.float64], of_targets: NDArray[np.float64]
) -> tuple[ColumnWeight, ...]:
    """Each column's slope in the trend and its share in the local directions, for units of columns and of targets."""
    layout = model.table_.layout
    squares = (layout.hashes.local * spread[:, None]) ** 2
    shares = squares / max(float(squares.sum()), 1e-300)
    # Of two classes the layout has one target each, and `as_numbers` the sign of the second, which moves twice as far.
    of_signs = layout.n_targets == 2 and len(of_targets) == 1
    trend = 2.0 * layout.trend[:, 1:] if of_signs else layout.trend
    slopes = trend * spread[:, None] / np.where(of_targets > 0, of_targets, 1.0)
    slope = slopes[:, 0] if slopes.shape[1] == 1 else np.sqrt((slopes**2).mean(axis=1))
    return tuple(ColumnWeight(name, float(slope[i]), tuple(shares[i].tolist())) for i, name in enumerate(names))
