"""Default LSHRegressor on tables of numbers: error and time compared with nine tuned models of other libraries.

The tables are functions of physics and geometry, and measured tables, in folds; all rows are standardised by the
training rows of their fold. The others (boosting, interpolation, networks, kernels, forests, neighbours) are tuned on
held-out rows (``benchmarks.regressors``); ours keeps its defaults. Errors are RMSE in standard deviations of the
target. ``--speed`` fits the chosen models again and times one query, and a row of a batch of 1,000, each at the median
and the 99th percentile. One thread; fits in CPU seconds. Measured tables are read from the folder ``SPARSACT_DATA``.

Targets: the default within 5 % of the best model on each smooth function of at most 8 directions; with trees as the
base within 5 % of the best boosting on each measured table; with the base that it chooses within 5 % of the best model
on tables that no choice was made with; at most RBFInterpolator's error on the cones of paper B at 50 times its speed;
0.5 us a row at the median and 1 us at the 99th percentile; 3 us a query, 500 us at worst.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from benchmarks.regression_tasks import TABLES, TIES, RegressionTask
from benchmarks.regressors import BOOSTING, OURS, OURS_AUTO, OURS_TREES, OWN, RADIAL, SIDES, Array, FittedRegressor

ERROR, SPEED, LEAKS = "error", "speed", "leaks"
BATCH, N_BATCHES, N_QUERIES = 1_000, 200, 2_000
QUICK_SIDES: Final = (OURS, "k-NN", RADIAL)
WORDS: Final = {  # of microseconds
    "one_first": "one query, the first",
    "one_p50": "one query",
    "one_p99": "one query, 99th percentile",
    "one_worst": "one query, worst",
    "row_p50": "a row of a batch",
    "row_p99": "a row of a batch, 99th percentile",
}
BARS: Final = {"one_p50": 3.0, "one_worst": 500.0, "row_p50": 0.5, "row_p99": 1.0}  # microseconds, of ours
WITHIN: Final = 1.05


def fitted(task: RegressionTask, side: str, settings: dict[str, Any]) -> tuple[FittedRegressor, float]:
    """A model of one side, and seconds of the processor until its first prediction."""
    X, y, *_ = task.split(reduced=side not in OWN)
    start = time.process_time()
    model = SIDES[side].fit(settings, X, y)
    model.predict(X[:1])  # ours solves its buckets when it is first asked: that belongs to the fit
    return model, time.process_time() - start


def error_row(task: RegressionTask, side: str) -> Row:
    """Error, settings, seconds and bytes of one side."""
    X, y, new, truth = task.split(reduced=side not in OWN)
    settings, tuned = timed(lambda: SIDES[side].tune(X, y))
    model, took = fitted(task, side, settings)
    error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
    return {"error": error, "settings": settings, "tune_seconds": tuned, "fit_seconds": took, "bytes": model.nbytes}


def speed_row(task: RegressionTask, side: str, settings: dict[str, Any]) -> Row:
    """Microseconds of queries one by one and of rows of batches, and the load of the machine."""
    model, _ = fitted(task, side, settings)
    new = np.ascontiguousarray(task.split(reduced=side not in OWN)[2])
    batches = [new[np.arange(i, i + BATCH) % len(new)] for i in range(0, N_BATCHES * 37, 37)]
    first, *one = microseconds(model.one, [new[i % len(new)] for i in range(N_QUERIES + 1)])
    row = microseconds(model.predict, batches) / BATCH
    return {
        "one_first": float(first),
        "one_p50": float(np.median(one)),
        "one_p99": float(np.percentile(one, 99)),
        "one_worst": float(max(one)),
        "row_p50": float(np.median(row)),
        "row_p99": float(np.percentile(row, 99)),
        "load": os.getloadavg()[0],
    }


def microseconds(call: Any, arguments: Sequence[Array], most: float = 20.0) -> Array:
    """Microseconds of each call, for ``most`` seconds at the longest."""
    took, end = [], time.perf_counter() + most
    for argument in arguments:
        start = time.perf_counter()
        call(argument)
        stop = time.perf_counter()
        took.append(1e6 * (stop - start))
        if stop > end:
            break
    return np.array(took)


def measure(tasks: Sequence[RegressionTask], sides: Sequence[str], speed: bool, path: Path | None) -> Iterator[Row]:
    """A row for each task and side, errors before speeds; tasks without their data are left out."""
    settings: dict[tuple[str, int, str], dict[str, Any]] = {}

    def speeds(task: RegressionTask, side: str) -> Row:
        return speed_row(task, side, settings[task.table, task.fold, side])

    kinds = {ERROR: error_row, SPEED: speeds} if speed else {ERROR: error_row}
    there = list(filter(_has_data, tasks))
    ties = (({"measure": LEAKS, **asdict(task), "side": ""}, task.leaks) for task in there if task.is_measured)
    cells = (
        ({"measure": kind, **asdict(task), "side": side}, partial(row_of, task, side))
        for (kind, row_of), task, side in product(kinds.items(), there, sides)
    )
    for row in kept_rows(path, chain(ties, cells)):
        if row["measure"] == ERROR:
            settings[row["table"], row["fold"], row["side"]] = row["settings"]
        yield row


def _has_data(task: RegressionTask) -> bool:
    try:
        task.split(reduced=False)
    except FileNotFoundError as missing:
        print(f"{task.table}: left out, for {missing}")
        return False
    return True


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Errors, fits, bytes and times of each table, medians over its folds, and the targets."""
    for table in dict.fromkeys(row["table"] for row in rows):
        found = [row for row in rows if row["table"] == table]
        yield from _errors(table, [row for row in found if row["measure"] == ERROR])
        yield from _speeds(table, [row for row in found if row["measure"] == SPEED])
        yield from _leaks(table, [row for row in found if row["measure"] == LEAKS])


