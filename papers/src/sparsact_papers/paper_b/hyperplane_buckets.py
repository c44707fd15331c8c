"""Hyperplane LSH with a scalar for each sign pattern, on the cube in 8 dimensions: Figures 1b, 2b and 4 of paper B.

The error against the number of buckets :math:`2^m`, compared with the best linear predictor (which a dense layer
without an activation is) and a dense ReLU layer. Where the paper is silent, each choice is a parameter or a value of
the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.training import RMSProp
from sparsact.routing import HyperplaneLSH
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined, plot_curves
from sparsact_papers.common.bucket_scalars import ScalarTraining, bucket_means, shrunken_means, trained_scalars
from sparsact_papers.data import random_hypercube, random_polynomial
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.paper_b.hyperplane_claims import CLAIMS, MANY, TARGETS, hashed

Array = NDArray[np.float64]
Data = tuple[Array, Array, Array, Array]  # X and y to train on, X and y to test on

DIMENSION, DEGREE = 8, 4
OFFSETS: Final = ("none", "uniform")
HASHES: Final = {Scale.SMOKE: (5, 10, 11, 14), Scale.QUICK: (5, 8, 10, 11, 14), Scale.FULL: tuple(range(5, 15))}
DRAWS: Final = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 40}
DENSE: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}  # draws that a dense layer is fitted to, too
TRAINED: Final = {Scale.SMOKE: 1, Scale.QUICK: 1, Scale.FULL: 40}  # draws that the paper's optimiser is run on, too
ALL_SIZES: Final = 5  # draws on which it is run from few buckets on, for the figure; the claims need the many
N_TRAIN: Final = {Scale.SMOKE: 1 << 11, Scale.QUICK: 1 << 16, Scale.FULL: 1 << 16}
N_TEST: Final = {Scale.SMOKE: 1 << 9, Scale.QUICK: 1 << 14, Scale.FULL: 1 << 14}
EPOCHS: Final = {Scale.SMOKE: 1, Scale.QUICK: 10, Scale.FULL: 50}
WIDTH: Final = {Scale.SMOKE: 32, Scale.QUICK: 256, Scale.FULL: 1024}
PAPERS: Final = RMSProp(learning_rate=1e-5, rho=0.9, epsilon=1e-7)  # rho and epsilon as Keras has them
BATCH: Final = 32  # the default of Keras; the paper gives none


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """For each draw of a target and points: a dense layer, and every number of buckets."""
    for seed, target in product(range(DRAWS[scale]), TARGETS):
        draw = {"target": target, "n_train": N_TRAIN[scale], "n_test": N_TEST[scale], "seed": seed}
        for offset in OFFSETS:
            solved = draw | {"offset": offset, "epochs": 0}
            if seed < DENSE[scale]:
                yield solved | {"model": "dense ReLU", "n_units": WIDTH[scale]}
            yield from (solved | {"model": "LSH", "n_units": 2**m} for m in HASHES[scale])
        if seed < TRAINED[scale]:
            trained = draw | {"offset": "none", "epochs": EPOCHS[scale]}
            sizes = (2**m for m in HASHES[scale] if 2**m >= MANY or seed < ALL_SIZES)
            yield from (trained | {"model": "LSH", "n_units": size} for size in sizes)


def measure(
    *, model: str, target: str, offset: str, n_units: int, epochs: int, n_train: int, n_test: int, seed: int
) -> dict[str, Any]:
    """Mean squared error on fresh points, beside variance and best linear predictor.

    ``offset`` "uniform": each hyperplane passes through a point uniform in the cube (LSH), or units have biases (ReLU);
    "none": all pass through the origin. ``epochs`` 0 is the closed form; else RMSProp of the paper's.
    """
    X, y, new, truth = data = _data(target, n_train, n_test, seed)
    top, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(n_train)]), y, rcond=None)
    beside = {"variance": float(truth.var()), "linear_mse": _mse(np.column_stack([new, np.ones(n_test)]) @ top, truth)}
    if model == "dense ReLU":
        return beside | _dense(data, n_units, seed, biased=offset == "uniform")
    return beside | _hashed(data, n_units, seed, offset=offset, epochs=epochs)


def _data(target: str, n_train: int, n_test: int, seed: int) -> Data:
    rng = np.random.default_rng([seed, 1])
    f = (
        random_polynomial(DIMENSION, DEGREE, rng=rng)
        if target == "polynomial"
        else random_hypercube(DIMENSION, rng=rng)
    )
    rng = np.random.default_rng([seed, 2])
    X, new = (rng.uniform(-1, 1, (m, DIMENSION)) for m in (n_train, n_test))
    return X, f(X), new, f(new)


def _dense(data: Data, width: int, seed: int, *, biased: bool) -> dict[str, Any]:
    """A frozen random layer with every unit on, and ridge on top of it."""
    from sparsact.learners.dsm import DSMRegressor  # draws in scikit-learn

    X, y, new, truth = data
    layer = DSMRegressor(width, width, activation="relu", bias=biased, random_state=seed).fit(X, y)
    return {"mse": _mse(layer.predict(new), truth), "flops": layer.flops(routing=False)}


def _hashed(data: Data, n_buckets: int, seed: int, *, offset: str, epochs: int) -> dict[str, Any]:
    """A scalar for each pattern: its error, which points fall where no row fell, and other choices for these."""
    X, y, new, truth = data
    m = n_buckets.bit_length() - 1
    bucket, met = patterns(m, seed, X, new, offset=offset)
    counts = np.bincount(bucket, minlength=n_buckets)
    found = {
        "n_non_empty": int(np.count_nonzero(np.bincount(np.r_[bucket, met], minlength=n_buckets))),
        "n_trained": int(np.count_nonzero(counts)),
        "n_cells": cells(m, DIMENSION, through_origin=offset == "none"),
        "missed": float(np.mean(counts[met] == 0)),
        "flops": HyperplaneLSH(m).flops(DIMENSION) + m * (offset == "uniform"),
    }
    if epochs:
        rng = np.random.default_rng([seed, 5])
        scalars = trained_scalars(bucket, y, n_buckets, ScalarTraining(PAPERS, BATCH, epochs), rng=rng)
        return found | {"mse": _mse(scalars[met], truth)}
    shrunken, shrinkage = shrunken_means(bucket, y, n_buckets)
    return found | {
        "mse": _mse(bucket_means(bucket, y, n_buckets, empty=float(y.mean()))[met], truth),
        "mse_empty_zero": _mse(bucket_means(bucket, y, n_buckets, empty=0.0)[met], truth),
        "mse_shrunken": _mse(shrunken[met], truth),
        "shrinkage": shrinkage,
    }


def patterns(m: int, seed: int, *points: Array, offset: str) -> list[NDArray[np.intp]]:
    """Sign patterns, as numbers. The hyperplanes of a seed are nested: m + 1 of them split the buckets of m."""
    normals = HyperplaneLSH(m).initial_state(DIMENSION, rng=np.random.default_rng([seed, 3]))["directions"]
    through = np.random.default_rng([seed, 4]).uniform(-1, 1, (1, m, DIMENSION))
    shifts = -np.sum(normals * through, axis=2, keepdims=True) * (offset == "uniform")
    state = {"directions": np.concatenate([normals, shifts], axis=2)}  # a column of ones carries the offset
    return [
        HyperplaneLSH(m).select(np.column_stack([X, np.ones(len(X))]), state).indices[:, 0].astype(np.intp)
        for X in points
    ]


def cells(m: int, d: int, *, through_origin: bool) -> int:
    """Into how many cells m hyperplanes in general position cut R^d (Schlaefli; Cover, 1965)."""
    if through_origin:
        return 2 * sum(comb(m - 1, i) for i in range(d))
    return sum(comb(m, i) for i in range(d + 1))


def _mse(predicted: Array, truth: Array) -> float:
    return float(np.mean((predicted - truth) ** 2))


LINEAR: Final = "best linear predictor"
LAYERS: Final = {"none": "ReLU without biases", "uniform": "ReLU with biases"}
THROUGH: Final = {"none": "through the origin", "uniform": "with offsets"}
BUCKETS: Final = "buckets (2 to the number of hyperplanes)"


def solved(rows: Rows) -> Rows:
    """Closed forms of LSH, with both kinds of hyperplanes."""
    return Rows([*hashed(rows), *hashed(rows, offset="uniform")])


def _error_frame(rows: Rows, target: str) -> Frame:
    own = rows.where(target=target)
    found = curves(solved(own), lambda row: f"LSH {THROUGH[row['offset']]}", "n_units", "mse / variance", "share")
    linear = curves(hashed(own), LINEAR, "n_units", "linear_mse / variance", "share")
    return joined(found, linear, *(_level(own, offset) for offset in LAYERS))


def _level(rows: Rows, offset: str) -> Frame:
    """A dense layer's error, repeated at every number of buckets."""
    layer = rows.where(model="dense ReLU", offset=offset)
    level = curves(layer, f"{LAYERS[offset]}, {{n_units}} units", "n_units", "mse / variance", "share")
    buckets = hashed(rows).distinct("n_units") if len(layer) else []
    repeated = {name: [value for value in column for _ in buckets] for name, column in level.items()}
    return repeated | {"n_units": buckets}


