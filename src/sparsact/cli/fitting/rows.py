"""The rows of a table again and again, each with its fold: from memory where they are few, else from the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.folds import dealt_batches
from sparsact.datasets import Table
from sparsact.learners.low_degree.folds import dealt
from sparsact.learners.lsh.choice import ROWS_FOR_WIDTH
from sparsact.learners.stored import Arrays, State

MOST_ROWS = ROWS_FOR_WIDTH  # an LSH model looks at no more to lay itself out
ROOM = 0.98  # of the most rows, drawn on average: of 131,072 more are then drawn once in 10^12 tables
MOST_NUMBERS = 1 << 25  # a quarter of a gigabyte
_ROWS = ("X", "y", "folds")
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

    def batches(self, first_row: int = 0) -> Iterator[Rows]:
        """Every row of the table, in its order; from a row on at which a batch begins."""
        if self.is_whole:
            X, y, folds = self.rows()
            if first_row < len(X):
                yield X, y, folds
            return
        yield from dealt_batches(self.table, self.n_folds, self.seed, first_row)

    def state(self, arrays: Arrays) -> State:
        """What was drawn, and the state of the draw; arrays are put among the others."""
        parts = self.rows() if self._taken else ()
        arrays |= {f"sample.{name}": part for name, part in zip(_ROWS, parts, strict=False)}
        return {"passed": self._passed, "rng": self._rng.bit_generator.state}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have drawn what another sample had drawn."""
        self._passed, self._rng.bit_generator.state = int(state["passed"]), state["rng"]
        self._taken = [tuple(arrays[f"sample.{name}"] for name in _ROWS)] if "sample.X" in arrays else []  # type: ignore[list-item]
