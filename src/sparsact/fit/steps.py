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
from sparsact.fit.checkpoint import Checkpoint, Pass
from sparsact.fit.choose import (
    Selected,
    best_of_fold,
    domain_of,
    models_to_try,
    search_for,
    select_model,
    select_polynomial,
)
from sparsact.fit.ensemble import weighted_models, with_deviations
from sparsact.fit.explain import TargetResult, confusion, explained, function_names, scored_targets
from sparsact.fit.gp_candidate import MOST_ROWS as MOST_OF_PROCESSES
from sparsact.fit.gp_candidate import Fitted, fitted_processes, gp_terms
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.latent_candidate import (
    LatentInfo,
    fitted_latent,
    is_wanted,
    latent_info,
    latent_targets,
    pinned_notes,
)
from sparsact.fit.layout import LayoutInfo, layout_info, standardised_weights
from sparsact.fit.letters_candidate import explained_letters, fitted_letters
from sparsact.fit.lsh_candidate import MAX_NUMBERS, MAX_SAMPLE, TableScores, fitted_tables
from sparsact.fit.network_candidate import (
    MOST_ROWS,
    NetworkInfo,
    first_look,
    fitted_networks,
    missing_class,
    network_info,
    promising_r2,
)
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnRows, Resources, Stages
from sparsact.fit.reading import check_targets, warnings
from sparsact.fit.result import FitResult
from sparsact.fit.row_columns import FitRows, RowColumns
from sparsact.fit.scores import CVCandidate, FoldScores, LowDegreeInfo, noise_ceiling
from sparsact.fit.sparse_candidate import fitted_sparse
from sparsact.fit.sums import MAX_HELD_OUT, FoldSums, Prediction, RowSample, as_numbers
from sparsact.fit.tree_candidate import fitted_trees
from sparsact.learners import CubeGPRegressor
from sparsact.memory import peak_memory


