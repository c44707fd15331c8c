"""Recovery of planted sparse networks from rows that they generated, compared with gradient descent and other learners.

Rows and networks are drawn anew for each seed; errors are on fresh points, over the variance. Targets without noise:
an error below 0.1 % for 9 of 10 seeds, on families where ten starts of L-BFGS reach it for 5; a median no larger than
theirs. With noise: at most twice the error of least squares on the true active sets. Everywhere: within 5 % of the
best of scikit-learn's dense networks (four widths, best on validation), boosted trees and low-degree polynomials; at
most 60 s on one thread. ``given`` is the number of allowed units, divided by the true number.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor

from benchmarks.figures import Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import LowDegreeRegressorCV, SparselyActivatedRegressor, constructions
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.common.planted import halfspaces, on_sphere, sum_of_gated

Generator = np.random.Generator
Array = NDArray[np.float64]
N_TEST, N_STARTS = 5000, 10
MOST_CROWDED: Final = 3  # times k: units that a row switches on in the mean, before rows are chosen
OURS, STARTS, TRUE = "ours", "ten starts of L-BFGS", "true active sets"
PEERS: Final = ("dense, best of 4", "boosted trees", "low degree, best of 7")


@dataclass(frozen=True)
class PlantedTask:
    """A family, its size, and what the learner is given; ``n_rows`` 0 means 20 s n rows."""

    family: str
    n: int
    s: int
    k: int = 1
    noise: float = 0.0
    given: float = 1.0
    n_rows: int = 0
    enough: float = 1e-3
    name: str = ""
    judged: bool = True

    @property
    def m(self) -> int:
        """Rows."""
        return self.n_rows or 20 * self.s * self.n

    @property
    def work(self) -> str:
        """The task in words."""
        if self.name:
            return f"{self.name}, m = {self.m:,}"
        size = f"{self.family}, n = {self.n}, s = {self.s}, k = {self.k}"
        return f"{size}{f', noise {self.noise:g}' * (self.noise > 0)}, given {self.given:g} s, m = {self.m:,}"


def regions(task: PlantedTask, rng: Generator) -> SparselyActivatedNetwork:
    """Units of random directions: in opposite pairs, high on the sphere (caps), or of large halfspaces (cells)."""
    crowded = float(norm.isf(min(MOST_CROWDED * task.k / task.s, 0.5)))  # lower, and hardly a row is k-sparse
    cells = float(np.sqrt(2 * np.log(max(0.4 * task.s / task.k, 1.0))))
    heights = {"pairs": max(0.5, crowded), "caps": max(1.0, crowded), "cells": cells}
    network = halfspaces(task.n, task.s, heights[task.family], rng)
    if task.family == "pairs":
        first, sign = np.arange(task.s) // 2 * 2, (-1.0) ** np.arange(task.s)
        return SparselyActivatedNetwork(sign * network.u[first], sign[:, None] * network.W[first], network.b)
    return network


def draw(task: PlantedTask, rng: Generator) -> tuple[SparselyActivatedNetwork, Callable[[int], Array]]:
    """A network of the family, and rows on which it is k-sparse."""
    bits = task.s.bit_length() - 1
    odd = 1 - 2 * (np.bitwise_count(np.arange(task.s)) % 2).astype(int)
    on_cube: dict[str, Callable[[], SparselyActivatedNetwork]] = {
        "gates": lambda: sum_of_gated(task.n, task.s, task.k, rng),
        "index": lambda: constructions.indexing(bits),
        "parity": lambda: constructions.junta(odd, range(bits), task.n),
    }
    kind = task.family.removeprefix("rotated ")
    network = on_cube.get(kind, lambda: regions(task, rng))()
    if kind in on_cube:
        rotation = np.linalg.qr(rng.normal(size=(task.n, task.n)))[0] if kind != task.family else np.eye(task.n)
        rotated = SparselyActivatedNetwork(network.u, network.W @ rotation, network.b)
        return rotated, lambda m: rng.choice([-1.0, 1.0], size=(m, task.n)) @ rotation

    def sparse_rows(m: int) -> Array:
        kept: list[Array] = []
        while sum(map(len, kept)) < m:
            X = rng.normal(size=(4 * m, task.n))
            if task.family == "caps":
                X = on_sphere(X)
            kept.append(X[network.n_active(X) <= task.k])
        return np.concatenate(kept)[:m]

    return network, sparse_rows


def starts(n_units: int, X: Array, y: Array, rng: Generator) -> Callable[[Array], Array]:
    """The best on the rows of ten descents from random units and signs, without a penalty."""
    A, n_columns = np.column_stack([X, np.ones(len(X))]), X.shape[1] + 1

    def objective(flat: Any, signs: Any) -> Any:
        outputs = np.maximum(A @ flat.reshape(-1, n_columns).T, 0)
        errors = outputs @ signs - y
        return float(errors @ errors) / len(y), (((outputs > 0) * np.outer(errors, signs)).T @ A * (2 / len(y))).ravel()

    best: tuple[float, Any, Any] = (np.inf, None, None)
    for _ in range(N_STARTS):
        signs, theta = rng.choice([-1.0, 1.0], n_units), rng.normal(size=(n_units, n_columns)) / np.sqrt(n_columns)
        limits = {"maxiter": 500, "ftol": 1e-16, "gtol": 1e-12}
        found = cast("Any", minimize)(objective, theta.ravel(), (signs,), "L-BFGS-B", jac=True, options=limits)
        best = min(best, (found.fun, found.x.reshape(-1, n_columns), signs), key=lambda each: each[0])
    return lambda new: np.maximum(new @ best[1][:, :-1].T + best[1][:, -1], 0) @ best[2]


def true_sets(network: SparselyActivatedNetwork, X: Array, y: Array) -> Callable[[Array], Array]:
    """Least squares of the targets on the rows of each unit's true active set."""

    def features(rows: Array) -> Array:
        ones = np.column_stack([rows, np.ones(len(rows))])
        blocks: Array = network.active(rows)[:, :, None].astype(np.float64) * ones[:, None, :]
        return blocks.reshape(len(rows), -1)

    solution = np.linalg.lstsq(features(X), y, rcond=1e-10)[0]
    return lambda new: features(new) @ solution


