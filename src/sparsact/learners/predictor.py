"""Predictions of any fitted model: values of its functions, and intervals of new measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp import CubeGPRegressor
from sparsact.learners.latent import LatentRegressor
from sparsact.learners.low_degree import LowDegreeClassifier, LowDegreeRegressor
from sparsact.learners.lsh import LSHClassifier, LSHRegressor
from sparsact.learners.sparsely_activated import SparselyActivatedClassifier

Array = NDArray[np.float64]
Rows = NDArray[Any]


@dataclass(frozen=True)
class Predictor:
    """The functions of a fitted model: its targets, or what a classifier compares.

    Attributes
    ----------
    n_outputs : int
        Number of functions.
    method : callable
        Their values (m,) or (m, n_outputs) at rows (m, n).
    intervals : callable or None
        Ends (m, 2) of intervals of new measurements, given rows, the values there, and a probability; or None.
    bounds : tuple of float
        Limits beyond which no measurement lies.
    """

    n_outputs: int
    method: Callable[[Rows], Any]
    intervals: Callable[[Rows, Array, float], Array] | None = None
    bounds: tuple[float, float] = (-inf, inf)

    def values(self, X: Rows) -> Array:
        """Values (m, n_outputs) at rows (m, n)."""
        if not len(X):
            return np.empty((0, self.n_outputs))
        return np.asarray(self.method(X), dtype=np.float64).reshape(len(X), -1)

    def interval(self, X: Rows, values: Array, confidence: float) -> Array | None:
        """Ends (m, 2) of intervals of new measurements about values there; None if the model gives none by itself."""
        if self.intervals is None:
            return None
        return self.intervals(X, values, confidence) if len(X) else np.empty((0, 2))


@singledispatch
def predictor(model: Any) -> Predictor:
    """Predictor of a fitted model, by its type; by default the values of its method ``predict``."""
    return Predictor(1, model.predict)


@predictor.register
def _of_polynomials(model: LowDegreeRegressor) -> Predictor:
    return Predictor(len(np.atleast_1d(model.intercept_)), model.predict)


@predictor.register
def _of_indicators(model: LowDegreeClassifier) -> Predictor:
    return Predictor(len(np.atleast_1d(model.intercept_)), model.decision_function)


@predictor.register
def _of_tables(model: LSHRegressor) -> Predictor:
    return Predictor(int(model.table_.layout.n_targets), model.predict)


@predictor.register
def _of_tables_of_classes(model: LSHClassifier) -> Predictor:
    """By probabilities; of two classes by their difference."""
    n_classes = len(model.classes_)
    if n_classes > 2:
        return Predictor(n_classes, model.predict_proba)
    return Predictor(1, lambda X: np.diff(model.predict_proba(X), axis=1))


@predictor.register
def _of_networks(model: SparselyActivatedClassifier) -> Predictor:
    return Predictor(len(model.estimators_), model.decision_function)


@predictor.register
def _of_processes(model: CubeGPRegressor) -> Predictor:
    return Predictor(1, model.predict, lambda X, _, confidence: model.prediction_intervals(X, confidence))


@predictor.register
def _of_measurements(model: LatentRegressor) -> Predictor:
    if not isinstance(model.link_, str):  # whose bounds are not the same
        return Predictor(len(model.link_), model.predict)
    lower, upper = model.censoring_
    return Predictor(1, model.predict, bounds=(-inf if lower is None else lower, inf if upper is None else upper))
