"""Which models, degrees and penalties are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.checkpoint import Resumption
from sparsact.cli.progress import OnRows
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes, Real
from sparsact.hypercube import n_subsets
from sparsact.reports import Contender, CVCandidate, Spread
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix

if TYPE_CHECKING:
    from sparsact.fit.folds import RowSample
    from sparsact.fit.lsh_candidate import HeldOut


PENALTIES = (0.0, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
HIGHEST_DEGREE = 4
MAX_LISTED = 5_000_000
# Monomials that cross-validation affords, over all folds and penalties, in about a minute on one core.
MAX_MONOMIALS = 2500
MAX_MONOMIALS_OF_PAIRS = 6000
MAX_MONOMIALS_OF_FEW_ROWS = 20_000
MAX_MONOMIALS_OF_NUMBERS = 1000  # products of numbers are summed row by row
FEW_ROWS = 2000  # with so few the work depends on the rows, not on the monomials


@dataclass(frozen=True)
class FitOptions:
    """What the user asked for. None means: choose by cross-validation."""

    degree: int | None
    alpha: float | None
    folds: int
    seed: int
    domain: str
    model: str = "auto"

    @property
    def automatic(self) -> tuple[str, ...]:
        """What cross-validation chooses."""
        return tuple(name for name in ("degree", "alpha") if getattr(self, name) is None)


def wish(degree: str, alpha: str, folds: int, seed: int, domain: str, model: str = "auto") -> FitOptions:
    """The options as values, checked one by one and against each other."""
    if folds < 2:
        raise ValueError(f"--folds {folds}: held-out scores need at least 2.")
    if domain not in ("auto", "cube", "real"):
        raise ValueError(f"--domain {domain} is none of 'auto', 'cube', 'real'.")
    asked = FitOptions(
        None if degree == "auto" else _whole(degree),
        None if alpha == "auto" else _penalty(alpha),
        folds,
        seed,
        domain,
        model,
    )
    if model == "lsh":
        for name, value in (("degree", asked.degree), ("alpha", asked.alpha)):
            if value is not None:
                raise ValueError(
                    f"--{name} {value:g} is of low-degree models, and --model lsh asks for hash tables, which choose "
                    "their own; leave one of the two out."
                )
    return asked


def domain_of(table: Table, wish: FitOptions) -> str:
    """What the learners are told of the points: ``"cube"`` where every column is bits."""
    return "real" if wish.domain == "real" or table.encoding.real else "cube"


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--degree {text} is neither 'auto' nor a whole number from 1.")
    return int(text)


def _penalty(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"--alpha {text} is neither 'auto' nor a number that is not negative.")
    return value


def degrees_to_try(wish: FitOptions, n: int, n_rows: int, domain: str = "cube") -> tuple[int, ...]:
    """Degrees from 1 to the one asked for, or to the highest that is affordable.

    Where the degree asked for is costly, it is tried beside the linear model alone.

    Raises
    ------
    ValueError
        If the degree asked for is above the number of columns.
    """
    if wish.degree is not None:
        if wish.degree > n:
            raise ValueError(f"--degree {wish.degree} is above the number of columns, {n}; choose at most {n}.")
        _refuse_too_many(n, wish.degree)
        if n_subsets(n, wish.degree, 1) > _limit(wish.degree, n_rows, domain):
            return 1, wish.degree
        return tuple(range(1, wish.degree + 1))
    degrees = range(1, min(HIGHEST_DEGREE, n) + 1)
    affordable = [d for d in degrees if n_subsets(n, d, 1) <= _limit(d, n_rows, domain)]
    return tuple(affordable) or (1,)


def _refuse_too_many(n: int, degree: int) -> None:
    """Raise if the monomials are too many to list, whatever the solver."""
    count = n_subsets(n, degree, 1)
    if count > MAX_LISTED:
        largest = max((d for d in range(1, degree) if n_subsets(n, d, 1) <= MAX_LISTED), default=0)
        remedy = f"choose --degree {largest} or less" if largest else "leave columns out"
        fact = f"--degree {degree} of {n} columns has {count:,} monomials, too many to list"
        raise ValueError(f"{fact} (most: {MAX_LISTED:,}); {remedy}.")


def _limit(degree: int, n_rows: int, domain: str) -> int:
    if domain == "real":
        return MAX_MONOMIALS_OF_NUMBERS
    if n_rows <= FEW_ROWS:
        return MAX_MONOMIALS_OF_FEW_ROWS
    return MAX_MONOMIALS_OF_PAIRS if degree <= 2 else MAX_MONOMIALS


@dataclass(frozen=True)
class Chosen:
    """The best degree and penalty, and every candidate with its scores."""

    degree: int
    alpha: float
    candidates: tuple[CVCandidate, ...]

    def of_degree(self, degree: int) -> CVCandidate:
        """The best penalty of a degree."""
        return max((c for c in self.candidates if c.degree == degree), key=lambda c: c.r2.mean)


@dataclass(frozen=True)
class _ModelSearch:
    """What the pass of cross-validation sums up."""

    table: Table
    search: Any
    sample: RowSample | None

    @property
    def divisible(self) -> bool:
        """Whether parts of the table may be taken apart from each other: a sample of rows is drawn in one place."""
        return self.sample is None

    def begin(self, first_row: int) -> None:
        """Before the rows of a part."""
        self.search.rows_dealt_ = first_row

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """The next rows."""
        self.search.partial_fit(X, as_numbers(self.table.encoding.targets[0], y))
        if self.sample is not None:
            self.sample.take(X, y)

    def take_part(self, X: NDArray[Any], y: NDArray[np.float64], first_row: int) -> None:
        """The next rows of a part."""
        self.take(X, y)

    def end(self, first_row: int) -> None:
        """After the rows of a part, so that dealt rows add up."""
        self.search.rows_dealt_ -= first_row

    def merge(self, other: _ModelSearch) -> None:
        """Take in what was summed over another part."""
        if other.search._begun():
            self.search.merge(other.search)

    def state(self, arrays: Arrays) -> State:
        """The statistic of every fold, and the sample."""
        of_search: Arrays = {}
        state = {"search": self.search._state(of_search)}
        arrays |= add_prefix("search", of_search)
        if self.sample is not None:
            state["sample"] = self.sample.state(arrays)
        return state

    def restore(self, state: State, arrays: Arrays) -> None:
        """As another search had it."""
        self.search._restore(state["search"], strip_prefix("search", arrays))
        if self.sample is not None:
            self.sample.restore(state["sample"], arrays)


def choose(
    table: Table, wish: FitOptions, on_rows: OnRows, sample: RowSample | None = None, kept: Resumption | None = None
) -> Chosen:
    """Cross-validate every candidate in one pass, in which a sample may take its rows too."""
    from sparsact import LowDegreeRegressorCV

    kept = kept or Resumption()
    if (outcome := kept.outcome("choosing")) is not None:
        on_rows(table.n_rows or 0)
        if sample is not None:
            sample.restore(outcome[0]["sample"], outcome[1])
        return _chosen(outcome[1], int(outcome[0]["degree"]), float.fromhex(outcome[0]["alpha"]))
    domain = domain_of(table, wish)
    linear_only = wish.model == "lsh"
    degrees = (1,) if linear_only else degrees_to_try(wish, len(table.feature_names), table.n_rows or 0, domain)
    alphas = PENALTIES if wish.alpha is None else (wish.alpha,)
    search = LowDegreeRegressorCV(degrees=degrees, alphas=alphas, cv=wish.folds, random_state=wish.seed, domain=domain)
    sums = _ModelSearch(table, search, sample)
    for X, y in kept.rows("choosing", table.batches, sums, on_rows):
        sums.take(X, y)
    _ = search.solver_  # solves every candidate
    results = {name: search.cv_results_[name] for name in ("degree", "alpha", "fold_r2", "fold_mse")}
    chosen = _chosen(results, search.degree_, search.alpha_)
    if wish.degree is not None:
        chosen = replace(chosen, degree=wish.degree, alpha=chosen.of_degree(wish.degree).alpha)
    state: State = {"degree": chosen.degree, "alpha": float.hex(chosen.alpha)}
    arrays: Arrays = dict(results)
    if sample is not None:
        state["sample"] = sample.state(arrays)
    kept.keep("choosing", state, arrays)
    return chosen


def _chosen(results: Arrays, degree: int, alpha: float) -> Chosen:
    scored = zip(results["degree"], results["alpha"], results["fold_r2"], results["fold_mse"], strict=True)
    candidates = tuple(
        CVCandidate(int(d), float(a), Spread(tuple(map(float, r2))), Spread(tuple(np.sqrt(mse).tolist())))
        for d, a, r2, mse in scored
    )
    return Chosen(degree, alpha, candidates)


def as_numbers(target: Real | Classes, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets of a regression as LowDegreeClassifier makes them: of two classes a sign, of more one indicator each."""
    if isinstance(target, Real):
        return y
    if len(target.values) == 2:
        return 2.0 * y - 1.0
    return np.equal(y[:, None], np.arange(len(target.values))).astype(np.float64)


