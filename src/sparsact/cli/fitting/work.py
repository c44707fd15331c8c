"""From a table and a wish to a model and what a report says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparsact.cli.fitting.choice import Chosen, OnRows, Wish, as_numbers, choose
from sparsact.cli.fitting.findings import confusion, function_names, r2_by_fold, target_summary
from sparsact.cli.fitting.folds import Prediction, learn, merged, predictions
from sparsact.cli.progress import Stages
from sparsact.cli.surroundings import command_line, peak_memory, versions
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.reports import Choice, FitSummary, Resources, Spread


@dataclass(frozen=True)
class Fitted:
    """A model of every row, and its summary."""

    model: Any
    summary: FitSummary


def fit_table(table: Table, wish: Wish, stages: Stages, name: str, words: Sequence[str], *, with_rows: bool) -> Fitted:
    """Choose, measure, learn, summarise.

    ``with_rows`` also predicts held-out rows one by one, as figures need it, at the cost of a statistic for every fold.
    Classes and several targets are measured on such rows in any case.

    Raises
    ------
    ValueError
        If there are fewer rows than folds.
    """
    n_rows = table.n_rows or 0
    if n_rows < wish.folds:
        remedy = f"choose --folds {n_rows}" if n_rows > 1 else "add rows"
        raise ValueError(f"{n_rows} rows are fewer than {wish.folds} folds; {remedy}.")
    with stages.stage("choosing", n_rows) as on_rows:
        chosen = choose(table, wish, on_rows)
    with stages.stage("learning", n_rows) as on_rows:
        n_folds = wish.folds if with_rows or _is_classes(table) or len(table.encoding.targets) > 1 else 1
        model, held_out = _learned(table, wish, (chosen.degree, chosen.alpha), n_folds, on_rows)
    with stages.stage("summing up"):
        scores = _scores(table, wish, chosen, held_out)
        answers = as_numbers(table.encoding.targets[0], held_out.actual)
        seen = replace(held_out, actual=answers.reshape(len(answers), -1))
        bits = wish.domain == "cube"
        summaries = tuple(
            target_summary(model, i, name, table.feature_names, seen, scores[i], bits=bits)
            for i, name in enumerate(function_names(table.encoding))
        )
    summary = FitSummary(
        table=name,
        task="classification" if _is_classes(table) else "regression",
        n_rows=n_rows,
        feature_names=table.feature_names,
        notes=table.encoding.notes,
        choice=_choice(model, wish),
        candidates=chosen.candidates,
        targets=summaries,
        resources=Resources(tuple(stages.seconds.items()), peak_memory()),
        versions=versions(),
        command=command_line(words),
        confusion=confusion(held_out, table.encoding),
        domain=wish.domain,
        target_columns=table.encoding.target_names,
    )
    return Fitted(model, summary)


def _learned(
    table: Table, wish: Wish, candidate: tuple[int, float], n_folds: int, on_rows: OnRows
) -> tuple[Any, Prediction]:
    """A model of every row, and predictions of held-out rows by models of the other folds."""
    from sparsact import LowDegreeClassifier, LowDegreeRegressor

    kind = LowDegreeClassifier if _is_classes(table) else LowDegreeRegressor
    estimator = kind(degree=candidate[0], alpha=candidate[1], domain=wish.domain)
    models, sample = learn(estimator, table, n_folds, wish.seed, on_rows)
    return merged(models), predictions(models, sample)


def _scores(table: Table, wish: Wish, chosen: Chosen, held_out: Prediction) -> list[tuple[Spread, Spread]]:
    """R2 of the chosen and of the linear model, for each fitted function.

    Cross-validation has them for one target; of several it knows the mean, so they are measured on the held-out rows.
    """
    best = (chosen.of_degree(chosen.degree), chosen.of_degree(1))
    n_targets = len(table.encoding.targets)
    if n_targets == 1:
        return [(best[0].r2, best[1].r2)] * len(function_names(table.encoding))
    _, linear = _learned(table, wish, (1, best[1].alpha), wish.folds, lambda count: None)
    return [(r2_by_fold(held_out, i), r2_by_fold(linear, i)) for i in range(n_targets)]


def _choice(model: Any, wish: Wish) -> Choice:
    return Choice(
        int(model.degree_),
        float(model.alpha),
        len(model.subsets_),
        str(model.solver_),
        str(model.solver_reason_),
        wish.automatic,
    )


def _is_classes(table: Table) -> bool:
    return isinstance(table.encoding.targets[0], Classes)
