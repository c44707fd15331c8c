"""Trees beneath the tables: boosted ones of LightGBM, CatBoost or scikit-learn, and a forest where it helps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble, TreeNodes
from sparsact.statistics.centred import about_mean
from sparsact.statistics.column_scales import SMALLEST, standard_units
from sparsact.statistics.folds import out_of_fold

RATE, MOST_ROUNDS, PATIENCE = 0.05, 3000, 60
N_FOLDS: Final = 5
MIN_ROWS: Final = 4 * N_FOLDS
FOREST, MOST_LEAVES = 100, 1 << 20  # trees, and leaves of all of them
STEPS: Final = 2.0**24  # of targets: their sums are exact, so that rounding does not choose among equal splits
FOREST_GAIN: Final = 0.02  # of the error out of fold, for which a forest is worth its bytes
LIGHTGBM_CHOICES: Final[tuple[dict[str, Any], ...]] = (
    {"num_leaves": 7, "min_data_in_leaf": 3, "feature_fraction": 0.7},
    {"num_leaves": 127},
    {"num_leaves": 15, "min_data_in_leaf": 5, "feature_fraction": 0.7},
    {"num_leaves": 63, "feature_fraction": 0.6, "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 1.0},
)
SKLEARN_CHOICES: Final[tuple[dict[str, Any], ...]] = (
    {"max_leaf_nodes": 31},
    {"max_leaf_nodes": 127},
    {"max_leaf_nodes": 15, "min_samples_leaf": 5, "max_features": 0.7},
)
NODE: Final = ("is_leaf", "feature_idx", "num_threshold", "left", "right", "value")  # as scikit-learn names its fields
CATBOOST_CHOICES: Final[tuple[dict[str, Any], ...]] = ({"depth": 6}, {"depth": 8})


@dataclass(frozen=True)
class Boosted:
    """A fitted library's model of one target: its predictions, and what :meth:`TreeEnsemble.joined` takes."""

    predict: Callable[[Array], Array]
    n_rounds: int
    base: float
    trees: tuple[TreeNodes, ...]


Rows = tuple[Array, Array, Array]
Trees = tuple[float, tuple[TreeNodes, ...]]  # after the value that they are added to
Booster = Callable[[dict[str, Any], int, Rows, Rows | None, int], Boosted]
Choice = tuple[Booster, dict[str, Any]]


def learn_trees(X: Array, Y: Array, weights: Array, seed: int) -> tuple[TreeEnsemble, Array]:
    """Trees of rows (m, d) in no particular order, and their values (m, targets) out of fold.

    Boosted, of a few sets of parameters by that of least error on the first fold, where rounds stop once it no longer
    falls; the values of the other folds come from as many rounds on all rows but theirs. A forest where it helps.
    """
    choices = _choices()
    values = np.empty(Y.shape)
    # Libraries hold columns in float32, or take all below 1e-35 for 0: they see each about its mean, in its own unit.
    units, shares = standard_units(X, weights), weights / weights.sum()
    (centre, Z), (levels, Y) = about_mean(X, shares, 1.0), about_mean(Y, shares, 1.0)
    Z *= units
    fitted: list[tuple[float, tuple[TreeNodes, ...]]] = []
    for target, level in enumerate(levels.tolist()):
        unit = float(np.abs(Y[:, target]).max()) or 1.0
        if len(X) < MIN_ROWS:
            values[:, target] = level
            fitted.append((level, ()))
            continue
        # Libraries hold targets in float32: targets far from 0, or as small as its least numbers, would become equal.
        (base, grown), found = _out_of_fold(choices, (Z, Y[:, target] / unit, weights), seed)
        values[:, target] = level + unit * found
        trees = tuple(
            t._replace(thresholds=centre[t.columns] + t.thresholds / units[t.columns], leaves=unit * t.leaves)
            for t in grown
        )
        fitted.append((level + unit * base, trees))
    return TreeEnsemble.joined(fitted), values


def _out_of_fold(choices: Sequence[Choice], rows: Rows, seed: int) -> tuple[Trees, Array]:
    X, y, weights = rows
    folds = np.arange(len(X)) * N_FOLDS // len(X)  # blocks: a row that comes or goes moves few others

    def some(kept: NDArray[np.bool_]) -> Rows:
        return np.ascontiguousarray(X[kept]), y[kept], weights[kept]

    def error(model: Boosted) -> float:
        held = folds == 0
        return float(weights[held] @ (model.predict(X[held]) - y[held]) ** 2)

    parts = some(folds != 0), some(folds == 0)
    tried = [(booster(choice, MOST_ROUNDS, *parts, seed), booster, choice) for booster, choice in choices]
    best, booster, parameters = min(tried, key=lambda each: error(each[0]))

    def predicted(fold: int, held: NDArray[np.bool_]) -> Array:
        model = booster(parameters, best.n_rounds, some(~held), None, seed) if fold else best
        return model.predict(X[held])

    values, model = out_of_fold(folds, predicted), booster(parameters, best.n_rounds, rows, None, seed)
    return with_forest((model.base, model.trees), values, rows, folds, seed)


