"""The polynomials of the buckets: of each alone, or of all tables together by one least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr

from sparsact.kernels import bucket_statistics, hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.statistics.statistic import Batch

MIN_PENALTY = 1e-8  # two tables alone leave constants to choose
TOLERANCE = 1e-10
MAX_PASSES = 2000


@dataclass(frozen=True)
class BucketSolution:
    """What prediction needs: a polynomial in each bucket, with values in the units of y."""

    coefficients: Array  # (B, D, targets)
    weights: Array  # (B,), 0 for a bucket that counts as empty
    variances: Array  # (B, targets), of a target about its polynomial, in squares of the layout's units
    average: bool = True


def separate_solution(table: BucketTable, alpha: float, min_count: int) -> BucketSolution:
    """Ridge polynomials of the buckets; those of fewer than ``min_count`` rows count as empty."""
    layout, counts, weight = table.layout, table.counts, table.sums[:, table.layout.n_local]
    coefficients, residual = bucket_statistics.solve(table.sums, layout.n_local, layout.degree, layout.n_targets, alpha)
    weights = np.where(counts >= min_count, weight, 0.0)
    return BucketSolution(coefficients * layout.unit, weights, _variances(counts, weight, layout.n_features, residual))


def _variances(counts: NDArray[np.int64], weight: Array, D: int, residual: Array) -> Array:
    """Variance about the polynomial in each bucket, drawn towards that of all by as many rows as coefficients."""
    enough, row_weight = counts > D, weight / np.maximum(counts, 1)
    free = np.maximum(counts - D, 0) * np.where(counts > 0, row_weight, 0.0)
    # Where no bucket has more rows than coefficients, the variance about the trend has to do.
    pooled = residual[enough].sum(axis=0) / free.sum() if free.any() else np.ones(residual.shape[1])
    prior = D * np.where(counts > 0, row_weight, 1.0)
    variances: Array = (np.where(enough[:, None], residual, 0.0) + prior[:, None] * pooled) / (free + prior)[:, None]
    return variances


def joint_solution(table: BucketTable, rows: Batch, alpha: float, min_count: int) -> BucketSolution:
    r"""Coefficients that minimise the squared error of the *sum* over tables, with a ridge penalty on all of them.

    .. math:: \min_c \sum_i w_i \Big(y_i - \sum_t \langle c_{t, b_t(x_i)}, \phi_t(x_i) \rangle\Big)^2
              + \alpha T \sum_{t, b} \|c_{t,b}\|^2

    With degree 0 and grids this is ridge regression on random binning features [1]_. Found by LSMR on the sparse matrix
    of features, (rows, buckets * D): a pass over its ``rows * T * D`` entries for each iteration.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines", 2007, Section 4.
    """
    X, Y, weights = rows.X, rows.y, rows.row_weights()
    layout = table.layout
    design = _design(X, table, layout)
    own = separate_solution(table, alpha, min_count)
    present = np.repeat(own.weights > 0, layout.n_features)
    root = np.sqrt(weights)
    scaled = sp.csr_array(design.multiply(root[:, None]))[:, np.flatnonzero(present)]
    residual = layout.residual(X, Y) * root[:, None]
    damp = float(np.sqrt(max(alpha, MIN_PENALTY) * layout.n_tables))
    coefficients = np.zeros((design.shape[1], layout.n_targets))
    for target in range(layout.n_targets):
        found = lsmr(
            scaled, residual[:, target], damp=damp, atol=TOLERANCE, btol=TOLERANCE, conlim=0, maxiter=MAX_PASSES
        )
        coefficients[present, target] = found[0]
    shaped = coefficients.reshape(len(table.index), layout.n_features, layout.n_targets) * layout.unit
    return BucketSolution(
        np.ascontiguousarray(shaped), np.where(own.weights > 0, 1.0, 0.0), own.variances, average=False
    )


def _design(X: Array, table: BucketTable, layout: Layout) -> sp.csr_array:
    """Features of each row in the columns of its buckets, (m, B * D)."""
    found = hashing.places(X, layout.hashes)
    ids = table.index.find(found.keys).astype(np.int64)
    D = layout.n_features
    columns = (ids[:, :, None] * D + np.arange(D)).reshape(len(X), -1)
    entries = np.broadcast_to(bucket_statistics.features(found.V, layout.degree), (len(X), layout.n_tables, D)).reshape(
        len(X), -1
    )
    starts = np.arange(len(X) + 1) * columns.shape[1]
    return sp.csr_array((entries.ravel(), columns.ravel(), starts), shape=(len(X), len(table.index) * D))
