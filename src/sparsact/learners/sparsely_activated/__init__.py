"""Empirical risk minimisation in the class of sparsely activated networks."""

from sparsact.learners.sparsely_activated.classifier import SparselyActivatedClassifier
from sparsact.learners.sparsely_activated.regressor import SparselyActivatedRegressor
from sparsact.learners.sparsely_activated.stack_regressor import StackRegressor

__all__ = ["SparselyActivatedClassifier", "SparselyActivatedRegressor", "StackRegressor"]
