"""The one-dimensional example: ever more buckets of a line, against dense layers of ever more units.

Buckets hold constants, in closed form or trained as the paper trains, or lines; one is active for each input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.training import RMSProp
from sparsact_papers.experiments import Experiment, Scale
from sparsact_papers.experiments.bucket_scalars import ScalarTraining, bucket_lines, bucket_means, trained_scalars
from sparsact_papers.experiments.paper_b.one_dimension_claims import CLAIMS, CONSTANTS, DENSE, LINES

Array = NDArray[np.float64]

WAVES = 3  # the target is a sum of this many cosines
N_TRAIN = {Scale.SMOKE: 1 << 12, Scale.QUICK: 1 << 16, Scale.FULL: 1 << 16}
N_TEST = {Scale.SMOKE: 1 << 10, Scale.QUICK: 1 << 14, Scale.FULL: 1 << 14}
BUCKETS = {Scale.SMOKE: (8, 16), Scale.QUICK: (8, 16, 32, 64), Scale.FULL: (8, 16, 32, 64, 128, 256, 512)}
NARROW = (1, 2, 4)  # further widths of dense layers: 1 unit is what a model of buckets has active
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}
EPOCHS = {Scale.SMOKE: 2, Scale.QUICK: 10, Scale.FULL: 200}
PAPERS = RMSProp(learning_rate=5e-6, rho=0.9, epsilon=1e-7)  # rho and epsilon as Keras has them
BATCH = 32  # the default of Keras; the paper gives none


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """For each seed every model at every size."""
    for seed in range(SEEDS[scale]):
        draw = {"n_train": N_TRAIN[scale], "n_test": N_TEST[scale], "seed": seed}
        for n in BUCKETS[scale]:
            yield draw | {"model": CONSTANTS, "n_units": n, "epochs": EPOCHS[scale]}
            yield from (draw | {"model": model, "n_units": n, "epochs": 0} for model in (CONSTANTS, LINES))
        yield from (draw | {"model": DENSE, "n_units": n, "epochs": 0} for n in (*NARROW, *BUCKETS[scale]))


def measure(*, model: str, n_units: int, epochs: int, n_train: int, n_test: int, seed: int) -> dict[str, float]:
    """Mean squared error on fresh points, beside variance and best line; ``epochs`` 0 is the closed form."""
    rng = np.random.default_rng([seed, 1])  # the target and the points are those of the seed, for any model
    phases, frequencies = rng.uniform(0, 2 * np.pi, WAVES), rng.uniform(1, 4, WAVES)

    def f(x: Array) -> Array:
        return np.asarray(np.cos(frequencies * x[:, None] + phases).sum(axis=1) / WAVES)

    x, new = rng.uniform(-1, 1, n_train), rng.uniform(-1, 1, n_test)
    line = np.polynomial.Polynomial.fit(x, f(x), 1)
    if model == DENSE:
        predicted = _dense(x, f(x), new, n_units, seed)
    else:
        predicted = _bucketed(x, f(x), new, n_units, seed, lines=model == LINES, epochs=epochs)
    return {
        "mse": float(np.mean((predicted - f(new)) ** 2)),
        "variance": float(f(new).var()),
        "linear_mse": float(np.mean((line(new) - f(new)) ** 2)),
    }


def _dense(x: Array, y: Array, new: Array, width: int, seed: int) -> Array:
    """A frozen random ReLU layer with biases, every unit on, solved by all but plain least squares."""
    from sparsact.learners.dsm import DSMRegressor  # draws in scikit-learn

    layer = DSMRegressor(width, width, activation="relu", bias=True, alpha=1e-12, random_state=seed)
    return np.asarray(layer.fit(x[:, None], y).predict(new[:, None]))


def _bucketed(x: Array, y: Array, new: Array, n_buckets: int, seed: int, *, lines: bool, epochs: int) -> Array:
    """Intervals of equal width with a random shift, which cuts one of them in two at the ends."""
    width = 2 / n_buckets
    shift = np.random.default_rng([seed, 2]).uniform(0, 1) * width
    places = [(points + 1 + shift) / width for points in (x, new)]
    bucket, met = (np.floor(place).astype(np.intp) for place in places)
    if lines:
        inside, seen = (place - np.floor(place) for place in places)
        heights, slopes = bucket_lines(bucket, inside, y, n_buckets + 1)
        return heights[met] + slopes[met] * seen
    if epochs:
        training, rng = ScalarTraining(PAPERS, BATCH, epochs), np.random.default_rng([seed, 3])
        return trained_scalars(bucket, y, n_buckets + 1, training, rng=rng)[met]
    return bucket_means(bucket, y, n_buckets + 1, empty=float(y.mean()))[met]


EXPERIMENT = Experiment(
    name="one-dimension",
    paper="B",
    place="Section 1, the one-dimensional example",
    title="Buckets of a line",
    summary=(
        "A sum of three cosines of random frequency and phase on [-1, 1] is learned by a constant in each of N buckets "
        "of equal width with a random shift: in closed form, and by the paper's RMSProp with learning rate 5e-6 and "
        "200 epochs. The paper states neither target nor buckets, nor the batches (32) and the start (0). Beside them: "
        "a line in each bucket, and frozen random ReLU layers with biases, "
        "solved by ridge with a relative penalty of 1e-12."
    ),
    version=2,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    order=10,
)