def _training_frame(rows: Rows, target: str) -> Frame:
    trained = hashed(rows, target=target, trained=True)
    drawn = set(trained.column("seed"))
    closed = Rows(row for row in hashed(rows, target=target) if row["seed"] in drawn)
    return joined(
        curves(closed, "LSH, closed form", "n_units", "mse / variance", "share"),
        curves(trained, "LSH, RMSProp, {epochs} epochs", "n_units", "mse / variance", "share"),
        curves(closed, LINEAR, "n_units", "linear_mse / variance", "share"),
    )


def _share_frame(rows: Rows, share: Callable[[Row], float]) -> Frame:
    return curves(
        solved(rows),
        lambda row: f"hyperplanes {THROUGH[row['offset']]}",
        "n_units",
        lambda row: 100 * share(row),
        "percent",
    )


def _flops_frame(rows: Rows) -> Frame:
    dense = Rows(row for offset in LAYERS for row in rows.where(model="dense ReLU", offset=offset))
    return joined(
        curves(hashed(rows), "LSH, {target}", "flops", "mse / variance", "share"),
        curves(dense, lambda row: f"{LAYERS[row['offset']]}, {row['target']}", "flops", "mse / variance", "share"),
    )


plot_share = partial(plot_curves, x_label=BUCKETS, log=(2, 0), size=(5.2, 4.0))


