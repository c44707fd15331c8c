"""What a report tells, as plain frozen data: it can be built by hand, stored, or made from any learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from sparsact.reports.network_summary import LSHSummary


@dataclass(frozen=True)
class Spread:
    """A held-out score, one value a fold."""

    folds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return fmean(self.folds)

    @property
    def deviation(self) -> float:
        """Standard deviation over the folds (0 where there is one)."""
        return stdev(self.folds) if len(self.folds) > 1 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.deviation:.3f}"


@dataclass(frozen=True)
class CVCandidate:
    """One degree and ridge penalty that cross-validation tried, and its held-out R2 (mean over the targets).

    ``rmse`` is the root of the held-out mean squared error, averaged over the targets.
    """

    degree: int
    alpha: float
    r2: Spread
    rmse: Spread | None = None


@dataclass(frozen=True)
class Contender:
    """A kind of model, measured on held-out rows: R2 (mean over the targets) and, of one target, the RMSE."""

    name: str
    r2: Spread
    rmse: Spread | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Term:
    """A coefficient of the fitted polynomial, with its 95 % interval where one is known.

    A coefficient that the rows do not identify has none: other products, among them the ``aliases``, which equal its
    product up to sign on every row, can take its place.
    """

    subset: tuple[str, ...]
    coefficient: float
    low: float | None = None
    high: float | None = None
    identified: bool = True
    aliases: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Columns of the product, for people."""
        return " × ".join(self.subset)


@dataclass(frozen=True)
class TargetSummary:
    """One target (or one class): how well it is predicted, and of what the polynomial consists.

    ``weights[j]`` is the sum of squared coefficients of degree ``j + 1``, where the rows are the whole cube; else it is
    empty, as squares of coefficients are then no shares of a variance. ``influences`` are, column by column, the mean
    square over the rows of the part of the polynomial that holds it (empty where some column is a real number);
    ``actual`` and ``predicted`` are held-out rows, or a sample; ``predicted`` is None where none was made.
    """

    name: str
    r2: Spread
    linear_r2: Spread
    variance: float
    weights: tuple[float, ...]
    terms: tuple[Term, ...]
    influences: tuple[tuple[str, float], ...]
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None

    @property
    def learned(self) -> bool:
        """Whether the held-out R2 is above 0, the R2 of the mean, by more than its spread."""
        return self.r2.mean > self.r2.deviation


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
    Machine Learning 52, 2003).
    """
    found: list[Gain] = []
    before: Sequence[float] = ()
    for d in sorted({c.degree for c in candidates if c.degree <= degree}):
        folds = max((c for c in candidates if c.degree == d), key=lambda c: c.r2.mean).r2.folds
        added = Spread(tuple(a - b for a, b in zip(folds, before or [0.0] * len(folds), strict=True)))
        k = len(folds)
        reach = float(t.ppf(0.975, k - 1)) * added.deviation * sqrt(1 / k + 1 / (k - 1)) if k > 1 else inf
        found.append(Gain(d, added.mean, added.mean - reach, added.mean + reach))
        before = folds
    return tuple(found)


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


@dataclass(frozen=True)
class LowDegreeInfo:
    """The model that was chosen, and why."""

    degree: int
    alpha: float
    n_monomials: int
    solver: str
    reason: str
    automatic: tuple[str, ...] = ()  # which of "degree" and "alpha" cross-validation chose


@dataclass(frozen=True)
class Resources:
    """Seconds of each stage, and the most memory that the process held."""

    stages: tuple[tuple[str, float], ...]
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(seconds for _, seconds in self.stages)


@dataclass(frozen=True)
class FitSummary:
    """Everything that the report of one fit says."""

    table: str
    task: str
    n_rows: int
    feature_names: tuple[str, ...]
    notes: tuple[str, ...]
    choice: LowDegreeInfo | None  # of a polynomial
    candidates: tuple[CVCandidate, ...]
    targets: tuple[TargetSummary, ...]
    resources: Resources
    versions: tuple[tuple[str, str], ...]
    command: str
    confusion: Confusion | None = None
    domain: str = "cube"
    target_columns: tuple[str, ...] = ()  # of the table; targets are named after classes where there are some
    lsh: LSHSummary | None = None  # of a model of hash tables
    contenders: tuple[Contender, ...] = ()  # the chosen model first
    why: str = ""  # the chosen one was chosen

    @property
    def learned(self) -> bool:
        """Whether any target is predicted better than by a constant.

        Of classes, a better accuracy or a better R2 will do: where one class is frequent, a model may know which rows
        are the likelier ones, and yet rightly never name the rare class.
        """
        return (self.confusion is not None and self.confusion.learned) or any(target.learned for target in self.targets)

    @property
    def model(self) -> str:
        """The kind of model that was chosen."""
        return f"degree {self.choice.degree}" if self.choice is not None else "hash tables (LSH)"

    @property
    def highest_tried(self) -> int:
        """The highest degree among the candidates."""
        return max(candidate.degree for candidate in self.candidates)

    @property
    def verdict(self) -> str:
        """The finding in one or two sentences."""
        best = max(self.candidates, key=lambda candidate: candidate.r2.mean)
        degree = None if self.choice is None else self.choice.degree
        does, does_not, rows = (
            ("Hash tables (LSH) predict", "Hash tables (LSH) do not predict", "rows that they have not seen")
            if degree is None
            else (f"Degree {degree} predicts", f"Degree {degree} does not predict", "rows that it has not seen")
        )
        if self.learned:
            return f"{does} {rows}: {self._scores()}."
        if best.degree != degree and best.r2.mean > best.r2.deviation:
            remedy = "--model low-degree" if degree is None else f"--degree {best.degree}"
            return (
                f"{does_not} {rows}: {self._scores()}. "
                f"Degree {best.degree} does, with held-out R² {best.r2}: choose {remedy}."
            )
        tables = any("LSH" in contender.name for contender in self.contenders)
        also = ", nor by hash tables (LSH)," if tables else ""
        return f"Nothing of degree ≤ {self.highest_tried}{also} can be learned from these columns: {self._scores()}."

    def _scores(self) -> str:
        if self.confusion is not None:
            return (
                f"held-out accuracy {self.confusion.accuracy:.1%}, against {self.confusion.majority:.1%} for always "
                f"naming the most frequent class, and R² {self.targets[0].r2} of the classes' indicators, where their "
                "frequencies give 0"
            )
        scores = [
            f"R² {target.r2}{self._of(target)} (linear model {target.linear_r2.mean:.3f})" for target in self.targets
        ]
        return "held-out " + "; ".join(scores) + ", where predicting the mean gives 0"

    def _of(self, target: TargetSummary) -> str:
        return f" for {target.name}" if len(self.targets) > 1 else ""
