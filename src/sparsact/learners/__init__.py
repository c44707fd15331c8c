"""Learners: pure functions, an additive statistic where there is one, and a thin scikit-learn estimator each."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sparsact.learners.dsm import DSMRegressor
from sparsact.learners.dsm.storage import load_dsm
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.storage import load_learner
from sparsact.learners.sparsely_activated import SparselyActivatedRegressor
from sparsact.learners.sparsely_activated.storage import load_regressor

LOADERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    make.__name__: partial(load_learner, make)
    for make in (LowDegreeRegressor, LowDegreeClassifier, LowDegreeRegressorCV)
} | {
    DSMRegressor.__name__: partial(load_dsm, DSMRegressor),
    SparselyActivatedRegressor.__name__: partial(load_regressor, SparselyActivatedRegressor),
}
"""How each kind of model file becomes a model."""

__all__ = [
    "LOADERS",
    "DSMRegressor",
    "LowDegreeClassifier",
    "LowDegreeRegressor",
    "LowDegreeRegressorCV",
    "SparselyActivatedRegressor",
]
