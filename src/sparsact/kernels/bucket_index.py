"""A hash table with open addressing that maps the key of each bucket to its number."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Keys = NDArray[np.uint64]
Ids = NDArray[np.int32]

NOWHERE: Final = np.uint64(2**64 - 1)
LARGEST: Final = np.uint64(2**31)
MOST_KEYS: Final = 1 << 31  # numbers of buckets are int32


class BucketIndex:
    """Numbers of buckets by key: an open-addressing table that grows.

    A key is 64 well-mixed bits: among B buckets two share one with probability below :math:`B^2 / 2^{65}`.
    """

    def __init__(self, keys: Keys | None = None, most: int = MOST_KEYS) -> None:
        self.most = most
        n = 0 if keys is None else len(keys)
        self._keys = np.empty(max(16, n), dtype=np.uint64)
        self._n = n
        if keys is not None:
            self._keys[:n] = keys
        self._rebuild(2 * len(self._keys))

    def __len__(self) -> int:
        return self._n

    @property
    def keys(self) -> Keys:
        """Key of each bucket, by number."""
        return self._keys[: self._n]

    @property
    def slots(self) -> Keys:
        """Slots (2**c, 2), as :func:`bucket_values` reads them."""
        return self._slots

    def find(self, keys: Keys) -> Ids:
        """Number of each key's bucket, or -1; of the shape of ``keys``."""
        ids = np.empty(keys.size, dtype=np.int32)
        dispatch.chosen.find(self._slots, keys.ravel(), ids)
        return ids.reshape(keys.shape)

    def insert(self, keys: Keys) -> Ids:
        """Number of each key's bucket; new keys get the next numbers, in order of appearance.

        A ValueError is raised if there are more than ``most`` keys then; none of them is taken in.
        """
        flat = keys.ravel()
        ids = self.find(flat)
        new = np.flatnonzero(ids < 0)  # keys that are known need no room
        if self._n + len(new) > self.most and self._n + (n_new := len(np.unique(flat[new]))) > self.most:
            raise ValueError(
                f"{self._n:,} keys and {n_new:,} new ones are more than 32 bits can number, {self.most:,}; hash "
                "into fewer buckets."
            )
        step = 1 << 16
        for start in range(0, len(new), step):
            part = new[start : start + step]
            self._make_room(len(part))
            numbers = np.empty(len(part), dtype=np.int32)
            self._n = dispatch.chosen.insert(self._slots, self._keys, self._n, flat[part], numbers)
            ids[part] = numbers
        return ids.reshape(keys.shape)

    def truncate(self, n: int) -> None:
        """Forget the buckets from number n on, whatever an insertion that was cut short has left in the slots."""
        self._n = n
        self._rebuild(2 * len(self._keys))

    def n_new(self, keys: Keys) -> int:
        """Count the distinct keys that have no number yet."""
        return len(np.unique(keys[self.find(keys) < 0]))

    def _make_room(self, n_new: int) -> None:
        needed = self._n + n_new
        if needed > len(self._keys):
            self._keys = np.concatenate([self.keys, np.empty(max(needed, 2 * self._n) - self._n, dtype=np.uint64)])
        if 2 * needed > len(self._slots):
            self._rebuild(2 * needed)

    def _rebuild(self, least: int) -> None:
        n_slots = 1 << (least - 1).bit_length()
        self._slots = np.full((n_slots, 2), NOWHERE, dtype=np.uint64)
        dispatch.chosen.fill(self._slots, self._keys, 0, self._n)


@dispatch.kernel
def _find(slots: Keys, keys: Keys, ids: Ids) -> None:
    """Fill ``ids`` (N,) with the number of each key's bucket, or -1. Slots are (2**c, 2): key and number.

    Slots from a bad file do no harm: a search ends after all of them, and a number that is no int32 counts as -1.
    """
    ids[:] = -1
    pending = np.arange(len(keys))
    at = _home(keys, len(slots))
    for _ in range(len(slots)):
        if not len(pending):
            return
        key, number = slots[at, 0], slots[at, 1]
        taken = number != NOWHERE
        same = taken & (key == keys[pending])
        ids[pending[same]] = np.where(number[same] < LARGEST, number[same], NOWHERE).astype(np.int32)
        going = taken & ~same
        pending, at = pending[going], (at[going] + 1) % len(slots)


@dispatch.kernel
def _insert(slots: Keys, bucket_keys: Keys, n_buckets: int, keys: Keys, ids: Ids) -> int:
    """Give new keys the next numbers, in order of appearance; fill ``ids`` and return how many buckets there are now.

    The caller has made room: ``len(bucket_keys) >= n_buckets + len(keys)``, and at least twice as many slots.
    """
    _find(slots, keys, ids)
    new, first, inverse = np.unique(keys[ids < 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(new), dtype=np.int64)
    rank[order] = np.arange(len(new))
    ids[ids < 0] = (n_buckets + rank[inverse]).astype(np.int32)
    bucket_keys[n_buckets : n_buckets + len(new)] = new[order]
    _fill(slots, bucket_keys, n_buckets, n_buckets + len(new))
    return n_buckets + len(new)


@dispatch.kernel
def _fill(slots: Keys, bucket_keys: Keys, start: int, stop: int) -> None:
    """Put buckets ``start`` to ``stop - 1``, all of them new, into the slots."""
    pending = np.arange(start, stop)
    at = _home(bucket_keys[start:stop], len(slots))
    while len(pending):
        free = slots[at, 1] == NOWHERE
        _, winners = np.unique(at[free], return_index=True)
        winners = np.flatnonzero(free)[winners]
        slots[at[winners], 0] = bucket_keys[pending[winners]]
        slots[at[winners], 1] = pending[winners].astype(np.uint64)
        left = np.ones(len(pending), dtype=bool)
        left[winners] = False
        pending, at = pending[left], (at[left] + 1) % len(slots)


def _home(keys: Keys, n_slots: int) -> NDArray[np.int64]:
    """First slot to search: the high bits of the key."""
    return (keys >> np.uint64(65 - n_slots.bit_length())).astype(np.int64) if n_slots > 1 else np.zeros(len(keys), int)