def predictors(task: PlantedTask, seed: int) -> Iterator[tuple[str, float, float]]:
    """(side, test error over the variance, seconds of the processor) of all that the goals compare."""
    rng = np.random.default_rng(seed)
    network, draw_rows = draw(task, rng)
    X, new = draw_rows(task.m), draw_rows(N_TEST)
    y = network(X) + task.noise * network(new).std() * rng.normal(size=task.m)
    n_units = int(np.ceil(task.given * task.s)) or 64  # the default

    def dense(width: int) -> MLPRegressor:
        return MLPRegressor(hidden_layer_sizes=(width,), early_stopping=True, random_state=seed).fit(X, y)

    score = attrgetter("best_validation_score_")
    sides: dict[str, Callable[[], Any]] = {
        OURS: lambda: SparselyActivatedRegressor(n_units, task.k, random_state=seed).fit(X, y).predict,
        **({TRUE: lambda: true_sets(network, X, y)} if task.noise else {STARTS: lambda: starts(n_units, X, y, rng)}),
    }
    if task.noise or task.given <= 1:  # the same otherwise
        sides |= {
            PEERS[0]: lambda: max(map(dense, (task.s, 2 * task.s, 4 * task.s, 128)), key=score).predict,
            PEERS[1]: lambda: HistGradientBoostingRegressor(random_state=seed).fit(X, y).predict,
            PEERS[2]: lambda: LowDegreeRegressorCV(random_state=seed).fit(X, y).predict,
        }
    for side, fit in sides.items():
        predict, seconds = timed(fit)
        yield side, float(np.mean((predict(new) - network(new)) ** 2) / network(new).var()), seconds


