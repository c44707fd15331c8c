"""The low-degree algorithm: linear regression on the monomials of low degree, exactly, without their matrix."""

from sparsact.learners.low_degree.classifier import LowDegreeClassifier
from sparsact.learners.low_degree.cross_validated import LowDegreeRegressorCV
from sparsact.learners.low_degree.regressor import LowDegreeRegressor

__all__ = ["LowDegreeClassifier", "LowDegreeRegressor", "LowDegreeRegressorCV"]
