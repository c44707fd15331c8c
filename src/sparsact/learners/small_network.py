"""A small network of ReLU units: the student of smooth functions, as an estimator and as a program."""

from __future__ import annotations

import warnings
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.programs import ExportedFunction, ProgramSource, program_of_layers
from sparsact.statistics.column_scales import deviations, standard_units
from sparsact.validation.estimators import checked_rows

Array = NDArray[np.float64]

_ROWS_AT_ONCE: Final = 1024  # whose layers stay in the cache
_PENALTY: Final = 0.3  # on squared weights, as MLPRegressor has it
_MOST_STEPS: Final = 300  # of L-BFGS


class SmallNetworkRegressor(ExportedFunction, RegressorMixin, BaseEstimator):  # type: ignore[misc] # untyped scikit-learn
    r"""A network of ``n_units`` ReLU units a layer, fitted to standardised columns and targets.

    .. math:: f(x) = \min(\max(W_L\, \sigma(\cdots \sigma(W_1 (x - c) + b_1) \cdots) + b_L,\ \ell),\ h),

    where the limits are the least and the largest target. A call checks the number of columns alone. A row costs a
    multiplication for each weight.

    Parameters
    ----------
    n_units : tuple of int, default=(64, 64)
        Units of each layer.
    random_state : int, RandomState or None, default=None
        Seed of the weights at the start.

    Attributes
    ----------
    n_iter_ : int
        Steps of L-BFGS; the search did not settle if they are 300, the most that are taken.
    """

    def __init__(self, n_units: tuple[int, ...] = (64, 64), random_state: Any = None) -> None:
        self.n_units, self.random_state = n_units, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows X (m, d) and targets y (m,); a ValueError for what is not finite."""
        rows, values = checked_rows(self, X, y, dtype=np.float64, y_numeric=True)
        same, level = np.ones(len(rows)), values.mean()
        units, about = standard_units(rows, same), values - level
        size = float(deviations(values[:, None], same)[0] or np.abs(about).max()) or 1.0
        options = {"solver": "lbfgs", "alpha": _PENALTY, "max_iter": _MOST_STEPS, "random_state": self.random_state}
        search = MLPRegressor(hidden_layer_sizes=self.n_units, **options)
        self.centre_, self.limits_ = rows.mean(axis=0), (float(values.min()), float(values.max()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            search.fit(((rows - self.centre_) * units).astype(np.float32), (about / size).astype(np.float32))
        self.n_iter_ = int(search.n_iter_)
        weights, biases = ([each.astype(np.float64) for each in part] for part in (search.coefs_, search.intercepts_))
        weights[0] *= units[:, None]
        weights[-1] *= size
        biases[-1] = biases[-1] * size + level
        self.weights_, self.biases_ = weights, biases
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Values (m,) at rows (m, d)."""
        check_is_fitted(self)
        return np.asarray(self(checked_rows(self, X, reset=False, dtype=np.float64)))

    def __call__(self, X: ArrayLike) -> Any:
        """Value at a row (d,), or values (m,) at rows (m, d)."""
        X = np.asarray(X, dtype=np.float64)
        if X.shape[-1:] != self.centre_.shape:
            raise ValueError(f"a row has {len(self.centre_)} columns; got shape {X.shape}.")
        if X.ndim == 1:
            return float(self._values(X))
        return np.concatenate([self._values(X[i : i + _ROWS_AT_ONCE]) for i in range(0, max(len(X), 1), _ROWS_AT_ONCE)])

    def _values(self, X: Array) -> Array:
        units = X - self.centre_
        for W, b in zip(self.weights_[:-1], self.biases_[:-1], strict=True):
            units = units @ W
            units += b
            np.maximum(units, 0.0, out=units)
        low, high = self.limits_
        return np.asarray(np.minimum(np.maximum(units @ self.weights_[-1][:, 0] + self.biases_[-1][0], low), high))

    def _program(self) -> ProgramSource:
        check_is_fitted(self)
        return program_of_layers(self.centre_, self.weights_, self.biases_, self.limits_)
