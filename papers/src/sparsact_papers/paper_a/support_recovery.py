"""Planted activation patterns: whether the units that a learner finds are those that made the labels.

A unit is known by where it is active. Learned and planted units are matched one to one so that the summed overlap
(Jaccard index of their active sets over the whole cube) is largest; a planted unit without partner counts 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.reports.figure import COLOURS, Chart, Frame, figure, scale, styled
from sparsact_papers.charts import MARKERS, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, needed, only_if, within
from sparsact_papers.common.learners import drawn, squared_error
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = {Scale.SMOKE: (6, 2), Scale.QUICK: (8, 4), Scale.FULL: (10, 6)}  # n and s
SAMPLES = {Scale.SMOKE: (50, 200), Scale.QUICK: (50, 200, 800), Scale.FULL: (50, 100, 200, 400, 800, 1600, 3200)}
NOISES = {Scale.SMOKE: (0.0,), Scale.QUICK: (0.0, 0.5), Scale.FULL: (0.0, 0.1, 0.5)}  # in variances of the target
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 8}
RECOVERED = 0.9  # an overlap of this much
ACCURATE = 0.01  # an error of this share of the variance


def parameters(scale: Scale) -> Iterator[dict[str, int | float]]:
    """A task for each noise, number of samples and seed."""
    n, s = SIZES[scale]
    for seed, noise, m in product(range(SEEDS[scale]), NOISES[scale], SAMPLES[scale]):
        yield {"n": n, "s": s, "noise": noise, "m": m, "seed": seed}


def overlaps(planted: SparselyActivatedNetwork, learned: SparselyActivatedNetwork) -> NDArray[np.float64]:
    """Jaccard index of every planted unit with its partner in the best matching, (s,); 0 without a partner."""
    cube = points(planted.n)
    one, other = (network.active(cube).astype(np.float64) for network in (planted, learned))
    both = one.T @ other
    either = one.sum(axis=0)[:, None] + other.sum(axis=0)[None] - both
    index = both / np.maximum(either, 1)
    rows, columns = linear_sum_assignment(-index)
    found = np.zeros(planted.s)
    found[rows] = index[rows, columns]
    return found


def measure(*, n: int, s: int, noise: float, m: int, seed: int) -> dict[str, float]:
    """Overlap of the learned units with the planted ones, and with those of an unrelated network."""
    from sparsact.learners import SparselyActivatedRegressor

    planted = random_network(n, s, 1, rng=np.random.default_rng([seed, 1]))
    unrelated = random_network(n, s, 1, rng=np.random.default_rng([seed, 6]))
    values = planted(points(n))
    seen = drawn(n, m, seed)
    errors = np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise * values.var())
    model = SparselyActivatedRegressor(n_units=s, max_active=1, random_state=seed)
    model.fit(points(n)[seen], values[seen] + errors)
    found = overlaps(planted, model.network_)
    return {
        "overlap": float(found.mean()),
        "recovered": float(np.mean(found >= RECOVERED)),
        "chance": float(overlaps(unrelated, model.network_).mean()),
        "error": squared_error(model, values),
        "variance": float(values.var()),
        "n_units": model.network_.s,
    }


def _most(rows: Rows) -> Rows:
    return needed(rows, "samples", 2).where(m=max(rows.column("m")))


def _judge_noise(rows: Rows) -> Verdict:
    noisy = rows.where(noise=max(needed(rows, "rows").column("noise")))
    if noisy[0]["noise"] == 0:
        needed(Rows([]), "noisy labels")
    return within(mean_of(_most(noisy).array("overlap")), least=RECOVERED, what="overlap")


def _judge_accurate(rows: Rows) -> Verdict:
    limit = "at most 1 % of the variance"

    def overlap(what: str, *, accurate: bool) -> Verdict:
        kept = Rows(row for row in rows if (row["error"] <= ACCURATE * row["variance"]) is accurate)
        seeds = [group.array("overlap").mean() for group in needed(kept, what, 2).groups("seed").values()]
        return within(mean_of(seeds), least=RECOVERED, what=f"overlap, {what}:")

    under = overlap(f"error {limit}", accurate=True)
    return only_if(f"the error is {limit}", under, overlap("larger error", accurate=False))


CHANCE = "an unrelated network"
LEAST = 1e-6  # smaller errors are drawn here


def frame(rows: Rows) -> Frame:
    """Median over seeds of the mean overlap, a row a noise and number of samples."""
    found = curves(rows, "noise {noise:g} variances", "m", "overlap")
    chance = curves(rows, CHANCE, "m", "chance", "overlap")
    return joined(found, chance)


def _error_frame(rows: Rows) -> Frame:
    return {
        "noise": rows.column("noise"),
        "m": rows.column("m"),
        "error / variance": [max(row["error"] / row["variance"], LEAST) for row in rows],
        "overlap": rows.column("overlap"),
    }


@styled
def plot_error(frame: Frame) -> Figure:
    """Overlap against the exact error, a point a task."""
    drawing = figure(5.4, 4.2)
    axes = drawing.subplots()
    for i, noise in enumerate(sorted(set(frame["noise"]))):
        own = [j for j, each in enumerate(frame["noise"]) if each == noise]
        x, y = ([frame[name][j] for j in own] for name in ("error / variance", "overlap"))
        axes.plot(
            x, y, color=COLOURS[i], marker=MARKERS[i], ls="", ms=5, mfc="none", label=f"noise {noise:g} variances"
        )
    scale(axes, log_x=10, log_y=0)
    axes.set_xlabel("squared error / variance")
    axes.set_ylabel("mean overlap of active sets (Jaccard)")
    axes.grid(visible=True)
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


EXPERIMENT = Experiment(
    name="support-recovery",
    paper="A",
    place="beyond the paper (Definition 1)",
    title="Are the planted activation patterns found?",
    summary="Random one-sparse networks of 6 units on 10 signs make the labels, with Gaussian noise of 0, 0.1 or 0.5 "
    "variances; least squares in the class of the same s and k is searched for. Units are matched by their active "
    "sets over the cube.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="recovered",
            statement="From enough noiseless samples the learned units are active where the planted ones are.",
            rule="holds if from the most samples the 95 % interval of the mean overlap lies above 0.9",
            refuted_if="the mean overlap from the most samples is significantly below 0.9",
            judge=lambda rows: within(
                mean_of(_most(rows.where(noise=0.0)).array("overlap")), least=RECOVERED, what="overlap"
            ),
        ),
        Claim(
            name="noise",
            statement="So it is with the strongest noise.",
            rule="holds if from the most samples the 95 % interval of the mean overlap lies above 0.9",
            refuted_if="the mean overlap from the most samples is significantly below 0.9 with the strongest noise",
            judge=_judge_noise,
        ),
        Claim(
            name="chance",
            statement="Overlaps are no accident: those with an unrelated network of the same kind are smaller.",
            rule="holds if from the most samples, over all noises, the 95 % interval of the difference is above 0",
            refuted_if="the overlap is significantly smaller than that with an unrelated network",
            judge=lambda rows: within(
                mean_of(
                    [
                        float(np.mean(one.array("overlap") - one.array("chance")))
                        for one in _most(rows).groups("seed").values()
                    ]
                ),
                least=0,
                what="overlap beyond chance",
            ),
        ),
        Claim(
            name="accurate",
            statement="A learner's units are the planted ones.",
            rule="holds if the 95 % interval of the mean overlap lies above 0.9; judged apart for networks of an "
            "error of at most 1 % of the variance, and for the others",
            refuted_if="the mean overlap is significantly below 0.9 for accurate networks, too",
            judge=_judge_accurate,
        ),
    ),
    charts=(
        Chart(
            "samples",
            "Overlap with the planted units against samples",
            "Median over seeds and its interval. Learned and planted units are matched one to one; dashed: the same "
            "learned units matched with those of another network of the kind.",
            frame,
            curve_plot("samples m", "mean overlap of active sets (Jaccard)", log_x=2, lines=(CHANCE,)),
        ),
        Chart(
            "error",
            "Overlap against error",
            "A point a fit. The error is exact over the cube, against the network without noise; errors below a "
            "millionth of the variance are drawn there.",
            _error_frame,
            plot_error,
        ),
    ),
    order=250,
)
