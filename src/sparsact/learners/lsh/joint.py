"""All tables fitted together: the polynomials of every bucket by one least squares."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from sparsact.kernels import bucket_statistics, hashing
from sparsact.learners.lsh.bucket_table import BucketSolution, BucketTable
from sparsact.learners.lsh.layout import Array, Layout

LEAST_PENALTY = 1e-8  # two tables alone leave constants to choose
TOLERANCE = 1e-10
MOST_PASSES = 2000


def joint_solution(
    table: BucketTable, rows: list[tuple[Array, Array, Array]], alpha: float, min_count: int
) -> BucketSolution:
    r"""Coefficients that minimise the squared error of the *sum* over tables, with a ridge penalty on all of them.

    .. math:: \min_c \sum_i w_i \Big(y_i - \sum_t \langle c_{t, b_t(x_i)}, \phi_t(x_i) \rangle\Big)^2
              + \alpha T \sum_{t, b} \|c_{t,b}\|^2

    With degree 0 and grids this is ridge regression on random binning features [1]_. Found by LSMR on the sparse matrix
    of features, (rows, buckets * D): a pass over its ``rows * T * D`` entries for each iteration.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines", 2007, Section 4.
    """
    X, Y, weights = (np.concatenate(part) for part in zip(*rows, strict=True))
    layout = table.layout
    design = _design(X, table, layout)
    own = table.solution(alpha, min_count)
    present = np.repeat(own.weights > 0, layout.n_features)
    root = np.sqrt(weights)
    scaled = sp.csr_array(design.multiply(root[:, None]))[:, np.flatnonzero(present)]
    residual = layout.residual(X, Y) * root[:, None]
    damp = float(np.sqrt(max(alpha, LEAST_PENALTY) * layout.n_tables))
    coefficients = np.zeros((design.shape[1], layout.n_targets))
    for target in range(layout.n_targets):
        found = lsmr(
            scaled, residual[:, target], damp=damp, atol=TOLERANCE, btol=TOLERANCE, conlim=0, maxiter=MOST_PASSES
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
