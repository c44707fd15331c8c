"""A small network of ReLU units: the student of smooth functions, as an estimator and as a program."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.programs import ExportedFunction, ProgramSource, RowSymbols, program_of_layers
from sparsact.statistics.column_scales import deviations, standard_units
from sparsact.validation.estimators import checked_rows

Array = NDArray[np.float64]

_ROWS_AT_ONCE: Final = 1024  # whose layers stay in the cache


@dataclass(frozen=True, eq=False)
class SmallNetwork(ExportedFunction):
    r"""Layers of ReLU units and a last sum, within limits: values of a network at rows.

    .. math:: f(x) = \min(\max(W_L\, \sigma(\cdots \sigma(W_1 (x - c) + b_1) \cdots) + b_L,\ \ell),\ h).

    Attributes
    ----------
    centre : (d,)
        What is taken off the columns first.
    weights, biases : tuple of (n_l, n_{l+1}) and (n_{l+1},)
        The layers; the last one has a single unit without ReLU.
    limits : tuple of float
        Least and largest value.
    """

    centre: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    limits: tuple[float, float]

    def __call__(self, X: ArrayLike) -> Any:
        """Value at a row (d,), or values (m,) at rows (m, d)."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim == 1:
            return float(self._values(X[None])[0])
        return np.concatenate([self._values(X[i : i + _ROWS_AT_ONCE]) for i in range(0, max(len(X), 1), _ROWS_AT_ONCE)])

    def _values(self, X: Array) -> Array:
        units = X - self.centre
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            units = units @ W
            units += b
            np.maximum(units, 0.0, out=units)
        return np.clip(units @ self.weights[-1][:, 0] + self.biases[-1], *self.limits)

    def _program(self) -> ProgramSource:
        inputs = RowSymbols(len(self.centre), None)
        return program_of_layers(inputs, self.centre, self.weights, self.biases, self.limits)


class SmallNetworkRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc] # untyped scikit-learn
    """A network fitted by L-BFGS to standardised columns and a standardised target.

    Parameters
    ----------
    n_units : tuple of int
        ReLU units of each layer.
    alpha : float
        Penalty on squared weights, as scikit-learn's ``MLPRegressor`` has it.
    max_iter : int
        Steps of L-BFGS.
    random_state : int, RandomState or None, default=None
        Of the first weights.

    Attributes
    ----------
    network_ : SmallNetwork
        The function. Its values stay between the least and the largest target.
    """

    def __init__(
        self,
        n_units: tuple[int, ...] = (64, 64),
        alpha: float = 0.3,
        max_iter: int = 300,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_units, self.alpha, self.max_iter, self.random_state = n_units, alpha, max_iter, random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows X (m, d) and targets y (m,)."""
        X, y = checked_rows(self, X, y, dtype=np.float64, y_numeric=True)
        same = np.ones(len(X))
        centre, units, level = X.mean(axis=0), standard_units(X, same), y.mean()
        size = float(deviations(y[:, None], same)[0]) or 1.0
        layers = {"hidden_layer_sizes": self.n_units, "solver": "lbfgs", "alpha": self.alpha}
        network = MLPRegressor(**layers, max_iter=self.max_iter, random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # steps are a budget
            network.fit(((X - centre) * units).astype(np.float32), ((y - level) / size).astype(np.float32))
        weights, biases = ([each.astype(np.float64) for each in part] for part in (network.coefs_, network.intercepts_))
        weights[0] *= units[:, None]
        weights[-1] *= size
        biases[-1] = biases[-1] * size + level
        limits = (float(y.min()), float(y.max()))
        self.network_ = SmallNetwork(centre, tuple(weights), tuple(biases), limits)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Values (m,) at rows (m, d)."""
        check_is_fitted(self)
        return np.asarray(self.network_(checked_rows(self, X, reset=False, dtype=np.float64)))