def with_forest(boosted: Trees, values: Array, rows: Rows, folds: NDArray[np.int64], seed: int) -> tuple[Trees, Array]:
    """Trees and their values (m,) out of fold, with a forest where that takes ``FOREST_GAIN`` off their error.

    The forest's share, from 0 to 1, is that of least squared error out of fold.
    """
    X, y, weights = rows
    grown = out_of_fold(folds, lambda _, held: _forest(X[~held], y[~held], weights[~held], seed).predict(X[held]))
    gap, left = grown - values, y - values
    share = float(np.clip(weights @ (gap * left) / max(float(weights @ gap**2), SMALLEST), 0, 1))
    if not weights @ (left - share * gap) ** 2 < (1 - FOREST_GAIN) ** 2 * (weights @ left**2):
        return boosted, values
    own = [tree._replace(leaves=(1 - share) * tree.leaves) for tree in boosted[1]]
    for tree in (each.tree_ for each in _forest(*rows, seed).estimators_):
        children, leaves = (tree.children_left, tree.children_right), share / FOREST * tree.value[:, 0, 0]
        own.append(TreeNodes.of(tree.children_left < 0, tree.feature, tree.threshold, *children, leaves))
    return ((1 - share) * boosted[0], tuple(own)), values + share * gap


def _forest(X: Array, y: Array, weights: Array, seed: int) -> Any:
    least = 1 + FOREST * len(X) // MOST_LEAVES
    forest = ExtraTreesRegressor(FOREST, min_samples_leaf=least, n_jobs=1, random_state=seed % 2**31)
    return forest.fit(X, np.rint(y * STEPS) / STEPS, weights)


def _choices() -> Sequence[Choice]:
    """Installed libraries to compare, each with a few sets of parameters."""
    libraries: tuple[tuple[Booster, Sequence[dict[str, Any]]], ...]
    libraries = (lightgbm, LIGHTGBM_CHOICES), (catboost, CATBOOST_CHOICES)
    found = [(booster, each) for booster, some in libraries if find_spec(booster.__name__) for each in some]
    return found or [(sklearn, each) for each in SKLEARN_CHOICES]


def lightgbm(parameters: dict[str, Any], n_rounds: int, rows: Rows, held_out: Rows | None, seed: int) -> Boosted:
    """LightGBM fitted to rows; rows held out, if any, choose the number of rounds."""
    lgb: Any = import_module("lightgbm")
    X, y, weights = rows
    options = {
        "objective": "l2", "learning_rate": RATE, "use_missing": False, "num_threads": 1, "verbosity": -1,
        "deterministic": True, "force_col_wise": True, "seed": seed % 2**31,
    }  # fmt: skip
    data = lgb.Dataset(X, y, weight=weights, params={"verbosity": -1}, free_raw_data=False)
    sets, stop = [], []
    if held_out is not None:
        sets = [lgb.Dataset(held_out[0], held_out[1], weight=held_out[2], reference=data)]
        stop = [lgb.early_stopping(PATIENCE, verbose=False)]
    model = lgb.train(options | parameters, data, n_rounds, valid_sets=sets, callbacks=stop)
    rounds = model.best_iteration if held_out is not None else n_rounds
    trees = () if held_out is not None else tuple(_lightgbm_trees(model.model_to_string(num_iteration=-1)))
    return Boosted(lambda Z: np.asarray(model.predict(Z, num_iteration=rounds)), rounds, 0.0, trees)


def _lightgbm_trees(text: str) -> Iterator[TreeNodes]:
    """Trees of LightGBM's own format of models: lines ``name=values`` under ``Tree=number``; leaves are ``~leaf``."""
    for block in text.split("\nTree=")[1:]:
        lines = dict(line.split("=", 1) for line in block.split("\n\n")[0].splitlines() if "=" in line)

        def numbers(name: str, lines: dict[str, str] = lines) -> Array:
            return np.array(lines.get(name, "").split(), dtype=np.float64)

        columns, left, right = (numbers(n).astype(np.int64) for n in ("split_feature", "left_child", "right_child"))
        yield TreeNodes(columns, numbers("threshold"), left, right, numbers("leaf_value"))


