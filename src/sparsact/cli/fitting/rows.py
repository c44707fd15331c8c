"""The rows of a table again and again, each with its fold: from memory where they are few, else from the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.learners.low_degree.folds import dealt
from sparsact.learners.lsh.choice import ROWS_FOR_WIDTH

MOST_ROWS = ROWS_FOR_WIDTH  # an LSH model looks at no more to lay itself out
ROOM = 0.98  # of the most rows, drawn on average: of 131,072 more are then drawn once in 10^12 tables
MOST_NUMBERS = 1 << 25  # a quarter of a gigabyte
Rows = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]


class RowSample:
    """Rows drawn from a whole table as they pass by, each with its fold; all of them where the table is small.

    A sample of the whole table, and not its first rows: a table may be sorted.
    """

    def __init__(self, table: Table, n_folds: int, seed: int, most: int = MOST_ROWS) -> None:
        self.table, self.n_folds, self.seed = table, n_folds, seed
        most = min(most, MOST_NUMBERS // len(table.feature_names))
        n_rows = table.n_rows or 0
        self._share = 1.0 if n_rows <= most else ROOM * most / n_rows
        self._rng = np.random.default_rng([seed, 1])
        self._passed = 0
        self._taken: list[Rows] = []

    @property
    def is_whole(self) -> bool:
        """Whether no row was left out."""
        return self._share == 1.0

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """The next rows of the table."""
        folds = dealt(self._passed, len(X), self.n_folds, self.seed)
        self._passed += len(X)
        kept = self._rng.random(len(X)) < self._share
        self._taken.append((X[kept], y[kept], folds[kept]) if not self.is_whole else (X, y, folds))

    def rows(self) -> Rows:
        """The rows drawn."""
        X, y, folds = (np.concatenate(parts) for parts in zip(*self._taken, strict=True))
        self._taken = [(X, y, folds)]
        return X, y, folds

    def batches(self) -> Iterator[Rows]:
        """Every row of the table, in its order."""
        if self.is_whole:
            yield from self._taken
            return
        first_row = 0
        for X, y in self.table.batches():
            yield X, y, dealt(first_row, len(X), self.n_folds, self.seed)
            first_row += len(X)
