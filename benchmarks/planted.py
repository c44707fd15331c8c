"""Planted sparsely activated networks found again from rows, beside dense networks and low-degree fits.

Goal: SparselyActivatedRegressor, at its defaults, reaches a test error below 1 % of the variance for at least 90 % of
the seeds (rows and, where it is random, the network are drawn anew for each), and more often than either opponent.
Unit: the share of seeds. The figure beside it is the median test error over the variance.

The opponents are favoured: of each family the member that does best *on the test rows* counts. Dense: scikit-learn's
MLPRegressor with one hidden layer, as wide as the planted network and 64 wide (what ours may use), by L-BFGS and by
Adam. Low degree: LowDegreeRegressor of each degree up to 6.

    python -m benchmarks.planted [--quick] [--only NAME ...] [--repeats SEEDS] [--out results/planted.jsonl]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, options, report
from sparsact import LowDegreeRegressor, SparselyActivatedRegressor, constructions
from sparsact.network import SparselyActivatedNetwork

Generator = np.random.Generator
Array = NDArray[np.float64]
ENOUGH = 0.01
N_TEST = 5000
OURS, DENSE, LOW = "ours", "dense, best of 4", "low degree, best of 7"


@dataclass(frozen=True)
class PlantedTask:
    """A planted network, the rows it is to be found from, and whether the goal is set for it."""

    plant: Callable[[Generator], SparselyActivatedNetwork]
    n_rows: int
    noise: float = 0.0
    idle_columns: int = 0
    max_active: int = 1
    sphere: bool = False
    judged: bool = True


def gated(n_address: int, q: int) -> Callable[[Generator], SparselyActivatedNetwork]:
    """Gated networks of random unit weights."""

    def plant(rng: Generator) -> SparselyActivatedNetwork:
        weights = rng.normal(size=(2**n_address, q))
        return constructions.gated(weights / np.linalg.norm(weights, axis=1, keepdims=True), n_address)

    return plant


def caps(n: int) -> SparselyActivatedNetwork:
    """2n disjoint caps of the sphere of radius sqrt(n), with signs by turns."""
    W = np.vstack([np.eye(n), -np.eye(n)])
    signs: Any = 1.0 - 2.0 * (np.arange(2 * n) % 2)
    return SparselyActivatedNetwork(signs, W, np.full(2 * n, float(np.sqrt(n / 2))))


def parity(size: int, n: int) -> SparselyActivatedNetwork:
    """Parity of the first few coordinates, as a junta."""
    table = 1 - 2 * (np.bitwise_count(np.arange(2**size)).astype(np.int64) & 1)
    return constructions.junta(table, range(size), n)


TASKS = {
    "Index_2": PlantedTask(lambda _: constructions.indexing(2), 64),
    "Index_2 among 20 columns": PlantedTask(lambda _: constructions.indexing(2), 150, idle_columns=14),
    "Index_3": PlantedTask(lambda _: constructions.indexing(3), 300),
    "Index_3, noise 0.1": PlantedTask(lambda _: constructions.indexing(3), 1000, noise=0.1),
    "Index_4": PlantedTask(lambda _: constructions.indexing(4), 800),
    "Index_4, noise 0.1": PlantedTask(lambda _: constructions.indexing(4), 2500, noise=0.1),
    "gated, 2 address bits, q = 10": PlantedTask(gated(2, 10), 400),
    "gated, 3 address bits, q = 12": PlantedTask(gated(3, 12), 1200),
    "gated, 3 address bits, noise 0.1": PlantedTask(gated(3, 12), 2000, noise=0.1),
    "gated, 4 address bits, q = 16": PlantedTask(gated(4, 16), 3000),
    "caps of a sphere in 5 dimensions": PlantedTask(lambda _: caps(5), 2000, sphere=True),
    "random, n = 12, s = 16": PlantedTask(
        lambda rng: constructions.random_network(12, 16, 1, rng=rng), 3000, judged=False
    ),
    "random, n = 12, s = 8, k = 2": PlantedTask(
        lambda rng: constructions.random_network(12, 8, 2, rng=rng), 2000, max_active=2, judged=False
    ),
    "parity of 4 among 12": PlantedTask(lambda _: parity(4, 12), 1000, judged=False),
}
QUICK = ("Index_2", "gated, 2 address bits, q = 10")


def rows(task: PlantedTask, network: SparselyActivatedNetwork, m: int, rng: Generator) -> tuple[Array, Array]:
    """Inputs, idle columns last, and the network's values there."""
    if task.sphere:
        X = rng.normal(size=(m, network.n))
        X *= np.sqrt(network.n) / np.linalg.norm(X, axis=1, keepdims=True)
    else:
        X = rng.choice([-1.0, 1.0], size=(m, network.n + task.idle_columns))
    return X, network(X[:, : network.n])


def dense(width: int, seed: int) -> Iterator[Any]:
    """One-hidden-layer networks of scikit-learn."""
    for wide, solver in product(sorted({width, 64}), ("lbfgs", "adam")):
        yield MLPRegressor(
            hidden_layer_sizes=(wide,), solver=solver, max_iter=2000 if solver == "lbfgs" else 300, random_state=seed
        )


def least_error(learners: Iterator[Any], train: tuple[Array, Array], test: tuple[Array, Array]) -> float:
    """The smallest test error over the variance among fitted learners."""
    X, truth = test
    return min(float(np.mean((each.fit(*train).predict(X) - truth) ** 2) / np.var(truth)) for each in learners)


def errors(task: PlantedTask, seed: int) -> tuple[dict[str, float], float]:
    """Test errors of the three on one draw, and the seconds of our fit."""
    rng = np.random.default_rng(seed)
    network = task.plant(rng)
    X, y = rows(task, network, task.n_rows, rng)
    train, test = (X, y + task.noise * rng.normal(size=len(y))), rows(task, network, N_TEST, rng)
    ours = SparselyActivatedRegressor(max_active=task.max_active, random_state=seed)
    start = time.perf_counter()
    found = least_error(iter([ours]), train, test)
    seconds = time.perf_counter() - start
    low = (LowDegreeRegressor(degree, n_jobs=1) for degree in range(min(X.shape[1], 6) + 1))
    return {
        OURS: found,
        DENSE: least_error(dense(network.s, seed), train, test),
        LOW: least_error(low, train, test),
    }, seconds


def measure(names: list[str], n_seeds: int) -> list[Figure]:
    """Shares and medians of every task."""
    figures = []
    for name in names:
        task = TASKS[name]
        drawn = [errors(task, seed) for seed in range(n_seeds)]
        work = f"{name}, m = {task.n_rows:,}"
        for side in (OURS, DENSE, LOW):
            each = [found[side] for found, _ in drawn]
            share = float(np.mean(np.array(each) < ENOUGH))
            least = 0.9 if side == OURS and task.judged else None
            figures.append(Figure(work, f"{side}: share below 1 %", share, "", least=least))
            figures.append(Figure(work, f"{side}: median error", median(each), ""))
        figures.append(Figure.of(work, "fit of ours", [seconds for _, seconds in drawn], "s"))
        print(work, *(f"{figure.quantity} {figure.value:.3g}" for figure in figures[-7:]), sep="; ", flush=True)
    return figures


def main() -> int:
    """Measure, print the table, keep the rows."""
    parser = options(__doc__, repeats=10)
    parser.add_argument("--only", nargs="+", choices=TASKS, help="some of the tasks")
    arguments = parser.parse_args()
    names = arguments.only or list(QUICK if arguments.quick else TASKS)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        figures = measure(names, 3 if arguments.quick else arguments.repeats)
    return report("planted", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
