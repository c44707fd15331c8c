"""A fitted data-dependent sparse model: what can be asked of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.dsm.features import Bottom, SparseLayer, to_dict
from sparsact.learners.dsm.training import RidgeStatistic, TopLayer
from sparsact.routing import Router, from_dict
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.statistics.column_scales import deviations
from sparsact.transaction import lock_of
from sparsact.validation.estimators import checked_rows

Array = NDArray[np.float64]
LARGEST: Final = 1e100  # of a pre-activation, and of a target in its unit: sums of squares are finite
LARGEST_NUMBER: Final = 1e305  # differences are finite
_LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "n_rows_": schema.as_n_rows,
    "_n_targets": partial(schema.as_count, minimum=1),
    "_single_target": schema.as_bool,
}
_BOTTOM: Final = {"B": ArrayField("t n"), "c": ArrayField("t"), "centre": ArrayField("n", finite=True, optional=True)}
_SOLUTION: Final = {"A": ArrayField("T t"), "intercept": ArrayField("T")}
_UNIT: Final = {"unit": ArrayField("T", finite=True, nonnegative=True, optional=True)}
_TRAINED: Final = {"velocity": ArrayField("T t"), "intercept_velocity": ArrayField("T"), "losses": ArrayField("epochs")}


class FittedDSM:
    """What :class:`~sparsact.DSMRegressor` answers once it has a layer, and sums or a top layer."""

    alpha: float
    fit_intercept: bool
    layer_: SparseLayer
    statistic_: RidgeStatistic
    top_: TopLayer
    n_rows_: int
    _seed: tuple[int, ...]
    _single_target: bool
    _n_targets: int
    _unit: Array  # (T,), of the targets in sums and training

    def predict(self, X: ArrayLike) -> Array:
        """Predicted targets, (m,) or (m, T)."""
        check_is_fitted(self)
        rows = self._rows(X)
        with lock_of(self):
            layer, (A, intercept) = self.layer_, self._in_units
        values = (layer.values(rows, A) + intercept) * self._unit
        return values[:, 0] if self._single_target else values

    def active_units(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Which units each row switches on, (m, t)."""
        check_is_fitted(self)
        return self.layer_.active(self._rows(X))

    def flops(self, *, routing: bool = True) -> int:
        """Multiplications and additions of one prediction; without routing, of the active units alone.

        The paper counts the latter (Table 1). Top-k needs all pre-activations: what it saves is in the top layer.
        """
        check_is_fitted(self)
        return self.layer_.flops(len(self._top_layer[1]), routing=routing)

    def save(self, path: str | Path, *, statistic: bool = False) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back.

        Parameters
        ----------
        path : path-like
            The file; it is replaced whole or not at all.
        statistic : bool, default=False
            Also keep the sums (``8 t**2`` bytes), so that a loaded ridge model can go on with ``partial_fit`` and
            ``merge``. A trained model can always go on.
        """
        check_is_fitted(self)
        with lock_of(self):
            A, intercept = self._in_units  # found now, if it has not been
            bottom = self.layer_.bottom
            arrays: Arrays = {"B": bottom.B, "c": bottom.c, "centre": bottom.centre}
            arrays |= {"A": A, "intercept": intercept, "unit": self._unit}
            arrays |= {f"router.{name}": np.asarray(array) for name, array in self.layer_.state.items()}
            state: State = schema.learned_state(self, _LEARNED) | {
                "params": schema.params_of(self),
                "router": to_dict(self.layer_.router),
                "activation": bottom.activation,
                "seed": self._seed,
                "trained": "top_" in vars(self),
            }
            router = self.get_params(deep=False)["router"]  # type: ignore[attr-defined] # of the regressor
            if isinstance(router, Router):
                state["params"]["router"] = to_dict(router)
            if state["trained"]:
                top = self.top_
                arrays |= {"velocity": top.velocity, "intercept_velocity": top.intercept_velocity}
                arrays["losses"] = np.array(top.losses, dtype=np.float64)
            elif statistic:
                rows, sums = self._statistic.state()
                state |= rows
                arrays |= sums
            modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        if isinstance(state["params"]["router"], dict):
            state["params"]["router"] = from_dict(state["params"]["router"])
        learner: Any = schema.rebuild(cls, state, _LEARNED)
        learner._seed = tuple(schema.as_count(word, "seed") for word in state["seed"])
        T, bottom = learner._n_targets, schema.read_arrays(_BOTTOM, arrays, n=learner.n_features_in_)
        if learner._single_target and T != 1:
            raise ValueError(f"{T} targets where there is one")
        if state["activation"] not in ("identity", "relu"):
            raise ValueError(f"unknown activation {state['activation']!r}")
        centre = bottom.get("centre", np.zeros(learner.n_features_in_))  # files of version 0.1 have none, and no unit
        learner.layer_ = SparseLayer.from_arrays(
            Bottom(bottom["B"], bottom["c"], state["activation"], centre), from_dict(state["router"]), arrays
        )
        t = learner.layer_.bottom.t
        learner._unit = schema.read_arrays(_UNIT, arrays, T=T).get("unit", np.ones(T))
        solution = schema.read_arrays(_SOLUTION, arrays, T=T, t=t)
        if state["trained"]:
            trained = schema.read_arrays(_TRAINED, arrays, T=T, t=t)
            learner.top_ = TopLayer(**solution | trained | {"losses": trained["losses"].tolist()})
            return cast("Self", learner)
        learner._solution = solution["A"], solution["intercept"]
        if "rows" in state:
            learner.statistic_ = RidgeStatistic(t, T)
            learner.statistic_.restore(state, arrays)
        return cast("Self", learner)

    def state(self) -> tuple[State, Arrays]:
        """Return what the model has seen, without its layer: names, shapes, and the sums as arrays."""
        rows, sums = self._statistic.state()
        return schema.learned_state(self, _LEARNED) | rows, sums

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore what :meth:`state` returned of a model of the same layer."""
        schema.restore_learned(self, state, _LEARNED)
        self.statistic_ = RidgeStatistic(self.layer_.bottom.t, self._n_targets)
        self.statistic_.restore(state, arrays)

    @property
    def coefficients_(self) -> Array:
        """The top layer A: (t,), or (T, t) when y had two axes."""
        A, _ = self._top_layer
        return A[0] if self._single_target else A

    @property
    def intercept_(self) -> Any:
        """The constant: a float, or (T,) when y had two axes."""
        _, intercept = self._top_layer
        return float(intercept[0]) if self._single_target else intercept

    @property
    def n_active_(self) -> int:
        """The most units that an input switches on."""
        check_is_fitted(self, "layer_")
        return self.layer_.n_active

    @property
    def loss_curve_(self) -> list[float]:
        """Mean squared error of each epoch, as its batches were met, in variances of the first targets."""
        if "top_" not in self.__dict__:
            raise AttributeError('only a model that was trained, by solver="rmsprop", has a `loss_curve_`.')
        return list(self.top_.losses)

    def __sklearn_is_fitted__(self) -> bool:
        return "layer_" in self.__dict__

    @property
    def _statistic(self) -> RidgeStatistic:
        if "top_" in self.__dict__:
            raise ValueError('a model trained by solver="rmsprop" keeps no sums that could be merged.')
        if "statistic_" not in self.__dict__:
            raise ValueError("a model without its sums cannot learn more rows; save it with statistic=True.")
        return self.statistic_

    @property
    def _top_layer(self) -> tuple[Array, Array]:
        """A (T, t) and the intercept (T,)."""
        A, intercept = self._in_units
        return A * self._unit[:, None], intercept * self._unit

    @property
    def _in_units(self) -> tuple[Array, Array]:
        """A (T, t) and the intercept (T,) of targets in their units, solved for when first asked."""
        check_is_fitted(self)
        with lock_of(self):
            if "top_" in self.__dict__:
                return self.top_.A, self.top_.intercept
            if "_solution" not in self.__dict__:
                self._solution = self._statistic.solve(float(self.alpha), fit_intercept=self.fit_intercept)
            return self._solution

    def _rows(self, X: ArrayLike) -> Array:
        rows: Array = checked_rows(self, X, reset=False, dtype=np.float64, order="C")
        check_size(rows, self.layer_.bottom)
        return rows


