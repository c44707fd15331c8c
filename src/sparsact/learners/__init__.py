"""Learners, one additive statistic and one thin scikit-learn estimator each."""

from collections.abc import Callable
from functools import partial
from typing import Any

from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.storage import load_learner

LOADERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    make.__name__: partial(load_learner, make)
    for make in (LowDegreeRegressor, LowDegreeClassifier, LowDegreeRegressorCV)
}
"""How each kind of model file becomes a model."""

__all__ = ["LOADERS", "LowDegreeClassifier", "LowDegreeRegressor", "LowDegreeRegressorCV"]
