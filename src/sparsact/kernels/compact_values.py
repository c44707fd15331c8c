"""Values at rows of tables whose buckets stand in the order of their keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_values import Combination, fill_answers, packed
from sparsact.kernels.hashing import Hashes, unfilled_places

Array = NDArray[np.float64]


def predictor(
    hashes: Hashes,
    starts: NDArray[np.uint32],
    tags: NDArray[np.uint32],
    degree: int,
    coefficients: NDArray[Any],
    weights: NDArray[Any],
    combine: Combination = "average",
) -> Any:
    """A function of ``(X, values, total, n_threads)`` that fills values (m, targets), and the weight (m,) behind each.

    ``starts`` (2**c + 1,), c > 0, has the place where keys with given first c bits begin; ``tags`` (B,) has the next 32
    bits of each key. Coefficients (B, D, targets) and weights (B,) are both float64, or float32 with weights of float32
    or uint16; values are added up in float64: the average by weight over tables, or the first table that is not empty.
    Arrays are held, not copied, except by the reference.
    """
    return dispatch.chosen.compact_predictor(*hashes, starts, tags, degree, coefficients, weights, combine)


@dispatch.kernel
class _compact_predictor:  # noqa: N801 # a kernel's name
    def __init__(self, *parts: Any) -> None:
        self._hashes = Hashes(*parts[:7])
        self._starts, self._tags, self._degree, coefficients, weights, self._combine = parts[7:]
        self._records = packed(coefficients.astype(np.float64), weights.astype(np.float64))

    @np.errstate(over="ignore", invalid="ignore")  # rows that are not finite have such values: native does not warn
    def __call__(self, X: Array, values: Array, total: Array, n_threads: int) -> None:
        found = unfilled_places(len(X), self._hashes)
        dispatch.reference.places(X, *self._hashes, *found)
        ids = self._find(found.keys)
        fill_answers(found.V, ids, self._records, self._degree, self._combine, values, total)

    def _find(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        bits = np.uint64((len(self._starts) - 1).bit_length() - 1)
        group = (keys >> (np.uint64(64) - bits)).astype(np.int64)
        wanted = (keys << bits >> np.uint64(32)).astype(np.uint32)
        at = self._starts[group].astype(np.int64)
        stop = np.minimum(self._starts[group + 1].astype(np.int64), len(self._tags))
        ids = np.full(keys.shape, -1)
        while (going := (at < stop) & (ids < 0)).any():
            same = going.copy()
            same[going] = self._tags[at[going]] == wanted[going]
            ids[same] = at[same]
            at += 1
        return ids
