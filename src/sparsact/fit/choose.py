"""Which models, degrees and penalties are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.fit.options import FitOptions
from sparsact.fit.result import Choices
from sparsact.fit.scores import CandidateModel, CVCandidate, FoldScores
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressorCV
from sparsact.learners.low_degree import choose
from sparsact.learners.low_degree.choose import affordable

if TYPE_CHECKING:
    from sparsact.fit.lsh_candidate import HeldOutScores

MAX_LISTED = 5_000_000


def domain_of(table: Table, options: FitOptions) -> str:
    """The domain of the learners: ``"cube"`` where every column is bits."""
    return "real" if options.domain == "real" or table.encoding.real else "cube"


def degrees_to_try(options: FitOptions, n: int, n_rows: int, domain: str = "cube") -> tuple[int, ...]:
    """Degrees from 1 to the one asked for, or to the highest that is affordable.

    Where the degree asked for is costly, only the linear model is compared with it.
    """
    if isinstance(options.degree, int):
        if options.degree > n:
            raise ValueError(f"degree {options.degree} is above the number of columns, {n}; choose at most {n}.")
        _refuse_too_many(n, options.degree)
        if not affordable(n, options.degree, n_rows, real=domain == "real"):
            return 1, options.degree
        return tuple(range(1, options.degree + 1))
    return choose.degrees_to_try(n, n_rows, real=domain == "real")


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
        return max((c for c in self.candidates if c.degree == degree), key=lambda c: c.r2.mean)


def search_for(table: Table, options: FitOptions) -> LowDegreeRegressorCV:
    """Cross-validation that sums up what every candidate needs, of which there may be fewer once rows are counted."""
    degrees: Any = options.degree
    if options.model == "lsh":
        degrees = (1,)
    elif degrees != "auto":
        degrees = degrees_to_try(options, len(table.feature_names), table.n_rows or 0, domain_of(table, options))
    return LowDegreeRegressorCV(
        degrees=degrees,
        alphas=(options.alpha,) if isinstance(options.alpha, float) else "auto",
        cv=options.folds,
        random_state=options.random_state,
        domain=domain_of(table, options),
    )


def select_polynomial(search: LowDegreeRegressorCV, options: FitOptions) -> Selected:
    """Cross-validate every candidate degree from 1 and penalty, by the sums of the folds."""
    if options.model != "lsh":
        n, n_rows = search.n_features_in_, search.n_samples_seen_
        search.degrees = degrees_to_try(options, n, n_rows, search.domain)
    results, r2_of_targets = search.cv_results_, search._choice.r2_of_targets
    scored = zip(*(results[name] for name in ("degree", "alpha", "fold_r2", "fold_mse")), r2_of_targets, strict=True)
    candidates = tuple(
        CVCandidate(int(d), float(a), _by_fold(r2), _by_fold(np.sqrt(mse)), tuple(map(_by_fold, of_targets.T)))
        for d, a, r2, mse, of_targets in scored
    )
    selected = Selected(search.degree_, search.alpha_, candidates)
    if isinstance(options.degree, int):
        return replace(selected, degree=options.degree, alpha=selected.of_degree(options.degree).alpha)
    return selected


def _by_fold(scores: NDArray[np.float64]) -> FoldScores:
    return FoldScores(tuple(scores.tolist()))


def models_to_try(table: Table, options: FitOptions) -> tuple[bool, str]:
    """Whether hash tables are tried, by the options and the columns, and why; no reason where the better model wins."""
    if options.model != "auto":
        return options.model == "lsh", f"model {options.model} was asked for"
    if given := options.given:
        return False, f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    if not table.encoding.real:
        return False, "every column is bits, of which low-degree polynomials are made; model lsh tries hash tables"
    return True, ""


def select_model(selected: Selected, held_out: HeldOutScores | None, reason: str) -> Choices:
    """The outcome: without a reason for one model the better held-out R2 wins, and of equals the polynomial."""
    best, linear = selected.of_degree(selected.degree), selected.of_degree(1)
    name, others = "degree 1 (linear)", []
    if best.degree > 1:
        name, others = f"degree {best.degree}", [CandidateModel(name, linear.r2, linear.rmse)]
    polynomial = CandidateModel(name, best.r2, best.rmse)
    if held_out is None:
        return Choices(reason, (replace(polynomial, chosen=True), *others), selected.candidates)
    rmse = held_out.rmse()
    tables = CandidateModel("hash tables (LSH)", held_out.mean_r2, rmse[0] if len(rmse) == 1 else None)
    wins = bool(reason) or tables.r2.mean > polynomial.r2.mean
    winner, loser = (tables, polynomial) if wins else (polynomial, tables)
    reason = reason or (
        f"held-out R² {winner.r2.mean:.3f} against {loser.r2.mean:.3f} of {loser.name}, "
        f"on the same {len(best.r2.folds)} folds"
    )
    return Choices(reason, (replace(winner, chosen=True), loser, *others), selected.candidates, lsh=wins)
