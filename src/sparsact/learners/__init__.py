"""Learners: pure functions, an additive statistic where there is one, and a thin scikit-learn estimator each."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sparsact.learners.dsm import DSMRegressor
from sparsact.learners.dsm.storage import load_dsm
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.storage import load_learner
from sparsact.learners.lsh import (
    LSHClassifier,
    LSHRegressor,
    SupportEstimate,
    TablePlan,
    estimate_support,
    plan_table,
)
from sparsact.learners.lsh.storage import load_learner as load_lsh
from sparsact.learners.sparsely_activated import SparselyActivatedRegressor
from sparsact.learners.sparsely_activated.storage import load_regressor

_LOADERS: dict[Callable[..., Any], tuple[type, ...]] = {
    load_learner: (LowDegreeRegressor, LowDegreeClassifier, LowDegreeRegressorCV),
    load_regressor: (SparselyActivatedRegressor,),
    load_lsh: (LSHRegressor, LSHClassifier),
    load_dsm: (DSMRegressor,),
}
LOADERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    make.__name__: partial(load, make) for load, kinds in _LOADERS.items() for make in kinds
}
"""How each kind of model file becomes a model."""

__all__ = [
    "LOADERS",
    "DSMRegressor",
    "LSHClassifier",
    "LSHRegressor",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "SparselyActivatedRegressor",
    "SupportEstimate",
    "TablePlan",
    "estimate_support",
    "plan_table",
]