def figures_of(task: PlantedTask, errors: dict[str, list[float]], seconds: list[float]) -> list[Figure]:
    """Shares, medians and the targets of one task."""
    ours, others = np.array(errors[OURS]), {side: np.array(each) for side, each in errors.items()}
    share = {side: float(np.mean(each < task.enough)) for side, each in others.items()}
    below, clean = f"share below {100 * task.enough:g} %", not task.noise
    needed = 0.9 if task.judged and clean and share[STARTS] >= 0.5 else None
    figures = [Figure(task.work, f"{OURS}: {below}", share[OURS], "", least=needed)]
    figures += [Figure(task.work, f"{side}: {below}", share[side], "") for side in errors if side != OURS]
    bars = {STARTS: 1.0} if clean else {TRUE: 2.0}
    for side, each in others.items():
        figures.append(Figure.of(task.work, f"{side}: median error", each.tolist(), ""))
        most = bars.get(side, 1.05 if side in PEERS else None)
        if side != OURS and task.judged and most:
            met = median(ours.tolist()) <= max(most * median(each.tolist()), 1e-9)
            figures.append(Figure(task.work, f"ours at most {most:g} x {side}", float(met), "", least=1.0))
    return [*figures, Figure.of(task.work, "fit of ours", seconds, "s", most=60.0)]


SIZES: Final = ((12, 4, 1), (20, 8, 2), (30, 16, 1), (60, 32, 1), (24, 12, 3))
TASKS: Final = {
    each.work: each
    for each in (
        *(
            PlantedTask("index", b + 2**b, 2**b, 1, 0.0, 0.0, m, 0.01, f"Index_{b}")
            for b, m in ((2, 64), (3, 300), (4, 800))
        ),
        PlantedTask("index", 20, 16, noise=0.1, n_rows=2500),
        PlantedTask("parity", 12, 16, 1, 0.0, 0.0, 1000, 0.01, "parity of 4 among 12", judged=False),
        *(
            PlantedTask(family, n, s, k, noise, given)
            for n, s, k in SIZES
            for family in ("gates", "rotated gates", "caps", "cells", "pairs")
            for noise, given in ((0.0, 1.0), (0.0, 1.5), (0.1, 1.0), (0.3, 1.5))
            if "gates" not in family or (s // k).bit_count() == 1
        ),
    )
}


def measure(names: list[str], n_seeds: int, path: Path | None) -> Iterator[Row]:
    """A row for each task and seed."""

    def errors(task: PlantedTask, seed: int) -> Row:
        return {"errors": {side: (error, took) for side, error, took in predictors(task, seed)}}

    tasks = product(map(TASKS.__getitem__, names), range(n_seeds))
    cells = (({**asdict(task), "seed": seed}, partial(errors, task, seed)) for task, seed in tasks)
    return kept_rows(path, cells)


def figures(rows: Iterable[Row]) -> Iterator[Figure]:
    """Figures of every task that has rows, medians over its seeds."""
    of_task: dict[PlantedTask, list[Row]] = {}
    for row in rows:
        task = PlantedTask(**{field.name: row[field.name] for field in fields(PlantedTask)})
        of_task.setdefault(task, []).append(row["errors"])
    for task, errors in of_task.items():
        of_side = {side: [one[side][0] for one in errors] for side in errors[0]}
        yield from figures_of(task, of_side, [one[OURS][1] for one in errors])


@program(option("--only", nargs="+", help="tasks whose names begin with any of these"), KEPT_ROWS, repeats=10)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    quick = ("Index_2", "pairs, n = 12, s = 4, k = 1, given 1 s") if arguments.quick else ("",)
    names = [name for name in TASKS if name.startswith(tuple(arguments.only or quick))]
    return list(figures(measure(names, 2 if arguments.quick else arguments.repeats, arguments.rows)))
