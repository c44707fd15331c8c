"""Sparse Fourier spectra from random examples: the significant monomials among all of low degree."""

from sparsact.learners.sparse_fourier.regressor import SparseFourierRegressor

__all__ = ["SparseFourierRegressor"]
