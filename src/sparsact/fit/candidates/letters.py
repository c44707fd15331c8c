"""Sites with letters as a model of a table: fitted once, scored by its own out-of-fold predictions, and decomposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sparsact.fit.candidate import CandidateKind, Facts, Fit, FitRun, has_letters
from sparsact.fit.effects import Background
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.reference import Codes
from sparsact.fit.target_result import TargetResult
from sparsact.fourier.hoeffding import anova
from sparsact.learners import LettersRegressor

LARGEST_GRID: Final = 1 << 18  # combinations at which a function is evaluated: four sites of 20 letters
AT_ONCE: Final = 1 << 15


def with_components(targets: Sequence[TargetResult], background: Background, rows: Codes) -> tuple[TargetResult, ...]:
    """The targets with variances by number of sites and by site of the fitted functions, or of latents.

    Letters are the background's, as frequent as in rows (m, sites). All their combinations are evaluated, and
    nothing is added where these are too many.
    """
    model, sizes = background.model, [len(letters) for letters in background.letters]
    if np.prod(sizes, dtype=float) > LARGEST_GRID:
        return tuple(targets)
    counts = [np.bincount(own)[list(known)] for known, own in zip(background.letters, rows.T, strict=True)]
    grid, found = np.indices(sizes).reshape(len(sizes), -1), []
    for block in np.array_split(grid, max(1, grid.shape[1] // AT_ONCE), axis=1):
        places = [np.array(known)[own] for known, own in zip(background.letters, block, strict=True)]
        found.append(model.functions(model.encoding.bits(np.stack(places, axis=1))))
    components = [anova(of_function.reshape(sizes), counts) for of_function in np.concatenate(found).T]
    names = [name for name, _ in model.encoding.sites]
    return tuple(
        replace(
            target,
            anova=of_target,
            weights=tuple(of_target.variance_by_degree().tolist()),
            influences=tuple(zip(names, of_target.variance_by_site().tolist(), strict=True)),
            posterior_shares=(),
        )
        for target, of_target in zip(targets, components, strict=True)
    )


class LettersCandidate(CandidateKind):
    """Sites with letters."""

    kind, name, rank = "letters", "a model of letters", 5

    def refusal(self, facts: Facts) -> str:
        """Other columns are refused, and groups."""
        if not (facts.of_numbers and has_letters(facts.table.encoding)):
            fact = "there are columns of numbers, or no column has three values"
            fact = fact if facts.of_numbers else "the target is classes"
            need = "numbers to predict and columns of letters or categories, one of them with three or more"
            return f"{self.name} needs {need}, and {fact}; choose model auto."
        if facts.options.groups is not None:
            return f"{self.name} cannot hold out whole groups; leave the groups out."
        return ""

    def competes(self, facts: Facts) -> bool:
        """It competes wherever there are letters."""
        return facts.of_letters

    def fit(self, run: FitRun) -> Fit:
        """A model of all rows, or of a sample of many, with its own predictions of rows whose target it has not seen.

        These are from folds that the model draws at random, and are scored in the folds of the table.
        """
        X, y, folds = run.sample.rows()
        with run.stages.stage("fitting letters", len(X)) as on_rows:
            model = LettersRegressor(random_state=run.options.random_state).fit(run.table.encoding.letters(X), y)
            on_rows(len(X))
        return Fit(model, HeldOutScores(y[:, None], model.out_of_fold_[:, None], folds))


CANDIDATE: Final = LettersCandidate()
