"""Theorem 17 on points that the learner has not seen: many inputs, four distributions, noisy labels.

The theorem bounds the gap between the error on new points and the error on the training rows, for whatever member of
the class is chosen, by order of C (W R + B) sqrt(k s n / m) under any distribution, with R = sqrt(n) and C the largest
value of a member, here W R + B (as mended: the printed theorem drops the factor C of Lemma 18). With 20 inputs or more
new points are new: points that occur among the training rows are left out.
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
from sparsact_papers.experiment import Experiment, Rows, Scale
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
    """For each number of inputs, distribution and seed the theorem's bound, and a fit for each number of samples."""
    for seed, n, distribution in product(
        range(SEEDS[scale]), INPUTS[scale], DISTRIBUTIONS[: 2 if scale is Scale.SMOKE else None]
    ):
        network: dict[str, int | str] = {"n": n, "s": N_UNITS[scale], "fresh": FRESH[scale]}
        yield {**network, "distribution": distribution, "seed": seed}
        for m in SAMPLES[scale]:
            yield {**network, "m": m, "distribution": distribution, "seed": seed}


def measure(
    *, n: int, s: int, fresh: int, distribution: str, seed: int, m: int | None = None, noise_variance: float = NOISE
) -> dict[str, float]:
    """Error against the function on points not seen, and the gap to the error on the m labels seen.

    Without m: C (W R + B) sqrt(n) of the planted network, as a share of its variance.
    """
    from sparsact.learners import SparselyActivatedRegressor

    network = random_network(n, s, 1, rng=np.random.default_rng([seed, 1]))
    if m is None:
        points = draw(distribution, n, fresh, seed, np.random.default_rng([seed, 4]))
        W, B = network.scale()
        return {"bound": (W * n**0.5 + B) ** 2 * n**0.5 / float(network(points).var())}
    X = draw(distribution, n, m, seed, np.random.default_rng([seed, 2]))
    new = unseen(draw(distribution, n, fresh, seed, np.random.default_rng([seed, 4])), X)
    truth = network(new)
    variance = float(truth.var())
    noise = np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise_variance * variance)
    labels = network(X) + noise
    model = SparselyActivatedRegressor(s, 1, n_restarts=1, random_state=seed).fit(X, labels)
    error = float(np.mean((model.predict(new) - truth) ** 2))
    train = float(np.mean((model.predict(X) - labels) ** 2))
    gap = error + float(np.mean(noise**2)) - train
    return {"share": error / variance, "gap": gap / variance, "new": len(new) / fresh}


def fits(rows: Rows) -> Rows:
    """Rows of fitted networks."""
    return needed(Rows(row for row in rows if "m" in row.parameters), "errors on points not seen")


def _judge_learned(rows: Rows) -> Verdict:
    found = fits(rows)
    cells = found.where(m=max(found.column("m"))).groups("distribution", "n").items()
    return every(
        *(within(mean_of(at.array("share")), most=ENOUGH, what=f"{name}, n = {n}:") for (name, n), at in cells)
    )


def _gap(cell: Rows) -> float:
    return max(float(cell.array("gap").mean()), FLOOR)


def _judge_samples(rows: Rows) -> Verdict:
    verdicts = []
    for (name,), group in fits(rows).groups("distribution").items():
        seeds = [one.groups("m") for one in group.groups("seed").values()]
        needed([one for one in seeds if len(one) > 1], f"{name}: seeds with two numbers of samples")
        slope = slope_of(([m for (m,) in one], list(map(_gap, one.values()))) for one in seeds)
        verdicts.append(within(slope, most=-0.5, what=f"{name}: power of m"))
    return every(*verdicts)


def _judge_inputs(rows: Rows) -> Verdict:
    """Power of the number of inputs with which gap / bound of each seed changes, beside the power of the bound."""
    verdicts = []
    for (name,), group in fits(rows).groups("distribution").items():
        bounds = Rows(row for row in rows.where(distribution=name) if "bound" in row.values)
        shares, bound = [], []
        for (seed,), one in group.groups("seed").items():
            of_n = {n: float(at[0]["bound"]) for (n,), at in bounds.where(seed=seed).groups("n").items()}
            gaps = {n: _gap(cell) for (n,), cell in one.groups("n").items() if n in of_n}
            if len(gaps) > 1:
                shares.append((list(gaps), [gap / of_n[n] for n, gap in gaps.items()]))
                bound.append((list(gaps), [of_n[n] for n in gaps]))
        needed(shares, f"{name}: seeds with two numbers of inputs")
        what = f"{name}: the bound grows as n^{slope_of(bound).estimate:.2f}; power of n in gap / bound"
        verdicts.append(within(slope_of(shares), most=0, what=what))
    return every(*verdicts)


def _frame(rows: Rows, distribution: str) -> Frame:
    found = fits(rows).where(distribution=distribution)
    return curves(found, "n = {n}", "m", "share", "error / variance")


EXPERIMENT: Final = Experiment(
    name="any-distribution",
    paper="A",
    place="Theorem 17",
    title="Points not seen, under any distribution",
    summary="Random one-sparse networks of 4 units on 20 and 60 signs, with noise of a quarter of the variance, are "
    f"learned by a search for the least training error in the class (told s and k). {IN_WORDS} Errors are means over "
    "20,000 new points, without points among the training rows.",
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
            judge=_judge_learned,
        ),
        Claim(
            name="gap-in-samples",
            place="Theorem 17",
            statement="The gap between error on new points and on the rows seen falls at least as fast as 1 / sqrt(m).",
            printed="epsilon of order (W R + B) sqrt(k s n / m)",
            rule="slope of log gap (a mean over n) in log m of each seed; holds if the 95 % interval of its mean lies "
            "below -1/2 for every distribution (a slope over two sizes does not confirm an upper bound)",
            refuted_if="the mean slope is significantly above -1/2 under some distribution",
            judge=_judge_samples,
        ),
        Claim(
            name="gap-in-inputs",
            place="Theorem 17",
            statement="With the inputs the gap grows no faster than the bound on it, C (W R + B) sqrt(n) with R = "
            "sqrt(n) and C = W R + B, does for the same networks. (Two sizes cannot tell whether it is the right one.)",
            printed="epsilon of order (W R + B) sqrt(k s n / m)",
            rule="slope in log n of log(gap / bound), both as shares of the variance, the gap a mean over m, of each "
            "seed; holds if the 95 % interval of its mean lies below 0 for every distribution",
            refuted_if="under some distribution the gap significantly grows faster than the bound",
            judge=_judge_inputs,
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
