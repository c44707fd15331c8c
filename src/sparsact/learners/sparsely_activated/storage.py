"""SparselyActivatedRegressor as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparsact import storage
from sparsact.learners.stored import encoding_named, expect, plain, remade, text, whole
from sparsact.network import SparselyActivatedNetwork

_LEARNED: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": whole,
    "encoding_": lambda value, _: encoding_named(value),
    "n_iter_": whole,
    "origin_": text,
}


def save_regressor(learner: Any, path: str | Path) -> None:
    """Write a fitted regressor."""
    network = learner.network_
    params = {name: plain(value) for name, value in learner.get_params(deep=False).items()}
    state: dict[str, Any] = {"params": params, "learned": {name: getattr(learner, name) for name in _LEARNED}}
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    arrays = {
        "u": network.u,
        "W": network.W,
        "b": network.b,
        "loss": np.array([learner.loss_]),  # may be infinite, which JSON cannot say
        "activity": learner._activity,
        "witness": learner._witness,
    }
    storage.write(path, type(learner).__name__, state, arrays)


def load_regressor(make: Any, state: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The regressor that :func:`save_regressor` wrote; ``make`` is its class."""
    learner = remade(make, state)
    for name, check in _LEARNED.items():
        setattr(learner, name, check(state["learned"][name], name))
    n = learner.n_features_in_
    learner.network_ = SparselyActivatedNetwork(arrays["u"], expect(arrays, "W", np.float64, (None, n)), arrays["b"])
    learner.loss_ = float(expect(arrays, "loss", np.float64, (1,))[0])
    learner._activity = expect(arrays, "activity", np.int64, (None,))
    learner._witness = expect(arrays, "witness", np.float64, (n,))
    if not 0 < len(learner._activity) <= 1 + learner.network_.s or (learner._activity < 0).any():
        raise ValueError("counts of active units that do not fit the network")
    if not np.isfinite(learner._witness).all() or (learner.encoding_ and (abs(learner._witness) != 1).any()):
        raise ValueError("a witness that is no point of the domain")
    return learner
