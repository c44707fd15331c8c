"""Held-out error of the default fit on configurable software, compared with DeepPerf and tuned models.

Each task draws as many configurations of a system as the DeepPerf paper did; the error is the mean relative error on
all others. This library gets the table as it is. Peers learn the logarithm, tuned by their own cross-validation as in
``benchmarks.landscapes``. The Gaussian process is scikit-learn's, with a Matérn kernel that has one length for each
column (ARD), fitted by likelihood. Systems are files ``NAME.csv`` or ``NAME_AllNumeric.csv``, also ``.gz``, whose last
column is the target, in ``--data``, by default ``config_performance`` in SPARSACT_DATA. Missing ones are named.
"""

from __future__ import annotations

import os
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
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.landscapes import DEEPPERF, OURS, forest, lightgbm, xgboost
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import fit_table

Array = NDArray[Any]
Predict = Callable[[Array], Array]

PUBLISHED: Final = DEEPPERF | {  # rows: mean relative error in per cent (Ha and Zhang, ICSE 2019, Tables III and IV)
    "Apache": {9: 17.87, 18: 10.24, 27: 8.25, 36: 6.97, 45: 6.29},
    "BDBJ": {26: 7.25, 52: 2.07, 78: 1.73, 104: 1.67, 130: 1.61},
    "SQL": {39: 5.04, 78: 4.63, 117: 4.48, 156: 4.40, 195: 4.27},
    "Dune": {49: 15.73, 78: 13.67, 240: 8.19, 375: 7.20},
    "hipacc": {261: 9.39, 528: 6.38, 736: 5.06, 1281: 3.75},
    "hsmgp": {77: 6.76, 173: 3.60, 384: 2.53, 480: 2.24},
}
FILES: Final = ("{}.csv", "{}.csv.gz", "{}_AllNumeric.csv", "{}_AllNumeric.csv.gz")


@dataclass(frozen=True)
class ConfigurationTask:
    """Training rows of a system, and the seed that draws them."""

    system: str
    rows: int
    seed: int

    @property
    def work(self) -> str:
        """The task in words."""
        return f"{self.system}, {self.rows} configurations"

    @property
    def published(self) -> float | None:
        """DeepPerf's error, if it was published for as many rows."""
        return PUBLISHED.get(self.system, {}).get(self.rows)


def file_of(system: str, folder: Path) -> Path | None:
    """The file of a system."""
    return next((folder / name.format(system) for name in FILES if (folder / name.format(system)).is_file()), None)


@cache
def measured_table(path: Path) -> pa.Table:
    """All configurations that were measured."""
    return pyarrow.csv.read_csv(path)


def ours(learned: pa.Table, new: pa.Table) -> Array:
    """The default fit of the table, without other options."""
    result = fit_table(learned, learned.column_names[-1], explain=False)
    return np.asarray(result.predict(new.drop_columns(learned.column_names[-1])))


def gaussian_process(X: Array, y: Array) -> Predict:
    """A length for each column, by likelihood."""
    scaler = StandardScaler().fit(X)
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e3), nu=2.5) + WhiteKernel(1e-2, (1e-6, 1.0))
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(scaler.transform(X), y)
    return lambda new: model.predict(scaler.transform(new))


PEERS: Final = {
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "random forest": forest,
    "Gaussian process, ARD": gaussian_process,
}


def of_peer(peer: Callable[[Array, Array], Predict], learned: pa.Table, new: pa.Table) -> Array:
    """A peer's predictions, from logarithms, with the columns that differ among the training rows."""
    rows, others = (np.column_stack([column.to_numpy() for column in table.columns]) for table in (learned, new))
    kept = np.flatnonzero(np.ptp(rows[:, :-1], axis=0))
    fitted = peer(rows[:, kept].astype(float), np.log(rows[:, -1]))
    return np.asarray(np.exp(fitted(others[:, kept].astype(float))))


def measured(task: ConfigurationTask, side: str, path: Path) -> Row:
    """Error in per cent and seconds of the processor of one side."""
    table = measured_table(path)
    order = np.random.default_rng([task.seed, len(table)]).permutation(len(table))
    learned, new = table.take(order[: task.rows]), table.take(order[task.rows :])
    actual = new.column(table.num_columns - 1).to_numpy()
    side_of = ours if side == OURS else partial(of_peer, PEERS[side])
    predicted, took = timed(lambda: side_of(learned, new))
    return {"error": float(100 * np.mean(np.abs(predicted - actual) / np.abs(actual))), "seconds": took}


def tasks(quick: bool, repeats: int) -> list[ConfigurationTask]:
    """All of them, the cheap ones first."""
    if quick:
        return [ConfigurationTask("Apache", 27, 0), ConfigurationTask("Dune", 49, 0)]
    found = [ConfigurationTask(name, m, seed) for name in PUBLISHED for m in PUBLISHED[name] for seed in range(repeats)]
    return sorted(found, key=lambda task: task.rows)


def measure(tasks: Sequence[ConfigurationTask], sides: Sequence[str], folder: Path, kept: Path | None) -> Iterator[Row]:
    """A row for each task of a system that is there, and side."""
    files = {name: file_of(name, folder) for name in dict.fromkeys(task.system for task in tasks)}
    for name in [name for name, path in files.items() if path is None]:
        print(f"{name} is left out: {folder} has no {' nor '.join(form.format(name) for form in FILES)}.")
    found = [(task, path) for task in tasks if (path := files[task.system]) is not None]
    cells = (
        ({**asdict(task), "side": side}, partial(measured, task, side, path))
        for (task, path), side in product(found, sides)
    )
    return kept_rows(kept, cells)


def figures(rows: Sequence[dict[str, Any]]) -> Iterator[Figure]:
    """Mean errors of every cell over its draws, and their ratios to DeepPerf's and to the best peer's."""
    errors: dict[tuple[str, int], dict[str, list[float]]] = {}
    for row in rows:
        of_cell = errors.setdefault((row["system"], row["rows"]), {})
        of_cell.setdefault(row["side"], []).append(row["error"])
    for (system, m), sides in errors.items():
        task = ConfigurationTask(system, m, 0)
        for side, found in sides.items():
            yield Figure.of(task.work, side, found, "%", most=task.published if side == OURS else None)
        if task.published is not None:
            yield Figure(task.work, "DeepPerf, as published", task.published, "%")
        peers = [float(np.mean(found)) for side, found in sides.items() if side != OURS]
        if OURS in sides and peers:
            yield Figure(task.work, "ours over the best peer", float(np.mean(sides[OURS])) / min(peers), TIMES)


@program(
    option("--data", type=Path, help="folder of the systems' files, by default config_performance in SPARSACT_DATA"),
    option("--only", nargs="+", help="systems to measure"),
    option("--sizes", nargs="+", type=int, help="numbers of rows"),
    option(
        "--sides", nargs="+", choices=[OURS, *PEERS], default=[OURS, *PEERS], help="sides to measure, by default all"
    ),
    KEPT_ROWS,
    repeats=3,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    folder = arguments.data or Path(os.environ.get("SPARSACT_DATA", "")) / "config_performance"
    wanted = [
        task
        for task in tasks(arguments.quick, arguments.repeats)
        if task.system in (arguments.only or [task.system]) and task.rows in (arguments.sizes or [task.rows])
    ]
    return list(figures(list(measure(wanted, arguments.sides, folder, arguments.rows))))
