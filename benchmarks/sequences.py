"""Tables of sequences: held-out error of the default fit, compared with LightGBM, perceptrons, ridge and MAVE-NN.

Every ``.csv`` or ``.csv.gz`` file of the folder ``--data`` is a table in the form of MAVE-NN [1]_: sequences of one
length in a column ``x``, and targets in ``y``, or reads by bin in ``ct_0``, ``ct_1``, ..., whose mean bin is the
target. Rows whose ``set`` is ``test`` are held out, else a fifth of the rows. Two landscapes are measured too. From
tables of more than 32,000 rows, 8,000 are learned and at most 8,000 held out.

Ridge regression on indicators of letters chooses its penalty by leave-one-out errors. LightGBM, perceptrons and the
Gaussian process on Hamming distance are as in ``benchmarks.letters``. MAVE-NN, if it is installed, is additive with a
curve of global epistasis, as in its tutorials. Targets: 1 - R2 at or below the best of them, and intervals of all
effects. Seconds are CPU time on one thread.

.. [1] A. Tareen et al., "MAVE-NN: learning genotype-phenotype maps from multiplex assays of variant effect", Genome
   Biology 23, 2022.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from sklearn.linear_model import RidgeCV

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.letters import MEASURED, Array, Side, hamming, indicators, lightgbm, perceptron
from benchmarks.letters import table as landscape
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import fit_table, predict_table
from sparsact.datasets import open_table

OURS: Final = "sparsact"
MANY, LEARNED, HELD_OUT = 32_000, 8_000, 8_000  # rows of a table that is too large, and of what is drawn of it
EPOCHS: Final = 300  # of MAVE-NN, at most
SHARE: Final = 0.2  # held out of a table without a test set


@cache
def table(path: str) -> tuple[NDArray[np.str_], Array, NDArray[np.bool_]]:
    """Letters (m, n), targets (m,), and which rows are the table's own test set; of a file, or of a landscape."""
    if path in MEASURED:
        letters, y = landscape(path, 0)
        return letters, y, np.zeros(len(y), dtype=bool)
    rows = csv.read_csv(path)
    texts = np.array(rows["x"].to_pylist())
    if "y" in rows.column_names:
        y = rows["y"].to_numpy()
    else:
        reads = np.stack([rows[name].to_numpy() for name in rows.column_names if name.startswith("ct_")], axis=1)
        y = reads @ np.arange(reads.shape[1]) / reads.sum(axis=1)
    tested = np.array(rows["set"].to_pylist()) == "test" if "set" in rows.column_names else np.zeros(len(y), dtype=bool)
    known = np.isfinite(y)
    return texts[known].view("U1").reshape(known.sum(), -1), y[known], tested[known]


