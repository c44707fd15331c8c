"""Theorem 17 on points that the learner has not seen: many inputs, four distributions, noisy labels.

The theorem bounds the gap between the error on new points and the error on the training rows, for whatever member of
the class is chosen, by order of (W R + B) sqrt(k s n / m) under any distribution. With 20 inputs or more new points are
new: those that occur among the training rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from sparsact.constructions import random_network
from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.distributions import DISTRIBUTIONS, IN_WORDS, draw, unseen
from sparsact_papers.experiment import Experiment, MissingRowsError, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

ENOUGH: Final = 0.1  # of the variance: the error of a network that was learned
FLOOR: Final = 1e-3  # of the variance: smaller gaps count as this
NOISE: Final = 0.25  # variance of the noise, in variances of the target
INPUTS: Final = {Scale.SMOKE: (8, 10), Scale.QUICK: (20, 24), Scale.FULL: (20, 60)}
N_UNITS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 4}
SAMPLES: Final = {Scale.SMOKE: (30, 90), Scale.QUICK: (100, 400), Scale.FULL: (1000, 4000)}
FRESH: Final = {Scale.SMOKE: 500, Scale.QUICK: 4000, Scale.FULL: 20000}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each number of inputs, distribution, number of samples and seed."""
    for seed, n, distribution, m in product(
        range(SEEDS[scale]), INPUTS[scale], DISTRIBUTIONS[: 2 if scale is Scale.SMOKE else None], SAMPLES[scale]
    ):
        size: dict[str, int | str] = {"n": n, "s": N_UNITS[scale], "m": m, "fresh": FRESH[scale]}
        yield {**size, "distribution": distribution, "seed": seed}


def measure(*, n: int, s: int, m: int, fresh: int, distribution: str, seed: int) -> dict[str, float]:
    """Error against the function on points not seen, and the gap to the error on the labels seen."""
    from sparsact.learners import SparselyActivatedRegressor

    network = random_network(n, s, 1, rng=np.random.default_rng([seed, 1]))
    X = draw(distribution, n, m, seed, np.random.default_rng([seed, 2]))
    new = unseen(draw(distribution, n, fresh, seed, np.random.default_rng([seed, 4])), X)
    truth = network(new)
    variance = float(truth.var())
    noise = np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(NOISE * variance)
    labels = network(X) + noise
    model = SparselyActivatedRegressor(s, 1, n_restarts=1, random_state=seed).fit(X, labels)
    error = float(np.mean((model.predict(new) - truth) ** 2))
    train = float(np.mean((model.predict(X) - labels) ** 2))
    return {
        "share": error / variance,
        "gap": (error + float(np.mean(noise**2)) - train) / variance,
        "new": len(new) / fresh,
    }


def power(rows: Rows, size: str, most: float) -> Verdict:
    """Power of a size with which the mean gap of each seed changes, for every distribution."""
    found = needed(rows, "errors on points not seen")
    verdicts = []
    for (name,), group in found.groups("distribution").items():
        curves = [
            (one.distinct(size), [max(float(cell.array("gap").mean()), FLOOR) for cell in one.groups(size).values()])
            for one in group.groups("seed").values()
        ]
        if any(len(x) < 2 for x, _ in curves):
            raise MissingRowsError(f"a power of {size} wants two sizes")
        verdicts.append(within(slope_of(curves), most=most, what=f"{name}: power of {size}"))
    return every(*verdicts)


def _frame(rows: Rows, distribution: str) -> Frame:
    found = rows.where(distribution=distribution)
    return curves(found, "n = {n}", "m", "share", "error / variance")


EXPERIMENT: Final = Experiment(
    name="any-distribution",
    paper="A",
    place="Theorem 17",
    title="Points not seen, under any distribution",
    summary="Random one-sparse networks of 4 units on 20 and 60 signs, with noise of a quarter of the variance, are "
    f"learned by a search for the least training error in the class (told s and k). {IN_WORDS} Errors are means over "
    "20,000 new points, without those among the training rows.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="learned",
            place="Theorem 17",
            statement="Empirical risk minimisation in the class learns under any distribution of the inputs.",
            printed="O((W R + B)^2 k s n / epsilon^2) samples",
            rule="holds if from the most samples the 95 % interval of error / variance on points not seen lies below "
            f"{ENOUGH}, for every distribution and n",
            refuted_if="error / variance on points not seen is significantly above the limit in some case",
            judge=lambda rows: every(
                *(
                    within(mean_of(cell.array("share")), most=ENOUGH, what=f"{name}, n = {n}:")
                    for (name, n), cell in rows.where(m=max(rows.column("m"))).groups("distribution", "n").items()
                )
            ),
        ),
        Claim(
            name="gap-in-samples",
            place="Theorem 17",
            statement="The gap between error on new points and on the rows seen falls at least as fast as 1 / sqrt(m).",
            printed="epsilon of order (W R + B) sqrt(k s n / m)",
            rule="slope of log gap (a mean over n) in log m of each seed; holds if the 95 % interval of its mean lies "
            "below -1/2 for every distribution",
            refuted_if="the mean slope is significantly above -1/2 under some distribution",
            judge=lambda rows: power(rows, "m", -0.5),
        ),
        Claim(
            name="gap-in-inputs",
            place="Theorem 17",
            statement="The gap grows no faster with the inputs than the bound, (W R + B) sqrt(n) with R = sqrt(n).",
            printed="epsilon of order (W R + B) sqrt(k s n / m)",
            rule="slope of log gap (a mean over m) in log n of each seed; holds if the 95 % interval of its mean lies "
            "below the power of the bound, 1, for every distribution",
            refuted_if="the mean slope is significantly above 1 under some distribution",
            judge=lambda rows: power(rows, "n", 1.0),
        ),
    ),
    charts=tuple(
        Chart(
            name.replace(" ", "-"),
            f"Error on points not seen: {name}",
            "Median over seeds and its interval; labels have noise of a quarter of the variance, errors are against "
            "the function.",
            partial(_frame, distribution=name),
            curve_plot(
                "samples m", "squared error / variance", log=(2, 10), levels={"a tenth of the variance": ENOUGH}
            ),
        )
        for name in DISTRIBUTIONS
    ),
    order=245,
    version=2,
)
