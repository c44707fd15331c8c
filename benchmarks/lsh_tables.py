"""LSHRegressor at its defaults on real tables, beside 8-NN, extra trees and boosting: wins and losses alike.

kin40k, elevators and pol, ten test folds each, by their own masks. Columns and target are standardised by the training
rows of a fold. All at their defaults, but for the neighbours' number (8) and their weights (by distance). One thread.

No bar: the figures are for information. Unit: RMSE in standard deviations of the target; seconds of a fit; microseconds
a row of a prediction. Medians of the folds, with their range.

The tables are read from the folder that ``SPARSACT_DATA`` names; without them nothing is measured, and said so.

    python -m benchmarks.lsh_tables [--quick] [--folds N] [--only NAME ...] [--out results/lsh_tables.jsonl]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.neighbors import KNeighborsRegressor
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, options, report
from sparsact import LSHRegressor
from sparsact_papers.data import load_tabular
from sparsact_papers.data.files import TABLES, TabularData

OURS = "LSHRegressor"
MAKERS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: LSHRegressor(random_state=seed),
    "8-NN": lambda _: KNeighborsRegressor(8, weights="distance"),
    "ExtraTrees": lambda seed: ExtraTreesRegressor(random_state=seed, n_jobs=1),
    "HistGradientBoosting": lambda seed: HistGradientBoostingRegressor(random_state=seed),
}
QUICK_ROWS = 2000


def standard(train: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows with the means and deviations of the training rows taken out; a constant column becomes 0."""
    deviation = train.std(axis=0)
    return (rows - train.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def measure(data: TabularData, fold: int, most: int) -> dict[str, tuple[float, float, float]]:
    """RMSE, seconds of the fit and microseconds a predicted row, of each."""
    test = data.test_masks[fold]
    X, y = data.X[~test][:most], data.y[~test][:most]
    rows, target = standard(X, X), standard(y, y)
    new, truth = standard(X, data.X[test]), standard(y, data.y[test])
    found = {}
    for name, make in MAKERS.items():
        start = time.perf_counter()
        model = make(fold).fit(rows, target)
        model.predict(rows[:1])  # ours solves its buckets when it is first asked: that belongs to the fit
        fitted = time.perf_counter()
        error = np.sqrt(np.mean((model.predict(new) - truth) ** 2))
        found[name] = (float(error), fitted - start, 1e6 * (time.perf_counter() - fitted) / len(new))
    return found


def figures_of(name: str, n_folds: int, quick: bool) -> list[Figure]:
    """Figures of one table."""
    data = load_tabular(name)
    found = [measure(data, fold, QUICK_ROWS if quick else len(data.X)) for fold in range(n_folds)]
    work, figures = f"{name}, {data.X.shape[0]:,} x {data.X.shape[1]}", []
    for index, (quantity, unit) in enumerate((("RMSE", ""), ("fit", "s"), ("a predicted row", "us"))):
        for side in MAKERS:
            figures.append(Figure.of(work, f"{side}: {quantity}", [each[side][index] for each in found], unit))
    for side in MAKERS:
        if side != OURS:
            wins = sum(each[OURS][0] < each[side][0] for each in found)
            figures.append(Figure(work, f"folds with less error than {side}, of {n_folds}", float(wins), ""))
    return figures


def main() -> int:
    """Measure, print the table, keep the rows."""
    parser = options(__doc__, repeats=1)
    parser.add_argument("--folds", type=int, choices=range(1, 11), default=10, help="folds of each table (default 10)")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES, help="some of the tables")
    arguments = parser.parse_args()
    figures = []
    with threadpool_limits(1):
        for name in arguments.only:
            try:
                figures += figures_of(name, 1 if arguments.quick else arguments.folds, arguments.quick)
            except FileNotFoundError as missing:
                print(f"{name}: left out, for {missing}")
    return report("lsh_tables", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
