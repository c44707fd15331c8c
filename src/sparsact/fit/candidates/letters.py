"""Sites with letters as a model of a table: fitted once, scored by its own out-of-fold predictions, and decomposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding
from sparsact.fit.candidate import CandidateKind, Facts, Fit, FitRun, has_letters
from sparsact.fit.explain import function_names, function_of
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.table_model import TableModel
from sparsact.fit.target_result import TargetResult
from sparsact.fit.term import Term
from sparsact.fourier.hoeffding import Anova, anova
from sparsact.fourier.measure import DATA, UNIFORM
from sparsact.learners import LatentRegressor, LettersRegressor
from sparsact.learners.low_degree.estimator import LowDegree

TERMS, TERMS_READ = 200, 20
LARGEST_GRID: Final = 1 << 20  # combinations at which a function is evaluated
ROUNDING: Final = 1e-12  # of the largest effect
AT_ONCE: Final = 1 << 15
MOST_PARTS: Final = 20_000  # products of a polynomial, and pairs of sites

Sites = tuple[tuple[str, tuple[str, ...]], ...]  # names and letters


def sites_known(model: object, encoding: Encoding, points: NDArray[Any] | None = None) -> Sites:
    """Sites with the letters that points have, or else those that the model can predict."""
    seen: Any = [dict.fromkeys(letters) for _, letters in encoding.sites]
    if points is not None:
        seen = [set(letters.tolist()) for letters in encoding.letters(points).T]
    elif isinstance(model, LettersRegressor):
        seen = model.letters_
    pairs = zip(encoding.sites, seen, strict=True)
    return tuple((name, tuple(letter for letter in letters if letter in known)) for (name, letters), known in pairs)


def components(
    model: object, encoding: Encoding, points: NDArray[Any] | None = None, measure: str = UNIFORM
) -> tuple[Sites, list[Anova]]:
    """Sites, and components of each fitted function over all combinations of their letters, or of a latent.

    Letters are as frequent as in the points or, under the measure of the data, as in the rows of a polynomial's fit; or
    else equally frequent. There are no components where a column is a number, every site has two letters only, or the
    combinations are too many and the model is no polynomial of few products.
    """
    if not has_letters(encoding):
        return (), []
    sites, counts = sites_known(model, encoding, points), None
    sizes = [len(letters) for _, letters in sites]
    wide = np.prod(sizes, dtype=float) > LARGEST_GRID
    if wide and not (
        isinstance(model, LowDegree)
        and model.domain_ == "cube"
        and max(len(model._fitted.polynomial.family), len(sites) ** 2) <= MOST_PARTS
    ):
        return sites, []
    if measure == DATA and isinstance(model, LowDegree):
        counts = letter_frequencies(model.frequencies_, encoding)
    if points is not None:
        rows = encoding.letters(points).T
        counts = [(row[:, None] == np.array(known)).sum(axis=0) for (_, known), row in zip(sites, rows, strict=True)]
    bits = []
    for (_, known), (_, letters), n_bits in zip(sites, encoding.sites, encoding.bits_of_sites, strict=True):
        indicators = np.eye(len(letters), dtype=bool)[:, len(letters) - n_bits :]
        bits.append(indicators[[letters.index(letter) for letter in known]])
    if wide and isinstance(model, LowDegree):
        functions = [function_of(model, i) for i in range(len(function_names(encoding)))]
        return sites, [anova(one, counts, letters=bits) for one in functions]
    codes, found = np.indices(sizes).reshape(len(sizes), -1), []
    for block in np.array_split(codes, max(1, codes.shape[1] // AT_ONCE), axis=1):
        cells = np.concatenate([of_site[column] for of_site, column in zip(bits, block, strict=True)], axis=1)
        if isinstance(model, LatentRegressor):
            found.append(model.predict_latent(cells)[:, None])
        else:
            found.append(TableModel(model, encoding).values(cells))
    return sites, [anova(of_function.reshape(sizes), counts) for of_function in np.concatenate(found).T]


def letter_frequencies(of_bits: NDArray[np.float64], encoding: Encoding) -> list[NDArray[np.float64]]:
    """Frequencies of the letters of each site, from those of its bits."""
    found, first = [], 0
    for (_, letters), n_bits in zip(encoding.sites, encoding.bits_of_sites, strict=True):
        own = of_bits[first : first + n_bits]
        found.append(own if n_bits == len(letters) else np.append(max(0.0, 1 - own.sum()), own))
        first += n_bits
    return found


def explained_letters(
    targets: Sequence[TargetResult], model: object, encoding: Encoding, points: NDArray[Any]
) -> tuple[TargetResult, ...]:
    """The targets with variances by degree and site of the fitted functions, and effects of letters."""
    sites, found = components(model, encoding, points)
    if not found:
        return tuple(targets)
    names = [name for name, _ in sites]
    return tuple(
        replace(
            target if are_identified(model, target.terms) else with_letters(target, of_target, sites),
            anova=of_target,
            sites=sites,
            weights=tuple(of_target.variance_by_degree().tolist()),
            influences=tuple(zip(names, of_target.variance_by_site().tolist(), strict=True)),
            posterior_shares=(),
        )
        for target, of_target in zip(targets, found, strict=True)
    )


def with_letters(target: TargetResult, found: Anova, sites: Sites) -> TargetResult:
    """A target with the effects of letters as its terms."""
    return replace(target, terms=terms_of_letters(found, sites, TERMS), constant=mean_of_letters(found))


def mean_of_letters(found: Anova) -> Term:
    """The mean of the function: the effect of no letter."""
    return Term((), found.mean, n_bits=0)


def are_identified(model: object, terms: Sequence[Term]) -> bool:
    """Whether rows tell the effects of the polynomial's bits apart, so that they have intervals."""
    shown = terms[:TERMS_READ]
    return isinstance(model, LowDegree) and all(term.identified and term.low is not None for term in shown)


def terms_of_letters(found: Anova, sites: Sites, n_terms: int) -> tuple[Term, ...]:
    """The largest effects of letters and of pairs of them."""

    def label(site: int, letter: int) -> str:
        return f"{sites[site][0]}={sites[site][1][letter]}"

    effects = found.top_effects(n_terms)
    least = ROUNDING * max((abs(effect) for *_, effect in effects), default=0.0)
    return tuple(
        Term(tuple(label(*pair) for pair in zip(places, letters, strict=True)), effect, n_bits=0)
        for places, letters, effect in effects
        if abs(effect) > least
    )


class LettersCandidate(CandidateKind):
    """Sites with letters."""

    kind, name, rank, has_intervals = "letters", "a model of letters", 6, False

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
