"""Measurement models of a table: targets behind a floor, a ceiling or a curve, their latent, and what is noticed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Real
from sparsact.fit.candidate import CandidateKind, Details, Facts, Findings, Fit, FitRun, Targets, refused_without_bits
from sparsact.fit.candidates.gp import gp_terms
from sparsact.fit.explain import with_terms
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.term import TERMS_KEPT, Term
from sparsact.learners import LatentRegressor
from sparsact.learners.latent.monomials import SPARSE
from sparsact.learners.latent.selection import MOST_COLUMNS as MOST_BITS
from sparsact.learners.latent.targets import pinned, sides
from sparsact.reports.chapter import Chapter
from sparsact.statistics.row_sample import RowSample

SAME: Final = 1.02  # errors this close are the same, and the polynomial is taken
PROCESS_ROWS, MOST_COLUMNS = 5_000, 16  # up to which a latent Gaussian process is tried too
MANY_SITES: Final = 20  # beyond, no ensemble with interactions of all sizes competes for bits
PRODUCTS: Final = 4e9  # of two columns in a row, up to which a sigmoid is tried by itself: half a minute
DENSE: Final = 10  # products of dense columns in the time of one of sparse columns
ROWS_SHOWN: Final = 2_000


@dataclass(frozen=True)
class LatentDetails(Details):
    """A measurement model, and some rows that it was fitted to: bits ``X`` and targets ``y``."""

    function = "latent"

    model: LatentRegressor
    X: NDArray[np.bool_]
    y: NDArray[np.float64]

    @property
    def summary(self) -> str:
        """The model in a sentence."""
        model = self.model
        latent = f"polynomial of degree {model.degree_}" if model.latent == "low-degree" else "Gaussian process"
        sides = [
            f"a {name} at {bound:g}"
            for name, bound in zip(("floor", "ceiling"), model.censoring_, strict=True)
            if bound is not None
        ]
        behind = f", behind {' and '.join(sides)} ({model.n_censored_:,} rows)" if sides else ""
        return f"latent {latent}, measured through the link {model.link_}{behind}, noise {model.noise_deviation_:.3g}"

    @property
    def by_posterior(self) -> bool:
        """Whether the latent is a Gaussian process."""
        return self.model.latent == "gp"

    def lines(self) -> list[str]:
        """The summary."""
        return [self.summary]

    def to_dict(self) -> dict[str, Any]:
        """The entry ``latent``, without rows."""
        model = self.model
        facts = {"kind": model.latent, "link": model.link_, "degree": model.degree_, "bounds": model.censoring_}
        return {"latent": facts | {"n_censored": model.n_censored_, "noise": model.noise_deviation_}}

    def chapter(self, n_rows: int) -> Chapter:
        """The latent against what was measured."""
        from sparsact.reports.latent_figures import latent_chart

        at_bound = sides(self.y, self.model.censoring_) != 0
        figure = latent_chart.display((self.model, self.X, self.y, at_bound))
        title = "Latent value and measurement"
        return Chapter("latent", title, f"The model is a {self.summary}.", (figure,), wide=("latent",))


def link_to_try(run: FitRun) -> str:
    """The link of measurement models that compete; empty where none do.

    That which was requested, the logarithm where it fits better, none but bounds where rows are pinned there, and a
    sigmoid on many sites, whose many small effects saturate together.
    """
    table, options = run.table, run.options
    if options.model != "auto":
        return options.link if options.model == "latent" else ""
    if options.asks_for_measurement and not is_possible(table):
        raise ValueError(
            "link and censor need one target of numbers and columns of bits, but this table has others; leave them "
            "out, or name one target and columns of two values. Several targets that share traits can be fitted in "
            "Python (sparsact.LatentRegressor)."
        )
    if options.asks_for_measurement or options.given or options.weighted or not is_possible(table):
        return options.link if options.asks_for_measurement else ""
    if any(run.gains_of_logarithms):
        return "log"
    X, y, folds = run.sample.rows()
    bounds = pinned(y, np.ones(len(y))) if options.censor == "auto" else (None, None)
    between = sides(y, bounds) == 0
    if not between.all() and all(between[folds != fold].any() for fold in range(options.folds)):
        return options.link
    is_quick = X.shape[1] <= MOST_BITS and len(X) * products_of_row(X) <= PRODUCTS
    return "sigmoid" if len(table.encoding.sites) > MANY_SITES and is_quick else ""


def products_of_row(X: NDArray[Any]) -> float:
    """Products of two columns in a row, as many dense ones as take the time, by columns of bits (m, n) of some rows.

    Where rows differ in few columns from the most frequent row, only products of these are made.
    """
    ones = X.mean(axis=0)
    others, n = max(float(np.minimum(ones, 1 - ones).sum()), 1.0), X.shape[1]
    return DENSE * others**2 if others < SPARSE * n else float(n**2)


def is_possible(table: Table) -> bool:
    """Whether there is one target of numbers, and every column is bits."""
    targets = table.encoding.targets
    return len(targets) == 1 and isinstance(targets[0], Real) and not table.encoding.real


def pinned_notes(table: Table, options: FitOptions, sample: RowSample) -> tuple[str, ...]:
    """A note for each bound at which many rows of a target are pinned, or beyond which some are."""
    if isinstance(options.censor, tuple) and is_possible(table):
        y = sample.rows()[1].ravel()
        share = np.mean(y != _within(y, options.censor))
        beyond = f"{share:.1%} of the rows have {table.encoding.target_names[0]!r} beyond the bounds of censor"
        note = f"{beyond}, and count as at them: the true value lies there or beyond."
        return (note,) if share else ()
    if options.censor != "auto" or not all(isinstance(target, Real) for target in table.encoding.targets):
        return ()
    answers = sample.rows()[1].reshape(len(sample.rows()[1]), -1)
    notes = []
    for target, y in zip(table.encoding.targets, answers.T, strict=True):
        for word, bound in zip(("lowest", "highest"), pinned(y, np.ones(len(y))), strict=True):
            if np.isfinite(bound):
                notes.append(
                    f"{np.mean(y == bound):.0%} of the rows have {target.name!r} at exactly {bound:g}, its {word} "
                    "value: perhaps the measurement cannot go beyond it."
                )
    return tuple(notes)


def fitted_latent(run: FitRun, regressor: type[LatentRegressor], link: str) -> Fit:
    """A measurement model of every row, or of a sample of many, and how such models predict the folds left out.

    The latent is a polynomial or, of few rows and columns, the better of it and a Gaussian process.
    """
    options, most = run.options, CandidateKind.most_rows
    if (products := products_of_row(run.sample.at_most(most)[0])) < len(run.table.feature_names) ** 2:
        most = max(most, int(PRODUCTS / products))
    X, y, folds = run.sums.bits_of_many(most)
    bounded = _within(y, options.censor) if isinstance(options.censor, tuple) else y
    few = (link != "log" or options.link == link) and len(X) <= PROCESS_ROWS and X.shape[1] <= MOST_COLUMNS
    kinds = ("low-degree", "gp") if few else ("low-degree",)
    settings: dict[str, Any] = {
        "link": link,
        "censoring": options.bounds,
        "domain": "cube",
        "random_state": options.random_state,
    }
    found: list[Fit] = []
    with run.stages.stage("fitting measurement models", len(kinds) * (options.folds + 1) * len(X)) as on_rows:
        for kind in kinds:
            whole = regressor(kind, **settings).fit(X, bounded)
            on_rows(len(X))

            def without(fold: int, kind: str = kind, whole: LatentRegressor = whole) -> LatentRegressor:
                rows = folds != fold
                # What all rows chose holds for every fold; a choice of its own doubled the time.
                chosen = {"link": whole.link_, "degree": whole.degree_}
                bounds = {"censoring": _reached(whole.censoring_, bounded[rows])}
                model = regressor(kind, **settings | chosen | bounds).fit(X[rows], bounded[rows])
                on_rows(len(X))
                return model

            found.append(Fit(whole, HeldOutScores.of(without, run.table.encoding.targets[0], X, y, folds)))
    polynomial, *processes = found
    better = [process for process in processes if SAME * (1 - process.mean_r2) < 1 - polynomial.mean_r2]
    return better[0] if better else polynomial


def _within(y: NDArray[np.float64], bounds: tuple[float | None, float | None]) -> NDArray[np.float64]:
    lower, upper = bounds
    return np.clip(y, -np.inf if lower is None else lower, np.inf if upper is None else upper)


def _reached(bounds: tuple[float | None, float | None], y: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The bounds that some of these rows are at."""
    side = sides(y, bounds)
    return (bounds[0] if (side < 0).any() else None, bounds[1] if (side > 0).any() else None)


