"""Held-out scores of a fit, by model, degree, penalty and fold; confusions of classes; noise ceilings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.distinct_rows import distinct_rows

if TYPE_CHECKING:
    from sparsact.learners.low_degree.estimator import LowDegree

NOT_COMPUTED: Final = "n/a (every held-out fold has one row or equal targets: choose fewer folds)"
ROUNDING: Final = 1e-14  # of a variance: errors that differ by no more are equal
LOW_DEGREE_FACTS: Final = ("degree", "penalty", "alpha", "monomials", "solver", "solver_reason")


@dataclass(frozen=True)
class FoldScores:
    """A held-out score, one value per fold: NaN in a fold that has none, as R2 where the targets are all equal."""

    folds: tuple[float, ...]

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the folds that have one."""
        return tuple(value for value in self.folds if not isnan(value))

    @property
    def mean(self) -> float:
        """Mean over the folds that have a value; NaN if none has."""
        return fmean(self.known) if self.known else nan

    @property
    def deviation(self) -> float:
        """Standard deviation over the folds that have a value (0 where there is one, NaN where there is none)."""
        return stdev(self.known) if len(self.known) > 1 else 0.0 * self.mean

    @property
    def short(self) -> str:
        """The mean, for people."""
        return f"{self.mean:.3f}" if self.known else "n/a"

    def __str__(self) -> str:
        return f"{self.short} ± {self.deviation:.3f}" if self.known else NOT_COMPUTED

    def to_dict(self) -> dict[str, float | None]:
        """Mean and deviation, as JSON holds them; None where there are none."""
        return (
            {"r2": self.mean, "r2_deviation": self.deviation} if self.known else dict.fromkeys(("r2", "r2_deviation"))
        )


def mean_scores(scores: Sequence[FoldScores]) -> FoldScores:
    """Fold by fold the mean of the scores that have a value there."""
    return FoldScores(tuple(FoldScores(of_fold).mean for of_fold in zip(*(one.folds for one in scores), strict=True)))


