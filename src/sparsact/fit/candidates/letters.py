"""Sites with letters as a model of a table: fitted once, scored by its own out-of-fold predictions, and decomposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Encoding, Real
from sparsact.fit.candidate import CandidateKind, Details, Facts, Findings, Fit, FitRun, Targets
from sparsact.fit.effects import Background
from sparsact.fit.explain import explained, function_of
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.reference import Codes
from sparsact.fit.table_model import letters_and_numbers
from sparsact.fit.target_result import TargetResult
from sparsact.fourier.hoeffding import Anova, anova
from sparsact.learners import LettersRegressor
from sparsact.learners.letters.alphabet import MOST_LETTERS
from sparsact.learners.low_degree.estimator import LowDegree

LARGEST_GRID: Final = 1 << 18  # combinations at which a function is evaluated: four sites of 20 letters
AT_ONCE: Final = 1 << 15
ROWS_OF_LOOK: Final = 4_000  # a minute and a half of processor time with 55 sites, where the sample takes many
MOST_PARTS: Final = 20_000  # products of a polynomial, and pairs of sites
MOST_ROWS: Final = 5_000  # of tables with numbers: as many as a process is fitted to, beyond which trees win by far


def with_components(targets: Sequence[TargetResult], background: Background, rows: Codes) -> tuple[TargetResult, ...]:
    """The targets with variances by number of sites and by site of the fitted functions, or of latents.

    Letters are the background's, as frequent as in rows (m, sites). Nothing is added where their combinations are too
    many to evaluate and the model is no polynomial of few products.
    """
    counts = [np.bincount(own)[list(known)] for known, own in zip(background.letters, rows.T, strict=True)]
    names = [name for name, _ in background.model.encoding.sites]
    found: list[Anova | None] = [*components(background, counts, len(targets))] or [None] * len(targets)
    return tuple(
        target
        if of_target is None
        else replace(
            target,
            anova=of_target,
            weights=tuple(of_target.variance_by_degree().tolist()),
            influences=tuple(zip(names, of_target.variance_by_site().tolist(), strict=True)),
            posterior_shares=(),
        )
        for target, of_target in zip(targets, found, strict=True)
    )


def components(background: Background, counts: Sequence[NDArray[Any]], n_functions: int) -> list[Anova]:
    """Components of each function, with letters of these counts or shares; none where they are too many."""
    table, sizes = background.model, [len(letters) for letters in background.letters]
    if np.prod(sizes, dtype=float) <= LARGEST_GRID:
        grid, found = np.indices(sizes).reshape(len(sizes), -1), []
        for block in np.array_split(grid, max(1, grid.shape[1] // AT_ONCE), axis=1):
            places = [np.array(known)[own] for known, own in zip(background.letters, block, strict=True)]
            found.append(table.functions(table.encoding.bits(np.stack(places, axis=1))))
        return [anova(of_function.reshape(sizes), counts) for of_function in np.concatenate(found).T]
    model = table.model
    if not isinstance(model, LowDegree) or model.domain_ != "cube":
        return []
    if max(len(model._fitted.polynomial.family), len(sizes) ** 2) > MOST_PARTS:
        return []
    bits = [own[list(known)] for own, known in zip(table.encoding.patterns, background.letters, strict=True)]
    return [anova(function_of(model, i), counts, letters=bits) for i in range(n_functions)]


def frequencies(model: LowDegree, background: Background) -> list[NDArray[Any]]:
    """Shares of the letters of each site among the rows that a polynomial was fitted to."""
    found, first, encoding = [], 0, background.model.encoding
    for (q, n_bits), known in zip((own.shape for own in encoding.patterns), background.letters, strict=True):
        own = model.frequencies_[first : first + n_bits]
        own = own if n_bits == q else np.append(max(0.0, 1 - own.sum()), own)
        found.append(own[list(known)])
        first += n_bits
    return found


def regressor_of(encoding: Encoding, random_state: int) -> LettersRegressor:
    """The model of :func:`.letters_and_numbers`, whose last sites are quantities."""
    n_sites = len(encoding.sites)
    numbers = [column for column in encoding.columns if isinstance(column, Real)]
    return LettersRegressor(quantities=tuple(range(n_sites, n_sites + len(numbers))), random_state=random_state)


def _of_many_numbers(run: FitRun) -> str:
    """The name of a column of more numbers than a site has letters; empty if there is none."""
    columns = zip(run.table.feature_names, run.sample.rows()[0].T, strict=False) if run.table.encoding.real else ()
    return next((name for name, values in columns if len(np.unique(values)) > MOST_LETTERS), "")


@dataclass(frozen=True)
class LettersCandidate(CandidateKind):
    """Sites with letters, and numbers of few values, such as options."""

    kind, name, rank = "letters", "a model of letters", 5
    rows_of_look: int = ROWS_OF_LOOK
    terms_of = "The terms come from the best polynomial: with columns of numbers this model has no effects."

    def refusal(self, facts: Facts) -> str:
        """Classes, columns of bits alone, and groups are refused."""
        if not facts.of_numbers or not (facts.table.encoding.real or facts.table.encoding.has_letters):
            fact = "no column has three values" if facts.of_numbers else "the target is classes"
            need = "numbers to predict and columns of letters, categories or numbers of few values"
            return f"{self.name} needs {need}, but {fact}; choose model auto."
        if facts.options.groups is not None:
            return f"{self.name} cannot hold out whole groups; leave groups out."
        return ""

    def competes(self, facts: Facts) -> bool:
        """It competes wherever there are letters, or numbers and not too many rows."""
        few_numbers = bool(facts.table.encoding.real) and facts.one_function and facts.n_rows <= MOST_ROWS
        return not self.refusal(facts) and (facts.of_letters or few_numbers)

    def fit(self, run: FitRun) -> Fit | str:
        """A model of all rows or of a sample of many; where another has learned from more, a look at a few is first.

        They are fitted to the whole sample only where a few rows make them as good as that model. With a column of more
        than 64 numbers there is no model.
        """
        if name := _of_many_numbers(run):
            fact = f"column {name!r} has more than {MOST_LETTERS} different numbers"
            if run.options.model == self.kind:
                raise ValueError(f"{self.name} takes numbers of few values, but {fact}; choose model auto.")
            return ""
        whole, seen = run.sample.rows(), max((len(fit.held_out.folds) for fit in run.fits.values()), default=0)
        if run.options.model != self.kind and seen > len(whole[1]):
            look = self._fitted(run, "looking at letters", run.sample.at_most(self.rows_of_look)).mean_r2
            best = max(fit.mean_r2 for fit in run.fits.values())
            if look < best:
                return f"{self.name} of {self.rows_of_look:,} rows had R² {look:.3f}, another of more rows {best:.3f}"
        return self._fitted(run, "fitting letters", whole)

    def _fitted(self, run: FitRun, stage: str, rows: tuple[NDArray[Any], ...]) -> Fit:
        """A model of some rows, with its own predictions of rows whose target it has not seen.

        These are from folds that the model draws at random, and are scored in the folds of the table.
        """
        X, y, folds = rows
        encoding = run.table.encoding
        with run.stages.stage(stage, len(X)) as on_rows:
            model = regressor_of(encoding, run.options.random_state).fit(letters_and_numbers(encoding, X), y)
            on_rows(len(X))
        return Fit(model, HeldOutScores(y[:, None], model.out_of_fold_[:, None], folds))

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """With numbers the terms of the best polynomial; components and effects of letters are found for any model."""
        encoding = run.table.encoding
        if encoding.real:
            polynomial = run.sums.models(run.selected, run.options.domain_of(encoding)).whole
            targets = explained(targets, polynomial, encoding, run.sample.rows()[0])
        return targets, Details()


CANDIDATE: Final = LettersCandidate()
