"""How fast the error of Theorem 4.1's learner falls as buckets are added; the theory says buckets^(-1/k).

The learner puts a constant into each bucket of one Euclidean hash with K = 4k directions, the same for all widths, and
takes the nearest bucket for an empty one. Rows are uniform on a k-dimensional subspace within [-1, 1]^16. The function
is the lower envelope of three cones, exactly 1-Lipschitz; there are enough rows to make misses rare.

Target: the slope of log error in log buckets within 15 % of -1/k, in the median of the seeds (each draws a subspace, a
function and a hash): the largest error for k = 1 and 2, the mean error for k = 3, where the largest error does not
follow the rate yet at affordable sizes. The share of misses at the finest width is shown too. A slope has no unit.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.figures import Figure
from benchmarks.program import program
from sparsact import LSHRegressor
from sparsact_papers.data import LowerEnvelope, random_subspace

AMBIENT, CENTRES, N_TEST = 16, 3, 16_384


@dataclass(frozen=True)
class Setting:
    """Dimension, error that is looked at, rows, and widths from coarse to fine."""

    k: int
    error: str
    m: int
    widths: tuple[float, ...]
    quick_m: int


SETTINGS: Final = (
    Setting(1, "largest", 1 << 16, tuple(2.0 ** -np.arange(0, 6)), 1 << 12),
    Setting(2, "largest", 1 << 19, tuple(2.0 ** -np.arange(0, 4, 0.5)), 1 << 13),
    Setting(3, "mean", 1 << 20, tuple(2.0 ** -np.arange(-1, 1.5, 0.5)), 1 << 14),
)


def curve(setting: Setting, m: int, seed: int) -> tuple[list[int], list[float], list[float]]:
    """Buckets, errors and shares of misses, a width each."""
    rng = np.random.default_rng([seed, setting.k])
    domain = random_subspace(AMBIENT, setting.k, rng=rng)
    f = LowerEnvelope(domain.coordinates(domain.sample(CENTRES, rng=rng)), rng.uniform(0, 0.5, CENTRES))
    X, new = domain.sample(m, rng=rng), domain.sample(N_TEST, rng=rng)
    y, truth = f(domain.coordinates(X)), f(domain.coordinates(new))
    buckets, errors, misses = [], [], []
    for width in setting.widths:
        model = LSHRegressor(1, 4 * setting.k, width, 0, "euclidean", "nearest", seed, directions="principal").fit(X, y)
        error = np.abs(model.predict(new) - truth)
        buckets.append(model.n_buckets_)
        errors.append(float(error.max() if setting.error == "largest" else error.mean()))
        misses.append(float((model.apply(new) < 0).mean()))
    return buckets, errors, misses


def figures_of(setting: Setting, n_seeds: int, quick: bool) -> list[Figure]:
    """Slopes of one dimension, over seeds."""
    m = setting.quick_m if quick else setting.m
    curves = [curve(setting, m, seed) for seed in range(n_seeds)]
    slopes = [float(np.polyfit(np.log(buckets), np.log(errors), 1)[0]) for buckets, errors, _ in curves]
    work, ideal = f"k = {setting.k}, K = {4 * setting.k}, m = {m:,}", -1 / setting.k
    limits = {} if quick else {"least": 1.15 * ideal, "most": 0.85 * ideal}
    return [
        Figure.of(work, f"slope of the {setting.error} error", slopes, "", **limits),
        Figure.of(work, "buckets, coarsest", [float(buckets[0]) for buckets, *_ in curves], ""),
        Figure.of(work, "buckets, finest", [float(buckets[-1]) for buckets, *_ in curves], ""),
        Figure.of(work, f"{setting.error} error, coarsest", [errors[0] for _, errors, _ in curves], ""),
        Figure.of(work, f"{setting.error} error, finest", [errors[-1] for _, errors, _ in curves], ""),
        Figure.of(work, "share of misses, finest", [misses[-1] for *_, misses in curves], ""),
    ]


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n_seeds = 2 if arguments.quick else arguments.repeats
    return [figure for setting in SETTINGS for figure in figures_of(setting, n_seeds, arguments.quick)]
