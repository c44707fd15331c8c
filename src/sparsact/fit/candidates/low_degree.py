"""Polynomials of all products of few columns: degrees and penalties by cross-validation, from the sums of folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.fit.candidate import MOST_ROWS, CandidateKind, Details, Findings, Fit, FitRun, Targets
from sparsact.fit.explain import explained, function_names
from sparsact.fit.fold_sums import MAX_HELD_OUT, FoldSums, as_numbers
from sparsact.fit.held_out import HeldOutScores, out_of_fold_values
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import CVCandidate, FoldScores, Selected, mean_scores
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressorCV
from sparsact.learners.low_degree import choose
from sparsact.learners.low_degree.choose import affordable

MAX_LISTED: Final = 5_000_000


def degrees_to_try(
    options: FitOptions, n: int, n_rows: int, domain: str = "cube", *, lasso: bool = False
) -> tuple[int, ...]:
    """Degrees from 1 to the one asked for, or to the highest that is affordable.

    Where the degree asked for is costly, only the linear model is compared with it.
    """
    limits = {"real": domain == "real", "lasso": lasso}
    if isinstance(options.degree, int):
        if options.degree > n:
            raise ValueError(f"degree {options.degree} is above the number of columns, {n}; choose at most {n}.")
        _refuse_too_many(n, options.degree)
        if not affordable(n, options.degree, n_rows, **limits):
            return 1, options.degree
        return tuple(range(1, options.degree + 1))
    return choose.degrees_to_try(n, n_rows, **limits)


def _refuse_too_many(n: int, degree: int) -> None:
    """Raise if the monomials are too many to list, whatever the solver."""
    count = n_subsets(n, degree, 1)
    if count > MAX_LISTED:
        largest = max((d for d in range(1, degree) if n_subsets(n, d, 1) <= MAX_LISTED), default=0)
        remedy = f"choose degree {largest} or less" if largest else "leave columns out"
        fact = f"degree {degree} of {n} columns has {count:,} monomials, too many to list"
        raise ValueError(f"{fact} (most: {MAX_LISTED:,}); {remedy}.")


def search_for(table: Table, options: FitOptions) -> LowDegreeRegressorCV:
    """Cross-validation with the sums that all candidates need; there may be fewer once rows are counted."""
    degrees: Any = options.degree
    if options.has_no_polynomial:
        degrees = (1,)
    elif degrees != "auto":
        n, domain = len(table.feature_names), options.domain_of(table.encoding)
        degrees = degrees_to_try(options, n, table.n_rows or 0, domain, lasso=options.lasso)
    return LowDegreeRegressorCV(
        degrees=degrees,
        alphas=(options.alpha,) if isinstance(options.alpha, float) else "auto",
        cv=options.folds,
        solver="lasso" if options.lasso else "auto",
        random_state=options.random_state,
        domain=options.domain_of(table.encoding),
    )


def select_polynomial(search: LowDegreeRegressorCV, options: FitOptions) -> Selected:
    """Cross-validate every candidate degree from 1 and penalty, by the sums of the folds."""
    if not options.has_no_polynomial:
        n, n_rows = search.n_features_in_, search.n_samples_seen_
        search.degrees = degrees_to_try(options, n, n_rows, search.domain, lasso=search.solver == "lasso")
    results, r2_of_targets = search.cv_results_, search._choice.r2_of_targets
    candidates = []
    for d, a, mse, r2 in zip(*(results[name] for name in ("degree", "alpha", "fold_mse")), r2_of_targets, strict=True):
        targets = tuple(map(_by_fold, r2.T))
        candidates.append(CVCandidate(int(d), float(a), mean_scores(targets), _by_fold(np.sqrt(mse)), targets))
    selected = Selected(search.degree_, search.alpha_, tuple(candidates))
    if isinstance(options.degree, int):
        selected = replace(selected, degree=options.degree, alpha=selected.of_degree(options.degree).alpha)
    n_products = n_subsets(search.n_features_in_, selected.degree, 1)
    return replace(selected, interpolates=not selected.alpha and n_products >= search.n_samples_seen_)


def _by_fold(scores: NDArray[np.float64]) -> FoldScores:
    return FoldScores(tuple(scores.tolist()))


@dataclass(frozen=True)
class ScoresOfSums(HeldOutScores):
    """Scores of a degree and penalty by the sums of all rows; no row is predicted for them."""

    candidate: CVCandidate

    def r2(self) -> tuple[FoldScores, ...]:
        """R2 of each function."""
        return self.candidate.targets

    def rmse(self) -> tuple[FoldScores, ...]:
        """Root of the mean squared error over all functions, once for each; empty where it is unknown."""
        rmse = self.candidate.rmse
        return () if rmse is None else (rmse,) * len(self.candidate.targets)


def polynomial(run: FitRun, sums: FoldSums, selected: Selected, most: int = MOST_ROWS) -> Fit:
    """The polynomial of a degree and penalty, and how such polynomials predict held-out rows, at most ``most``."""
    models = sums.models(selected, run.options.domain_of(run.table.encoding))
    X, y, folds = sums.sample.at_most(most)
    actual = as_numbers(run.table.encoding.targets[0], y).reshape(len(y), len(function_names(run.table.encoding)))
    weights = sums.sample.weights[sums.sample.smallest(most)] if run.options.weighted else None
    predicted = out_of_fold_values(models.without, X, folds)
    return Fit(models.whole, HeldOutScores(actual, predicted, folds, weights=weights))


class LowDegreeCandidate(CandidateKind):
    """Polynomials of all products of few columns."""

    kind, name, rank, is_polynomial = "low-degree", "a low-degree polynomial", 0, True
    takes_weights, takes_targets = True, True

    def fit(self, run: FitRun) -> Fit:
        """The degree and penalty that cross-validation has selected; the polynomial is solved once it is chosen."""
        nothing = np.empty((0, len(function_names(run.table.encoding))))
        selected = run.selected.of_degree(run.selected.degree)
        return Fit(None, ScoresOfSums(nothing, nothing, np.empty(0, dtype=np.intp), candidate=selected))

    def finished(self, fit: Fit, run: FitRun) -> Fit:
        """The polynomial, and predictions of held-out rows if something needs them."""
        options, several = run.options, len(run.table.encoding.targets) > 1
        wanted = options.held_out_rows or options.explain or several or not run.of_numbers
        return polynomial(run, run.sums, run.selected, MAX_HELD_OUT if wanted else 0)

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """The terms."""
        return explained(targets, fit.model, run.table.encoding, run.sample.at_most(MAX_HELD_OUT)[0]), Details()


CANDIDATE: Final = LowDegreeCandidate()