def latent_terms(model: LatentRegressor, encoding: Encoding) -> tuple[Term, ...]:
    """The largest effects of the latent, tested together."""
    from scipy.stats import false_discovery_control  # loads slowly

    terms = gp_terms(model, encoding, len(model.subsets_) if model.latent == "low-degree" else TERMS_KEPT)
    if model.latent == "low-degree" and terms:
        tested = [1.0 if term.q_value is None else term.q_value for term in terms]
        adjusted = false_discovery_control(tested).tolist()
        terms = tuple(replace(term, q_value=q_value) for term, q_value in zip(terms, adjusted, strict=True))
    return terms[:TERMS_KEPT]


@dataclass(frozen=True)
class MeasurementCandidate(CandidateKind):
    """Measurement models."""

    kind, name, rank = "latent", "a measurement model", 2
    terms_of = (
        "The effects act on the latent value, before the floor, ceiling or curve of the measurement, with 95 % "
        "intervals."
    )
    regressor: type[LatentRegressor] = LatentRegressor

    def refusal(self, facts: Facts) -> str:
        """Columns that are not bits are refused, and classes."""
        if refusal := refused_without_bits(facts, self.name):
            return refusal
        needs_numbers = f"{self.name} needs a target of numbers, but these are classes; choose model sparse."
        return "" if facts.of_numbers else needs_numbers

    def competes(self, facts: Facts) -> bool:
        """It competes where a measurement is described, or could be noticed."""
        return facts.options.asks_for_measurement or is_possible(facts.table)

    def fit(self, run: FitRun) -> Fit | str:
        """A model, where :func:`link_to_try` names a link."""
        link = link_to_try(run)
        return fitted_latent(run, self.regressor, link) if link else ""

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """The terms of the latent, and its curve."""
        X, y, _ = run.sample.rows()
        details = LatentDetails(fit.model, X[:ROWS_SHOWN].astype(bool), y[:ROWS_SHOWN])
        encoding = run.table.encoding
        return with_terms(targets, lambda _: latent_terms(fit.model, encoding), fit.model, encoding, X), details


CANDIDATE: Final = MeasurementCandidate()
