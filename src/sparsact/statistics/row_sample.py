"""A sample of the rows of a table, the same however the rows are cut: it merges."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.saving.schema import Arrays, State
from sparsact.statistics.folds import deal
from sparsact.statistics.hashing import mixed
from sparsact.statistics.statistic import Batch

_OTHER_SEED: Final = 1 << 62  # folds are drawn from the numbers of rows too
_NAMES: Final = ("X", "y", "folds", "numbers", "weights", "hashes")
_Rows = tuple[NDArray[Any], ...]  # by these names


class RowSample:
    """Rows of a table drawn at random, or all if they are few: rows whose numbers have the smallest hashes.

    The sample depends only on the seed and the numbers of rows, not on batches or on who has read which of them.
    """

    def __init__(self, most: int, n_folds: int, seed: int) -> None:
        self.most, self.n_folds, self.seed, self.n_rows = most, n_folds, seed, 0
        self._parts: list[_Rows] = []
        self._in_order = False  # in one part, sorted by number
        self._below = np.iinfo(np.uint64).max  # hashes of other rows are no longer among the smallest

    def empty(self) -> RowSample:
        """A sample of no rows."""
        return RowSample(self.most, self.n_folds, self.seed)

    @property
    def is_complete(self) -> bool:
        """Whether no row was left out."""
        return self.n_rows <= self.most

    def add(self, batch: Batch) -> None:
        """Add rows of the table; folds follow from their numbers unless the batch names them."""
        X, first, n_rows = batch.X, batch.first_row, len(batch)
        self.n_rows += n_rows
        numbers = np.arange(first, first + n_rows, dtype=np.uint64)
        hashes = mixed(numbers, self.seed + _OTHER_SEED)
        kept = hashes <= self._below
        folds = deal(first, n_rows, self.n_folds, self.seed) if batch.folds is None else batch.folds
        self._append(X[kept], batch.y[kept], folds[kept], numbers[kept], batch.row_weights()[kept], hashes[kept])

    def _append(self, *part: NDArray[Any]) -> None:
        self._parts.append(part)
        self._in_order = False
        if sum(len(each[0]) for each in self._parts) > 2 * self.most:
            self._parts = [self._smallest()]

    def _smallest(self) -> _Rows:
        parts = tuple(np.concatenate(each) for each in zip(*self._parts, strict=True))
        if len(parts[-1]) > self.most:
            self._below = np.partition(parts[-1], self.most - 1)[self.most - 1]
            parts = tuple(part[parts[-1] <= self._below] for part in parts)
        order = parts[3].argsort(kind="stable")
        return tuple(part[order] for part in parts)

    def _drawn(self) -> _Rows:
        """The rows in the order of the table, in one part."""
        if not self._in_order:
            self._parts, self._in_order = [self._smallest()], True
        return self._parts[0]

    def rows(self) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]:
        """X, y and the folds of the rows, in the order of the table."""
        X, y, folds, *_ = self._drawn()
        return X, y, folds

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of :meth:`rows`."""
        return self._drawn()[4]

    def smallest(self, most: int) -> NDArray[np.intp]:
        """Places in :meth:`rows` of at most ``most`` rows, in their order: a sample of the sample."""
        return np.sort(self._drawn()[5].argsort(kind="stable")[:most])

    def at_most(self, most: int) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]:
        """X, y and folds of the rows of :meth:`smallest`."""
        places = self.smallest(most)
        X, y, folds = self.rows()
        return X[places], y[places], folds[places]

    def merge(self, other: RowSample) -> None:
        """Add what another has drawn from other rows of the table."""
        self.n_rows += other.n_rows
        for part in other._parts:
            self._append(*part)

    def state(self) -> tuple[State, Arrays]:
        """Return the state of the draw, and its rows as arrays."""
        if self._parts:
            self._drawn()
        arrays = {f"sample.{name}": part for own in self._parts for name, part in zip(_NAMES, own, strict=True)}
        return {"passed": self.n_rows}, arrays

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the draw from a saved state."""
        self.n_rows, self._in_order = int(state["passed"]), False
        self._parts = [tuple(arrays[f"sample.{name}"] for name in _NAMES)] if "sample.X" in arrays else []
