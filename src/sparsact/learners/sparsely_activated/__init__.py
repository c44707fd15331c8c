"""Empirical risk minimisation in the class of sparsely activated networks."""

from sparsact.learners.sparsely_activated.classifier import SparselyActivatedClassifier
from sparsact.learners.sparsely_activated.regressor import SparselyActivatedRegressor

__all__ = ["SparselyActivatedClassifier", "SparselyActivatedRegressor"]
