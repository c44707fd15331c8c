"""Values of tables of buckets at rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_statistics import add_polynomials, average_over_weights, features
from sparsact.kernels.hashing import Hashes, project, unfilled_places

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]
Integers = NDArray[np.signedinteger[Any]]
Combination = Literal["average", "first"]


class Unsolved(NamedTuple):
    """Sums from which a bucket is solved when a row first meets it; empty arrays where all are solved.

    ``stale`` (B,) is 1 for a bucket that is to be solved and 0 from then on. Coefficients solve ``sums``
    (B, n_sums) times ``unit`` (targets,), and the weight of a bucket is that of its rows, or 0 if ``counts`` (B,) has
    fewer than ``least``.
    """

    stale: NDArray[np.uint8]
    counts: NDArray[np.int64]
    sums: Array
    unit: Array
    least: int
    alpha: float


NOTHING: Final = np.zeros(0)
SOLVED: Final = Unsolved(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros(0), 1, 0.0)


def packed(coefficients: Array, weights: Array) -> Array:
    """Records (B, D * targets + 1) of buckets: coefficients (B, D, targets), then the weight."""
    _, D, n_targets = coefficients.shape
    return np.concatenate([coefficients.reshape(len(weights), D * n_targets), weights[:, None]], axis=1)


def predictor(
    hashes: Hashes,
    slots: Keys,
    degree: int,
    records: Array,
    trend: Array,
    combine: Combination = "average",
    unsolved: Unsolved = SOLVED,
) -> Any:
    """Values at rows: the trend (d, targets), and the tables' average by weight, or first answer.

    It is called with ``(X, values, total, n_threads)`` and fills ``values`` (m, targets) and ``total`` (m,), the weight
    behind each: 0 where every table misses. Buckets are ``records`` as :func:`packed` has them; a bucket of
    weight 0 is empty. Arrays are held, not copied, and ``records`` filled in as buckets are solved. The kernels are
    chosen when the function is made.
    """
    return dispatch.chosen.BucketPredictor(*hashes, slots, degree, records, trend, combine, *unsolved)


def fill_answers(
    V: Array, ids: Integers, records: Array, degree: int, combine: Combination, values: Array, total: Array
) -> None:
    """Fill values (m, targets) and total (m,) from the buckets ``ids`` (m, T) of rows with features V; -1: none."""
    shape = len(values), (records.shape[1] - 1) // values.shape[1], values.shape[1]
    values[:], total[:] = 0.0, 0.0
    for t, numbers in enumerate(ids.T):
        record = np.zeros((len(values), records.shape[1]))
        record[numbers >= 0] = records[numbers[numbers >= 0]]
        own, weight = record[:, :-1].reshape(shape), record[:, -1]
        phi = features(V[:, t % V.shape[1]], degree)
        if combine == "first":
            answers = (total == 0) & (weight > 0)
            total += np.where(answers, weight, 0.0)
            add_polynomials(values, phi, own, answers.astype(np.float64))
        else:
            add_polynomials(values, phi, own, weight)
            total += np.maximum(weight, 0.0)
    if combine == "average":
        average_over_weights(values, total)


@dispatch.kernel
class _BucketPredictor:
    def __init__(self, *parts: Any) -> None:
        self._hashes = Hashes(*parts[:7])
        self._slots, self._degree, self._records, self._trend, self._combine = parts[7:12]
        self._unsolved = Unsolved(*parts[12:])

    @np.errstate(over="ignore", invalid="ignore")  # rows that are not finite have such values: native does not warn
    def __call__(self, X: Array, values: Array, total: Array, n_threads: int) -> None:
        hashes, m, n = self._hashes, len(X), len(self._records)
        n_tables, n_targets, found = len(hashes.seeds), values.shape[1], unfilled_places(m, hashes)
        dispatch.reference.places(X, *hashes, *found)
        numbers = np.empty(m * n_tables, dtype=np.int32)
        dispatch.reference.find(self._slots, found.keys.ravel(), numbers)
        ids = np.where(numbers < n, numbers, np.int32(-1)).reshape(m, n_tables)
        self._refresh(np.unique(ids[ids >= 0]))
        fill_answers(found.V, ids, self._records, self._degree, self._combine, values, total)
        values += project(X, hashes.centre, self._trend, np.zeros(n_targets))

    def _refresh(self, met: NDArray[np.int32]) -> None:
        given = self._unsolved
        if not len(given.stale):
            return
        ids = met[given.stale[met] > 0]
        p, n_targets = self._hashes.local.shape[1], len(given.unit)
        coefficients = np.empty((len(ids), (self._records.shape[1] - 1) // n_targets, n_targets))
        residual = np.empty((len(ids), n_targets))
        dispatch.reference.solve(given.sums[ids], p, self._degree, given.alpha, coefficients, residual)
        weights = np.where(given.counts[ids] >= given.least, given.sums[ids, p], 0.0)
        self._records[ids] = packed(coefficients * given.unit, weights)
        given.stale[ids] = 0


def row_predictor(
    tables: Sequence[Any],
    backup: Callable[..., None] | None,
    level: float,
    low: float,
    high: float,
    centre: Array = NOTHING,
    slopes: Array = NOTHING,
) -> Any:
    """Predict one target at a single row: the sum of some predictors and a level, within limits.

    Predictors come from this module or from :mod:`sparsact.kernels.compact_values`. With ``slopes`` (d,) about a
    ``centre``, level and line come first. Where the last of the tables misses, the value of ``backup`` is added. It is
    called with an array (d,) or (1, d), and returns None for what is no such row of float64, has no finite value, or
    falls into empty buckets without a backup.
    """
    return dispatch.chosen.RowPredictor(list(tables), backup, level, low, high, centre, slopes)


@dispatch.kernel
class _RowPredictor:
    def __init__(
        self, tables: list[Any], backup: Callable[..., None] | None, level: float, low: float, high: float, *line: Array
    ) -> None:
        self._tables, self._backup, self._level, self._limits = tables, backup, level, (low, high)
        self._centre, self._slopes = line

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, x: object) -> float | None:
        d = len(self._tables[0]._hashes.centre)
        if type(x) is not np.ndarray or x.dtype != np.float64 or x.shape not in ((d,), (1, d)):
            return None
        X, own, behind, straight = x.reshape(1, d), np.empty((1, 1)), np.empty(1), len(self._slopes) > 0
        value = 0.0
        if straight:
            value = self._level + project(X, self._centre, self._slopes[:, None], np.zeros(1))[0, 0]
        for number, table in enumerate(self._tables):
            table(X, own, behind, 1)
            value = value + own[0, 0] if number or straight else own[0, 0]
        if not straight:
            value += self._level
        if behind[0] == 0:
            if self._backup is None:
                return None
            self._backup(X, own, behind, 1)
            value += own[0, 0]
        if not np.isfinite(value):
            return None
        return float(np.clip(value, *self._limits))
