"""Rivals of the LSH models, each tuned as its users tune it: a choice at a time, by held-out training rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RBFInterpolator
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline

from sparsact import LSHRegressor

Array = NDArray[Any]
Settings = dict[str, Any]
Choices = Mapping[str, Sequence[Any]]  # the first of each is where the search begins
UPDATES: Final = 15_000  # of a network
NEGLIGIBLE: Final = 1e-12  # weight of a network: what it adds is below float32's rounding of the others
TREES, RATE, ROUNDS, PATIENCE = 150, 0.1, 1_000, 50
MOST_TUNED: Final = 10_000  # rows that a search learns from


@dataclass(frozen=True)
class FittedRegressor:
    """What predicts: rows at once, a row, and the object that has to be kept for it; and the rounds of a booster."""

    predict: Callable[[Array], Array]
    one: Callable[[Array], Any]
    kept: Any
    rounds: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the object, pickled."""
        return len(pickle.dumps(self.kept, protocol=5))


Fit = Callable[..., FittedRegressor]  # (settings, X, y)


@dataclass(frozen=True)
class Rival:
    """How a kind of model is tuned and fitted."""

    fit: Fit
    choices: Choices
    module: str = "sklearn"
    boosts: bool = False
    shortened: Settings = field(default_factory=dict)  # what holds in the search alone

    def tune(self, X: Array, y: Array) -> Settings:
        """Best settings on held-out rows, a choice at a time.

        A booster's rounds are found on all rows, at a third of the rate of the search.
        """
        best = {name: values[0] for name, values in self.choices.items()}
        errors: dict[str, tuple[float, Settings]] = {}
        for name, values in self.choices.items():
            for value in values if len(values) > 1 else ():
                tried = best | {name: value}
                errors.setdefault(str(tried), (self._error(tried | self.shortened, X, y, MOST_TUNED)[0], tried))
            best = min(errors.values(), key=lambda found: found[0])[1] if errors else best
        if not self.boosts:
            return best
        slow = best | {"learning_rate": RATE / 3, "rounds": 5 * ROUNDS}
        return slow | {"rounds": self._error(slow, X, y)[1]}

    def _error(self, settings: Settings, X: Array, y: Array, most: int | None = None) -> tuple[float, int]:
        errors, rounds = [], []
        for train, held in held_out(len(X)):
            train = train[:most]
            new = (X[held], y[held])
            try:
                model = self.fit(settings, X[train], y[train], *[new] * self.boosts)
                errors.append(float(np.mean((model.predict(new[0]) - new[1]) ** 2)))
            except np.linalg.LinAlgError:  # neighbours that lie in fewer dimensions than their polynomial
                return np.inf, 0
            rounds.append(model.rounds)
        return float(np.mean(errors)), int(np.mean(rounds))


