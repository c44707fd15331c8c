"""Measurement models: a latent on the cube behind a floor, a ceiling, or a curve that is learned."""

from sparsact.learners.latent.regressor import LatentRegressor

__all__ = ["LatentRegressor"]
