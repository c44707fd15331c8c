"""Data-dependent sparse models: a frozen bottom layer, a mask from a router, a trained top layer."""

from sparsact.learners.dsm.regressor import DSMRegressor

__all__ = ["DSMRegressor"]
