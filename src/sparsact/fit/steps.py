"""The steps of a fit, from an encoded table to its result: choose, score, learn, explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from sparsact import LowDegreeClassifier, LowDegreeRegressor
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes, Real
from sparsact.environment import versions
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.choose import Selected, choose, domain_of, models_to_try, select_model
from sparsact.fit.explain import TargetResult, confusion, explained, function_names, r2_by_fold, scored_targets
from sparsact.fit.folds import Prediction, RowSample, fit_folds, merged, predictions
from sparsact.fit.layout import layout_info, standardised_weights
from sparsact.fit.lsh_candidate import fit_rows, held_out_scores, laid_out, rows_of_fold
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnRows, Stages
from sparsact.fit.result import FitResult, LowDegreeInfo, Resources
from sparsact.fit.scores import FoldScores
from sparsact.memory import peak_memory


@dataclass(frozen=True)
class FitSteps:
    """One fit: choose, score, learn, explain."""

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint

    def result(self, name: str, call: str) -> FitResult:
        """All of it."""
        table, options, n_rows = self.table, self.options, self.table.n_rows or 0
        if n_rows < options.folds:
            remedy = f"choose folds {n_rows}" if n_rows > 1 else "add rows"
            raise ValueError(f"{n_rows} rows are fewer than {options.folds} folds; {remedy}.")
        tries_lsh, reason = models_to_try(table, options)
        sample = RowSample(table, options.folds, options.random_state) if tries_lsh else None
        with self.stages.stage("choosing", n_rows) as on_rows:
            selected = choose(table, options, on_rows, sample, self.checkpoint)
        held_out = None
        if sample is not None:
            with self.stages.stage("hashing"):
                model = laid_out(table, options, sample)
            with self.stages.stage("measuring", options.folds * rows_of_fold(sample)) as on_rows:
                held_out = held_out_scores(table, model, options, sample, on_rows, self.checkpoint)
        choices, layout = select_model(selected, held_out, reason), None
        if sample is None or held_out is None or not choices.lsh:
            model, rows, targets, info = self._low_degree(selected)
            choices = replace(choices, low_degree=info)
        else:
            with self.stages.stage("learning", n_rows) as on_rows:
                model = fit_rows(table, model, sample, on_rows, self.checkpoint)
            linear = self._linear_scores(selected)
            with self.stages.stage("summing up"):
                of_numbers = isinstance(table.encoding.targets[0], Real)
                # classes share the mean R2 of their indicators, as cross-validation of low-degree models has it
                r2 = held_out.by_fold("r2") if of_numbers else [held_out.mean_r2] * len(linear)
                rows = Prediction(*held_out.kept.rows())
                targets = scored_targets(table.encoding, rows, r2, linear)
                if options.explain:
                    weights = standardised_weights(model, table, sample)
                    layout = layout_info(model, weights, len(sample.rows()[0]), held_out)
        model.table_encoding_ = table.encoding.to_json()
        return FitResult(
            model=model,
            table=name,
            n_rows=n_rows,
            encoding=table.encoding,
            task="classification" if self._is_classes else "regression",
            domain=domain_of(table, options),
            choices=choices,
            targets=targets,
            resources=Resources(tuple(self.stages.seconds.items()), peak_memory()),
            versions=versions(),
            call=call,
            confusion=confusion(rows, table.encoding),
            layout=layout,
        )

    def _low_degree(self, selected: Selected) -> tuple[Any, Prediction, tuple[TargetResult, ...], LowDegreeInfo]:
        """The polynomial that cross-validation has chosen, held-out rows, and findings."""
        table, options = self.table, self.options
        with self.stages.stage("learning", table.n_rows) as on_rows:
            by_fold = options.held_out_rows or self._is_classes or len(table.encoding.targets) > 1
            n_folds = options.folds if by_fold else 1
            model, held_out, points = self._polynomial(selected.degree, selected.alpha, n_folds, on_rows)
        linear = self._linear_scores(selected)
        with self.stages.stage("summing up"):
            # cross-validation has the scores of one target; of several it knows the mean
            r2 = [selected.of_degree(selected.degree).r2] * len(linear)
            if len(table.encoding.targets) > 1:
                r2 = [r2_by_fold(held_out, i) for i in range(len(linear))]
            targets = scored_targets(table.encoding, held_out, r2, linear)
            if options.explain:
                targets = explained(targets, model, table.feature_names, points)
        solver, reason = str(model.solver_), str(model.solver_reason_)
        info = LowDegreeInfo(int(model.degree_), float(model.alpha), len(model.subsets_), solver, reason, options.given)
        return model, held_out, targets, info

    def _polynomial(
        self, degree: int, alpha: float, n_folds: int, on_rows: OnRows, name: str = "learning"
    ) -> tuple[Any, Prediction, NDArray[Any]]:
        """A model of every row, predictions of held-out rows by models of the other folds, and these rows."""
        kind = LowDegreeClassifier if self._is_classes else LowDegreeRegressor
        estimator = kind(degree=degree, alpha=alpha, domain=domain_of(self.table, self.options))
        seed = self.options.random_state
        models, sample = fit_folds(estimator, self.table, n_folds, seed, on_rows, self.checkpoint, name)
        return merged(models), predictions(models, sample), sample.rows()[0]

    def _linear_scores(self, selected: Selected) -> list[FoldScores]:
        """R2 of the linear model, for each target or class; those of several targets take another pass."""
        best, encoding = selected.of_degree(1), self.table.encoding
        if (n_targets := len(encoding.targets)) == 1:
            return [best.r2] * len(function_names(encoding))
        with self.stages.stage("comparing", self.table.n_rows) as on_rows:
            _, linear, _ = self._polynomial(1, best.alpha, self.options.folds, on_rows, "comparing")
        return [r2_by_fold(linear, i) for i in range(n_targets)]

    @property
    def _is_classes(self) -> bool:
        return isinstance(self.table.encoding.targets[0], Classes)
