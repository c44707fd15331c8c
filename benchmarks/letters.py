"""Tables of sites with letters: held-out error compared with LightGBM, perceptrons and a Hamming Gaussian process.

Measured tables: PhoQ, 4 sites of 20 amino acids, and ParD3, 3 sites, at 1, 5 and 20 % of their rows. Planted tables
give each letter a place in a plane, and add effects and products of two or three sites. They have 6 sites of
nucleotides and a sigmoid; 5 sites of 2, 3, 5, 7 and 11 categories; 3 sites of 20 letters with unrelated effects. Two
tables were planted after every choice was made: *energies*, the sigmoid of a sum over 4 sites of amino acids, half of
it from properties of the acids; *neighbours*, 7 sites of nucleotides whose adjacent sites interact, in an exponential.

Each model is fitted to the same rows by its own usual procedure. LightGBM gets categorical columns, and 2,000 trees of
the better of two sizes, stopped early on a tenth of the rows. Perceptrons get indicators of letters, have two hidden
layers and stop early. The Gaussian process only knows whether two letters are equal. Errors are unexplained variance,
1 - R2; our 95 % intervals are counted on the rows left out. Target: below the best other model. Seconds are CPU time
on one thread.
"""

from __future__ import annotations

from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv
from scipy.special import expit
from sklearn.neural_network import MLPRegressor

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import LettersRegressor
from sparsact.datasets.landscapes import data_file
from sparsact.learners.letters.alphabet import features_of
from sparsact.learners.letters.ensemble import scored
from sparsact.learners.letters.process import processes_by_fold

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Side = Callable[[Any, Any, Any, int], Any]

AMINO_ACIDS: Final = "ACDEFGHIKLMNPQRSTVWY"
MEASURED: Final = {"PhoQ": "podgornaia2015_phoq_20e4.csv.gz", "ParD3": "lite2020_pard3_20e3.csv.gz"}
PLANTED: Final = {
    "nucleotides": ["ACGT"] * 6,
    "categories": ["AB", "ABC", "ABCDE", "ABCDEFG", "ABCDEFGHIJK"],
    "letters": [AMINO_ACIDS] * 3,
    "energies": [AMINO_ACIDS] * 4,
    "neighbours": ["ACGT"] * 7,
}
SHARES: Final = (0.01, 0.05, 0.2)
SECONDS: Final = 60.0
OURS: Final = "LettersRegressor"


@cache
def table(name: str, draw: int) -> tuple[NDArray[np.str_], Array]:
    """All rows (m, n) of a task as letters, and their targets; of measured ones whatever the draw."""
    if name in MEASURED:
        rows = csv.read_csv(data_file(f"landscapes/{MEASURED[name]}"))
        texts = np.array(rows["genotype"].to_pylist())
        return texts.view("U1").reshape(len(texts), -1), rows["fitness"].to_numpy()
    sites, rng = PLANTED[name], np.random.default_rng([draw, len(name)])
    codes = np.indices([len(letters) for letters in sites]).reshape(len(sites), -1).T
    letters = np.stack([np.array(list(known))[column] for known, column in zip(sites, codes.T, strict=True)], axis=1)
    value = {"energies": energies, "neighbours": neighbours}.get(name, products)(name, codes, rng)
    value = value / value.std()
    return letters, value + 0.1 * rng.standard_normal(len(value))


def products(name: str, codes: Codes, rng: np.random.Generator) -> Array:
    """Effects of single sites and products of two or three, by places of letters in a plane."""
    sites = PLANTED[name]
    places = [rng.standard_normal((len(letters), 2)) for letters in sites]
    value = sum(rng.normal() * of_site[column, 0] for of_site, column in zip(places, codes.T, strict=True))
    for size in (2, 2, 2, 3):
        chosen = rng.permutation(len(sites))[:size]
        axes = rng.integers(0, 2, size)
        value = value + np.prod([places[i][codes[:, i], axis] for i, axis in zip(chosen, axes, strict=True)], axis=0)
    if name == "nucleotides":
        value = expit(2 * value / value.std() - 1)
    return np.asarray(value)