def catboost(parameters: dict[str, Any], n_rounds: int, rows: Rows, held_out: Rows | None, seed: int) -> Boosted:
    """CatBoost's symmetric trees fitted to rows; rows held out, if any, choose the number of rounds."""
    cb: Any = import_module("catboost")
    X, y, weights = rows
    if not (np.ptp(X.astype(np.float32), axis=0).any() and np.ptp(y.astype(np.float32))):  # what CatBoost refuses
        mean = float(np.average(y, weights=weights))
        return Boosted(lambda Z: np.full(len(Z), mean), 1, mean, ())
    options = {"learning_rate": RATE, "thread_count": 1, "random_seed": seed % 2**31, "verbose": 0}
    model, stop = cb.CatBoostRegressor(iterations=n_rounds, allow_writing_files=False, **options, **parameters), {}
    if held_out is not None:
        stop = {"eval_set": cb.Pool(*held_out[:2], weight=held_out[2]), "early_stopping_rounds": PATIENCE}
    model.fit(X, y, sample_weight=weights, **stop)
    with TemporaryDirectory() as folder:
        model.save_model(str(path := Path(folder, "model.json")), format="json")
        found = json.loads(path.read_text(encoding="utf-8"))
    scale, (base,) = found["scale_and_bias"]
    trees = tuple(_symmetric_tree(each, scale) for each in found["oblivious_trees"])
    ensemble = TreeEnsemble.joined([(base, trees)])
    return Boosted(lambda Z: ensemble.values(np.ascontiguousarray(Z))[:, 0], len(trees), base, trees)


def _symmetric_tree(tree: dict[str, Any], scale: float) -> TreeNodes:
    """A tree of one split a level, in level order; bit s of a leaf's number says whether x is above split s."""
    splits = (tree["splits"] or [])[::-1]
    depth = len(splits)
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    columns, borders = (
        np.array([split[key] for split in splits])[level] if depth else np.zeros(0)
        for key in ("float_feature_index", "border")
    )
    node = np.arange(2**depth - 1)
    left = np.where(level < depth - 1, 2 * node + 1, -1 - 2 * (node - (2**depth // 2 - 1)))
    right = np.where(level < depth - 1, left + 1, left - 1)
    return TreeNodes(columns, borders, left, right, scale * np.array(tree["leaf_values"]))


def sklearn(parameters: dict[str, Any], n_rounds: int, rows: Rows, held_out: Rows | None, seed: int) -> Boosted:
    """HistGradientBoostingRegressor fitted to rows; rows held out, if any, choose the number of rounds."""
    model = HistGradientBoostingRegressor(
        learning_rate=RATE, early_stopping=False, warm_start=True, random_state=seed % 2**31, **parameters
    )
    trees = _fitted_further(model, rows, n_rounds, 0) if held_out is None else _best(model, rows, held_out, n_rounds)
    base = float(np.ravel(model._baseline_prediction)[0])
    ensemble = TreeEnsemble.joined([(base, trees)])
    return Boosted(lambda Z: ensemble.values(np.ascontiguousarray(Z))[:, 0], len(trees), base, tuple(trees))


def _fitted_further(model: HistGradientBoostingRegressor, rows: Rows, n_rounds: int, n_known: int) -> list[TreeNodes]:
    """Fit up to ``n_rounds`` rounds, and return their trees after the first ``n_known``.

    Weights of one are left out, as scikit-learn then bins columns quicker.
    """
    X, y, weights = rows
    model.set_params(max_iter=n_rounds).fit(X, y, None if (weights == 1).all() else weights)
    nodes = (each[0].nodes for each in model._predictors[n_known:])
    return [TreeNodes.of(*(each[name] for name in NODE)) for each in nodes]


def _best(model: HistGradientBoostingRegressor, rows: Rows, held_out: Rows, most: int) -> list[TreeNodes]:
    """The trees that serve held-out rows best; the model is fitted on until ``PATIENCE`` more have not helped."""
    X, y, weights = np.ascontiguousarray(held_out[0]), held_out[1], held_out[2]
    trees: list[TreeNodes] = []
    errors: list[float] = []
    sums: Array = np.empty((len(y), 0))
    while len(errors) < most and (not errors or len(errors) - int(np.argmin(errors)) <= PATIENCE):
        added = _fitted_further(model, rows, min(most, len(errors) + PATIENCE), len(trees))
        before = sums[:, -1:] if trees else np.full((len(y), 1), np.ravel(model._baseline_prediction)[0])
        each = TreeEnsemble.joined([(0.0, [tree]) for tree in added]).values(X)
        sums = np.cumsum(np.concatenate([before, each], axis=1), axis=1)[:, 1:]  # after each of the added trees
        errors += (weights @ (sums - y[:, None]) ** 2).tolist()
        trees += added
    return trees[: 1 + int(np.argmin(errors))]