def _errors(table: str, rows: Sequence[Row]) -> Iterator[Figure]:
    sides = list(dict.fromkeys(row["side"] for row in rows))
    for side in sides:
        own = [row for row in rows if row["side"] == side]
        yield Figure.of(table, f"{side}: RMSE", [row["error"] for row in own], "")
        yield Figure.of(table, f"{side}: fit", [row["fit_seconds"] for row in own], "s")
        yield Figure.of(table, f"{side}: size", [float(row["bytes"]) for row in own], "bytes")
    rivals = [side for side in sides if side not in OWN]
    kind = "groups" if TABLES[table].group else TABLES[table].kind
    for side, against, words, bar in (
        (OURS, rivals, "the best rival's", WITHIN if kind == "smooth" else None),
        (OURS_TREES, BOOSTING, "the best boosting's", WITHIN if kind == "tabular" else None),
        (OURS_AUTO, rivals, "the best rival's", WITHIN if kind == "held out" else None),
        (OURS, [RADIAL], f"{RADIAL}'s", 1.0 if table == "cones" else None),
    ):
        if ratios := list(_ratios(rows, side, against)):
            yield Figure.of(table, f"{side}: RMSE over {words}", ratios, TIMES, most=bar)


def _leaks(table: str, rows: Sequence[Row]) -> Iterator[Figure]:
    for name, words in TIES.items() if rows else ():
        yield Figure.of(table, words, [row[name] for row in rows], "")


def _ratios(rows: Sequence[Row], side: str, against: Sequence[str]) -> Iterator[float]:
    """Error of a side over the least of others, a fold each."""
    for fold in dict.fromkeys(row["fold"] for row in rows):
        errors = {row["side"]: row["error"] for row in rows if row["fold"] == fold}
        others = [errors[name] for name in against if name in errors]
        if side in errors and others:
            yield errors[side] / min(others)


def _speeds(table: str, rows: Sequence[Row]) -> Iterator[Figure]:
    for row in rows:
        for key in [key for key in WORDS if key in row]:  # older rows have no first query
            bar = BARS.get(key) if row["side"] == OURS else None
            yield Figure(table, f"{row['side']}: {WORDS[key]}", row[key], "us", most=bar)
    times = {row["side"]: row["row_p50"] for row in rows}
    if OURS in times and RADIAL in times:
        bar = 50.0 if table == "cones" else None
        yield Figure(table, f"rows a second over {RADIAL}'s", times[RADIAL] / times[OURS], TIMES, least=bar)


@program(
    option("--only", nargs="+", choices=TABLES, help="tables to measure, by default all"),
    option("--sides", nargs="+", choices=SIDES, help="sides to measure, by default all"),
    option("--folds", type=int, choices=range(1, 11), default=1, help="folds of each table (default 1)"),
    option("--speed", action="store_true", help="time the chosen models too"),
    KEPT_ROWS,
    repeats=1,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    quick = arguments.quick
    tables = arguments.only or (["terrain, 2-d"] if quick else list(TABLES))
    sides = arguments.sides or (QUICK_SIDES if quick else list(SIDES))
    tasks = [RegressionTask(name, fold, 1_000 if quick else None) for fold in range(arguments.folds) for name in tables]
    return list(figures(list(measure(tasks, sides, arguments.speed or quick, arguments.rows))))
