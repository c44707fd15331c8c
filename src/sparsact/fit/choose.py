"""Which models, degrees and penalties are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes, Real
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnRows
from sparsact.fit.result import Choices
from sparsact.fit.scores import CandidateModel, CVCandidate, FoldScores
from sparsact.hypercube import n_subsets
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix

if TYPE_CHECKING:
    from sparsact.fit.folds import RowSample
    from sparsact.fit.lsh_candidate import HeldOutScores


PENALTIES = (0.0, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
HIGHEST_DEGREE = 4
MAX_LISTED = 5_000_000
# Monomials that cross-validation affords, over all folds and penalties, in about a minute on one core.
MAX_MONOMIALS = 2500
MAX_MONOMIALS_OF_PAIRS = 6000
MAX_MONOMIALS_OF_FEW_ROWS = 20_000
MAX_MONOMIALS_OF_NUMBERS = 1000  # products of numbers are summed row by row
FEW_ROWS = 2000  # with so few the work depends on the rows, not on the monomials


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
        if n_subsets(n, options.degree, 1) > _limit(options.degree, n_rows, domain):
            return 1, options.degree
        return tuple(range(1, options.degree + 1))
    degrees = range(1, min(HIGHEST_DEGREE, n) + 1)
    affordable = [d for d in degrees if n_subsets(n, d, 1) <= _limit(d, n_rows, domain)]
    return tuple(affordable) or (1,)


def _refuse_too_many(n: int, degree: int) -> None:
    """Raise if the monomials are too many to list, whatever the solver."""
    count = n_subsets(n, degree, 1)
    if count > MAX_LISTED:
        largest = max((d for d in range(1, degree) if n_subsets(n, d, 1) <= MAX_LISTED), default=0)
        remedy = f"choose degree {largest} or less" if largest else "leave columns out"
        fact = f"degree {degree} of {n} columns has {count:,} monomials, too many to list"
        raise ValueError(f"{fact} (most: {MAX_LISTED:,}); {remedy}.")


def _limit(degree: int, n_rows: int, domain: str) -> int:
    if domain == "real":
        return MAX_MONOMIALS_OF_NUMBERS
    if n_rows <= FEW_ROWS:
        return MAX_MONOMIALS_OF_FEW_ROWS
    return MAX_MONOMIALS_OF_PAIRS if degree <= 2 else MAX_MONOMIALS


@dataclass(frozen=True)
class Selected:
    """The best degree and penalty, and every candidate with its scores."""

    degree: int
    alpha: float
    candidates: tuple[CVCandidate, ...]

    def of_degree(self, degree: int) -> CVCandidate:
        """The best penalty of a degree."""
        return max((c for c in self.candidates if c.degree == degree), key=lambda c: c.r2.mean)


@dataclass(frozen=True)
class _ModelSearch:
    """What the pass of cross-validation sums up: a statistic for each fold, and a sample of the rows."""

    table: Table
    search: Any
    sample: RowSample | None

    @property
    def divisible(self) -> bool:
        """Whether parts of the table may be taken apart from each other: a sample of rows is drawn in one place."""
        return self.sample is None

    def begin(self, first_row: int) -> None:
        self.search.rows_dealt_ = first_row

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        self.search.partial_fit(X, as_numbers(self.table.encoding.targets[0], y))
        if self.sample is not None:
            self.sample.take(X, y)

    def end(self, first_row: int) -> None:
        self.search.rows_dealt_ -= first_row  # so that the numbers of rows add up

    def merge(self, other: _ModelSearch) -> None:
        if other.search._begun():
            self.search.merge(other.search)

    def state(self, arrays: Arrays) -> State:
        of_search: Arrays = {}
        state = {"search": self.search._state(of_search)}
        arrays |= add_prefix("search", of_search)
        if self.sample is not None:
            state["sample"] = self.sample.state(arrays)
        return state

    def restore(self, state: State, arrays: Arrays) -> None:
        self.search._restore(state["search"], strip_prefix("search", arrays))
        if self.sample is not None:
            self.sample.restore(state["sample"], arrays)


def choose(
    table: Table, options: FitOptions, on_rows: OnRows, sample: RowSample | None, checkpoint: Checkpoint
) -> Selected:
    """Cross-validate every candidate in one pass, which also draws the sample, if there is one."""
    from sparsact import LowDegreeRegressorCV

    if (result := checkpoint.result("choosing")) is not None:
        on_rows(table.n_rows or 0)
        if sample is not None:
            sample.restore(result[0]["sample"], result[1])
        return _selected(result[1], int(result[0]["degree"]), float.fromhex(result[0]["alpha"]))
    domain = domain_of(table, options)
    n, n_rows = len(table.feature_names), table.n_rows or 0
    degrees = (1,) if options.model == "lsh" else degrees_to_try(options, n, n_rows, domain)
    alphas = (options.alpha,) if isinstance(options.alpha, float) else PENALTIES
    search = LowDegreeRegressorCV(
        degrees=degrees, alphas=alphas, cv=options.folds, random_state=options.random_state, domain=domain
    )
    sums = _ModelSearch(table, search, sample)
    for X, y in checkpoint.rows("choosing", table.batches, sums, on_rows):
        sums.take(X, y)
    _ = search.solver_  # solves every candidate
    results = {name: search.cv_results_[name] for name in ("degree", "alpha", "fold_r2", "fold_mse")}
    selected = _selected(results, search.degree_, search.alpha_)
    if isinstance(options.degree, int):
        selected = replace(selected, degree=options.degree, alpha=selected.of_degree(options.degree).alpha)
    state: State = {"degree": selected.degree, "alpha": float.hex(selected.alpha)}
    arrays: Arrays = dict(results)
    if sample is not None:
        state["sample"] = sample.state(arrays)
    checkpoint.save("choosing", state, arrays)
    return selected


def _selected(results: Arrays, degree: int, alpha: float) -> Selected:
    scored = zip(results["degree"], results["alpha"], results["fold_r2"], results["fold_mse"], strict=True)
    candidates = tuple(
        CVCandidate(int(d), float(a), FoldScores(tuple(map(float, r2))), FoldScores(tuple(np.sqrt(mse).tolist())))
        for d, a, r2, mse in scored
    )
    return Selected(degree, alpha, candidates)


def as_numbers(target: Real | Classes, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets of a regression as LowDegreeClassifier makes them: of two classes a sign, of more one indicator each."""
    if isinstance(target, Real):
        return y
    if len(target.values) == 2:
        return 2.0 * y - 1.0
    return np.equal(y[:, None], np.arange(len(target.values))).astype(np.float64)


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
    rmse = held_out.by_fold("rmse")
    tables = CandidateModel("hash tables (LSH)", held_out.mean_r2, rmse[0] if len(rmse) == 1 else None)
    wins = bool(reason) or tables.r2.mean > polynomial.r2.mean
    winner, loser = (tables, polynomial) if wins else (polynomial, tables)
    reason = reason or (
        f"held-out R² {winner.r2.mean:.3f} against {loser.r2.mean:.3f} of {loser.name}, "
        f"on the same {len(best.r2.folds)} folds"
    )
    return Choices(reason, (replace(winner, chosen=True), loser, *others), selected.candidates, lsh=wins)
