"""What SparselyActivatedRegressor and SparselyActivatedClassifier have in common: their parameters."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from sparsact.learners.sparsely_activated.erm import Bounds
from sparsact.learners.sparsely_activated.leaf_models import TrainingSample

ROWS_PER_WEIGHT, MOST_UNITS = 4, 128  # of n_units="auto"


class SparselyActivatedModel(BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """Base of the learners of sparsely activated networks."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_units": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_active": [Interval(Integral, 1, None, closed="left")],
        "max_weight": [Interval(Real, 0, None, closed="neither"), None],
        "max_bias": [Interval(Real, 0, None, closed="neither"), None],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "domain": [StrOptions({"auto", "cube", "real"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_units: int | str = 64,
        max_active: int = 1,
        *,
        max_weight: float | None = None,
        max_bias: float | None = None,
        n_restarts: int = 8,
        max_iter: int = 200,
        tol: float = 1e-8,
        domain: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_units = n_units
        self.max_active = max_active
        self.max_weight = max_weight
        self.max_bias = max_bias
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.tol = tol
        self.domain = domain
        self.random_state = random_state
        self.verbose = verbose

    def _bounds(self, sample: TrainingSample) -> Bounds:
        n_units = self.n_units
        if isinstance(n_units, str):
            n_units = min(max(int(sample.total / (ROWS_PER_WEIGHT * (sample.n + 1))), 2), MOST_UNITS)
        return Bounds(int(n_units), int(self.max_active), self.n_restarts, self.max_iter, self.tol)

    def _fork(self) -> Callable[[bool], None]:
        """For :func:`.transaction`: a fit changes nothing in place."""
        return lambda done: None
