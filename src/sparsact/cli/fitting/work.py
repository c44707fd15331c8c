"""From a table and a wish to a model and what a report says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparsact.cli.fitting.choice import Wish, choose
from sparsact.cli.fitting.findings import best_of, confusion, r2_by_fold, target_summary
from sparsact.cli.fitting.folds import Prediction, learn, merged, predictions
from sparsact.cli.fitting.surroundings import command_line, peak_memory, versions
from sparsact.cli.progress import Stages
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.reports import Candidate, Choice, FitSummary, Resources, TargetSummary


@dataclass(frozen=True)
class Fitted:
    """A model of every row, and its summary."""

    model: Any
    summary: FitSummary


def fit_table(table: Table, wish: Wish, stages: Stages, name: str, words: Sequence[str]) -> Fitted:
    """Choose, measure, learn, summarise.

    Raises
    ------
    ValueError
        If there are fewer rows than folds.
    """
    from sparsact import LowDegreeRegressor

    n_rows = table.n_rows or 0
    if n_rows < wish.folds:
        raise ValueError(
            f"{n_rows} rows are fewer than {wish.folds} folds; choose --folds {max(2, n_rows)} or add rows."
        )
    with stages.stage("choosing", n_rows) as on_rows:
        search, candidates = choose(table, wish, on_rows)
    estimator = LowDegreeRegressor(degree=int(search.degree_), alpha=float(search.alpha_), domain=wish.domain)
    with stages.stage("learning", n_rows) as on_rows:
        models, sample = learn(estimator, table, wish.folds, wish.seed, on_rows)
        held_out = predictions(models, sample)
    with stages.stage("summing up"):
        model = merged(models)
        summaries = tuple(_targets(model, table, held_out, candidates, wish))
    summary = FitSummary(
        table=name,
        task="classification" if _classes(table) else "regression",
        n_rows=n_rows,
        feature_names=table.feature_names,
        notes=table.encoding.notes,
        choice=_choice(model, wish),
        candidates=candidates,
        targets=summaries,
        resources=Resources(tuple(stages.seconds.items()), peak_memory()),
        versions=versions(),
        command=command_line(words),
        confusion=confusion(held_out, table.encoding),
        domain=wish.domain,
    )
    return Fitted(model, summary)


def _targets(
    model: Any, table: Table, held_out: Prediction, candidates: Sequence[Candidate], wish: Wish
) -> Iterator[TargetSummary]:
    names = _classes(table) or table.encoding.target_names
    chosen = next(c.r2 for c in candidates if (c.degree, c.alpha) == (model.degree, model.alpha))
    linear = best_of(candidates, 1).r2
    for i, name in enumerate(names):
        r2 = chosen if len(names) == 1 else r2_by_fold(held_out, i)
        bits = wish.domain == "cube"
        yield target_summary(model, i, name, table.feature_names, held_out, (r2, linear), bits=bits)


def _choice(model: Any, wish: Wish) -> Choice:
    return Choice(
        int(model.degree),
        float(model.alpha),
        len(model.subsets_),
        str(model.solver_),
        str(model.solver_reason_),
        wish.automatic,
    )


def _classes(table: Table) -> tuple[str, ...]:
    target = table.encoding.targets[0]
    return target.values if isinstance(target, Classes) else ()