def energies(name: str, codes: Codes, rng: np.random.Generator) -> Array:
    """A sigmoid of a sum of energies of letters."""
    properties = features_of(PLANTED[name][0], amino_acids=True)
    own = rng.standard_normal((codes.shape[1], 7)) / 7**0.5 @ properties.T
    table = own + rng.standard_normal(own.shape)
    value = table[np.arange(codes.shape[1]), codes].sum(axis=1)
    return np.asarray(expit(3 * (value / value.std() - rng.uniform(0, 1.5))))


def neighbours(name: str, codes: Codes, rng: np.random.Generator) -> Array:
    """An exponential of a sum over sites and over pairs next to each other."""
    n = codes.shape[1]
    single, pairs = rng.standard_normal((n, 4)), 0.5 * rng.standard_normal((n, 4, 4))
    value = single[np.arange(n), codes].sum(axis=1) + pairs[np.arange(n - 1), codes[:, :-1], codes[:, 1:]].sum(axis=1)
    return np.asarray(np.exp(rng.uniform(0.2, 1.0) * value / value.std()))


def codes_of(X: NDArray[np.str_], new: NDArray[np.str_]) -> tuple[Codes, Codes]:
    """Numbers of letters in both."""
    both = np.concatenate([X, new])
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in both.T], axis=1)
    return codes[: len(X)], codes[len(X) :]


def indicators(X: NDArray[np.str_], new: NDArray[np.str_]) -> tuple[Array, Array]:
    """One column for each letter of each site."""
    one, other = codes_of(X, new)
    sizes = np.maximum(one.max(axis=0), other.max(axis=0)) + 1
    one_hot = [
        np.concatenate([np.eye(q)[column] for q, column in zip(sizes, part.T, strict=True)], axis=1)
        for part in (one, other)
    ]
    return one_hot[0], one_hot[1]


def ours(X: Any, y: Array, new: Any, seed: int) -> Array:
    """LettersRegressor as it is by default: predictions and both ends of intervals (m, 3)."""
    model = LettersRegressor(random_state=seed).fit(X, y)
    predicted, (low, high) = model.predict(new), model.prediction_intervals(new[:1])[0]
    reach = (high - low) / 2  # the same for all rows
    return np.column_stack([predicted, predicted - reach, predicted + reach])


def perceptron(*units: int) -> Side:
    """scikit-learn's MLPRegressor of some hidden layers, which stops early."""

    def fitted(X: Any, y: Array, new: Any, seed: int) -> Array:
        one, other = indicators(X, new)
        model = MLPRegressor(
            hidden_layer_sizes=units, early_stopping=len(y) >= 200, max_iter=300, n_iter_no_change=20, random_state=seed
        )
        model.fit(one.astype(np.float32), ((y - y.mean()) / y.std()).astype(np.float32))
        return np.asarray(y.mean() + y.std() * model.predict(other.astype(np.float32)), dtype=np.float64)

    return fitted


def hamming(X: Any, y: Array, new: Any, seed: int) -> Array:
    """A Gaussian process for which two letters are the same or not: ours without features, exact on all rows."""
    one, other = codes_of(X, new)
    features = [np.zeros((q, 0)) for q in np.maximum(one.max(axis=0), other.max(axis=0)) + 1]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    folds = np.arange(len(y)) % 5
    weights = np.ones(len(y))
    model, _ = scored(lambda z: processes_by_fold(features, one[order], z, weights, folds, rng), y[order], weights)
    return model.values(other)