@dataclass(frozen=True)
class Score:
    """A score and its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class CVCandidate:
    """One degree and ridge penalty that cross-validation tried, and its held-out R2 (mean over the targets).

    ``rmse`` is the root of the held-out mean squared error, averaged over the targets; ``targets`` are R2 of each.
    """

    degree: int
    alpha: float
    r2: FoldScores
    rmse: FoldScores | None = None
    targets: tuple[FoldScores, ...] = ()

    def to_dict(self) -> dict[str, float | None]:
        """As JSON holds it."""
        return {"degree": self.degree, "alpha": self.alpha, **self.r2.to_dict()}


def best_penalty(candidates: Iterable[CVCandidate], degree: int) -> CVCandidate:
    """The candidate of a degree with the best mean R2; if several are equal up to rounding, the largest penalty."""
    found = sorted((c for c in candidates if c.degree == degree), key=lambda c: -c.alpha)
    most = max((c.r2.mean for c in found if c.r2.known), default=nan)
    return next((c for c in found if c.r2.mean >= most - ROUNDING), found[0])


@dataclass(frozen=True)
class Selected:
    """The best degree and penalty of a polynomial, and every candidate with its scores.

    It ``interpolates`` if nothing is penalized and the products are as many as the rows: no noise is left by which
    effects could have intervals.
    """

    degree: int
    alpha: float
    candidates: tuple[CVCandidate, ...]
    interpolates: bool = False

    def of_degree(self, degree: int) -> CVCandidate:
        """The best penalty of a degree."""
        return best_penalty(self.candidates, degree)


@dataclass(frozen=True)
class LowDegreeInfo:
    """A polynomial: its degree and penalty, chosen by cross-validation unless they are among ``given``, its solver."""

    degree: int
    alpha: float
    n_monomials: int
    solver: str
    solver_reason: str
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: LowDegree, given: tuple[str, ...] = ()) -> Self:
        """The facts of a fitted model."""
        n_monomials = int(np.count_nonzero(np.atleast_2d(model.coefficients_).any(axis=0)))
        solver, reason = str(model.solver_), str(model.solver_reason_)
        return cls(int(model.degree_), float(model.alpha), n_monomials, solver, reason, given)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        facts = (self.degree, self.penalty, self.alpha, self.n_monomials, self.solver, self.solver_reason)
        return dict(zip(LOW_DEGREE_FACTS, facts, strict=True))

    @property
    def penalty(self) -> str:
        """Name of the penalty."""
        return "lasso" if self.solver == "lasso" else "ridge"

    @property
    def selection(self) -> str:
        """What choosing its terms means for their effects, in a sentence; empty where none were chosen."""
        if self.solver == "lasso":
            return "The lasso chose the terms and shrank them towards 0, so they have no intervals."
        return ""


@dataclass(frozen=True)
class CandidateModel:
    """A kind of model, measured on held-out rows: R2 (mean over the targets) and, of one target, the RMSE."""

    name: str
    r2: FoldScores
    rmse: FoldScores | None = None
    chosen: bool = False
    kind: str = "low-degree"

    def to_dict(self) -> dict[str, object]:
        """As JSON holds it."""
        return {"name": self.name, "chosen": self.chosen, **self.r2.to_dict(), "rmse": self.rmse and self.rmse.mean}


@dataclass(frozen=True)
class Gain:
    """Held-out R2 that a degree adds to what the lower ones explain, with a 95 % interval."""

    degree: int
    r2: float
    low: float
    high: float


def gains(candidates: Sequence[CVCandidate], degree: int) -> tuple[Gain, ...]:
    """What each degree up to ``degree`` adds to the held-out R2, each at its best penalty.

    Their sum is the R2 of the last. Folds share training rows: the variance of a mean of k folds is taken as
    :math:`(1 / k + 1 / (k - 1))` times that of one (Nadeau and Bengio, "Inference for the generalization error",
    Machine Learning 52, 2003). Of fewer than two folds with an R2 nothing is said.
    """
    from scipy.stats import t  # loads slowly

    found: list[Gain] = []
    before: Sequence[float] = ()
    for d in sorted({c.degree for c in candidates if c.degree <= degree}):
        folds = best_penalty(candidates, d).r2.known
        if (k := len(folds)) < 2:
            return ()
        added = FoldScores(tuple(a - b for a, b in zip(folds, before or [0.0] * k, strict=True)))
        reach = float(t.ppf(0.975, k - 1)) * added.deviation * sqrt(1 / k + 1 / (k - 1))
        found.append(Gain(d, added.mean, added.mean - reach, added.mean + reach))
        before = folds
    return tuple(found)


FEWEST_REPLICATES: Final = 10


@dataclass(frozen=True)
class NoiseCeiling:
    """The R2 of the true function of the columns, by rows that agree in all of them; intervals for normal noise."""

    r2: Score
    degrees_of_freedom: int

    def __str__(self) -> str:
        return f"R² {self.r2} at most, by {self.degrees_of_freedom:,} replicates"


def noise_ceiling(X: NDArray[Any], y: NDArray[np.float64], weights: NDArray[np.float64]) -> NoiseCeiling | None:
    r"""The share of the variance that is not noise, :math:`1 - s^2 / V`, or None with too few replicates.

    :math:`s^2` is the variance of rows about the mean of their point, pooled over points, with as many degrees of
    freedom as there are rows beyond one of each point; its interval is that of :math:`\chi^2`. V is the variance of
    all rows. Replicates whose targets are all equal, as copies of rows are, say nothing.
    """
    from scipy.stats import chi2  # loads slowly

    rows = np.packbits(X.astype(bool), axis=1) if X.dtype.kind in "bu" else X
    distinct, place, total = distinct_rows(rows, weights)
    freedom = len(y) - len(distinct)
    if freedom < FEWEST_REPLICATES:
        return None
    mean = np.bincount(place, weights * y) / total
    scatter = float((weights * (y - mean[place]) ** 2).sum())
    variance = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
    if not scatter:
        return None
    ends = [freedom, chi2.ppf(0.025, freedom), chi2.ppf(0.975, freedom)]
    return NoiseCeiling(Score(*(float(1 - scatter / end / variance) for end in ends)), freedom)


@dataclass(frozen=True)
class Confusion:
    """Held-out rows by actual class (rows of ``counts``) and predicted class (columns)."""

    classes: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def accuracy(self) -> float:
        """Share of rows on the diagonal."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def majority(self) -> float:
        """Accuracy of always naming the most frequent class."""
        return float(self.counts.sum(axis=1).max() / self.counts.sum())

    @property
    def learned(self) -> bool:
        """Whether the accuracy is above the majority's by two standard errors of a share."""
        error = sqrt(self.majority * (1 - self.majority) / float(self.counts.sum()))
        return self.accuracy - self.majority > 2 * error


TERMS_OF_LETTERS: Final = (
    "Effects are relative to {reference}: what one change adds to the {function}, or how much one change alters the "
    "effect of another. Brackets: 95 % posterior intervals. The constant is the value at the reference."
)