@dataclass(frozen=True)
class Contest:
    """Whether an LSH model is tried, then whether it is taken; ``why`` says so, ``contenders`` hold the scores."""

    lsh: bool
    why: str
    open: bool = False  # the better one is taken
    contenders: tuple[Contender, ...] = ()


def contest(table: Table, wish: FitOptions) -> Contest:
    """Which models are tried, by what was asked for and by the columns."""
    if wish.model != "auto":
        return Contest(wish.model == "lsh", f"--model {wish.model} asks for it")
    asked = [f"--{name}" for name in ("degree", "alpha") if name not in wish.automatic]
    if asked:
        return Contest(False, f"{' and '.join(asked)} ask{'s' * (len(asked) == 1)} for it")
    if not table.encoding.real:
        return Contest(
            False, "every column is bits, of which low-degree polynomials are made; --model lsh tries hash tables"
        )
    return Contest(True, "", open=True)


def decided(entered: Contest, chosen: Chosen, held_out: HeldOut | None) -> Contest:
    """The outcome: of an open contest the better held-out R2 wins, and of equals the polynomial."""
    best, linear = chosen.of_degree(chosen.degree), chosen.of_degree(1)
    polynomial = Contender(f"degree {best.degree}", best.r2, best.rmse)
    others = [] if best.degree == 1 else [Contender("degree 1 (linear)", linear.r2, linear.rmse)]
    if best.degree == 1:
        polynomial = replace(polynomial, name="degree 1 (linear)")
    if held_out is None:
        return replace(entered, contenders=(replace(polynomial, chosen=True), *others))
    rmse = held_out.rmse[0] if len(held_out.rmse) == 1 else None
    tables = Contender("hash tables (LSH)", held_out.mean_r2, rmse)
    wins = tables.r2.mean > polynomial.r2.mean if entered.open else True
    why = entered.why
    if entered.open:
        winner, loser = (tables, polynomial) if wins else (polynomial, tables)
        why = (
            f"held-out R² {winner.r2.mean:.3f} against {loser.r2.mean:.3f} of {loser.name}, "
            f"on the same {len(best.r2.folds)} folds"
        )
    first, second = replace(tables, chosen=wins), replace(polynomial, chosen=not wins)
    return Contest(wins, why, contenders=(first, second, *others) if wins else (second, first, *others))
