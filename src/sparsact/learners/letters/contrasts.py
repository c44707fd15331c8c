"""Uncertainty of differences between values of an ensemble on letters, by its Gaussian processes."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.sparse import csr_array

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.letters.ensemble import LetterEnsemble

NEAREST: Final = 3_000  # rows, whose matrix is factorized in a second
ROWS_AT_ONCE: Final = 1 << 12


def ensemble_deviations(ensemble: LetterEnsemble, codes: Codes, weights: csr_array) -> Array:
    """Deviations (k,) of contrasts of weights (k, m), each of sum 0, of values at rows of letters (m, n).

    The variance is the mean of the processes', plus what their kernels leave open: as each was learned without one of
    the folds, that is the jackknife's, of one fold at a time. The square of the distance between their mean and the
    ensemble is added.
    """
    values, score = weights @ ensemble.values(codes), ensemble.scores["process"]
    pairs = (_moments(one, codes, weights) for one in score.models if isinstance(one, Posterior))
    means, variances = map(np.stack, zip(*pairs, strict=True))
    scale = score.scale * ensemble.unit
    deviation = np.sqrt(variances.mean(axis=0) + (len(means) - 1) * means.var(axis=0))
    return np.asarray(np.hypot(scale * deviation, values - scale * means.mean(axis=0)))


def _moments(process: Posterior, codes: Codes, weights: csr_array) -> tuple[Array, Array]:
    """Means and variances (k,) of contrasts by one process.

    From the rows that covary most with the contrasts: fewer rows leave more variance, never less. Where these rows,
    each predicted from the others, are further away than their deviations say, the variance is larger in proportion.
    """
    system, kernel = process.system, process.system.kernel
    blocks = (system.points[start : start + ROWS_AT_ONCE] for start in range(0, len(system), ROWS_AT_ONCE))
    cross = np.concatenate([weights @ kernel.covariance(codes, rows) for rows in blocks], axis=1)
    prior = ((weights @ kernel.covariance(codes, codes)) * weights.toarray()).sum(axis=1)
    shares = (cross**2 / np.maximum(prior, np.finfo(float).tiny)[:, None]).sum(axis=0)
    near = np.sort(np.argsort(-shares, kind="stable")[:NEAREST])
    local = DenseSystem(kernel, system.points[near], system.noise[near])
    variance = np.maximum(prior - local.explained(cross[:, near].T), 0.0)
    targets = process.values(local.points) + local.noise * process.alpha[near]
    errors = local.factor.solve(targets) / np.sqrt(local.factor.lower_inverse().diagonal())
    return weights @ process.values(codes), variance * max(1.0, float(np.mean(errors**2)))
