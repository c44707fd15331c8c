"""Fit a table by hashing: lay out on its first rows, stream the rest, measure on held-out folds, summarise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.choice import OnRows, Wish, as_numbers
from sparsact.cli.fitting.findings import confusion, function_names, r2_by_fold
from sparsact.cli.fitting.folds import Prediction, learn, merged, predictions
from sparsact.cli.progress import Stages
from sparsact.cli.surroundings import command_line, peak_memory, versions
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.reports import Resources, Spread
from sparsact.reports.hash_summary import HashedTarget, HashSummary, Layout, Trial

ROWS_FOR_LAYOUT = 1 << 17
COVERAGE = 0.9


@dataclass(frozen=True)
class HashedFit:
    """A model of every row, and its summary."""

    model: Any
    summary: HashSummary


def fit_by_hashing(
    table: Table,
    wish: Wish,
    stages: Stages,
    name: str,
    words: Sequence[str],
    reason: str,
    polynomial: tuple[int, list[Spread]] | None,
) -> HashedFit:
    """Choose the hash tables, learn, measure, summarise.

    ``polynomial`` is the degree of the polynomial to compare with, and its held-out R2 of each function.
    """
    n_rows = table.n_rows or 0
    if n_rows < wish.folds:
        raise ValueError(f"{n_rows} rows are fewer than {wish.folds} folds; choose --folds {max(2, n_rows)}.")
    with stages.stage("laying out hash tables"):
        laid_out, n_first = _laid_out(table, wish)
    with stages.stage("filling hash tables", n_rows) as on_rows:
        models, sample = learn(laid_out.blank(), table, wish.folds, wish.seed, on_rows)
        held_out = predictions(models, sample)
        model = merged(models)
    with stages.stage("a linear model beside", n_rows) as on_rows:
        others = _others(table, wish, polynomial, on_rows)
    with stages.stage("summing up hash tables"):
        seen = _as_functions(table, held_out)
        targets = tuple(
            HashedTarget(
                function,
                r2_by_fold(seen, i),
                tuple((other, spreads[i]) for other, spreads in others),
                seen.actual[:, i],
                _column(seen, i),
            )
            for i, function in enumerate(function_names(table.encoding))
        )
        classes = isinstance(table.encoding.targets[0], Classes)
        coverage = None if classes else _coverage(models, sample)
    summary = HashSummary(
        table=name,
        task="classification" if classes else "regression",
        n_rows=n_rows,
        feature_names=table.feature_names,
        notes=table.encoding.notes,
        reason=reason,
        layout=_layout(model, n_first),
        trials=tuple(_trial(t, laid_out.n_tables) for t in laid_out.trials_),
        targets=targets,
        counts=model.bucket_counts_,
        miss_rate=model.miss_rate_,
        column_shares=tuple(zip(table.feature_names, model.column_shares_.tolist(), strict=True)),
        coverage=coverage,
        resources=Resources(tuple(stages.seconds.items()), peak_memory()),
        versions=versions(),
        command=command_line(words),
        confusion=confusion(held_out, table.encoding),
        target_columns=table.encoding.target_names,
    )
    return HashedFit(model, summary)


def _laid_out(table: Table, wish: Wish) -> tuple[Any, int]:
    """A model fitted on the first rows, for its hash functions, and how many rows these were."""
    from sparsact import LSHClassifier, LSHRegressor

    points, answers, n = [], [], 0
    for X, y in table.batches():
        points.append(X[: ROWS_FOR_LAYOUT - n])
        answers.append(y[: ROWS_FOR_LAYOUT - n])
        n += len(points[-1])
        if n >= ROWS_FOR_LAYOUT:
            break
    X, y = np.concatenate(points), np.concatenate(answers)
    target = table.encoding.targets[0]
    if isinstance(target, Classes):
        model = LSHClassifier(random_state=wish.seed)
        return model.partial_fit(X, target.labels[y.astype(np.intp)], classes=target.labels), n
    return LSHRegressor(random_state=wish.seed).fit(X, y), n


def _others(
    table: Table, wish: Wish, polynomial: tuple[int, list[Spread]] | None, on_rows: OnRows
) -> list[tuple[str, list[Spread]]]:
    """Held-out R2 of a linear model, and of the polynomial where one was fitted."""
    from sparsact import LowDegreeClassifier, LowDegreeRegressor

    kind = LowDegreeClassifier if isinstance(table.encoding.targets[0], Classes) else LowDegreeRegressor
    models, sample = learn(kind(degree=1, domain="real"), table, wish.folds, wish.seed, on_rows)
    linear = _as_functions(table, predictions(models, sample))
    others = [("linear", [r2_by_fold(linear, i) for i in range(linear.actual.shape[1])])]
    if polynomial is not None and polynomial[0] > 1:
        others.append((f"polynomial of degree {polynomial[0]}", polynomial[1]))
    return others


def _as_functions(table: Table, held_out: Prediction) -> Prediction:
    """Held-out rows with the answers that the functions aim at: targets, or indicators of classes."""
    answers = as_numbers(
        table.encoding.targets[0], held_out.actual[:, 0] if held_out.actual.shape[1] == 1 else held_out.actual
    )
    return Prediction(answers.reshape(len(answers), -1), held_out.predicted, held_out.fold)


def _column(held_out: Prediction, i: int) -> NDArray[np.float64]:
    if held_out.predicted is None:
        raise ValueError("held-out rows were not predicted; learn with at least two folds.")
    return held_out.predicted[:, i]


def _coverage(models: list[Any], sample: Any) -> float:
    """Share of held-out targets inside their intervals."""
    X, y, folds = (np.concatenate(part) for part in (sample.points, sample.answers, sample.folds))
    inside = []
    for fold in range(len(models)):
        rows = folds == fold
        if rows.any():
            whole = merged([model for other, model in enumerate(models) if other != fold])
            intervals = whole.predict_interval(X[rows], COVERAGE)
            inside.append((intervals[..., 0] <= y[rows]) & (y[rows] <= intervals[..., 1]))
    return float(np.concatenate(inside).mean())


def _trial(tried: Any, n_tables: int) -> Trial:
    return Trial(
        tried.directions, round(tried.rows_per_bucket * tried.n_buckets / n_tables), tried.n_buckets, tried.error
    )


def _layout(model: Any, n_first: int) -> Layout:
    layout = model.table_.layout
    numbers = 3 + layout.n_sums + layout.n_features * layout.n_targets  # two of a key and a count
    return Layout(
        model.n_tables,
        model.n_hashes_,
        float(model.width_),
        model.degree,
        float(model.alpha_),
        model.directions_,
        n_first,
        8 * numbers,
    )
