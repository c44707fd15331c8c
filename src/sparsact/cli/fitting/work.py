"""From a table and a wish to a model and what a report says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.choice import Chosen, FitOptions, as_numbers, choose, domain_of
from sparsact.cli.fitting.contest import Contest, contest, decided
from sparsact.cli.fitting.findings import (
    confusion,
    covers_cube,
    function_names,
    influences,
    measured_target,
    r2_by_fold,
    target_summary,
)
from sparsact.cli.fitting.folds import Prediction, learn, merged, predictions
from sparsact.cli.fitting.hash_tables import laid_out, learned, measured, rows_of_fold
from sparsact.cli.fitting.layout_findings import lsh_summary, standardised_weights
from sparsact.cli.fitting.resumption import Resumption
from sparsact.cli.fitting.rows import RowSample
from sparsact.cli.progress import OnRows, Stages
from sparsact.cli.surroundings import command_line, versions
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.memory import peak_memory
from sparsact.reports import FitSummary, LowDegreeInfo, LSHSummary, Resources, Spread, TargetSummary


@dataclass(frozen=True)
class Fitted:
    """A model of every row, and its summary."""

    model: Any
    summary: FitSummary


@dataclass(frozen=True)
class _Findings:
    """What one kind of model leads to."""

    model: Any
    targets: tuple[TargetSummary, ...]
    held_out: Prediction
    choice: LowDegreeInfo | None = None
    lsh: LSHSummary | None = None


def fit_table(
    table: Table,
    wish: FitOptions,
    stages: Stages,
    name: str,
    words: Sequence[str],
    *,
    with_rows: bool,
    kept: Resumption | None = None,
) -> Fitted:
    """Choose, measure, learn, summarise.

    ``with_rows`` also predicts held-out rows one by one, as figures need it, at the cost of a statistic for every fold.
    Classes and several targets are measured on such rows in any case.

    Raises
    ------
    ValueError
        If there are fewer rows than folds.
    """
    kept = kept or Resumption()
    n_rows = table.n_rows or 0
    if n_rows < wish.folds:
        remedy = f"choose --folds {n_rows}" if n_rows > 1 else "add rows"
        raise ValueError(f"{n_rows} rows are fewer than {wish.folds} folds; {remedy}.")
    entered = contest(table, wish)
    sample = RowSample(table, wish.folds, wish.seed) if entered.lsh else None
    with stages.stage("choosing", n_rows) as on_rows:
        chosen = choose(table, wish, on_rows, sample, kept)
    if sample is None:
        result = decided(entered, chosen, None)
        found = _low_degree(table, wish, stages, chosen, kept, with_rows=with_rows)
    else:
        result, found = _with_hash_tables(table, wish, stages, chosen, entered, sample, kept, with_rows=with_rows)
    summary = FitSummary(
        table=name,
        task="classification" if _is_classes(table) else "regression",
        n_rows=n_rows,
        feature_names=table.feature_names,
        notes=table.encoding.notes,
        choice=found.choice,
        candidates=chosen.candidates,
        targets=found.targets,
        resources=Resources(tuple(stages.seconds.items()), peak_memory()),
        versions=versions(),
        command=command_line(words),
        confusion=confusion(found.held_out, table.encoding),
        domain=domain_of(table, wish),
        target_columns=table.encoding.target_names,
        lsh=found.lsh,
        contenders=result.contenders,
        why=result.why,
    )
    return Fitted(found.model, summary)


def _with_hash_tables(
    table: Table,
    wish: FitOptions,
    stages: Stages,
    chosen: Chosen,
    entered: Contest,
    sample: RowSample,
    kept: Resumption,
    *,
    with_rows: bool,
) -> tuple[Contest, _Findings]:
    """Measure an LSH model beside the low-degree one, and go on with the better, or with the one asked for."""
    n_rows = table.n_rows or 0
    with stages.stage("hashing"):
        model = laid_out(table, wish, sample)
    with stages.stage("measuring", wish.folds * rows_of_fold(sample)) as on_rows:
        held_out = measured(table, model, wish, sample, on_rows, kept)
    result = decided(entered, chosen, held_out)
    if not result.lsh:
        return result, _low_degree(table, wish, stages, chosen, kept, with_rows=with_rows)
    with stages.stage("learning", n_rows) as on_rows:
        whole = learned(table, model, sample, on_rows, kept)
    linear = _linear_scores(table, wish, chosen, stages, kept)
    with stages.stage("summing up"):
        targets = tuple(
            measured_target(name, i, held_out, linear[i], table.encoding.targets[0])
            for i, name in enumerate(function_names(table.encoding))
        )
        weights = standardised_weights(whole, table, sample)
        tables = lsh_summary(whole, weights, len(sample.rows()[0]), held_out)
    return result, _Findings(whole, targets, held_out.sample, lsh=tables)


def _low_degree(
    table: Table, wish: FitOptions, stages: Stages, chosen: Chosen, kept: Resumption, *, with_rows: bool
) -> _Findings:
    """Learn the polynomial that cross-validation has chosen."""
    n_rows = table.n_rows or 0
    with stages.stage("learning", n_rows) as on_rows:
        n_folds = wish.folds if with_rows or _is_classes(table) or len(table.encoding.targets) > 1 else 1
        model, held_out, points = _learned(table, wish, (chosen.degree, chosen.alpha), n_folds, on_rows, kept)
    linear = _linear_scores(table, wish, chosen, stages, kept)
    with stages.stage("summing up"):
        scores = _scores(table, chosen, held_out, linear)
        answers = as_numbers(table.encoding.targets[0], held_out.actual)
        seen = replace(held_out, actual=answers.reshape(len(answers), -1))
        by_column = influences(model, points) if domain_of(table, wish) == "cube" else None
        whole_cube = covers_cube(model)
        targets = tuple(
            target_summary(
                model, i, name, table.feature_names, seen, scores[i], by_column=by_column, whole_cube=whole_cube
            )
            for i, name in enumerate(function_names(table.encoding))
        )
    return _Findings(model, targets, held_out, _choice(model, wish))


def _learned(
    table: Table,
    wish: FitOptions,
    candidate: tuple[int, float],
    n_folds: int,
    on_rows: OnRows,
    kept: Resumption,
    name: str = "learning",
) -> tuple[Any, Prediction, NDArray[Any]]:
    """A model of every row, predictions of held-out rows by models of the other folds, and these rows."""
    from sparsact import LowDegreeClassifier, LowDegreeRegressor

    kind = LowDegreeClassifier if _is_classes(table) else LowDegreeRegressor
    estimator = kind(degree=candidate[0], alpha=candidate[1], domain=domain_of(table, wish))
    models, sample = learn(estimator, table, n_folds, wish.seed, on_rows, kept, name)
    return merged(models), predictions(models, sample), np.concatenate(sample.points)


def _scores(table: Table, chosen: Chosen, held_out: Prediction, linear: list[Spread]) -> list[tuple[Spread, Spread]]:
    """R2 of the chosen and of the linear model, for each fitted function.

    Cross-validation has them for one target; of several it knows the mean, so they are measured on the held-out rows.
    """
    if len(table.encoding.targets) == 1:
        return [(chosen.of_degree(chosen.degree).r2, score) for score in linear]
    return [(r2_by_fold(held_out, i), score) for i, score in enumerate(linear)]


def _linear_scores(table: Table, wish: FitOptions, chosen: Chosen, stages: Stages, kept: Resumption) -> list[Spread]:
    """R2 of the linear model, for each fitted function."""
    best = chosen.of_degree(1)
    n_targets = len(table.encoding.targets)
    if n_targets == 1:
        return [best.r2] * len(function_names(table.encoding))
    with stages.stage("comparing", table.n_rows) as on_rows:
        _, linear, _ = _learned(table, wish, (1, best.alpha), wish.folds, on_rows, kept, "comparing")
    return [r2_by_fold(linear, i) for i in range(n_targets)]


def _choice(model: Any, wish: FitOptions) -> LowDegreeInfo:
    return LowDegreeInfo(
        int(model.degree_),
        float(model.alpha),
        len(model.subsets_),
        str(model.solver_),
        str(model.solver_reason_),
        wish.automatic,
    )


def _is_classes(table: Table) -> bool:
    return isinstance(table.encoding.targets[0], Classes)
