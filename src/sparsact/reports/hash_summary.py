"""What a report tells of a model by hashing, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.reports.summary import Confusion, Resources, Spread


@dataclass(frozen=True)
class Layout:
    """The hash tables that were chosen.

    ``bytes_per_bucket`` are those of its key, count, sums and coefficients.
    """

    n_tables: int
    n_hashes: int
    width: float
    degree: int
    alpha: float
    directions: str
    laid_out_on: int  # rows that the layout was chosen from
    bytes_per_bucket: int


@dataclass(frozen=True)
class Trial:
    """One layout that was tried; ``error`` is in standard deviations of the target, on rows left out."""

    directions: str
    n_rows: int
    n_buckets: int
    error: float


@dataclass(frozen=True)
class HashedTarget:
    """One target (or class): held-out scores of the model and of others, and a sample of held-out rows."""

    name: str
    r2: Spread
    others: tuple[tuple[str, Spread], ...]
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64]

    @property
    def learned(self) -> bool:
        """Whether the held-out R2 is above 0, the R2 of the mean, by more than its spread."""
        return self.r2.mean > self.r2.deviation


@dataclass(frozen=True)
class HashSummary:
    """Everything that the report of one fit by hashing says."""

    table: str
    task: str
    n_rows: int
    feature_names: tuple[str, ...]
    notes: tuple[str, ...]
    reason: str
    layout: Layout
    trials: tuple[Trial, ...]
    targets: tuple[HashedTarget, ...]
    counts: NDArray[np.int64]
    miss_rate: float
    column_shares: tuple[tuple[str, float], ...]
    coverage: float | None  # of 90 % intervals, on held-out rows
    resources: Resources
    versions: tuple[tuple[str, str], ...]
    command: str
    confusion: Confusion | None = None
    target_columns: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        """Whether any target is predicted better than by a constant."""
        return (self.confusion is not None and self.confusion.learned) or any(target.learned for target in self.targets)

    @property
    def n_buckets(self) -> int:
        """Buckets that hold rows, over all tables."""
        return len(self.counts)

    @property
    def verdict(self) -> str:
        """The finding in one sentence."""
        if self.confusion is not None:
            scores = (
                f"held-out accuracy {self.confusion.accuracy:.1%}, against {self.confusion.majority:.1%} for always "
                "naming the most frequent class"
            )
        else:
            scores = "held-out " + "; ".join(_score(target, len(self.targets)) for target in self.targets)
            scores += ", where predicting the mean gives 0"
        if not self.learned:
            return f"Hash tables do not predict rows that they have not seen: {scores}."
        return f"Hash tables predict rows that they have not seen: {scores}."


def _score(target: HashedTarget, n_targets: int) -> str:
    others = ", ".join(f"{name} {spread.mean:.3f}" for name, spread in target.others)
    named = f" for {target.name}" if n_targets > 1 else ""
    return f"R² {target.r2}{named} ({others})"
