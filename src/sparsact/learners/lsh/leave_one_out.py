r"""Errors at rows that a table was filled with, as if it had never seen them: to choose by, and for intervals.

A model of few rows errs more than its rows show, as its linear part was fitted to them. For prediction intervals its
hash functions stay, and linear part and buckets are fitted again without each fold; the errors there, in the deviations
that this fit predicts for them, are scores of new rows. By [1]_, a new score is at most the
:math:`\lceil c\,(n + 1) \rceil`-th smallest of n with probability c.

References
----------
.. [1] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, "Distribution-free predictive inference for
   regression", J. Am. Stat. Assoc. 113, 2018.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.hashing import BucketPlaces
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array, Layout, PrincipalMoments, linear_trend
from sparsact.learners.lsh.predict import TablePredictor
from sparsact.learners.lsh.prediction_limits import Policy
from sparsact.statistics.column_scales import SMALLEST, standard_units
from sparsact.statistics.statistic import Batch

ROWS: Final = 2048  # by which errors of the first tables are measured, at most
FEW_ROWS: Final = 512  # of more, the linear part and the choice of cells spend a share that deviations do not miss
LARGEST_SCORE: Final = 1e100  # times a deviation it is still a float
FOLDS: Final = 20  # fits of few rows


class LeftOut:
    """Rows (m, d) of a table, with their targets in its units, to be left out again.

    One by one: each is taken from its buckets, which are solved again, ``m * T`` solutions of :math:`D^3` steps. By
    folds: all rows of a fold are taken away at once, and each bucket that they share is solved once, which is cheaper
    where buckets hold many rows and polynomials many coefficients.
    """

    def __init__(self, table: BucketTable, X: Array, residual: Array, weights: Array) -> None:
        self.table, self.residual, self.weights = table, residual, weights
        self.found = hashing.places(X, table.layout.hashes)
        self.ids = table.index.find(self.found.keys)

    def values(self, alpha: float, min_count: int, folds: int | None = None) -> Array:
        """Values (m, targets) in units of the table; 0 where every bucket is empty. Without ``folds``, one by one."""
        if folds is None:
            return self.one_by_one(self.found, self.ids, alpha, min_count)[0]
        values = np.empty(self.residual.shape)
        for part in np.array_split(np.arange(len(values)), folds):
            values[part] = self._fold(part, alpha, min_count)
        return values

    def one_by_one(self, found: BucketPlaces, ids: NDArray[np.int32], alpha: float, least: int) -> tuple[Array, Array]:
        """Values (m, targets) by these places in some of the tables, and the weight (m,) behind each."""
        table, degree = self.table, self.table.layout.degree
        return bucket_statistics.leave_one_out(
            found, ids, self.residual, self.weights, degree, alpha, least, table.counts, table.sums
        )

    def _fold(self, part: NDArray[np.int64], alpha: float, min_count: int) -> Array:
        """Values at some rows, all of them taken away."""
        table, layout = self.table, self.table.layout
        found = BucketPlaces(self.found.Z[part], self.found.V[part], self.found.keys[part])
        weights = self.weights[part]
        touched, places = np.unique(self.ids[part], return_inverse=True)
        ids: NDArray[np.int32] = places.reshape(len(part), layout.n_tables).astype(np.int32)
        counts, sums = table.counts[touched], table.sums[touched]
        bucket_statistics.accumulate(found, ids, self.residual[part], weights, -1, layout.degree, counts, sums)
        coefficients, _ = bucket_statistics.solve(sums, layout.n_local, layout.degree, layout.n_targets, alpha)
        held = np.where(counts >= max(min_count, 1), sums[:, layout.n_local], 0.0)
        coefficients[held == 0] = 0.0
        phi = bucket_statistics.features(found.V, layout.degree)[:, np.arange(layout.n_tables) % found.V.shape[1]]
        values: Array = np.einsum("mt,mtk->mk", held[ids], np.einsum("mtd,mtdk->mtk", phi, coefficients[ids]))
        bucket_statistics.average_over_weights(values, held[ids].sum(axis=1))
        return values


def first_table_errors(table: BucketTable, rows: Batch, targets: Array, alpha: float, min_count: int) -> Array:
    """Leave-one-out error (T,) of the first 1, ..., T tables together, in standard deviations of ``targets`` (m, T).

    Uses at most 2,048 rows, all held by the table; each row is taken out of its buckets before they predict it.
    """
    chosen = np.random.default_rng(0).permutation(len(rows))[:ROWS]
    X, Y, weights = (np.ascontiguousarray(part[chosen]) for part in (rows.X, rows.y, rows.row_weights()))
    layout, residual = table.layout, table.layout.residual(X, Y)
    left_out = LeftOut(table, X, residual, weights)
    found = left_out.found
    share, scaled = weights / weights.sum(), targets[chosen] / layout.unit
    variance = np.maximum(share @ (scaled - share @ scaled) ** 2, SMALLEST)
    sums, total, errors = np.zeros(residual.shape), np.zeros(len(X)), []
    for t in range(layout.n_tables):
        own = BucketPlaces(found.Z, np.ascontiguousarray(found.V[:, [t % found.V.shape[1]]]), found.keys[:, [t]])
        values, behind = left_out.one_by_one(own, np.ascontiguousarray(left_out.ids[:, [t]]), alpha, min_count)
        sums, total = sums + behind[:, None] * values, total + behind
        left = residual - sums / np.where(total > 0, total, 1.0)[:, None]
        errors.append(np.sqrt((share @ left**2 / variance).mean()))
    return np.array(errors)


def held_out_scores(table: BucketTable, rows: Batch, alpha: float, min_count: int) -> Array | None:
    """Absolute errors (n, targets) of rows of a table in predicted deviations, ascending; None of many rows."""
    n, d = rows.X.shape
    if not 2 < n < FEW_ROWS:
        return None
    scores = np.empty(rows.y.shape)
    order = np.random.default_rng(n).permutation(n)
    for fold in np.array_split(order, min(n, FOLDS)):
        kept = np.setdiff1d(order, fold)
        others = Batch(rows.X[kept], rows.y[kept], rows.row_weights()[kept])
        refitted = BucketTable(_layout_of(table, others), keeps_rows=False)
        refitted.add(others)
        inputs = InputRules(np.zeros(d), np.zeros(0, dtype=np.int64))
        policy = Policy(extrapolate="linear", min_count=min_count)
        predictor = TablePredictor(refitted, alpha, policy, False, FixedPart(), inputs, is_live=True)
        X = np.ascontiguousarray(rows.X[fold])
        with np.errstate(over="ignore", invalid="ignore"):  # of rows so far off that no float tells their value
            errors = np.abs(rows.y[fold] - predictor.values(X)) / np.maximum(predictor.deviations(X), SMALLEST)
        scores[fold] = np.where(errors < LARGEST_SCORE, errors, LARGEST_SCORE)
    return np.sort(scores, axis=0)


def _layout_of(table: BucketTable, rows: Batch) -> Layout:
    """The layout of a table with the linear part of these rows."""
    layout, weights = table.layout, rows.row_weights()
    moments = PrincipalMoments.of(rows.X, weights, standard_units(rows.X, weights))
    level, trend = linear_trend(rows.X, rows.y, weights, moments)
    trend = trend if layout.trend.any() else np.zeros_like(trend)
    return replace(layout, level=level + (layout.hashes.centre - moments.centre) @ trend, trend=trend)


def reach(table: BucketTable, confidence: float) -> Array | float:
    """Deviations (targets,) that a new target is off at most with this probability.

    Beyond the largest score, and of a table without scores, by Student's quantiles; infinite for a single row.
    """
    n, level = table.n_rows, (1 + confidence) / 2
    if n < 2:
        return inf
    if table.scores is None or n >= FEW_ROWS:
        return float(stdtrit(n - 1, level)) * sqrt(1 + 1 / n)
    n = len(table.scores)
    place = ceil((n + 1) * confidence)
    beyond = 1.0 if place <= n else float(stdtrit(n - 1, level) / stdtrit(n - 1, (1 + n / (n + 1)) / 2))
    return np.asarray(table.scores[min(place, n) - 1] * beyond)
