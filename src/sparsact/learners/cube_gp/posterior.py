"""The system and the posterior that belong to rows of the cube, a kernel and a noise variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import CubePosterior, CubeSystem
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.inducing import InducingSystem

CubeSystems = CubeSystem | DenseSystem | InducingSystem


def system_of(
    kernel: CubeKernel, noise_variance: float, rows: DistinctRows, inducing: NDArray[np.intp] | None = None
) -> CubeSystems:
    """By transforms of the whole cube where it has a table, else by matrices of the rows or of inducing points."""
    noise = rows.noise(noise_variance, kernel.variance)
    if kernel.has_table:
        return CubeSystem(kernel, rows.bits, noise)
    if inducing is None:
        return DenseSystem(kernel, rows.bits, noise)
    return InducingSystem(kernel, rows.bits, noise, inducing)


def posterior_of(system: CubeSystems, y: Array, known_alpha: Array | None = None) -> Posterior:
    """The posterior given targets (m,), whose dual coefficients may be known."""
    alpha = system.dual_coefficients(y) if known_alpha is None else known_alpha
    return CubePosterior(system, alpha) if isinstance(system, CubeSystem) else Posterior(system, alpha)
