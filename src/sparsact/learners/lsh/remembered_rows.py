"""Remember the rows of a table by 64-bit keys, so that only rows that were added can be removed."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.layout import Array
from sparsact.saving.schema import ArrayField, Arrays, read_arrays

Keys = NDArray[np.uint64]
SavedRows = tuple[int, NDArray[np.int32], NDArray[np.int64]]  # what a change of rows is undone by
_ROWS: Final = {"keys": ArrayField("m", np.uint64), "copies": ArrayField("m", np.int64, nonnegative=True)}
_TARGETS: Final = {"targets": ArrayField("m T", finite=True, optional=True)}


class RowNames(NamedTuple):
    """Names of rows where the table sees other rows than were given: keys (m,), and their targets."""

    keys: Keys
    targets: Array


class RememberedRows:
    """Keys of different rows, how many copies there are of each, and their targets, whose range may shrink again.

    A shallow copy shares all arrays. What changes in them is written back by :meth:`restore`.
    """

    def __init__(self, n_targets: int) -> None:
        self.index = BucketIndex()
        self.copies = np.zeros(0, dtype=np.int64)
        self.targets: Array | None = np.zeros((0, n_targets))  # None where a file of an earlier version has none

    def __len__(self) -> int:
        return len(self.index)

    @property
    def keys(self) -> Keys:
        """Key of each row, by number."""
        return self.index.keys

    def arrays(self) -> Arrays:
        """Every part as an array."""
        n = len(self)
        kept: Arrays = {"keys": self.index.keys, "copies": self.copies[:n]}
        return kept if self.targets is None else kept | {"targets": self.targets[:n]}

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str, n_targets: int) -> RememberedRows:
        """The rows that :meth:`arrays` took apart."""
        read = read_arrays(_ROWS, arrays, prefix)
        if len(np.unique(read["keys"])) != len(read["keys"]):
            raise ValueError("two rows have the same key")
        rows = cls(n_targets)
        rows.index, rows.copies = BucketIndex(read["keys"]), read["copies"]
        rows.targets = read_arrays(_TARGETS, arrays, prefix, m=len(rows), T=n_targets).get("targets")
        return rows

    def add(self, keys: Keys, copies: NDArray[np.int64] | int, targets: Array | None) -> NDArray[np.int32]:
        """Remember rows, and return their numbers. After an error: :meth:`truncate`."""
        held = len(self.copies)
        ids = self.index.insert(keys)
        if len(self) > held:
            room = max(len(self), 2 * held) - held
            self.copies = np.concatenate([self.copies, np.zeros(room, dtype=np.int64)])
            if self.targets is not None:
                self.targets = np.concatenate([self.targets, np.zeros((room, self.targets.shape[1]))])
        if self.targets is not None and targets is not None:
            self.targets[ids] = targets
        else:
            self.targets = None
        np.add.at(self.copies, ids, copies)
        return ids

    def remove(self, keys: Keys) -> None:
        """Forget a copy of each row; none, if there are too few."""
        ids = self.index.find(keys)
        if (ids >= 0).all():
            np.subtract.at(self.copies, ids, 1)
            if (self.copies[ids] >= 0).all():
                return
            np.add.at(self.copies, ids, 1)
        present = self.n_copies(keys)
        _, first, asked = np.unique(keys, return_index=True, return_counts=True)
        row = int(first[asked > present[first]].min())
        raise ValueError(
            f"row {row} was not added, or not as often as it is to be removed (with the same "
            "values, target and weight); nothing was removed: drop it from the rows."
        )

    def n_copies(self, keys: Keys) -> NDArray[np.int64]:
        """Copies (m,) of the rows of keys; 0 of those that are not here."""
        ids = self.index.find(keys)
        return np.where(ids >= 0, self.copies[ids] if len(self) else 0, 0)

    def tidied(self, n_rows: int) -> RememberedRows:
        """Without rows of no copies, if they may be more than the ``n_rows`` that there are."""
        if len(self) <= 2 * n_rows:
            return self
        known = self.copies[: len(self)] > 0
        other = RememberedRows(0)
        other.index, other.copies = BucketIndex(self.index.keys[known]), self.copies[: len(self)][known]
        other.targets = None if self.targets is None else self.targets[: len(self)][known]
        return other

    def target_range(self) -> tuple[Array, Array] | None:
        """Least and largest targets, (targets,) each; None where they are not known."""
        if self.targets is None:
            return None
        held = self.targets[: len(self)][self.copies[: len(self)] > 0]
        return held.min(axis=0, initial=np.inf), held.max(axis=0, initial=-np.inf)

    def save(self, keys: Keys) -> SavedRows:
        """What :meth:`restore` writes back after a change of these rows."""
        ids = self.index.find(keys)
        ids = ids[ids >= 0]
        return len(self), ids, self.copies[ids]

    def restore(self, saved: SavedRows) -> None:
        """Be as :meth:`save` found it."""
        n, ids, copies = saved
        self.index.truncate(n)
        self.copies[ids] = copies
        self.copies[n:] = 0


def row_keys(*columns: Array) -> Keys:
    """Keys (m,) of rows of some arrays side by side, each (m, k)."""
    return hashing.row_keys(np.ascontiguousarray(np.concatenate(columns, axis=1) + 0.0))  # -0.0 becomes 0.0
