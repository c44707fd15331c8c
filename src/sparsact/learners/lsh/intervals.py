r"""How many predicted deviations a new target of an LSH model may be off; with few rows, from rows held out.

A model of few rows errs more than its rows show, as its linear part was fitted to them. Its hash functions stay, and
linear part and buckets are fitted again without each fold; the errors there, in the deviations that this fit predicts
for them, are scores of new rows. By [1]_, a new score is at most the :math:`\lceil c\,(n + 1) \rceil`-th smallest of n
with probability c.

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
from scipy.special import stdtrit

from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.ends import Policy
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array, Layout, PrincipalMoments, linear_trend
from sparsact.learners.lsh.predictor import TablePredictor, separate_solution
from sparsact.statistics.statistic import Batch
from sparsact.statistics.units import SMALLEST, standard_units

FEW_ROWS: Final = 512  # of more, the linear part and the choice of cells spend a share that deviations do not miss
LARGEST_SCORE: Final = 1e100  # times a deviation it is still a float
FOLDS: Final = 20  # fits of few rows


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
        solution = separate_solution(refitted, alpha, min_count)
        inputs = InputRules(np.zeros(d), np.zeros(0, dtype=np.int64))
        predictor = TablePredictor(refitted, solution, Policy(extrapolate="linear"), False, FixedPart(), inputs)
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
