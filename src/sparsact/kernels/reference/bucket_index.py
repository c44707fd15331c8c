"""Open addressing: where the key of a bucket stands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NOWHERE = np.uint64(2**64 - 1)
LARGEST = np.uint64(2**31)


def find(slots: NDArray[np.uint64], keys: NDArray[np.uint64], ids: NDArray[np.int32]) -> None:
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


def insert(
    slots: NDArray[np.uint64],
    bucket_keys: NDArray[np.uint64],
    n_buckets: int,
    keys: NDArray[Any],
    ids: NDArray[np.int32],
) -> int:
    """Give new keys the next numbers, in order of appearance; fill ``ids`` and return how many buckets there are now.

    The caller has made room: ``len(bucket_keys) >= n_buckets + len(keys)``, and at least twice as many slots.
    """
    find(slots, keys, ids)
    new, first, inverse = np.unique(keys[ids < 0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(new), dtype=np.int64)
    rank[order] = np.arange(len(new))
    ids[ids < 0] = (n_buckets + rank[inverse]).astype(np.int32)
    bucket_keys[n_buckets : n_buckets + len(new)] = new[order]
    fill(slots, bucket_keys, n_buckets, n_buckets + len(new))
    return n_buckets + len(new)


def fill(slots: NDArray[np.uint64], bucket_keys: NDArray[np.uint64], start: int, stop: int) -> None:
    """Put buckets ``start`` to ``stop - 1``, none of which stands there yet, into the slots."""
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


def _home(keys: NDArray[np.uint64], n_slots: int) -> NDArray[np.int64]:
    """First slot to look at: the high bits of the key."""
    return (keys >> np.uint64(65 - n_slots.bit_length())).astype(np.int64) if n_slots > 1 else np.zeros(len(keys), int)
