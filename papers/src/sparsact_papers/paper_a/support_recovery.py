"""Planted activation patterns: whether a learner finds the units that made the labels.

A unit is known by where it is active. Learned and planted units are matched one to one so that the summed overlap
(Jaccard index of their active sets among points that the learner has not seen) is largest; a planted unit without
partner counts 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sparsact.network import SparselyActivatedNetwork
from sparsact.reports.figure import COLOURS, Chart, Frame, figure, scale, styled
from sparsact_papers.charts import MARKERS, curves, joined, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, needed, only_if, within
from sparsact_papers.common.planted import CAPS, CELLS, MEMBERS, ROTATED, sample
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILIES: Final = {
    ROTATED: (20, 8),
    CELLS: (20, 8),
    CAPS: (30, 8),
    MEMBERS: (30, 8),
}  # inputs and units, one of them active
SAMPLES: Final = {Scale.SMOKE: (60, 200), Scale.QUICK: (200, 800), Scale.FULL: (500, 3000)}
NOISES: Final = (0.0, 0.25)  # in variances of the target
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 16}
RESTARTS, MAX_ITER = 2, 100
UNRELATED: Final = 1000  # the unrelated network is that of another seed
RECOVERED: Final = 0.9  # an overlap of this much
ACCURATE: Final = 0.01  # an error of this share of the variance


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """A task for each family, noise, number of samples and seed."""
    small = {Scale.SMOKE: {ROTATED: (6, 2), CAPS: (6, 2)}, Scale.QUICK: {ROTATED: (12, 4), CAPS: (12, 4)}}
    families = small.get(scale, FAMILIES)
    for seed, (family, (n, s)), noise, m in product(range(SEEDS[scale]), families.items(), NOISES, SAMPLES[scale]):
        yield {"family": family, "n": n, "s": s, "noise": noise, "m": m, "seed": seed}


def overlaps(
    planted: SparselyActivatedNetwork, learned: SparselyActivatedNetwork, X: NDArray[Any]
) -> NDArray[np.float64]:
    """Jaccard index at points X of every planted unit that is active at one, with its partner in the best matching."""
    one, other = (network.active(X).astype(np.float64) for network in (planted, learned))
    one = one[:, one.any(axis=0)]
    both = one.T @ other
    either = one.sum(axis=0)[:, None] + other.sum(axis=0)[None] - both
    index = both / np.maximum(either, 1)
    rows, columns = linear_sum_assignment(-index)
    found = np.zeros(one.shape[1])
    found[rows] = index[rows, columns]
    return found


def measure(*, family: str, n: int, s: int, noise: float, m: int, seed: int) -> dict[str, float]:
    """Overlap of the learned units with the planted ones, and with an unrelated network's units."""
    from sparsact.learners import SparselyActivatedRegressor

    planted, X, new = sample(family, n, s, 1, m, seed)
    unrelated, _, _ = sample(family, n, s, 1, 1, seed + UNRELATED)
    truth = planted(new)
    errors = np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise * truth.var())
    model = SparselyActivatedRegressor(s, 1, n_restarts=RESTARTS, max_iter=MAX_ITER, random_state=seed)
    model.fit(X, planted(X) + errors)
    found = overlaps(planted, model.network_, new)
    return {
        "overlap": float(found.mean()),
        "chance": float(overlaps(unrelated, model.network_, new).mean()),
        "error": float(np.mean((model.predict(new) - truth) ** 2)),
        "variance": float(truth.var()),
        "n_units": model.network_.s,
    }


def _most(rows: Rows) -> Rows:
    return needed(rows, "samples", 2).where(m=max(rows.column("m")))


def _judge_recovered(rows: Rows, *, family: str) -> Verdict:
    under, otherwise = (
        within(
            mean_of(_most(rows.where(family=family, noise=noise)).array("overlap")),
            least=RECOVERED,
            what=f"noise of {noise:g} variances: overlap",
        )
        for noise in NOISES
    )
    return only_if("the labels have no noise", under, otherwise)


def _judge_accurate(rows: Rows) -> Verdict:
    limit = "at most 1 % of the variance"

    def overlap(what: str, *, accurate: bool) -> Verdict:
        kept = Rows(row for row in rows if (row["error"] <= ACCURATE * row["variance"]) is accurate)
        seeds = [float(one.array("overlap").mean()) for one in needed(kept, what, 2).groups("seed").values()]
        return within(mean_of(seeds), least=RECOVERED, what=f"overlap, {what}:")

    under = overlap(f"error {limit}", accurate=True)
    return only_if(f"the error is {limit}", under, overlap("larger error", accurate=False))


CHANCE: Final = "an unrelated network"
LEAST: Final = 1e-6  # smaller errors are drawn here


def frame(rows: Rows) -> Frame:
    """Median over seeds of the mean overlap against samples, a panel a family and a curve a noise."""
    return panelled(
        {
            family: joined(
                curves(group, "noise {noise:g} variances", "m", "overlap"),
                curves(group, CHANCE, "m", "chance", "overlap"),
            )
            for family in FAMILIES
            if (group := rows.where(family=family)) or not rows
        },
        "family",
    )


def _error_frame(rows: Rows) -> Frame:
    return {
        "noise": rows.column("noise"),
        "m": rows.column("m"),
        "error / variance": [max(row["error / variance"], LEAST) for row in rows],
        "overlap": rows.column("overlap"),
    }


@styled
def plot_error(frame: Frame) -> Figure:
    """Overlap against the error, a point a task."""
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


EXPERIMENT: Final = Experiment(
    name="support-recovery",
    paper="A",
    place="beyond the paper (Definition 1)",
    title="Are the planted activation patterns found?",
    summary="One-sparse networks of 8 units on 20 or 30 inputs make the labels: rotated gates, cells of random "
    "halfspaces, caps of a sphere, random members of the class found by rejection on clustered points. Labels have no "
    "noise, or Gaussian noise of a quarter of the variance; least squares in the class of the same s and k is searched "
    "for. Units are matched by their active sets among 4,000 new points.",
    parameters=parameters,
    measure=measure,
    claims=(
        *(
            Claim(
                name=f"recovered-{family.replace(' ', '-')}",
                statement=f"{family.capitalize()}: from enough samples the learned units are active where the planted "
                "ones are.",
                rule="holds if from the most samples the 95 % interval of the mean overlap lies above 0.9; judged "
                "apart without noise and with it",
                refuted_if="the mean overlap from the most samples is significantly below 0.9 without noise, too",
                judge=partial(_judge_recovered, family=family),
            )
            for family in FAMILIES
        ),
        Claim(
            name="chance",
            statement="Overlaps are no accident: an unrelated network of the same kind overlaps less.",
            rule="holds if from the most samples, over all families and noises, the 95 % interval of the difference is "
            "above 0",
            refuted_if="the overlap is significantly smaller than that with an unrelated network",
            judge=lambda rows: within(
                mean_of(
                    [np.mean(one.array("overlap") - one.array("chance")) for one in _most(rows).groups("seed").values()]
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
            "Median over seeds and its interval. Learned and planted units are matched one to one; also the same "
            "learned units matched with another network of the kind.",
            frame,
            panel_plot("samples m", "mean overlap (Jaccard)", log=(2, 0)),
        ),
        Chart(
            "error",
            "Overlap against error",
            "A point a fit. The error is that at new points, against the network without noise; errors below a "
            "millionth of the variance are drawn there.",
            _error_frame,
            plot_error,
        ),
    ),
    order=250,
    version=2,
)
