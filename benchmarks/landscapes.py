"""Held-out error of the default fit on measured tables, compared with tuned models of other libraries.

Each task draws training rows of a table; errors are on all other rows. On landscapes, at 1, 5, 20 and 80 % of the rows,
the error is the unexplained share of the variance, 1 - R2. On configurations, at the sizes of the DeepPerf paper, it is
the mean relative error, next to the paper's figures; all sides learn the logarithm. Peers are tuned by their own
cross-validation on the training rows: boosted trees by leaves and early stopping, forests by features and leaves, Lasso
on all products of three columns by its penalty, networks of two layers by width and penalty. The Gaussian process has a
correlation for each column (ARD over Hamming distance), learned by likelihood, and at most 4,500 rows.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import CubeGPRegressor, fit_table
from sparsact.datasets import landscapes

Array = NDArray[Any]
Predict = Callable[[Array], Array]

OURS: Final = "sparsact"
SHARES: Final = {0.01: 1.0, 0.05: 0.97, 0.2: 0.97, 0.8: 0.93}  # targets: geometric mean of ours over the best peer
WORST: Final = 1.12
ROUNDS: Final = 4_000  # of a booster at most
DEEPPERF: Final = {  # rows: mean relative error in per cent (Ha and Zhang, ICSE 2019, Table III)
    "LLVM": {11: 5.09, 22: 3.87, 33: 2.54, 44: 2.27, 55: 1.99},
    "x264": {16: 10.4, 32: 3.61, 48: 2.13, 64: 1.49, 80: 0.87},
    "BDBC": {18: 138.0, 36: 16.8, 54: 13.1, 72: 6.95, 90: 5.82},
}
POELWIJK: Final = "landscapes/poelwijk2019_eqfp611_2e13.csv.gz"


@dataclass(frozen=True)
class LandscapeTask:
    """Training rows of a table: a share of them or, for configurations, a number; and the seed that draws them."""

    table: str
    rows: float
    seed: int

    @property
    def is_relative(self) -> bool:
        """Whether the mean relative error is judged."""
        return self.rows > 1

    @property
    def work(self) -> str:
        """The task in words."""
        return f"{self.table}, {f'{self.rows:g} rows' if self.is_relative else f'{self.rows:.0%}'}"

    def split(self) -> tuple[Array, Array, Array, Array]:
        """Rows and targets to learn from, and all others."""
        X, y = table(self.table)
        order = np.random.default_rng([self.seed, len(X)]).permutation(len(X))
        m = round(self.rows if self.is_relative else self.rows * len(X))
        return X[order[:m]], y[order[:m]], X[order[m:]], y[order[m:]]

    def error(self, predicted: Array, y: Array) -> float:
        """Mean relative error in per cent, or the share of the variance left."""
        if self.is_relative:
            return float(100 * np.mean(np.abs(predicted - y) / np.abs(y)))
        return float(np.mean((predicted - y) ** 2) / y.var())


@cache
def table(name: str) -> tuple[Array, Array]:
    """Bits (m, n) and targets (m,) of a measured table."""
    if name == "S309":
        landscape = landscapes.moulana_s309()
        return landscape.X, landscape.y
    if name.startswith("CR6261"):
        landscape = landscapes.phillips_cr6261()
        return landscape.X, landscape.y[:, landscape.target_names.index(name.split()[1])]
    if name.startswith("eqFP611"):
        text = pyarrow.csv.ConvertOptions(column_types={"genotype": pa.string()})
        read = pyarrow.csv.read_csv(landscapes.data_file(POELWIJK), convert_options=text)
        X = np.array([list(genotype) for genotype in read["genotype"].to_pylist()]).astype(np.uint8)
        return X, read[f"brightness_{name.split()[1]}"].to_numpy()
    landscape = landscapes.config_performance(name)
    return landscape.X, landscape.y


EQFP611: Final = ("eqFP611 red", "eqFP611 blue", "eqFP611 combined")
TABLES: Final = ("S309", *EQFP611, "CR6261 h1", "CR6261 h9", *DEEPPERF)


def ours(X: Array, y: Array) -> Predict:
    """The default fit of a table."""
    names = [f"x{i}" for i in range(X.shape[1])]
    result = fit_table(pa.table([*X.T, y], [*names, "y"]), "y", explain=False)
    return lambda new: result.predict(pa.table(list(new.T), names))


def _folds(X: Array) -> KFold:
    return KFold(min(5, len(X)), shuffle=True, random_state=0)


def _least(
    errors: Callable[[dict[str, Any]], Any], grid: dict[str, Sequence[int]], X: Array, **fixed: Any
) -> tuple[dict[str, Any], int]:
    """Settings of a booster and the number of its trees, which has the least of the errors after each tree."""
    fixed |= {"learning_rate": 0.05 if len(X) < 5_000 else 0.1}
    tried = [dict(zip(grid, values, strict=True)) | fixed for values in product(*grid.values())]
    found = [errors(settings) for settings in tried]
    best = min(range(len(tried)), key=lambda i: found[i][-1])
    return tried[best], len(found[best])


def lightgbm(X: Array, y: Array) -> Predict:
    """Leaves and rows of a leaf by cross-validation, and trees by its early stopping."""
    import lightgbm as lgb

    fixed = {"objective": "l2", "min_data_in_bin": 1, "num_threads": 1, "seed": 0, "verbose": -1}
    grid = {"num_leaves": (4, 8, 16, 31, 63), "min_data_in_leaf": [n for n in (2, 5, 20) if n == 2 or 4 * n <= len(X)]}

    def errors(settings: dict[str, Any]) -> Any:
        stop: list[Any] = [lgb.early_stopping(50, verbose=False)]
        rows = lgb.Dataset(X, y)
        return lgb.cv(settings, rows, ROUNDS, folds=_folds(X), stratified=False, callbacks=stop)["valid l2-mean"]

    settings, rounds = _least(errors, grid, X, **fixed)
    booster = lgb.train(settings, lgb.Dataset(X, y), rounds)
    return lambda new: np.asarray(booster.predict(new))


def xgboost(X: Array, y: Array) -> Predict:
    """Depth and weight of a leaf by cross-validation, and trees by its early stopping."""
    import xgboost as xgb

    folds = list(_folds(X).split(X))

    def errors(settings: dict[str, Any]) -> Any:
        found: Any = xgb.cv(settings, xgb.DMatrix(X, y), ROUNDS, folds=folds, early_stopping_rounds=50)
        return found["test-rmse-mean"].to_numpy()

    settings, rounds = _least(errors, {"max_depth": (2, 3, 4, 6, 8), "min_child_weight": (1, 5)}, X, nthread=1, seed=0)
    booster = xgb.train(settings, xgb.DMatrix(X, y), rounds)
    return lambda new: booster.predict(xgb.DMatrix(new))


def forest(X: Array, y: Array) -> Predict:
    """A random forest, features of a split and rows of a leaf by cross-validation."""
    grid = {"max_features": [0.33, 0.66, 1.0], "min_samples_leaf": [1, 3]}
    search = GridSearchCV(RandomForestRegressor(200, random_state=0), grid, cv=_folds(X), scoring=MSE)
    return search.fit(X, y).predict


def lasso(X: Array, y: Array) -> Predict:
    """Lasso on all products of up to three columns, its penalty by cross-validation."""
    products = PolynomialFeatures(3, interaction_only=True, include_bias=False)
    model = make_pipeline(products, StandardScaler(), LassoCV(cv=_folds(X), max_iter=3_000))
    model.fit(1.0 - 2.0 * X, y)
    return lambda new: model.predict(1.0 - 2.0 * new)


def gaussian_process(X: Array, y: Array) -> Predict:
    """ARD over Hamming distance, all parameters by marginal likelihood, of at most 4,500 rows."""
    model = CubeGPRegressor("product", random_state=0).fit(X[:4_500].astype(bool), y[:4_500])
    return lambda new: model.predict(new.astype(bool))


def network(X: Array, y: Array) -> Predict:
    """Two hidden layers, width and penalty by cross-validation, with early stopping from 500 rows on."""
    mlp = MLPRegressor(early_stopping=len(X) >= 500, max_iter=300, random_state=0)
    grid = {"mlpregressor__hidden_layer_sizes": [(64, 64), (256, 256)], "mlpregressor__alpha": [1e-4, 1e-1]}
    centre, scale = y.mean(), y.std() or 1.0
    folds = KFold(min(3, len(X)), shuffle=True, random_state=0)
    search = GridSearchCV(make_pipeline(StandardScaler(), mlp), grid, cv=folds, scoring=MSE)
    model = search.fit(X, (y - centre) / scale)
    return lambda new: centre + scale * model.predict(new)


MSE: Final = "neg_mean_squared_error"
SIDES: Final = {
    OURS: ours,
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "random forest": forest,
    "Lasso of degree 3": lasso,
    "Gaussian process, ARD": gaussian_process,
    "network": network,
}


def tasks(quick: bool, repeats: int) -> list[LandscapeTask]:
    """All of them, the cheap ones first."""
    if quick:
        return [LandscapeTask("LLVM", 0.05, 0), LandscapeTask("x264", 16, 0)]
    shares = [LandscapeTask(name, share, seed) for share in SHARES for seed in range(repeats) for name in TABLES]
    return [
        LandscapeTask(name, m, seed) for name in DEEPPERF for m in DEEPPERF[name] for seed in range(repeats)
    ] + shares


def measured(task: LandscapeTask, side: str) -> Row:
    """Error and seconds of the processor of one side."""
    X, y, new, actual = task.split()
    predicted, took = timed(lambda: SIDES[side](X, np.log(y) if task.is_relative else y)(new))
    error = task.error(np.exp(predicted) if task.is_relative else predicted, actual)
    return {"error": error, "seconds": took}


def measure(tasks: Sequence[LandscapeTask], sides: Sequence[str], path: Path | None) -> Iterator[Row]:
    """A row for each task and side."""
    cells = (({**asdict(task), "side": side}, partial(measured, task, side)) for task, side in product(tasks, sides))
    return kept_rows(path, cells)


def figures(rows: Sequence[dict[str, Any]]) -> Iterator[Figure]:
    """Errors of every task, means over its seeds, and the targets."""
    errors: dict[LandscapeTask, dict[str, float]] = {}
    for row in rows:
        errors.setdefault(LandscapeTask(row["table"], row["rows"], row["seed"]), {})[row["side"]] = row["error"]
    ratios: dict[float, list[float]] = {}
    for work in dict.fromkeys(task.work for task in errors):
        drawn = {task: of_side for task, of_side in errors.items() if task.work == work}
        first = next(iter(drawn))
        sides = list(drawn[first])
        means = {side: [of_side[side] for of_side in drawn.values() if side in of_side] for side in sides}
        published = DEEPPERF.get(first.table, {}).get(int(first.rows)) if first.is_relative else None
        for side in sides:
            bar = published if side == OURS else None
            yield Figure.of(work, side, means[side], "%" if first.is_relative else "", most=bar)
        if published is not None:
            yield Figure(work, "DeepPerf, as published", published, "%")
        found = [
            of_side[OURS] / min(error for side, error in of_side.items() if side != OURS)
            for of_side in drawn.values()
            if OURS in of_side and len(of_side) > 1
        ]
        if found:
            yield Figure.of(work, "ours over the best peer", found, TIMES, most=None if first.is_relative else WORST)
            ratios.setdefault(0.0 if first.is_relative else first.rows, []).extend(found)
        complete = [of_side for of_side in drawn.values() if len(of_side) == len(SIDES)]
        if len(complete) >= 5:  # draws tell of a standard error; the best peer of each owes its place to luck too
            logs = {side: np.log([of_side[side] for of_side in complete]) for side in SIDES}
            peer = min((side for side in SIDES if side != OURS), key=lambda side: logs[side].mean())
            apart = logs[OURS] - logs[peer]
            words = f"over {peer}, best of all draws, error of the log {apart.std(ddof=1) / len(apart) ** 0.5:.3f}"
            yield Figure(work, words, float(np.exp(apart.mean())), TIMES, samples=tuple(np.exp(apart).tolist()))
    for share, found in ratios.items():
        work, bar = (f"all, {share:.0%}", SHARES[share]) if share else ("configurations", 1.0)
        mean = float(np.exp(np.mean(np.log(found))))
        yield Figure(work, "ours over the best peer, geometric mean", mean, TIMES, most=bar)


@program(
    option("--only", nargs="+", help="tables to measure"),
    option("--sizes", nargs="+", type=float, help="shares, or numbers, of rows"),
    option("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="sides to measure, by default all"),
    KEPT_ROWS,
    repeats=2,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    wanted = [
        task
        for task in tasks(arguments.quick, arguments.repeats)
        if task.table in (arguments.only or [task.table]) and task.rows in (arguments.sizes or [task.rows])
    ]
    return list(figures(list(measure(wanted, arguments.sides, arguments.rows))))
