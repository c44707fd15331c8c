"""From a table and options to a model and to what a report says about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.choose import Chosen, Contest, FitOptions, as_numbers, choose, contest, decided, domain_of
from sparsact.fit.explain import (
    confusion,
    covers_cube,
    function_names,
    influences,
    lsh_summary,
    measured_target,
    r2_by_fold,
    standardised_weights,
    target_summary,
)
from sparsact.fit.folds import Prediction, RowSample, learn, merged, predictions
from sparsact.fit.lsh_candidate import laid_out, learned, measured, rows_of_fold
from sparsact.fit.checkpoint import Resumption, identity
from sparsact.cli.progress import OnRows, Stages
from sparsact.cli.terminal import command_line, versions
from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Classes
from sparsact.datasets.parts import Parts
from sparsact.datasets.related_columns import FirstRows, suspicions
from sparsact.datasets.table_survey import TableSurvey, TargetSurvey
from sparsact.memory import peak_memory
from sparsact.reports import FitSummary, LowDegreeInfo, LSHSummary, Resources, Spread, TargetSummary
from sparsact.saving.schema import Arrays, State


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


def resumption(
    parts: Parts, options: Mapping[str, Any], words: Sequence[str], resume: Path | None, out: Path | None, every: float
) -> Resumption:
    """What an earlier run of the same fit has left, or nothing yet.

    Without ``resume`` the sums are written only when the fit is stopped: beside the model, or in the working folder.
    """
    path = resume or _unused(out or Path(f"{parts.sources[0].path.stem}.fit"))
    typed = [*words, *(() if resume else ("--resume", str(path)))]
    remedy = f"; go on with: {shlex.join(['sparsact', *typed])}"
    kept = Resumption(path, identity(parts, options), every if resume else None, remedy)
    if resume is not None:
        kept.read()
    return kept


def _unused(path: Path) -> Path:
    """A name like this one, for a statistic, that no file has."""
    number, found = 1, path.with_name(f"{path.name}.statistic")
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}.statistic")
    return found


@dataclass(frozen=True)
class _Looks:
    """What the first pass sums up."""

    survey: TableSurvey

    def state(self, arrays: Arrays) -> State:
        """Of every column what was seen."""
        return self.survey.state()

    def restore(self, state: State, arrays: Arrays) -> None:
        """As another survey saw it."""
        self.survey.restore(state)


def look_through(survey: TableSurvey, on_rows: OnRows, kept: Resumption) -> Table:
    """The table of a survey, after a pass over its rows; warnings are among its notes."""
    outcome = kept.outcome("reading")
    if outcome is None:
        for batch, place in kept.rows("reading", survey.batches, _Looks(survey), on_rows):
            survey.update(batch, place)
        encoding = survey.encoding()
        kept.keep("reading", {"encoding": encoding.to_json(), "survey": survey.state()})
    else:
        encoding = Encoding.from_json(outcome[0]["encoding"])
        survey.restore(outcome[0]["survey"])
        on_rows(survey.n_rows)
    _check_squares(survey.answers)
    table = Table(survey.parts, encoding, survey.n_rows, survey.batch_rows)
    return replace(table, encoding=replace(encoding, notes=(*_warnings(table, kept), *encoding.notes)))


def _warnings(table: Table, kept: Resumption) -> list[str]:
    """Notes on columns that may be the target again."""
    outcome = kept.outcome("checking")
    if outcome is not None:
        return list(map(str, outcome[0]["notes"]))
    first = FirstRows(table.encoding)
    for X, y in kept.rows("checking", table.batches, first, lambda count: None):
        first.take(X, y)
        if first.full:
            break
    notes = suspicions(table.encoding, first)
    kept.keep("checking", {"notes": notes})
    return notes


def _check_squares(answers: Sequence[TargetSurvey]) -> None:
    """Raise if squares of a target overflow or vanish: every score is made of them."""
    for answer in answers:
        size = max(abs(answer.low), abs(answer.high)) if answer.numeric else 1.0
        if not 1e-150 < size < 1e150:
            raise ValueError(
                f"target {answer.name!r} reaches a size of {size:.0e}, whose square is no float, and scores are made "
                "of squares; write the column in another unit."
            )
