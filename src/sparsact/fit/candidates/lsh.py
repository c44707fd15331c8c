"""LSH models of all rows of a table and of the rows outside each fold, laid out on a sample that they then predict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes, Real
from sparsact.fit.candidate import CandidateKind, Facts, Findings, Fit, FitParts, FitRun, Targets
from sparsact.fit.candidates.lsh_details import bucket_bytes, layout_info, standardised_weights
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.row_columns import FitRows, RowColumns
from sparsact.learners import LSHClassifier, LSHRegressor
from sparsact.learners.lsh.estimator import LSHModel
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH
from sparsact.memory import has_room
from sparsact.passes.resumable import Checkpoint
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.statistics.folds import deal
from sparsact.statistics.statistic import Batch

LEVELS: Final = (0.5, 0.8, 0.9, 0.95, 0.99)  # probabilities at which prediction intervals are checked
MAX_COLUMNS_FOR_GRADIENTS: Final = 128  # beyond it, slopes at many places cost more than all the rest
MAX_SAMPLE: Final = ROWS_FOR_WIDTH  # an LSH model looks at no more rows to lay itself out
MAX_NUMBERS: Final = 1 << 25  # of the sample: a quarter of a gigabyte


@dataclass
class FilledTables:
    """LSH models filled side by side from the rows of a table: each takes the rows outside its fold, or all rows."""

    target: Real | Classes
    models: list[LSHRegressor | LSHClassifier]
    without: Sequence[int | None]  # the fold of each model
    n_folds: int
    seed: int

    def empty(self) -> FilledTables:
        """The same without rows."""
        models = [model.blank(remember_rows=False) for model in self.models]
        return FilledTables(self.target, models, self.without, self.n_folds, self.seed)

    @property
    def n_rows(self) -> int:
        """Rows of the fullest model."""
        return max((int(model.table_.n_rows) for model in self.models), default=0)

    def add(self, batch: Batch) -> None:
        """Add rows of the table."""
        X, y, folds = batch.X, batch.y, deal(batch.first_row, len(batch), self.n_folds, self.seed)
        for model, fold in zip(self.models, self.without, strict=True):
            rows = slice(None) if fold is None else folds != fold
            if len(folds[rows]):
                add_batch(model, self.target, X[rows], y[rows])

    def merge(self, other: FilledTables) -> None:
        """Add the rows of other models."""
        for model, theirs in zip(self.models, other.models, strict=True):
            model.merge(theirs)

    def state(self) -> tuple[State, Arrays]:
        """Return the rows as JSON and arrays."""
        states: list[State] = []
        arrays: Arrays = {}
        for number, model in enumerate(self.models):
            state, own = model.state()
            states.append(state)
            arrays |= add_prefix(f"model{number}", own)
        return {"models": states}, arrays

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the rows from a saved state."""
        for number, (model, seen) in enumerate(zip(self.models, state["models"], strict=True)):
            model.restore(seen, strip_prefix(f"model{number}", arrays))
            model._forget_solution()


def add_batch(model: LSHModel, target: Real | Classes, X: NDArray[Any], y: NDArray[np.float64]) -> None:
    """Fit a model to more rows; class numbers as labels."""
    if isinstance(model, LSHClassifier) and isinstance(target, Classes):
        model.partial_fit(X, target.labelled(y), classes=target.labels)
    else:
        model.partial_fit(X, y)


def fitted_tables(parts: FitParts, checkpoint: Checkpoint, at_once: int | None = None) -> Fit:
    """An LSH model of every row, and how such models predict the rows of the sample that they have not seen.

    A fold's model shares width, penalty and kind of directions with that of all rows. Its hash functions, directions
    and trend are found again from rows outside of the fold: the other model's have seen all folds. Where the
    sample is not the whole table, all models are filled in one pass, or, if memory does not hold them, in several, of
    ``at_once`` models each.
    """
    table, options, sample, stages = parts
    target, n_folds, seed = table.encoding.targets[0], options.folds, options.random_state
    X, y, folds = sample.rows()
    with stages.stage("hashing"):
        whole = _estimator(table, seed)
        add_batch(whole, target, X, y)
        names = ("bucket_width", "alpha", "n_hashes", "directions")
        fixed = {name: getattr(whole, f"{name}_") for name in names}
        models = [whole]
        for fold in range(n_folds):
            models.append(_estimator(table, seed, **fixed))
            add_batch(models[-1], target, X[folds != fold], y[folds != fold])
    if not sample.is_complete:
        at_once = at_once or _n_at_once(whole, len(X), sample.n_rows, len(models))
        groups = [range(i, min(i + at_once, n_folds + 1)) for i in range(0, n_folds + 1, at_once)]
        rows = FitRows(table, RowColumns())
        with stages.stage("learning", sample.n_rows * len(groups)) as on_rows:
            for group in groups:
                blank = [models[i].blank(remember_rows=False) for i in group]
                without = [i - 1 if i else None for i in group]
                filled = FilledTables(target, blank, without, n_folds, seed)
                name = "learning" if len(groups) == 1 else f"learning {group[0]}"
                models[group[0] : group[-1] + 1] = checkpoint.run(rows.summed_by(name, filled), on_rows).models
    with stages.stage("measuring", len(X)) as on_rows:
        scores = TableScores.of(models[1:].__getitem__, target, X, y, folds)
        on_rows(len(X))
    return Fit(models[0], scores)


