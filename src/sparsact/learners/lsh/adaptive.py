"""Streams of rows that choose a new layout when the prediction errors of new rows have grown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Final

import numpy as np

from sparsact.learners.lsh.layout import Array
from sparsact.statistics.statistic import Batch

RECENT: Final = 2048  # newest rows, by whose errors layouts are compared
RISE: Final = 1.1  # of the mean squared error, while which they are compared; else when as many rows came as there were
# Times the rows held: a comparison that changed nothing doubles the rows until the next one, up to this.
MOST_WAIT: Final = 4
GAIN, SURE = 0.02, 2.0  # of that error, and in standard errors, for which another layout is worth its change


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order in which they came, and the squared errors (at most ``recent``) of the newest predictions.

    Attributes
    ----------
    added, removed : tuple of Batch
        As they were given.
    errors : ndarray
        Mean over the targets, in their units; rows that came before there was a model have none.
    level : float
        Mean of the first errors of the layout; infinite until there are ``recent``.
    n_compared : int
        Rows held when layouts were last compared.
    n_since, wait : int
        Rows that have come since then, and how many are awaited (``recent`` at least).
    n_adopted : int
        How often another layout was taken.
    """

    added: tuple[Batch, ...] = ()
    removed: tuple[Batch, ...] = ()
    errors: Array = field(default_factory=lambda: np.zeros(0))
    level: float = inf
    n_compared: int = 0
    n_since: int = 0
    wait: int = 0
    n_adopted: int = 0
    recent: ClassVar[int] = RECENT

    @property
    def n_rows(self) -> int:
        """Rows held."""
        return sum(map(len, self.added)) - sum(map(len, self.removed))

    def with_rows(self, batch: Batch, errors: Array) -> Stream:
        """The stream after a batch whose predictions had these errors (m,)."""
        errors = np.concatenate([self.errors, errors])
        level = self.level
        if level == inf and len(errors) >= self.recent:
            level = float(errors[: self.recent].mean())
        added, n_since = (*self.added, batch), self.n_since + len(batch)
        return replace(self, added=added, errors=errors[-self.recent :], level=level, n_since=n_since)

    def without(self, batch: Batch) -> Stream:
        """The stream after rows were removed; once more are removed than held, the removed ones are forgotten."""
        removed = (*self.removed, batch)
        if sum(map(len, removed)) <= self.n_rows:
            return replace(self, removed=removed)
        kept = Batch.joined(self.added).without(Batch.joined(removed))
        return replace(self, added=(kept,) if len(kept) else (), removed=())

    def merged(self, other: Stream | None) -> Stream | None:
        """The rows of two models; None if the rows of the other are not known."""
        if other is None:
            return None
        return type(self)((*self.added, *other.added), (*self.removed, *other.removed), n_adopted=self.n_adopted)

    def is_due(self, n_laid_out: int) -> bool:
        """Whether layouts should be compared: as many rows came as there were, or errors are above their level."""
        if len(self.errors) < self.recent or self.n_since < max(self.wait, self.recent):
            return False
        return self.n_since >= max(self.n_compared, n_laid_out) or bool(self.errors.mean() > RISE * self.level)

    def is_beaten(self, rival: Array) -> bool:
        """Whether other predictions of the newest rows, with these squared errors (m,), were surely better."""
        less = self.errors[len(self.errors) - len(rival) :] - rival
        return bool(less.mean() > max(SURE * less.std() / np.sqrt(len(less)), GAIN * self.errors.mean()))

    def compared(self) -> Stream:
        """The stream after a comparison that changed nothing."""
        wait = min(2 * max(self.wait, self.recent), MOST_WAIT * self.n_rows)
        return replace(self, n_compared=self.n_rows, n_since=0, wait=wait)

    def split(self) -> tuple[Batch, Batch]:
        """Older rows that are held, and the newest ones, at most ``recent`` and a quarter of all."""
        rows = Batch.joined(self.added)
        n_new = min(self.recent, len(rows) // 4)
        return self.held(rows[: len(rows) - n_new]), rows[len(rows) - n_new :]

    def held(self, rows: Batch) -> Batch:
        """The rows among them that were not removed."""
        return rows.without(Batch.joined(self.removed)) if self.removed else rows