def parts(tested: NDArray[np.bool_], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from, and rows to score."""
    order = np.random.default_rng([seed, len(tested)]).permutation(len(tested))
    left = order[tested[order]] if tested.any() else order[: round(SHARE * len(order))]
    seen = order[~tested[order]] if tested.any() else order[len(left) :]
    return (seen[:LEARNED], left[:HELD_OUT]) if len(order) > MANY else (seen, left)


def ours(X: NDArray[np.str_], y: Array, new: NDArray[np.str_]) -> tuple[Array, Row]:
    """Predictions of the default fit; its kind, its effects, those with intervals, and its intervals of predictions."""
    sequences, others = (["".join(row) for row in rows] for rows in (X, new))
    every = pa.table({"x": sequences + others, "y": np.append(y, np.resize(y, len(others)))})
    encoding = open_table(every, "y").encoding  # as all sides, it knows the letters of the rows that it will predict
    result = fit_table(pa.table({"x": sequences, "y": y}), "y", encoding=encoding)
    found, terms = predict_table(result, pa.table({"x": others})), result.targets[0].terms
    predicted, low, high = (found[name].to_numpy() for name in ("y", "y_low", "y_high"))
    with_intervals = sum(term.low is not None for term in terms)
    described: Row = {"kind": result.choices.kind, "effects": len(terms), "with intervals": with_intervals}
    return predicted, described | {"low": low, "high": high}


def ridge(X: Any, y: Array, new: Any, seed: int) -> Array:
    """Ridge regression on indicators of letters."""
    one, other = indicators(X, new)
    return np.asarray(RidgeCV(np.geomspace(1e-3, 1e3, 25)).fit(one, y).predict(other))


def mavenn(X: Any, y: Array, new: Any, seed: int) -> Array:
    """MAVE-NN, additive behind global epistasis with Student's noise; its curve of the latent is the prediction."""
    package, known = import_module("mavenn"), sorted(set(X.ravel()) | set(new.ravel()))
    import_module("keras").utils.set_random_seed(seed)
    model = package.Model(
        L=X.shape[1],
        alphabet=np.array(known),
        regression_type="GE",
        gpmap_type="additive",
        ge_nonlinearity_monotonic=True,
        ge_noise_model_type="SkewedT",
        ge_heteroskedasticity_order=2,
    )
    validation = np.random.default_rng(seed).random(len(y)) < SHARE
    model.set_data(x=np.array(["".join(row) for row in X]), y=y, validation_flags=validation, verbose=False)
    model.fit(
        learning_rate=0.001,
        epochs=EPOCHS,
        batch_size=200,
        early_stopping=True,
        early_stopping_patience=30,
        linear_initialization=True,
        verbose=False,
    )
    return np.asarray(model.x_to_yhat(np.array(["".join(row) for row in new])))


PEERS: Final[dict[str, Side]] = {
    "ridge": ridge,
    "LightGBM": lightgbm,
    "MLP 256-256": perceptron(256, 256),
    "Hamming process": hamming,
    "MAVE-NN": mavenn,
}
PACKAGES: Final = {"LightGBM": "lightgbm", "MAVE-NN": "mavenn"}


def measured(path: str, seed: int, side: str) -> Row:
    """What a side leaves of the variance of the rows held out, and its seconds; of ours also effects and intervals."""
    X, y, tested = table(path)
    seen, left = parts(tested, seed)
    row: Row = {"rows": len(seen), "sites": X.shape[1]}
    if side == OURS:
        (predicted, more), took = timed(lambda: ours(X[seen], y[seen], X[left]))
        row["inside"] = float(np.mean((more.pop("low") <= y[left]) & (y[left] <= more.pop("high"))))
        row |= more
    else:
        predicted, took = timed(lambda: PEERS[side](X[seen], y[seen], X[left], seed))
    return row | {"left": float(np.mean((predicted - y[left]) ** 2) / y[left].var()), "seconds": took}


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """All sides on each table, over seeds, and the targets."""
    for name in dict.fromkeys(row["table"] for row in rows):
        of_table = [row for row in rows if row["table"] == name]
        left: dict[str, list[float]] = {}
        for row in of_table:
            left.setdefault(row["side"], []).append(row["left"])
        for side, own in left.items():
            yield Figure.of(name, f"{side}: variance left", own, "")
        fits = [row for row in of_table if row["side"] == OURS]
        peers = {row["seed"]: [each["left"] for each in of_table if each["seed"] == row["seed"]] for row in fits}
        ratios = [row["left"] / min(set(peers[row["seed"]]) - {row["left"]}) for row in fits if len(left) > 1]
        if ratios:
            yield Figure.of(name, "ours over the best peer", ratios, TIMES, most=1.0)
        if fits:
            shares = [row["with intervals"] / max(1, row["effects"]) for row in fits]
            yield Figure.of(name, "effects with intervals", shares, "", least=1.0)
            yield Figure.of(name, "inside of 95 % intervals", [row["inside"] for row in fits], "")
            yield Figure.of(name, "seconds", [row["seconds"] for row in fits], "s")


@program(
    option("--data", type=Path, help="folder of tables"),
    option("--only", nargs="+", help="tables to measure, by the beginning of their names"),
    option("--sides", nargs="+", choices=[OURS, *PEERS], default=[OURS, *PEERS], help="sides, by default all"),
    KEPT_ROWS,
    repeats=1,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    files = sorted(arguments.data.glob("*.csv*")) if arguments.data else []
    paths = {path.name.removesuffix(".gz").removesuffix(".csv").removesuffix("_data"): str(path) for path in files}
    paths |= {name: name for name in MEASURED}
    names = [name for name in paths if any(map(name.startswith, arguments.only or [""]))]
    sides = [side for side in arguments.sides if side not in PACKAGES or find_spec(PACKAGES[side])]
    if absent := sorted(set(arguments.sides) - set(sides)):
        print(f"{', '.join(absent)} left out: not installed")
    tasks = product(range(arguments.repeats), ["ParD3"] if arguments.quick else names, sides)
    cells = (
        ({"table": name, "seed": seed, "side": side}, partial(measured, paths[name], seed, side))
        for seed, name, side in tasks
    )
    return list(figures(list(kept_rows(arguments.rows, cells))))
