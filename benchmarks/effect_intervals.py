"""How often the 95 % intervals of effects and predictions contain the truth, on landscapes measured in full.

Each draw fits the default model to 300 to 3,000 rows, at most half of the landscape. An effect is covered if its
interval contains the mean over all combinations. Predictions are made for all other rows, and counted by fifths of the
predicted value.

Sequences with planted effects are measured too: 30, 60 or 100 sites of amino acids, variants with one to five
mutations of a wild type, a sum of effects or a sigmoid of it, and noise of 0.3 deviations. Some sites matter more.
Each single mutation whose letters occur in the rows is compared with its planted effect on the wild type. The
strongest twentieth of the true effects is also counted separately.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.figures import Figure
from benchmarks.harness import Row, kept_rows
from benchmarks.landscapes import Array, table
from benchmarks.letters import AMINO_ACIDS
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import fit_table, predict_table
from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points, signs_to_bits

SIZES: Final = (300, 3000, 10)  # rows of the first draw and of the last, and how many draws
CORNER: Final = "a corner"
NAMES: Final = ("S309", "eqFP611 red", "eqFP611 combined", "LLVM", CORNER)
PLANTED: Final = {
    f"{sites} sites, {curve}": (sites, curve) for sites, curve in product((30, 60, 100), ("sum", "sigmoid"))
}
DRAWS_PLANTED: Final = 3  # of other numbers of rows each
MUTATIONS: Final = 5  # of a variant, at most
NOISE: Final = 0.3  # over the deviation of what is measured without it
STRONGEST: Final = 0.05


def complete(name: str) -> tuple[Array, Array]:
    """All combinations in table order, and their targets; of a corner that rules, as of run times, with noise."""
    if name != CORNER:
        X, y = table(name)
        order = (X.astype(np.intp) @ (1 << np.arange(X.shape[1]))).argsort()
        return X[order], y[order]
    X = signs_to_bits(points(11))
    y = 5 + X[:, :4] @ [1.2, -0.6, 0.5, -0.25] - 1.6 * (X[:, [0, 1, 4, 5, 6]] == 0).all(axis=1)
    return X, y + np.random.default_rng(9).normal(0, 0.07, len(y))


def measured(name: str, draw: int) -> Row:
    """Effects that are named and inside, their half width over the deviation of y, and shares of predictions inside."""
    X, y = complete(name)
    m = min(round(float(np.geomspace(*SIZES)[draw % SIZES[-1]])), len(X) // 2)
    rows, left = np.split(np.random.default_rng([draw, len(X)]).permutation(len(X)), [m])
    names, truth = [f"x{i}" for i in range(X.shape[1])], walsh_hadamard(y)
    result = fit_table(pa.table([*X[rows].T, y[rows]], [*names, "y"]), "y")
    terms = [term for term in result.targets[0].terms if term.significant]
    true = np.array([truth[sum(1 << names.index(column) for column in term.subset)] for term in terms])
    low, high = np.array([(term.low, term.high) for term in terms]).reshape(-1, 2).T
    found = predict_table(result, pa.table(list(X[left].T), names))
    predicted, lowest, highest = (found[column].to_numpy() for column in ("y", "y_low", "y_high"))
    inside = (lowest <= y[left]) & (y[left] <= highest)
    return {
        "rows": m,
        "kind": result.choices.kind,
        "named": len(terms),
        "inside": int(((low <= true) & (true <= high)).sum()),
        "width": float(np.median(high - low) / 2 / y.std()) if terms else 0.0,
        "predictions": [float(inside[part].mean()) for part in np.array_split(predicted.argsort(), 5)],
    }


def variants(n: int, m: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], Array]:
    """A wild type of n sites and below it m variants with one to five mutations, and effects (n, letters) of these."""
    q, wild = len(AMINO_ACIDS), rng.integers(len(AMINO_ACIDS), size=n)
    X = np.tile(wild, (m + 1, 1))
    for row in X[1:]:
        sites = rng.choice(n, rng.integers(1, MUTATIONS + 1), replace=False)
        row[sites] = (wild[sites] + rng.integers(1, q, len(sites))) % q
    single = rng.exponential(size=(n, 1)) * rng.normal(-0.5, 1.0, (n, q))
    return X, single - single[np.arange(n), wild][:, None]


def planted(name: str, draw: int) -> Row:
    """Share of the single mutations whose interval holds what was planted, and of the strongest."""
    (n, curve), rng = PLANTED[name], np.random.default_rng([draw, *map(ord, name)])
    m = round(float(np.geomspace(*SIZES[:2], DRAWS_PLANTED)[draw % DRAWS_PLANTED]))
    X, single = variants(n, m, rng)
    latent = single[np.arange(n), X[1:]].sum(axis=1)
    unit = latent.std()
    clean, true = (np.tanh(each / unit) if curve == "sigmoid" else each / unit for each in (latent, single))
    wild, *texts = ("".join(AMINO_ACIDS[letter] for letter in row) for row in X)
    table = pa.table({"x": texts, "y": clean + rng.normal(0, NOISE * clean.std(), m)})
    result = fit_table(table, "y", wild_type=wild)
    found = [
        (true[int(name[1:-1]) - 1, AMINO_ACIDS.index(name[-1])], row["low"], row["high"])
        for row in result.effects_from("WT", order=1)
        for name in row["columns"]
    ]
    value, low, high = np.array(found, dtype=np.float64).T  # without an interval NaN, which holds nothing
    inside = (low <= value) & (value <= high)
    strongest = np.argsort(-np.abs(value))[: max(1, round(STRONGEST * len(value)))]
    return {
        "rows": m,
        "kind": result.choices.kind,
        "effects": len(value),
        "inside": float(inside.mean()),
        "strongest inside": float(inside[strongest].mean()),
        "half width": float(np.median(high - low) / 2 / clean.std()),
    }


def of_planted(rows: Sequence[Row]) -> Iterator[Figure]:
    """Of each kind of planted sequences and of all: shares inside, and widths."""
    for name in (*dict.fromkeys(row["table"] for row in rows), "planted"):
        drawn = [row for row in rows if name in ("planted", row["table"])]
        least = 0.9 if name == "planted" else None
        yield Figure.of(name, "effects inside", [row["inside"] for row in drawn], "", least=least)
        yield Figure.of(name, "strongest effects inside", [row["strongest inside"] for row in drawn], "")
        yield Figure.of(name, "half width over the deviation of y", [row["half width"] for row in drawn], "")


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Of each landscape and of all: shares inside, and widths."""
    sequences = [row for row in rows if row["table"] in PLANTED]
    if sequences:
        yield from of_planted(sequences)
    rows = [row for row in rows if row["table"] not in PLANTED]
    for name in (*dict.fromkeys(row["table"] for row in rows), "all"):
        drawn = [row for row in rows if row["named"] and name in ("all", row["table"])]
        if drawn:
            share = sum(row["inside"] for row in drawn) / sum(row["named"] for row in drawn)
            least = min(row["inside"] / row["named"] for row in drawn)
            yield Figure(name, "named effects inside", share, "", *((0.9, 0.99) if name == "all" else ()))
            yield Figure(name, "named effects inside, least of a draw", least, "", 0.75)
            yield Figure.of(name, "half width over the deviation of y", [row["width"] for row in drawn], "")
            for part, which in ((0, "lowest"), (4, "highest")):
                shares = [row["predictions"][part] for row in drawn]
                yield Figure.of(name, f"predictions inside, {which} fifth", shares, "")


@program(
    option("--only", nargs="+", default=(*NAMES, *PLANTED), help="landscapes, and kinds of planted sequences"),
    KEPT_ROWS,
    repeats=SIZES[-1],
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    names, draws = ([CORNER], 1) if arguments.quick else (arguments.only, arguments.repeats)
    tasks = [task for task in product(range(draws), names) if task[1] not in PLANTED or task[0] < DRAWS_PLANTED]
    cells = (
        ({"table": name, "draw": draw}, partial(planted if name in PLANTED else measured, name, draw))
        for draw, name in tasks
    )
    return list(figures(list(kept_rows(arguments.rows, cells))))