def _choices_frame(rows: Rows) -> Frame:

    def ratios(what: str, column: str) -> Frame:
        ratio = Rows(row.with_values(ratio=row[column] / row["mse"]) for row in hashed(rows))
        return curves(ratio, f"{what}, {{target}}", "n_units", "ratio")

    return joined(ratios("empty buckets 0", "mse_empty_zero"), ratios("shrunken means", "mse_shrunken"))


NAMES: Final = dict(zip(TARGETS, ("random polynomial", "hypercube function"), strict=True))
BARS: Final = "Points: median over draws of target, points and hyperplanes; bars: its interval."
ERROR_PLOT: Final = curve_plot(
    BUCKETS,
    "mean squared error / variance",
    log=(2, 0),
    lines=lambda name: not name.startswith("LSH"),
    levels={"variance of the target": 1.0},
    size=(5.6, 4.6),
)


EXPERIMENT: Final = Experiment(
    name="hyperplane-buckets",
    paper="B",
    place="Appendix A, Figures 1b, 2b and 4",
    title="Hyperplane LSH: error against the number of buckets",
    summary="Random polynomials of degree 4 and random hypercube functions on [-1, 1]^8 are learned by one scalar for "
    "each sign pattern of m random hyperplanes: in closed form (bucket means), and by the paper's RMSProp with "
    "learning rate 1e-5 and 50 epochs; batches of 32 and scalars that start at 0 are our choice. Where the paper is "
    "silent: the hyperplanes pass through the origin or through uniform points of the cube; a bucket that no row met "
    "predicts the mean of all rows, or 0. The dense layer is frozen and random, with ridge on top: without an "
    "activation it is the best linear predictor; with ReLU it has 1024 units, with biases and without.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        *(
            Chart(
                f"error-{target}",
                f"Error against buckets ({name})",
                f"{BARS} Scalars in closed form. Lines: medians, of dense layers over fewer draws. With offsets, each "
                "hyperplane passes through a uniform point of the cube.",
                partial(_error_frame, target=target),
                ERROR_PLOT,
            )
            for target, name in NAMES.items()
        ),
        *(
            Chart(
                f"training-{target}",
                f"The paper's training against the closed form ({name})",
                f"{BARS} Hyperplanes through the origin; both curves use the same draws.",
                partial(_training_frame, target=target),
                ERROR_PLOT,
            )
            for target, name in NAMES.items()
        ),
        Chart(
            "flops",
            "Error against the cost of a forward pass",
            f"{BARS} Hyperplanes through the origin. A product of 8 numbers for each hyperplane, and no more however "
            "many buckets; a dense layer pays for each unit.",
            _flops_frame,
            curve_plot(
                "operations of a forward pass, hashing included / FLOPs",
                "mean squared error / variance",
                log=(10, 0),
                levels={"variance of the target": 1.0},
                size=(6.0, 4.6),
            ),
        ),
        Chart(
            "missed",
            "Test points in empty buckets",
            f"{BARS} Both targets together. No training row fell into these buckets.",
            partial(_share_frame, share=lambda row: float(row["missed"])),
            partial(plot_share, y_label="test points in empty buckets / %"),
        ),
        Chart(
            "unmet",
            "Sign patterns of no point",
            f"{BARS} Both targets together. Hyperplanes in 8 dimensions do not make all patterns, and few points lie "
            "in most of the cells that there are.",
            partial(_share_frame, share=lambda row: float(1 - row["n_non_empty / n_units"])),
            partial(plot_share, y_label="patterns of no point / %"),
        ),
        Chart(
            "choices",
            "Choices that the paper leaves open",
            f"{BARS} Hyperplanes through the origin. Shrinkage towards the overall mean is chosen by leave-one-out "
            "error.",
            _choices_frame,
            curve_plot(
                BUCKETS,
                "error / error of bucket means",
                log=(2, 0),
                levels={"bucket means, empty ones the overall mean": 1.0},
                size=(6.4, 4.6),
            ),
        ),
    ),
    order=30,
)
