"""The one-dimensional example: constants in ever more buckets of a line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sparsact.experiments import Claim, Experiment, Rows, Scale, Verdict, mean_of, needed, within

N_TRAIN, N_TEST = 1 << 16, 1 << 14
WAVES = 3  # the target is a sum of this many cosines
BUCKETS = {Scale.SMOKE: (8, 16), Scale.QUICK: (8, 16, 32, 64), Scale.FULL: (8, 16, 32, 64, 128, 256, 512)}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """A task for each seed and number of buckets."""
    for seed in range(SEEDS[scale]):
        for n_buckets in BUCKETS[scale]:
            yield {"n_buckets": n_buckets, "n_train": N_TRAIN, "n_test": N_TEST, "seed": seed}


def measure(*, n_buckets: int, n_train: int, n_test: int, seed: int) -> dict[str, float]:
    """Mean squared error of the bucket means on fresh points, beside variance and best line."""
    rng = np.random.default_rng([seed, 1])  # the target and the points are those of the seed, for any buckets
    phases, frequencies = rng.uniform(0, 2 * np.pi, WAVES), rng.uniform(1, 4, WAVES)

    def f(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.cos(frequencies * x[:, None] + phases).sum(axis=1) / WAVES)

    x, new = rng.uniform(-1, 1, n_train), rng.uniform(-1, 1, n_test)
    width = 2 / n_buckets
    shift = np.random.default_rng([seed, 2]).uniform(0, width)
    bucket, met = (np.floor((points + 1 + shift) / width).astype(int) for points in (x, new))
    counts = np.bincount(bucket, minlength=n_buckets + 1)
    means = np.bincount(bucket, f(x), minlength=n_buckets + 1) / np.maximum(counts, 1)
    line = np.polynomial.Polynomial.fit(x, f(x), 1)
    return {
        "mse": float(np.mean((means[met] - f(new)) ** 2)),
        "variance": float(f(new).var()),
        "linear_mse": float(np.mean((line(new) - f(new)) ** 2)),
    }


def judge_falls(rows: Rows) -> Verdict:
    """The factor by which the error falls per doubling, averaged over the doublings of each seed."""
    factors = []
    for group in rows.groups("seed").values():
        curve = needed(group, "a curve", 2)
        doublings = np.log2(curve.array("n_buckets").max() / curve.array("n_buckets").min())
        fall = np.log2(curve.where(n_buckets=min(curve.distinct("n_buckets")))[0]["mse"])
        fall -= np.log2(curve.where(n_buckets=max(curve.distinct("n_buckets")))[0]["mse"])
        factors.append(2 ** (fall / doublings))
    return within(mean_of(factors), least=3.5, most=4.5, what="factor per doubling")


EXPERIMENT = Experiment(
    name="one-dimension",
    paper="B",
    place="Section 1, the one-dimensional example",
    title="Constants in the buckets of a line",
    summary=(
        "A sum of three cosines of random frequency and phase on [-1, 1] is learned by the mean of each of N buckets "
        "of equal width with a random shift. The paper states neither target nor buckets."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="fourfold",
            place="Section 1",
            statement="More buckets approximate better: the squared error falls fourfold per doubling of the buckets.",
            printed="a figure without numbers",
            rule="holds if the 95 % interval of the factor per doubling, a mean over seeds, lies within [3.5, 4.5]",
            judge=judge_falls,
        ),
    ),
    order=10,
)