def _n_at_once(model: LSHModel, n_sampled: int, n_rows: int, n_models: int) -> int:
    """Number of models that fit in memory if rows open buckets as often as in the sample."""
    layout = model.table_.layout
    n_bytes = bucket_bytes(model.n_buckets_, layout, layout.n_local) * n_rows / n_sampled
    return next((n for n in range(n_models, 1, -1) if has_room(n * n_bytes)), 1)


def _estimator(table: Table, seed: int, **fixed: Any) -> LSHRegressor | LSHClassifier:
    kind = LSHClassifier if isinstance(table.encoding.targets[0], Classes) else LSHRegressor
    directions = "auto" if len(table.feature_names) <= MAX_COLUMNS_FOR_GRADIENTS else "standard"
    return kind(random_state=seed, **({"directions": directions} | fixed))


@dataclass(frozen=True)
class TableScores(HeldOutScores):
    """Held-out scores of hash tables.

    ``missed`` is the share of rows in empty buckets of every table, ``coverage`` that of targets inside their
    prediction intervals at each of :data:`LEVELS` (empty for classes).
    """

    missed: float = 0.0
    coverage: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        model_without: Callable[[int], LSHModel],
        target: Real | Classes,
        X: NDArray[Any],
        y: NDArray[Any],
        folds: NDArray[np.intp],
    ) -> Self:
        """Every row by the model without the fold that it is in."""
        scores = super().of(model_without, target, X, y, folds)
        missed, known, inside = 0, 0, np.zeros(len(LEVELS))
        for fold in np.unique(folds):
            rows, model = folds == fold, model_without(int(fold))
            if isinstance(model, LSHClassifier):
                missed += int((model.apply(X[rows]) < 0).all(axis=1).sum())
                continue
            bounds = model.predict_interval(X[rows], LEVELS[0]).reshape(int(rows.sum()), -1, 2)
            deviation = (bounds[..., 1] - bounds[..., 0]) / 2 / ndtri((1 + LEVELS[0]) / 2)
            finite = np.isfinite(deviation)
            missed += int((~finite[:, 0]).sum())
            known += int(finite.sum())
            size = np.abs((scores.actual[rows] - scores.predicted[rows])[finite])
            inside += [(size <= ndtri((1 + level) / 2) * deviation[finite]).sum() for level in LEVELS]
        return replace(scores, missed=missed / len(X), coverage=tuple((inside / known).tolist()) if known else ())


@dataclass(frozen=True)
class LSHCandidate(CandidateKind):
    """Hash tables (LSH)."""

    kind, name, rank, takes_targets, has_intervals = "lsh", "hash tables (LSH)", 7, True, False
    most_rows: int = MAX_SAMPLE

    def refusal(self, facts: Facts) -> str:
        """Groups of many rows are refused."""
        if facts.options.groups is None or facts.n_rows <= self.most_rows:
            return ""
        return f"{self.name} of more than {self.most_rows:,} rows cannot hold out whole groups; leave the groups out."

    def competes(self, facts: Facts) -> bool:
        """They compete where columns are numbers."""
        return bool(facts.table.encoding.real) and not self.refusal(facts)

    def fit(self, run: FitRun) -> Fit:
        """Tables of all rows, whatever their number."""
        return fitted_tables(run.parts, run.checkpoint)

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """The layout is shown; there are no terms."""
        X, y, _ = run.sample.rows()
        columns, scores = standardised_weights(fit.model, run.table, X, y), cast("TableScores", fit.held_out)
        coverage = tuple(zip(LEVELS, scores.coverage, strict=False))
        return targets, layout_info(fit.model, columns, len(X), scores.missed, coverage)


CANDIDATE: Final = LSHCandidate()
