"""DSMRegressor as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact import storage
from sparsact.learners.dsm.features import Bottom, SparseLayer, to_dict
from sparsact.learners.dsm.statistic import RidgeStatistic
from sparsact.learners.dsm.training import TopLayer
from sparsact.learners.stored import Arrays, State, expect, flag, number, plain, remade, rows_in, take_columns, whole
from sparsact.routing import Router, from_dict

_LEARNED: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": whole,
    "n_rows_": rows_in,
    "_n_targets": partial(whole, least=1),
    "_single_target": flag,
}
_SUMS = ("feature_mean", "target_mean", "gram", "cross")


def save_dsm(learner: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted regressor; the solution is found first, if it has not been."""
    A, intercept = learner._top_layer
    layer: SparseLayer = learner.layer_
    params = learner.get_params(deep=False)
    if isinstance(params["router"], Router):
        params["router"] = to_dict(params["router"])
    state: State = {
        "params": {name: plain(value) for name, value in params.items()},
        "learned": {name: plain(getattr(learner, name)) for name in _LEARNED},
        "router": to_dict(layer.router),
        "activation": layer.bottom.activation,
        "seed": learner._seed,
        "trained": "top_" in learner.__dict__,
    }
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    arrays: Arrays = {"B": layer.bottom.B, "c": layer.bottom.c, "A": A, "intercept": intercept}
    arrays |= {f"router.{name}": np.asarray(array) for name, array in layer.state.items()}
    if state["trained"]:
        arrays |= {"velocity": learner.top_.velocity, "intercept_velocity": learner.top_.intercept_velocity}
        arrays["losses"] = np.array(learner.top_.losses, dtype=np.float64)
    elif statistic:
        state["rows"] = _sums_out(learner._statistic, arrays)
    storage.write(path, type(learner).__name__, state, arrays)


def load_dsm(make: Any, state: State, arrays: Arrays) -> Any:
    """The regressor that :func:`save_dsm` wrote; ``make`` is its class."""
    params = state["params"]
    if isinstance(params["router"], dict):
        params["router"] = from_dict(params["router"])
    learner = remade(make, state)
    for name, check in _LEARNED.items():
        setattr(learner, name, check(state["learned"][name], name))
    learner._seed = tuple(whole(word, "seed") for word in state["seed"])
    T, B = learner._n_targets, expect(arrays, "B", np.float64, (None, learner.n_features_in_))
    t = len(B)
    if learner._single_target and T != 1:
        raise ValueError(f"{T} targets where there is one")
    if state["activation"] not in ("identity", "relu"):
        raise ValueError(f"unknown activation {state['activation']!r}")
    bottom = Bottom(B, expect(arrays, "c", np.float64, (t,)), state["activation"])
    learner.layer_ = _layer(bottom, from_dict(state["router"]), arrays)
    A, intercept = expect(arrays, "A", np.float64, (T, t)), expect(arrays, "intercept", np.float64, (T,))
    if state["trained"]:
        velocities = (
            expect(arrays, "velocity", np.float64, (T, t)),
            expect(arrays, "intercept_velocity", np.float64, (T,)),
        )
        learner.top_ = TopLayer(A, intercept, *velocities, expect(arrays, "losses", np.float64, (None,)).tolist())
        return learner
    learner._solution = A, intercept
    if "rows" in state:
        learner.statistic_ = _sums_in(RidgeStatistic(t, T), rows_in(state["rows"], "rows"), arrays)
    return learner


def statistic_out(learner: Any, arrays: Arrays) -> State:
    """What a learner has seen, without its layer: names, shapes, and the sums."""
    state: State = {"learned": {name: plain(getattr(learner, name)) for name in _LEARNED}}
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    return state | {"rows": _sums_out(learner._statistic, arrays)}


def statistic_in(learner: Any, state: State, arrays: Arrays) -> None:
    """Give a learner what :func:`statistic_out` wrote; its layer is drawn, if it has none, from an integer seed."""
    take_columns(learner, state["learned"]["n_features_in_"], state)
    for name, check in _LEARNED.items():
        setattr(learner, name, check(state["learned"][name], name))
    if "layer_" not in learner.__dict__:
        learner.layer_ = learner._draw(np.zeros((1, learner.n_features_in_)), np.ones(1))
    sums = RidgeStatistic(learner.layer_.bottom.t, learner._n_targets)
    learner.statistic_ = _sums_in(sums, rows_in(state["rows"], "rows"), arrays)


def _sums_out(sums: RidgeStatistic, arrays: Arrays) -> int:
    """The rows of the sums; their arrays are put among the others."""
    arrays |= {f"sums.{name}": getattr(sums, name) for name in _SUMS} | {"sums.weight": np.array([sums.weight])}
    return sums.n_rows


def _sums_in(sums: RidgeStatistic, n_rows: int, arrays: Arrays) -> RidgeStatistic:
    weight = float(expect(arrays, "sums.weight", np.float64, (1,))[0])
    sums.n_rows, sums.weight = n_rows, number(weight, "weight")
    for name in _SUMS:
        setattr(sums, name, expect(arrays, f"sums.{name}", np.float64, getattr(sums, name).shape))
    return sums


class _NoNumbers:
    """Stands for a generator where the shapes of what it would draw are wanted: zeros that take no memory."""

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: tuple[int, ...] = ()) -> NDArray[np.float64]:
        return np.broadcast_to(0.0, size)

    uniform = normal


def _layer(bottom: Bottom, router: Router, arrays: Arrays) -> SparseLayer:
    """The layer with what its router needs, which must be as the router would draw it."""
    columns = bottom.t if router.routes_on != "inputs" else bottom.d
    if router.width(columns) != bottom.t or router.n_active(columns) > bottom.t:
        raise ValueError(f"{router!r} does not choose among {bottom.t} units")
    due = router.initial_state(columns, rng=cast("np.random.Generator", _NoNumbers()))
    state = {name: expect(arrays, f"router.{name}", np.float64, array.shape) for name, array in due.items()}
    if not all(np.isfinite(array).all() for array in state.values()):
        raise ValueError(f"the state of {router!r} is not finite")
    return SparseLayer(bottom, router, state)
