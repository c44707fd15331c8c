"""The steps of a fit, from an encoded table to its result: choose, score, learn, explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.datasets.extrapolation import DesignSums, design_notes
from sparsact.environment import versions
from sparsact.fit.candidate import Facts, Fit, FitRun
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.latent import pinned_notes
from sparsact.fit.candidates.letters import explained_letters
from sparsact.fit.candidates.lsh import MAX_NUMBERS, MAX_SAMPLE
from sparsact.fit.candidates.network import MOST_ROWS
from sparsact.fit.choose import kinds_to_try, select_model
from sparsact.fit.degrees import Selected, domain_of, search_for, select_polynomial
from sparsact.fit.details import Details
from sparsact.fit.explain import confusion, explained, function_names, scored_targets
from sparsact.fit.fold_sums import MAX_HELD_OUT, FoldSums, Prediction
from sparsact.fit.held_out import HeldOutScores, out_of_fold_values
from sparsact.fit.options import FitOptions
from sparsact.fit.reading import check_targets, warnings
from sparsact.fit.result import FitResult, Resources
from sparsact.fit.row_columns import FitRows, RowColumns
from sparsact.fit.scores import CVCandidate, FoldScores, LowDegreeInfo, noise_ceiling
from sparsact.fit.target_result import TargetResult
from sparsact.learners import CubeEnsemble, LettersRegressor
from sparsact.memory import peak_memory
from sparsact.passes.progress import StageProgress, Stages
from sparsact.passes.resumable import Checkpoint
from sparsact.statistics.sample import RowSample


@dataclass(frozen=True)
class FitSteps:
    """One fit: choose, score, learn, explain."""

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint
    row_columns: RowColumns

    def result(self, name: str, call: str) -> FitResult:
        """The whole fit."""
        table, options = self.table, self.options
        with self.stages.stage("choosing", table.n_rows) as on_rows:
            sums = self._sums(on_rows)
            selected = select_polynomial(sums.search, options)
        n_rows, encoding = sums.n_rows, table.encoding
        run, reason = self._others(sums, selected)
        scores = {kind: fit.held_out for kind, fit in run.fits.items()}
        choices = select_model(selected, scores, reason, options.model)
        kind = candidates().get(choices.kind)
        with self.stages.stage("summing up"):
            X, y, _ = sums.sample.rows()
            if options.encoding is None:
                everything = X if sums.sample.is_complete else None
                design = sums.design.design(np.empty((0, 0)))
                first = warnings(encoding, X, y) + design_notes(encoding, design, everything)
                encoding = replace(encoding, notes=(*first, *encoding.notes))
            notes = dict.fromkeys((*encoding.notes, *pinned_notes(table, options, sums.sample)))
            encoding = replace(encoding, notes=tuple(notes))
            details = Details()
            if kind is None:
                model, rows, targets = self._low_degree(sums, selected)
            else:
                fit = kind.finished(run.fits[kind.kind], run)
                model = fit.model
                rows, targets = self._of_rows(sums.sample, fit.held_out, selected)
                if options.explain:
                    targets, details = kind.findings(run, fit, targets)
            if kind is None or kind.is_polynomial:
                choices = replace(choices, low_degree=LowDegreeInfo.of(model, options.given))
            if options.explain:
                targets = explained_letters(targets, model, encoding, X)
            if options.explain and not self._is_classes:
                weights = sums.sample.weights
                targets = tuple(
                    replace(target, ceiling=noise_ceiling(X, of_target, weights))
                    for target, of_target in zip(targets, y.reshape(len(y), -1).T, strict=True)
                )
            encoding = replace(encoding, design=sums.design.design(self._errors(sums.sample, rows)))
        model.table_encoding_ = encoding.to_json()
        return FitResult(
            model=model,
            table=name,
            n_rows=n_rows,
            encoding=encoding,
            task="classification" if self._is_classes else "regression",
            domain=domain_of(table, options),
            choices=replace(
                choices, weights=model.weights_ if isinstance(model, CubeEnsemble | LettersRegressor) else {}
            ),
            targets=targets,
            resources=Resources(tuple(self.stages.seconds.items()), peak_memory()),
            versions=versions(),
            call=call,
            confusion=confusion(rows, encoding),
            details=details,
        )

    def _others(self, sums: FoldSums, selected: Selected) -> tuple[FitRun, str]:
        """Models of other kinds than polynomials with their held-out scores, and why there are no more."""
        kinds, reason = kinds_to_try(Facts(self.table, self.options, sums.n_rows))
        run = FitRun(self.table, self.options, self.stages, self.checkpoint, sums, selected, kinds)
        for kind in kinds:
            found = candidates()[kind].fit(run)
            if isinstance(found, Fit):
                run.fits[kind] = found
            else:
                reason = found or reason
        return run, reason

    def _sums(self, on_rows: StageProgress) -> FoldSums:
        """The sums of every row, by fold, and a sample of the rows, to which models of other kinds are fitted."""
        table, options = self.table, self.options
        most = MAX_HELD_OUT
        if kinds_to_try(Facts(table, options, MOST_ROWS))[0]:
            most = MOST_ROWS if options.model == "network" else MAX_SAMPLE
            most = max(options.folds, min(most, MAX_NUMBERS // len(table.feature_names)))
        sample = RowSample(most, options.folds, options.random_state)
        design = DesignSums(table.encoding)
        sums = FoldSums(table.encoding.targets[0], search_for(table, options), sample, design)
        sums = self.checkpoint.run(FitRows(table, self.row_columns).summed_by("choosing", sums), on_rows)
        if not sums.n_rows:
            raise ValueError(f"{table.parts.name} has no rows below its header; a table needs at least one.")
        check_targets(table.encoding, sums.low, sums.high)
        if sums.n_rows < options.folds:
            remedy = f"choose folds {sums.n_rows}" if sums.n_rows > 1 else "add rows"
            raise ValueError(f"{sums.n_rows} rows are fewer than {options.folds} folds; {remedy}.")
        return sums

    def _of_rows(
        self, sample: RowSample, held_out: HeldOutScores, selected: Selected
    ) -> tuple[Prediction, tuple[TargetResult, ...]]:
        """Held-out rows and scores of another model than a polynomial of all products."""
        linear = self._r2(selected.of_degree(1))
        # classes share the mean R2 of their indicators, as cross-validation of low-degree models has it
        r2 = [held_out.mean_r2] * len(linear) if self._is_classes else list(held_out.r2())
        kept = sample.smallest(min(MAX_HELD_OUT, len(held_out.folds)))
        y = sample.rows()[1][kept]
        places = np.searchsorted(sample.smallest(len(held_out.folds)), kept)
        rows = Prediction(y.reshape(len(y), -1), held_out.predicted[places])
        return rows, scored_targets(self.table.encoding, rows, r2, linear)

    def _errors(self, sample: RowSample, rows: Prediction) -> NDArray[np.float64]:
        """Errors of held-out rows (rows, targets), scaled to rows of mean weight; empty for classes."""
        if self._is_classes or rows.predicted is None:
            return np.empty((0, 0))
        kept = sample.smallest(len(rows.actual))
        return (rows.actual - rows.predicted) * np.sqrt(sample.weights[kept])[:, None]

    def _low_degree(self, sums: FoldSums, selected: Selected) -> tuple[Any, Prediction, tuple[TargetResult, ...]]:
        """The polynomial that cross-validation has chosen, held-out rows, and findings."""
        table, options = self.table, self.options
        models = sums.models(selected.degree, selected.alpha, domain_of(table, options))
        model = models.whole
        X, y, folds = sums.sample.at_most(MAX_HELD_OUT)
        predicts = options.held_out_rows or options.explain or self._is_classes or len(table.encoding.targets) > 1
        held_out = Prediction(y.reshape(len(y), -1), out_of_fold_values(models.without, X, folds) if predicts else None)
        r2, linear = self._r2(selected.of_degree(selected.degree)), self._r2(selected.of_degree(1))
        targets = scored_targets(table.encoding, held_out, r2, linear)
        if options.explain:
            targets = explained(targets, model, table.encoding, X)
        return model, held_out, targets

    def _r2(self, candidate: CVCandidate) -> list[FoldScores]:
        """Scores for each target; classes share the mean over their indicators."""
        if self._is_classes:
            return [candidate.r2] * len(function_names(self.table.encoding))
        return list(candidate.targets)

    @property
    def _is_classes(self) -> bool:
        return isinstance(self.table.encoding.targets[0], Classes)