def lightgbm(X: Any, y: Array, new: Any, seed: int) -> Array:
    """LightGBM with categorical columns; trees of the size, and as many, as a tenth of the rows likes best."""
    boosting = import_module("lightgbm")
    one, other = codes_of(X, new)
    order = np.random.default_rng(seed).permutation(len(y))
    held, kept = order[: max(2, len(y) // 10)], order[max(2, len(y) // 10) :]
    found = []
    for leaves, least in ((15, 5), (63, 20)):
        of_letters: dict[str, Any] = {"cat_smooth": 1.0, "min_data_per_group": 5, "min_child_samples": least}
        of_run: dict[str, Any] = {"n_jobs": 1, "random_state": seed, "verbose": -1, "n_estimators": 2_000}
        model = boosting.LGBMRegressor(learning_rate=0.05, num_leaves=leaves, **of_letters, **of_run)
        stop, columns = boosting.early_stopping(50, verbose=False), list(range(one.shape[1]))
        model.fit(one[kept], y[kept], eval_set=[(one[held], y[held])], categorical_feature=columns, callbacks=[stop])
        found.append((np.mean((model.predict(one[held]) - y[held]) ** 2), model))
    return np.asarray(min(found, key=lambda pair: pair[0])[1].predict(other), dtype=np.float64)


SIDES: Final[dict[str, Side]] = {
    OURS: ours,
    "LightGBM": lightgbm,
    "MLP 128-128": perceptron(128, 128),
    "MLP 256-256": perceptron(256, 256),
    "Hamming process": hamming,
}


def measured(name: str, share: float, draw: int, fitted: Side) -> Row:
    """What one side leaves of the variance of the rows left out, its seconds, and its intervals' coverage."""
    X, y = table(name, draw if name in PLANTED else 0)
    order = np.random.default_rng(draw).permutation(len(y))
    seen, left = np.split(order, [round(share * len(y))])
    predicted, took = timed(lambda: fitted(X[seen], y[seen], X[left], draw))
    row: Row = {"seconds": took}
    if predicted.ndim == 2:
        predicted, low, high = predicted.T
        row["inside"] = float(np.mean((low <= y[left]) & (y[left] <= high)))
    return row | {"left": float(np.mean((predicted - y[left]) ** 2) / y[left].var())}


def measure(
    tasks: Sequence[tuple[str, float]], repeats: int, sides: dict[str, Side], path: Path | None
) -> Iterator[Row]:
    """A row for each task, share, draw and side."""
    cells = (
        ({"table": name, "rows": share, "seed": draw, "side": side}, partial(measured, name, share, draw, fitted))
        for draw, (name, share), (side, fitted) in product(range(repeats), tasks, sides.items())  # all tasks once first
    )
    return kept_rows(path, cells)


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """All sides on each task at each share of the rows, means over draws, and the targets."""
    for name, share in dict.fromkeys((row["table"], row["rows"]) for row in rows):
        work = f"{name}: {share:.0%} of the rows"
        newest = {(row["side"], row["seed"]): row for row in rows if (row["table"], row["rows"]) == (name, share)}
        of_side: dict[str, list[Row]] = defaultdict(list)
        for (side, _), row in newest.items():
            of_side[side].append(row)
        left = {side: fmean(row["left"] for row in own) for side, own in of_side.items()}
        for side, own in of_side.items():
            yield Figure.of(work, f"{side}: variance left", [row["left"] for row in own], "")
        if OURS not in of_side or len(of_side) == 1:
            continue
        best = min(of_side.keys() - {OURS}, key=lambda side: left[side])
        yield Figure(work, "ours over the best peer", left[OURS] / left[best], TIMES, most=1.0)
        if inside := [row["inside"] for row in of_side[OURS] if "inside" in row]:
            yield Figure.of(work, "inside of 95 % intervals", inside, "")
        most = max(row["seconds"] for row in of_side[OURS])
        yield Figure(work, "seconds, most", most, "s", most=SECONDS)


TABLES: Final = (*MEASURED, *PLANTED)


@program(
    option("--only", nargs="+", choices=TABLES, default=TABLES, help="tasks to measure"),
    option("--sides", nargs="+", choices=SIDES, default=list(SIDES), help="sides to measure, by default all"),
    KEPT_ROWS,
    repeats=3,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    sides = {side: SIDES[side] for side in arguments.sides}
    if "LightGBM" in sides and find_spec("lightgbm") is None:
        del sides["LightGBM"]
        print("LightGBM is left out: pip install lightgbm")
    tasks = list(product(("nucleotides",), SHARES[1:2]) if arguments.quick else product(arguments.only, SHARES))
    return list(figures(list(measure(tasks, arguments.repeats, sides, arguments.rows))))
