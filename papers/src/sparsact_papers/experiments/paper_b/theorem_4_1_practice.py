r"""Theorem 4.1 in practice: how many samples leave how many empty buckets, and the literal learner against its rivals.

A point falls into a bucket that m samples left empty with probability :math:`\sum_b p_b (1 - p_b)^m`. The literal
learner is one Euclidean table of constants; the rivals are nearest neighbours and the library's LSHRegressor as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsact.bounds import table_samples
from sparsact_papers.experiments import Experiment, Scale
from sparsact_papers.experiments.paper_b.theorem_4_1_practice_claims import CLAIMS, MISSES, RIVALS

Array = NDArray[np.float64]

PLANE = {"k": 2, "ambient": 16, "n_directions": 8}
WIDTHS = {Scale.SMOKE: (1.0, 0.5), Scale.QUICK: (1.0, 0.5, 0.25), Scale.FULL: (0.5, 0.25, 0.125)}
LOG2_SAMPLES = {
    Scale.SMOKE: (6, 11),
    Scale.QUICK: (8, 15),
    Scale.FULL: (10, 18),
}  # the fewest and the most, at the finest width
LARGE = 4  # the sample that tells the probabilities, and the fresh points, in multiples of the most samples
INTRINSIC, CENTRES = 4, 64
AMBIENTS = (16, 64)
LOG2_ROWS = {Scale.SMOKE: (10,), Scale.QUICK: (11, 13), Scale.FULL: (14, 15, 16)}
N_TEST = {Scale.SMOKE: 500, Scale.QUICK: 2000, Scale.FULL: 8192}
SEEDS = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """For every seed a curve of misses, and all rivals on the same rows for each size."""
    fewest, most = LOG2_SAMPLES[scale]
    for seed in range(SEEDS[scale]):
        for width in WIDTHS[scale]:
            fewer = round((width / WIDTHS[scale][-1]) ** PLANE["k"])  # buckets
            samples = {"fewest": 1 << fewest, "most": (1 << most) // fewer, "large": (LARGE << most) // fewer}
            yield {"part": MISSES, **PLANE, "width": width, **samples, "seed": seed}
        for ambient in AMBIENTS:
            for power in LOG2_ROWS[scale]:
                sizes = {"rows": 1 << power, "n_test": N_TEST[scale], "seed": seed}
                yield {"part": RIVALS, "k": INTRINSIC, "ambient": ambient, "centres": CENTRES, **sizes}


def measure(*, part: str, **sizes: Any) -> dict[str, Any]:
    """Of one part."""
    return misses(**sizes) if part == MISSES else rivals(**sizes)


def misses(
    *, k: int, ambient: int, n_directions: int, width: float, fewest: int, most: int, large: int, seed: int
) -> dict[str, Any]:
    """Share of fresh points in empty buckets as samples double, beside two predictions from another sample."""
    from sparsact.learners import LSHRegressor
    from sparsact_papers.data import random_subspace

    rng = np.random.default_rng([seed, k])
    domain = random_subspace(ambient, k, rng=rng)
    other, X, new = (domain.sample(m, rng=rng) for m in (large, most, large))
    whole = LSHRegressor(1, n_directions, width, 0, "euclidean", "nearest", seed, directions="principal")
    counts = whole.fit(other, np.zeros(large)).bucket_counts_
    samples = [fewest << i for i in range((most // fewest).bit_length())]
    model, shares = whole.blank(), []  # the same buckets, none of the rows
    for start, stop in pairwise((0, *samples)):
        model.partial_fit(X[start:stop], np.zeros(stop - start))
        shares.append(float(np.mean(model.apply(new) < 0)))
    proof = table_samples(ambient, k, 1.0, width)
    return {
        "samples": samples,
        "misses": shares,
        "predicted": [plug_in(counts, m) for m in samples],
        "unbiased": [unbiased(counts, m) for m in samples],
        "buckets": len(counts),
        "proof_samples": proof,
        "proof_misses": unbiased(counts, round(proof)),
    }


def plug_in(counts: NDArray[np.int64], m: int) -> float:
    r"""The sum :math:`\sum_b p_b (1 - p_b)^m` with the shares of a sample for the probabilities."""
    p = counts / counts.sum()
    return float(p @ (1 - p) ** m)


def unbiased(counts: NDArray[np.int64], m: int) -> float:
    r"""The mean share of misses after m of a sample's N rows, over all choices of these and of another row of it.

    .. math:: \sum_b \frac{n_b}{N} \binom{N - n_b}{m} \Big/ \binom{N - 1}{m}

    Its expectation is :math:`\sum_b p_b (1 - p_b)^m` exactly, for m below N.
    """
    total = counts.sum()
    outside = total - counts  # rows that are in other buckets
    reached = outside >= m
    n, outside = counts[reached], outside[reached]
    ways = gammaln(outside + 1) - gammaln(outside - m + 1) - gammaln(total) + gammaln(total - m)
    return float(n @ np.exp(ways) / total)


def rivals(*, k: int, ambient: int, centres: int, rows: int, n_test: int, seed: int) -> dict[str, Any]:
    """Root mean squared errors of the literal learner, of nearest neighbours and of the recommended one."""
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsRegressor

    from sparsact.learners import LSHRegressor
    from sparsact_papers.data import lower_envelope, random_subspace

    rng = np.random.default_rng([seed, ambient])
    domain = random_subspace(ambient, k, rng=rng)
    f = lower_envelope(domain.sample(centres, rng=rng), rng.uniform(0, 0.5, centres))
    new, X = domain.sample(n_test, rng=rng), domain.sample(rows, rng=rng)
    models = {
        "literal": LSHRegressor(1, "auto", "auto", 0, "euclidean", "nearest", seed),
        "nearest": KNeighborsRegressor(1),
        "eight_nearest": KNeighborsRegressor(8),
        "recommended": LSHRegressor(random_state=seed),
        "linear_rmse": LinearRegression(),
    }
    y, truth = f(X), f(new)
    errors = {name: model.fit(X, y).predict(new) - truth for name, model in models.items()}
    told = {name: float(np.sqrt(np.mean(error**2))) for name, error in errors.items()}
    literal = models["literal"]
    return {**told, "deviation": float(truth.std()), "width": literal.width_, "buckets": literal.n_buckets_}


EXPERIMENT = Experiment(
    name="theorem-4-1-practice",
    paper="B",
    place="Theorem 4.1",
    title="Samples that fill the buckets, and the literal learner against its rivals",
    summary=(
        "Misses: one Euclidean hash of 8 directions and gap 1/2, 1/4 or 1/8 on random planes within [-1, 1]^16; the "
        "buckets' probabilities are estimated from 2^16, 2^18 or 2^20 rows, misses are counted on as many fresh ones. "
        "Rivals: random 4-dimensional subspaces, lower envelopes of 64 cones about their points. Literal: one table of "
        "16 directions, constants, the nearest bucket for an empty one, the gap of least leave-one-out error. Nearest "
        "neighbours are scikit-learn's; recommended is LSHRegressor with its defaults (16 adapted grids, lines)."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    order=42,
)