def check_differences(values: Array, name: str) -> None:
    """Refuse rows or targets whose differences could overflow."""
    size = np.abs(values).max(initial=0.0)
    if not size < LARGEST_NUMBER:
        raise ValueError(f"`{name}` holds {size:.1e}, so that differences overflow; scale it to below 1e+305.")


def units_of(targets: Array, weights: Array) -> Array:
    """Standard deviations (T,) of targets (m, T); of equal ones their size, or 1 for zeros."""
    size, deviation = np.abs(targets).max(axis=0), deviations(targets, weights)
    return np.where(deviation > 0, deviation, np.where(size > 0, size, 1.0))


def check_size(X: Array, bottom: Bottom, targets: Array | None = None) -> None:
    """Refuse rows whose pre-activations, or their squares, could overflow, and targets in their units likewise."""
    with np.errstate(over="ignore"):
        furthest = np.abs(X - bottom.centre).max(initial=0.0)
        most = furthest * np.abs(bottom.B).sum(axis=1).max() + np.abs(bottom.c).max()
    if not most < LARGEST:
        raise ValueError(f"`X` is so large that squares of units, up to {most:.0e}, overflow; scale its columns.")
    if targets is not None and not np.abs(targets).max(initial=0.0) < LARGEST:
        raise ValueError(
            f"`y` is {LARGEST:.0e} times as large as in the first rows, so that products overflow; fit them together."
        )
