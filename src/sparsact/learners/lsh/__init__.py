"""Learning by locality-sensitive hashing: additive tables of buckets, and the estimators on them."""

from sparsact.learners.lsh.bucket_counts import SupportEstimate, estimate_support
from sparsact.learners.lsh.classifier import LSHClassifier
from sparsact.learners.lsh.compact_predictor import CompactPredictor
from sparsact.learners.lsh.drift import Drift
from sparsact.learners.lsh.frontier import Frontier, FrontierPoint
from sparsact.learners.lsh.planner import TablePlan, plan_table
from sparsact.learners.lsh.regressor import LSHRegressor

__all__ = [
    "CompactPredictor",
    "Drift",
    "Frontier",
    "FrontierPoint",
    "LSHClassifier",
    "LSHRegressor",
    "SupportEstimate",
    "TablePlan",
    "estimate_support",
    "plan_table",
]
