"""Which degrees and penalties of polynomials are tried on a table, and which are taken, by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import CVCandidate, FoldScores, best_penalty, mean_scores
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressorCV
from sparsact.learners.low_degree import choose
from sparsact.learners.low_degree.choose import affordable

MAX_LISTED: Final = 5_000_000


def domain_of(table: Table, options: FitOptions) -> str:
    """The domain of the learners: ``"cube"`` where every column is bits."""
    return "real" if options.domain == "real" or table.encoding.real else "cube"


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


@dataclass(frozen=True)
class Selected:
    """The best degree and penalty, and every candidate with its scores."""

    degree: int
    alpha: float
    candidates: tuple[CVCandidate, ...]

    def of_degree(self, degree: int) -> CVCandidate:
        """The best penalty of a degree."""
        return best_penalty(self.candidates, degree)


def search_for(table: Table, options: FitOptions) -> LowDegreeRegressorCV:
    """Cross-validation with the sums that all candidates need; there may be fewer once rows are counted."""
    degrees: Any = options.degree
    if options.has_no_polynomial:
        degrees = (1,)
    elif degrees != "auto":
        n, domain = len(table.feature_names), domain_of(table, options)
        degrees = degrees_to_try(options, n, table.n_rows or 0, domain, lasso=options.lasso)
    return LowDegreeRegressorCV(
        degrees=degrees,
        alphas=(options.alpha,) if isinstance(options.alpha, float) else "auto",
        cv=options.folds,
        solver="lasso" if options.lasso else "auto",
        random_state=options.random_state,
        domain=domain_of(table, options),
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
        return replace(selected, degree=options.degree, alpha=selected.of_degree(options.degree).alpha)
    return selected


def _by_fold(scores: NDArray[np.float64]) -> FoldScores:
    return FoldScores(tuple(scores.tolist()))
