"""Fast copies made by ``sparsact.distil``, on measured tables: error compared with the teacher, and time for one row.

Teachers are a Gaussian process, a network, and their mean with boosted trees; 1,000 rows of each table, a fifth of them
held out. Students may take 3 us a row of a batch, on one thread. Targets: at most 1.03 times the teacher's error, never
above 1.1 without a warning, and 20 s of CPU time in addition to the teacher's own fits.

Tables are read from the folder ``SPARSACT_DATA``.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.figures import Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import distil
from sparsact_papers.data import load_tabular

N_ROWS: Final = 1_000
LIMIT: Final = 3.0  # microseconds a row
OURS: Final = 20.0  # seconds beside the teacher's fits
WITHIN: Final = 1.03
MOST_LENGTHS: Final = 20  # that a fit of the process finds in a minute
TABLES: Final = ("airfoil", "parkinsons", "elevators", "bike", "pol", "kin40k")


def gaussian_process(n_columns: int) -> Any:
    """Of standardised columns, each with a length of its own where they are few, with noise."""
    lengths = np.full(n_columns if n_columns <= MOST_LENGTHS else 1, 3.0)
    kernel = 1.0 * Matern(lengths, nu=1.5) + WhiteKernel(0.1)
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True))


def network(n_columns: int) -> Any:
    """Two layers of 64 units with a penalty."""
    layers = {"hidden_layer_sizes": (64, 64), "solver": "lbfgs", "alpha": 1.0, "max_iter": 500, "random_state": 0}
    return make_pipeline(StandardScaler(), MLPRegressor(**layers))


def ensemble(n_columns: int) -> Any:
    """The mean of both and of boosted trees."""
    trees = HistGradientBoostingRegressor(random_state=0)
    parts = {"process": gaussian_process(n_columns), "network": network(n_columns), "trees": trees}
    return VotingRegressor(list(parts.items()))


TEACHERS: Final[dict[str, Callable[[int], Any]]] = {
    "network": network,
    "Gaussian process": gaussian_process,
    "ensemble": ensemble,
}


class Clocked(RegressorMixin, BaseEstimator):
    """A teacher whose fits are timed."""

    seconds: ClassVar[float] = 0.0  # of the fits of all clones

    def __init__(self, teacher: Any) -> None:
        self.teacher = teacher

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone."""
        self.fitted_, seconds = timed(partial(clone(self.teacher).fit, X, y))
        Clocked.seconds += seconds
        return self

    def predict(self, X: Any) -> Any:
        """Values (m,) at rows (m, d)."""
        return self.fitted_.predict(X)


def measured(table: str, teacher: str, seed: int) -> Row:
    """What a distillation says."""
    data, rng = load_tabular(table), np.random.default_rng(seed)
    rows = rng.permutation(len(data.y))[:N_ROWS]
    y = (data.y - data.y.mean()) / data.y.std()
    Clocked.seconds, own = 0.0, Clocked(TEACHERS[teacher](data.X.shape[1]))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        work = partial(distil, own, data.X[rows], y[rows], max_microseconds=LIMIT, random_state=seed)
        result, seconds = timed(work)
    return {
        "ratio": result.ratio,
        "error": result.error,
        "teacher_error": result.teacher_error,
        "microseconds": result.microseconds,
        "teacher_microseconds": result.teacher_microseconds,
        "student": result.student,
        "truth_share": result.truth_share,
        "drawn": min(result.trials, key=lambda one: one.error).n_extra_rows,
        "warned": any("times the teacher's" in str(one.message) for one in told),
        "seconds": seconds - Clocked.seconds,
        "teacher_seconds": Clocked.seconds,
    }


def figures(rows: Iterable[Row]) -> Iterator[Figure]:
    """Medians over the seeds."""
    of_work: dict[str, list[Row]] = {}
    for row in rows:
        of_work.setdefault(f"{row['table']}, {row['teacher']}", []).append(row)
    for work, own in of_work.items():
        ratios = [row["ratio"][0] for row in own]
        yield Figure.of(work, "error over the teacher's", ratios, "", most=WITHIN)
        yield Figure.of(work, "a row of a batch", [row["microseconds"] for row in own], "us", most=LIMIT)
        yield Figure.of(work, "a row of a batch, teacher", [row["teacher_microseconds"] for row in own], "us")
        yield Figure.of(work, "seconds beside the teacher's", [row["seconds"] for row in own], "s", most=OURS)
        yield Figure.of(work, "seconds of the teacher's fits", [row["teacher_seconds"] for row in own], "s")
        silent = [float(row["ratio"][0] > 1.1 and not row["warned"]) for row in own]
        yield Figure.of(work, "worse in silence", silent, "", most=0.0)


@program(option("--only", nargs="+", choices=TABLES, help="tables"), KEPT_ROWS, repeats=1)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    tables = arguments.only or TABLES[: 1 if arguments.quick else None]
    path: Path | None = arguments.rows
    cells = (
        ({"table": table, "teacher": teacher, "seed": seed}, partial(measured, table, teacher, seed))
        for teacher, table, seed in product(TEACHERS, tables, range(arguments.repeats))
    )
    return list(figures(kept_rows(path, cells)))