def held_out(m: int) -> list[tuple[Array, Array]]:
    """Five folds of up to 5,000 rows; of more, one that holds a fifth out, 4,000 at most."""
    if m <= 5_000:
        return list(KFold(5, shuffle=True, random_state=0).split(np.empty((m, 1))))
    order = np.random.default_rng(0).permutation(m)
    n_held = min(m // 5, 4_000)
    return [(order[n_held:], order[:n_held])]


def ours(settings: Settings, X: Array, y: Array) -> FittedRegressor:
    """The library's own, which tunes itself; its single queries by ``predictor()``."""
    model = LSHRegressor(**settings, random_state=0).fit(X, y)
    return FittedRegressor(model.predict, model.predictor(), model)


def by_estimator(make: Callable[..., Any]) -> Fit:
    """Fit of an estimator of scikit-learn's kind."""

    def fit(settings: Settings, X: Array, y: Array) -> FittedRegressor:
        return fitted(make(**settings).fit(X, y))

    return fit


def fitted(model: Any) -> FittedRegressor:
    """A fitted estimator of scikit-learn's kind."""
    return FittedRegressor(model.predict, lambda x: model.predict(x[None])[0], model)


def lightgbm(settings: Settings, X: Array, y: Array, held: tuple[Array, Array] | None = None) -> FittedRegressor:
    """LightGBM, with lines in its leaves where ``linear_tree`` is set."""
    import lightgbm as lgb

    given = {"learning_rate": RATE, "verbose": -1, "seed": 0, "num_threads": 1, "bagging_freq": 1, **settings}
    rounds, rows = given.pop("rounds", ROUNDS), lgb.Dataset(X, y, params={"linear_tree": "linear_tree" in given})
    stop: list[Any] = [lgb.early_stopping(PATIENCE, verbose=False)] if held else []
    booster: Any = lgb.train(given, rows, rounds, [rows.create_valid(*held)] if held else [], callbacks=stop)
    return FittedRegressor(booster.predict, lambda x: booster.predict(x[None])[0], booster, booster.best_iteration)


def xgboost(settings: Settings, X: Array, y: Array, held: tuple[Array, Array] | None = None) -> FittedRegressor:
    """XGBoost by histograms; its single queries in place, without a DMatrix."""
    import xgboost as xgb

    given = {"learning_rate": RATE, "nthread": 1, "seed": 0, "tree_method": "hist", **settings}
    rounds, watched = given.pop("rounds", ROUNDS), [(xgb.DMatrix(*held), "held")] if held else []
    stop = PATIENCE if held else None
    booster = xgb.train(given, xgb.DMatrix(X, y), rounds, watched, early_stopping_rounds=stop, verbose_eval=False)
    last = booster.best_iteration + 1 if held else rounds
    return FittedRegressor(
        lambda new: booster.inplace_predict(new, (0, last)),
        lambda x: booster.inplace_predict(x[None])[0],
        booster,
        last,
    )


def catboost(settings: Settings, X: Array, y: Array, held: tuple[Array, Array] | None = None) -> FittedRegressor:
    """CatBoost."""
    import catboost as cb

    given = {"learning_rate": RATE, "thread_count": 1, "random_seed": 0, "verbose": 0, "allow_writing_files": False}
    given |= settings
    rounds, stop = given.pop("rounds", ROUNDS), {"eval_set": held, "early_stopping_rounds": PATIENCE} if held else {}
    model = cb.CatBoostRegressor(iterations=rounds, **given).fit(X, y, **stop)
    return FittedRegressor(lambda new: model.predict(new, thread_count=1), model.predict, model, model.tree_count_)


def radial(settings: Settings, X: Array, y: Array) -> FittedRegressor:
    """RBFInterpolator on the nearest rows."""
    if settings["neighbors"] <= X.shape[1]:
        settings = settings | {"degree": 0}  # a polynomial of degree 1 needs more rows than columns
    X, first = np.unique(X, axis=0, return_index=True)
    model = RBFInterpolator(X, y[first], **settings)
    return FittedRegressor(model, lambda x: model(x[None])[0], (X, y[first]))


def network(settings: Settings, X: Array, y: Array) -> FittedRegressor:
    """Two hidden layers by Adam in single precision, with a rate that falls twice; single queries by NumPy alone."""
    batch, given = min(256, len(X)), {name: settings[name] for name in ("activation", "alpha")}
    model = MLPRegressor(
        hidden_layer_sizes=2 * [settings["width"]],
        batch_size=batch,
        warm_start=True,
        n_iter_no_change=10_000,
        random_state=0,
        **given,
    )
    epochs = min(400, settings.get("updates", UPDATES) * batch / len(X))
    for rate, share in ((2e-3, 0.6), (4e-4, 0.25), (8e-5, 0.15)):
        model.set_params(learning_rate_init=rate, max_iter=max(1, round(share * epochs)))
        model.fit(X.astype(np.float32), y.astype(np.float32))
    bend = np.tanh if settings["activation"] == "tanh" else lambda z: np.maximum(z, 0)
    for weights in model.coefs_:  # decay leaves subnormal weights, with which Intel processors take ten times as long
        weights[np.abs(weights) < NEGLIGIBLE] = 0
    (first, second, last), (b, c, d) = model.coefs_, model.intercepts_

    def one(x: Array) -> Any:
        return (bend(bend(x.astype(np.float32) @ first + b) @ second + c) @ last + d)[0]

    return FittedRegressor(lambda new: model.predict(new.astype(np.float32)), one, (model.coefs_, model.intercepts_))


def nystroem(settings: Settings, X: Array, y: Array) -> FittedRegressor:
    """Ridge regression on 1,000 landmarks of a Gaussian kernel."""
    features = Nystroem(gamma=settings["width"] / X.shape[1], n_components=min(1_000, len(X)), random_state=0)
    return fitted(make_pipeline(features, Ridge(settings["alpha"])).fit(X, y))


OURS, OURS_TREES, OURS_AUTO = "LSHRegressor", "LSHRegressor, base trees", "LSHRegressor, base auto"
OWN: Final = (OURS, OURS_TREES, OURS_AUTO)
RADIAL, NETWORK = "RBFInterpolator", "MLP"
BOOSTING: Final = ("LightGBM", "LightGBM, linear leaves", "XGBoost", "CatBoost")
LEAVES: Final[Choices] = {"num_leaves": [31, 15, 63, 127], "min_child_samples": [20, 5], "colsample_bytree": [1.0, 0.7]}
SAMPLED: Final[Choices] = {"subsample": [1.0, 0.8]}
LINEAR: Final[Choices] = {"linear_tree": [True], "num_leaves": [15, 7, 31, 63], "linear_lambda": [0.1, 1e-3, 10.0]}
RIVALS: Final = {
    "k-NN": Rival(
        by_estimator(partial(KNeighborsRegressor, n_jobs=1)),
        {"n_neighbors": [8, 4, 16], "weights": ["distance"], "p": [2, 1]},
    ),
    RADIAL: Rival(
        radial,
        {
            "kernel": ["thin_plate_spline", "linear", "cubic"],
            "smoothing": [1e-6, 1e-3, 1e-1, 10.0],
            "degree": [0, 1],
            "neighbors": [50, 25, 100],
        },
    ),
    "Nystroem ridge": Rival(nystroem, {"width": [1.0, 0.1, 0.3, 4.0, 20.0], "alpha": [1e-2, 1e-4, 1e-6, 1.0]}),
    BOOSTING[0]: Rival(lightgbm, {**LEAVES, **SAMPLED}, "lightgbm", boosts=True),
    BOOSTING[1]: Rival(lightgbm, LINEAR, "lightgbm", boosts=True),
    BOOSTING[2]: Rival(
        xgboost,
        {"max_depth": [6, 4, 8], "min_child_weight": [1, 8], "colsample_bytree": [1.0, 0.7], **SAMPLED},
        "xgboost",
        boosts=True,
    ),
    BOOSTING[3]: Rival(catboost, {"depth": [6, 4, 8]}, "catboost", boosts=True),
    "ExtraTrees": Rival(
        by_estimator(partial(ExtraTreesRegressor, TREES, random_state=0, n_jobs=1)),
        {"max_features": [1.0, 0.5], "min_samples_leaf": [1, 3]},
    ),
    NETWORK: Rival(
        network,
        {"activation": ["relu", "tanh"], "width": [256, 64], "alpha": [1e-4, 1e-2]},
        shortened={"updates": 4_000},
    ),
}
SIDES: Final = {
    OURS: Rival(ours, {}),
    **{name: rival for name, rival in RIVALS.items() if find_spec(rival.module)},
    OURS_TREES: Rival(ours, {"base": ["trees"]}),
    OURS_AUTO: Rival(ours, {"base": ["auto"]}),
}
