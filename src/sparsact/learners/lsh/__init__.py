"""Learning by locality-sensitive hashing: additive tables of buckets, and the estimators on them."""

from sparsact.learners.lsh.classifier import LSHClassifier
from sparsact.learners.lsh.planner import TablePlan, plan_table
from sparsact.learners.lsh.regressor import LSHRegressor
from sparsact.learners.lsh.support import SupportEstimate, estimate_support

__all__ = ["LSHClassifier", "LSHRegressor", "SupportEstimate", "TablePlan", "estimate_support", "plan_table"]
