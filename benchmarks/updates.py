"""Sliding windows: updates of LSHRegressor compared with refits of LightGBM; updates and a fit of large models.

The window holds 40,000 rows of a target that moves: the power of a panel that soils by 30 % in 60,000 rows, and the
torque of an arm that picks up a load. At each step 2,000 rows come and 2,000 go, and the next 2,000 are predicted
before they are learned. LightGBM, tuned on the first window, is fitted again to the window at each step; our model
keeps the layout of the first window.

Targets: no more error than the refits, in a tenth of their time; 2,000 rows in, 2,000 out and 10,000 predictions with
300,000 rows in the model in 15 ms; a fit of 2,000,000 rows of 6 columns in 20 s on two threads, in 1 GB above the rows.
Where the time goes: a new row is hashed T times and added to all sums of T buckets, in six directions 50 of lines and
274 of degree 2; a bucket that changed is solved when a row next meets it.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from benchmarks.figures import TIMES, CallSeconds, Figure
from benchmarks.harness import alone, first_and_later, memory_above, timed
from benchmarks.program import program
from benchmarks.regression_tasks import Array, photovoltaics, robot_arm
from benchmarks.regressors import SIDES
from sparsact import LSHRegressor

STEP, N_PREDICTED = 2_000, 10_000
WAY: Final = 60_000  # rows in which a stream moves
RIVAL: Final = "LightGBM"


def soiling(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Power of a panel that loses 30 % in 60,000 rows."""
    X, power = photovoltaics(m, rng)
    return X, power * (1.0 - 0.3 * np.arange(m) / WAY)


def loading(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque of an arm whose load, which pulls at its end, grows by a kilogram in 60,000 rows."""
    X, torque = robot_arm(m, rng)
    reach = np.cos(X[:, 0]) + np.cos(X[:, 0] + X[:, 1])
    return X, torque + 9.81 * np.arange(m) / WAY * reach


STREAMS: Final = {"photovoltaics, soiling": soiling, "robot arm, loading": loading}


def slide(
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]], window: int, n_steps: int
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Errors and seconds of each step, of ours and of the refits."""
    X, y = draw(window + (n_steps + 1) * STEP, np.random.default_rng(2_911))
    centre, unit = X[:window].mean(axis=0), X[:window].std(axis=0)
    X, y = (X - centre) / unit, (y - y[:window].mean()) / y[:window].std()
    settings = SIDES[RIVAL].tune(X[:window], y[:window])
    model = LSHRegressor(random_state=0).fit(X[:window], y[:window])
    model.predict(X[:1])
    found: tuple[list[float], ...] = ([], [], [], [])
    for start in range(STEP, (n_steps + 1) * STEP, STEP):
        come, go, new = (slice(at, at + STEP) for at in (start + window - STEP, start - STEP, start + window))
        begin = time.perf_counter()
        model.partial_fit(X[come], y[come]).remove(X[go], y[go])
        mine = model.predict(X[new])
        between = time.perf_counter()
        held = slice(start, start + window)
        theirs = SIDES[RIVAL].fit(settings, X[held], y[held]).predict(X[new])
        times = (between - begin, time.perf_counter() - between)
        errors = (float(np.sqrt(np.mean((guess - y[new]) ** 2))) for guess in (mine, theirs))
        for kept, value in zip(found, (*errors, *times), strict=True):
            kept.append(value)
    return found[0], found[1], found[2], found[3]


def stream_figures(quick: bool, n_steps: int) -> Iterator[Figure]:
    """Errors and speeds of the window."""
    window = 4_000 if quick else 40_000
    for name, draw in STREAMS.items():
        mine, theirs, fast, slow = slide(draw, window, n_steps)
        work = f"{name}: window {window:,}, {STEP:,} rows in and out"
        ratio = [a / b for a, b in zip(mine, theirs, strict=True)]
        yield Figure.of(work, "RMSE, deviations", mine, "")
        yield Figure.of(work, f"RMSE over that of {RIVAL}, refitted", ratio, TIMES, most=1.0)
        yield Figure.of(work, "a step", [1e3 * seconds for seconds in fast], "ms")
        yield Figure.ratio(work, f"faster than {RIVAL}", slow, fast, least=10.0)


def update_figures(quick: bool, repeats: int) -> Iterator[Figure]:
    """Updates and predictions of a model that holds many rows."""
    m = 10_000 if quick else 300_000
    X, y = robot_arm(m + (repeats + 1) * STEP + N_PREDICTED, np.random.default_rng(2_912))
    X, new = X[:-N_PREDICTED] / X.std(axis=0), np.ascontiguousarray(X[-N_PREDICTED:] / X.std(axis=0))
    model = LSHRegressor(random_state=0).fit(X[:m], y[:m])
    model.predict(new)
    took: dict[str, list[float]] = {"in": [], "out": [], "predictions": []}
    for start in range(0, (repeats + 1) * STEP, STEP):
        come, go = slice(m + start, m + start + STEP), slice(start, start + STEP)
        for part, call in zip(
            took,
            (
                lambda come=come: model.partial_fit(X[come], y[come]),
                lambda go=go: model.remove(X[go], y[go]),
                lambda: model.predict(new),
            ),
            strict=True,
        ):
            took[part].append(1e3 * timed(call)[1])
    work = f"robot arm: {m:,} rows held, {model.n_stages_} stages of {model.n_tables_} tables"
    parts = {part: CallSeconds(times, repeats) for part, times in took.items()}
    whole = [sum(times) for times in zip(*parts.values(), strict=True)]
    yield Figure.of(work, f"{STEP:,} in, {STEP:,} out, {N_PREDICTED:,} predictions", whole, "ms", most=15)
    for part, times in parts.items():
        yield Figure.of(work, part, times, "ms")


def fitting(m: int) -> Callable[[], object]:
    """A fit of a window."""
    X, y = robot_arm(m, np.random.default_rng(2_914))
    return lambda: LSHRegressor(random_state=0).fit(X, y)


def large_fit(m: int) -> tuple[float, float, float]:
    """Seconds of a fit on two threads, MB above the rows, and the error, in a process of its own."""
    X, y = robot_arm(m + N_PREDICTED, np.random.default_rng(2_913))
    X /= X.std(axis=0)
    start = time.perf_counter()
    model, memory = memory_above(lambda: LSHRegressor(random_state=0, n_jobs=2).fit(X[:m], y[:m]))
    took = time.perf_counter() - start
    error = np.sqrt(np.mean((model.predict(X[m:]) - y[m:]) ** 2)) / y.std()
    return took, memory / 1e6, float(error)


def large_figures(quick: bool) -> Iterator[Figure]:
    """A fit of many rows, and the first one of a window beside later ones."""
    window, m = (500, 20_000) if quick else (4_000, 2_000_000)
    yield from first_and_later(f"robot arm: {window:,} x 6", "fit", 3, fitting, window)
    took, memory, error = alone(large_fit, m)
    work = f"robot arm: {m:,} x 6"
    yield Figure(work, "fit, two threads", took, "s", most=20)
    yield Figure(work, "memory above the rows", memory, "MB", most=1000)
    yield Figure(work, "RMSE, deviations", error, "")


@program(repeats=10)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    repeats = 2 if arguments.quick else arguments.repeats
    return [
        *stream_figures(arguments.quick, repeats),
        *update_figures(arguments.quick, repeats),
        *large_figures(arguments.quick),
    ]
