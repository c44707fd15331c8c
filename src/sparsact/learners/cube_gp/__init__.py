"""Exact Gaussian processes over the cube: kernels that are diagonal in the Walsh basis."""

from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.posterior_mixture import PosteriorDraws, VarianceDecomposition
from sparsact.learners.cube_gp.regressor import CubeGPRegressor

__all__ = ["CubeGPRegressor", "CubeKernel", "PosteriorDraws", "VarianceDecomposition"]