@dataclass(frozen=True)
class FitSteps:
    """One fit: choose, score, learn, explain."""

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint
    row_columns: RowColumns

    def result(self, name: str, call: str) -> FitResult:
        """All of it."""
        table, options = self.table, self.options
        with self.stages.stage("choosing", table.n_rows) as on_rows:
            sums = self._sums(on_rows)
            selected = select_polynomial(sums.search, options)
        n_rows, encoding = sums.n_rows, table.encoding
        layout: LayoutInfo | None = None
        network: NetworkInfo | None = None
        latent: LatentInfo | None = None
        models, scores, reason = self._others(sums, selected)
        choices = select_model(selected, scores, reason, options.model)
        with self.stages.stage("summing up"):
            X, y, _ = sums.sample.rows()
            if options.encoding is None:
                everything = X if sums.sample.is_complete else None
                design = sums.design.design(np.empty((0, 0)))
                first = warnings(encoding, X, y) + design_notes(encoding, design, everything)
                encoding = replace(encoding, notes=(*first, *encoding.notes))
            notes = dict.fromkeys((*encoding.notes, *pinned_notes(table, options, sums.sample)))
            encoding = replace(encoding, notes=tuple(notes))
            if choices.kind in models:
                model, held_out = models[choices.kind], scores[choices.kind]
                if choices.kind == "ensemble":
                    model = model.on_cube(len(encoding.feature_names))
                rows, targets = self._of_rows(sums.sample, held_out, selected)
                if options.explain and isinstance(held_out, TableScores):
                    layout = layout_info(model, standardised_weights(model, table, X, y), len(X), held_out)
                elif options.explain and choices.kind in ("sparse", "lasso", "gp", "ensemble"):
                    if choices.kind == "ensemble":
                        model = with_deviations(model, models["gp"])
                    found = gp_terms(model, encoding) if choices.kind in ("gp", "ensemble") else None
                    targets = explained(targets, model, encoding, X, found)
                elif options.explain and choices.kind == "latent":
                    latent = latent_info(model, X, y)
                    targets = latent_targets(targets, model, encoding, X)
                elif options.explain and choices.kind == "network":
                    network = network_info(model, encoding.feature_names, X)
                    targets = self._with_terms(targets, sums, selected)
                if choices.kind in ("sparse", "lasso"):
                    choices = replace(choices, low_degree=LowDegreeInfo.of(model, options.given))
            else:
                model, rows, targets = self._low_degree(sums, selected)
                choices = replace(choices, low_degree=LowDegreeInfo.of(model, options.given))
            if options.explain:
                targets = explained_letters(targets, model, encoding, X)
            if options.explain and not self._is_classes:
                targets = tuple(
                    replace(target, ceiling=noise_ceiling(X, of_target, sums.sample.weights))
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
            choices=replace(choices, weights=getattr(model, "weights_", {})),
            targets=targets,
            resources=Resources(tuple(self.stages.seconds.items()), peak_memory()),
            versions=versions(),
            call=call,
            confusion=confusion(rows, encoding),
            layout=layout,
            network=network,
            latent=latent,
        )

    def _others(self, sums: FoldSums, selected: Selected) -> tuple[dict[str, Any], dict[str, HeldOutScores], str]:
        """Models of other kinds than polynomials, their held-out scores, and why there are no more of them."""
        table, options, sample = self.table, self.options, sums.sample
        kinds, reason = models_to_try(table, options, sums.n_rows)
        models: dict[str, Any] = {}
        scores: dict[str, HeldOutScores] = {}
        if "lsh" in kinds:
            models["lsh"], scores["lsh"] = fitted_tables(table, options, sample, self.stages, self.checkpoint)
        if "sparse" in kinds:
            models["sparse"], scores["sparse"] = fitted_sparse(table, options, sample, self.stages)
        if "lasso" in kinds:
            with self.stages.stage("choosing terms by the lasso"):
                by_lasso = sums.by_lasso()
                models["lasso"], scores["lasso"] = self._polynomial(
                    by_lasso, select_polynomial(by_lasso.search, options)
                )
        members: dict[str, Fitted] = {}
        if "gp" in kinds:
            processes = fitted_processes(table, options, sample, self.stages, warped="ensemble" in kinds)
            unwarped = [fitted for fitted in processes.values() if isinstance(fitted[0], CubeGPRegressor)]
            models["gp"], scores["gp"] = max(unwarped, key=_r2)
            members |= processes
        if "letters" in kinds:
            models["letters"], scores["letters"] = fitted_letters(table, options, sample, self.stages)
        if is_wanted(table, options, sample):
            models["latent"], scores["latent"] = fitted_latent(table, options, sample, self.stages)
        if "trees" in kinds:
            trees = fitted_trees(table, options, sample, self.stages)
            scores["trees"] = max(trees.values(), key=_r2)[1]
            members |= trees
        if "network" in kinds and (missing := missing_class(table, sample)):
            if options.model == "network":
                raise ValueError(f"{missing}: leave them out, or choose model low-degree.")
            reason = missing
        elif "network" in kinds:
            with self.stages.stage("looking at networks"):
                best = None if options.model == "network" else best_of_fold(selected, scores, 0)
                enough = None if best is None else promising_r2(best)
                look = first_look(table, options, sample, enough)
            if enough is None or look.r2 > enough:
                fitted = fitted_networks(table, options, sample, look, self.stages)
                models["network"], scores["network"] = fitted
                reason = reason if best is None else ""
            else:
                reason = (
                    f"a quick look at a sparsely activated network had R² {look.r2:.3f} on the first fold, where the "
                    f"best other model has {best:.3f}"
                )
        if "ensemble" in kinds:
            for kind in ("sparse", "lasso", "latent", "network"):
                if kind in models:
                    members[kind] = models[kind], scores[kind]
            members["low-degree"] = self._polynomial(sums, selected)
            with self.stages.stage("weighting models"):
                found = weighted_models(members, sample)
            models["ensemble"], scores["ensemble"] = found
        return models, scores, reason

    def _polynomial(self, sums: FoldSums, selected: Selected) -> Fitted:
        """The polynomial that cross-validation has chosen, and its held-out scores, of a sample of many rows."""
        X, y, folds = sums.sample.at_most(MOST_OF_PROCESSES)
        weights = sums.sample.weights[sums.sample.smallest(MOST_OF_PROCESSES)] if self.options.weighted else None
        polynomials = sums.models(selected.degree, selected.alpha, domain_of(self.table, self.options))
        actual = as_numbers(self.table.encoding.targets[0], y).reshape(len(y), -1)
        return polynomials.whole, HeldOutScores(actual, polynomials.held_out(X, folds), folds, weights=weights)

    def _sums(self, on_rows: OnRows) -> FoldSums:
        """The sums of every row, by fold, and a sample of the rows, to which models of other kinds are fitted."""
        table, options = self.table, self.options
        most = MAX_HELD_OUT
        if models_to_try(table, options, MOST_ROWS)[0]:
            most = MOST_ROWS if options.model == "network" else MAX_SAMPLE
            most = max(options.folds, min(most, MAX_NUMBERS // len(table.feature_names)))
        sample = RowSample(most, options.folds, options.random_state)
        design = DesignSums(table.encoding)
        sums = FoldSums(table.encoding.targets[0], search_for(table, options), sample, design)
        source = FitRows(table.parts, table.encoding, table.batch_rows, self.row_columns)
        sums = self.checkpoint.run(Pass("choosing", source, sums), on_rows)
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
        """Errors of held-out rows (rows, targets) as rows of mean weight have them; of classes none."""
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
        held_out = Prediction(y.reshape(len(y), -1), models.held_out(X, folds) if predicts else None)
        r2, linear = self._r2(selected.of_degree(selected.degree)), self._r2(selected.of_degree(1))
        targets = scored_targets(table.encoding, held_out, r2, linear)
        if options.explain:
            targets = explained(targets, model, table.encoding, X)
        return model, held_out, targets

    def _with_terms(
        self, targets: tuple[TargetResult, ...], sums: FoldSums, selected: Selected
    ) -> tuple[TargetResult, ...]:
        """The targets with the terms of the best polynomial, which a network lacks."""
        polynomial = self._low_degree(sums, selected)[2]
        return tuple(
            replace(target, weights=other.weights, terms=other.terms, influences=other.influences)
            for target, other in zip(targets, polynomial, strict=True)
        )

    def _r2(self, candidate: CVCandidate) -> list[FoldScores]:
        """Scores for each target; classes share the mean over their indicators."""
        if self._is_classes:
            return [candidate.r2] * len(function_names(self.table.encoding))
        return list(candidate.targets)

    @property
    def _is_classes(self) -> bool:
        return isinstance(self.table.encoding.targets[0], Classes)


def _r2(fitted: Fitted) -> float:
    """Mean held-out R2."""
    return fitted[1].mean_r2.mean
