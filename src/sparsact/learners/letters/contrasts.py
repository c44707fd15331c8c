"""How sure an ensemble on letters is of differences between its values: by its Gaussian processes."""

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


def contrast_moments(ensemble: LetterEnsemble, codes: Codes, weights: csr_array) -> tuple[Array, Array]:
    r"""Contrasts of weights (k, m), each of sum 0, of values at rows of letters (m, n), and their deviations (k,).

    The variance is the posterior's given the kernel that was learned first, from the rows that covary most with the
    contrasts (fewer rows leave more variance, never less), times the mean square of these rows' errors over their
    deviations, each predicted from the others, where that is above 1. The variance between the processes is added, as
    each has a kernel of its own, and the square of the distance between their mean and the ensemble.
    """
    values = weights @ ensemble.values(codes)
    score = ensemble.scores["process"]
    processes = [one for one in score.models if isinstance(one, Posterior)]
    means = np.stack([weights @ one.values(codes) for one in processes])
    system, alpha = processes[0].system, processes[0].alpha
    blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(system), ROWS_AT_ONCE)]
    cross = np.concatenate([weights @ system.kernel.covariance(codes, system.points[rows]) for rows in blocks], axis=1)
    prior = ((weights @ system.kernel.covariance(codes, codes)) * weights.toarray()).sum(axis=1)
    shares = (cross**2 / np.maximum(prior, np.finfo(float).tiny)[:, None]).sum(axis=0)
    near = np.sort(np.argsort(-shares, kind="stable")[:NEAREST])
    local = DenseSystem(system.kernel, system.points[near], system.noise[near])
    variance = np.maximum(prior - local.explained(cross[:, near].T), 0.0)
    targets = processes[0].values(local.points) + local.noise * alpha[near]
    errors = local.factor.solve(targets) / np.sqrt(local.factor.lower_inverse().diagonal())
    deviation = np.sqrt(variance * max(1.0, float(np.mean(errors**2))) + means.var(axis=0))
    scale = score.scale * ensemble.unit
    return values, np.hypot(scale * deviation, values - scale * means.mean(axis=0))
