"""Polynomials under the uniform distribution (Theorem 8) and under others, beside ERM in the class (Theorem 5).

One-sparse networks are learned under four distributions; errors are exact: expectations over the same distribution, by
its probabilities. Theorem 17, on any distribution, is tested on points not seen, by
:mod:`sparsact_papers.paper_a.any_distribution`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import random_network
from sparsact.hypercube import characters, n_subsets, points, subset_masks, subsets_of
from sparsact_papers.charts import Chart, curves, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

UNIFORM, BIASED, CORRELATED, SUBSET = "uniform", "biased signs", "correlated signs", "an eighth of the cube"
DISTRIBUTIONS = (UNIFORM, BIASED, CORRELATED, SUBSET)
BIAS, STAY = 0.8, 0.8  # a biased sign is +1, a correlated one equals the one before it, with these probabilities
ERM, AVERAGES = "ERM in the class", "averages, degree 3"
SQUARES = {f"least squares, degree {degree}": degree for degree in (2, 3, 4)}
DEGREES = SQUARES | {AVERAGES: 3}
LEARNERS = (ERM, *DEGREES)
VANISHES = -0.5  # halfway between an estimate's error, 1 / m, and a bias, which stays
RULE = (
    "power of m with which error - least error of that degree falls (m >= 2 N, N monomials): -1 for the error of an "
    "estimate, 0 for a bias; holds if the 95 % interval of its mean over seeds lies below -1/2"
)
ENOUGH = 0.1  # of the variance: the error whose samples are counted
N_UNITS = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 8}
SIZES = {Scale.SMOKE: 6, Scale.QUICK: 9, Scale.FULL: 12}
SAMPLES = {Scale.SMOKE: (50, 200), Scale.QUICK: (100, 300, 900), Scale.FULL: (50, 100, 200, 400, 800, 1600, 3200)}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each distribution, polynomial, number of samples and seed; for ERM if uniform."""
    for seed, distribution in product(range(SEEDS[scale]), DISTRIBUTIONS):
        for learner, m in product(LEARNERS if distribution == UNIFORM else DEGREES, SAMPLES[scale]):
            yield {
                "distribution": distribution,
                "learner": learner,
                "n": SIZES[scale],
                "s": N_UNITS[scale],
                "m": m,
                "seed": seed,
            }


def probabilities(distribution: str, n: int, seed: int) -> NDArray[np.float64]:
    """Probability of every point of the cube, in table order."""
    cube = points(n)
    if distribution == BIASED:
        return np.asarray(np.where(cube > 0, BIAS, 1 - BIAS).prod(axis=1))
    if distribution == CORRELATED:
        return np.asarray(np.where(cube[:, 1:] == cube[:, :-1], STAY, 1 - STAY).prod(axis=1) / 2)
    weights = np.ones(2**n)
    if distribution == SUBSET:
        weights[np.random.default_rng([seed, 5]).permutation(2**n)[2 ** (n - 3) :]] = 0
    return np.asarray(weights / weights.sum())


def measure(*, distribution: str, learner: str, n: int, s: int, m: int, seed: int) -> dict[str, float]:
    """Exact error under the distribution, beside the variance there and the least error of any such polynomial."""
    cube = points(n)
    values = random_network(n, s, 1, rng=np.random.default_rng([seed, 1]))(cube)
    chances = probabilities(distribution, n, seed)
    seen = np.random.default_rng([seed, 2]).choice(2**n, size=m, p=chances)
    model = _learner(learner, s, seed).fit(cube[seen], values[seen])
    mean = chances @ values
    return {
        "error": float(chances @ (model.predict(cube) - values) ** 2),
        "variance": float(chances @ (values - mean) ** 2),
        "least": least_error(values, chances, DEGREES[learner]) if learner in DEGREES else 0.0,
    }


def _learner(learner: str, s: int, seed: int) -> Any:
    from sparsact.learners import LowDegreeRegressor, SparselyActivatedRegressor

    if learner == ERM:
        return SparselyActivatedRegressor(n_units=s, max_active=1, random_state=seed)
    return LowDegreeRegressor(degree=DEGREES[learner], solver="correlation" if learner == AVERAGES else "auto")


def least_error(values: NDArray[np.float64], chances: NDArray[np.float64], degree: int) -> float:
    """Least expected squared error of any polynomial of the degree under the distribution."""
    n, met = int(np.log2(len(values))), chances > 0
    root = np.sqrt(chances[met])
    columns = characters(points(n)[met], subsets_of(subset_masks(n, degree))) * root[:, None]
    best = columns @ np.linalg.lstsq(columns, values[met] * root, rcond=None)[0]
    return float(np.sum((best - values[met] * root) ** 2))


def samples_needed(rows: Rows) -> list[float]:
    """Of each seed: samples from which on the error is at most a tenth of the variance; twice the most if none."""
    found = []
    for group in rows.groups("seed").values():
        over = [row["m"] for row in group if row["error"] > ENOUGH * row["variance"]]
        later = [row["m"] for row in group if row["m"] > max(over, default=0)]
        found.append(float(min(later, default=2 * max(group.column("m")))))
    return found


def _judge_fewer(rows: Rows) -> Verdict:
    uniform = rows.where(distribution=UNIFORM)
    needed(uniform.where(learner=ERM), "ERM", 2)
    best = np.min([samples_needed(uniform.where(learner=name)) for name in SQUARES], axis=0)
    ratio = np.log2(np.array(samples_needed(uniform.where(learner=ERM))) / best)
    return within(mean_of(ratio), most=0, what="log2 of (samples of ERM / samples of least squares)")


def excess(rows: Rows, learner: str, distribution: str) -> Verdict:
    """Power of m with which a learner's error above the least error of its degree falls, from m >= 2 N on."""
    found = needed(rows.where(learner=learner, distribution=distribution), f"{learner}, {distribution}", 2)
    enough = Rows(row for row in found if row["m"] >= 2 * n_subsets(row["n"], DEGREES[learner]))
    curves = [
        (one.column("m"), (one.array("error") - one.array("least")).tolist())
        for one in enough.groups("seed").values()
        if len(one) > 1
    ]
    needed(enough if len(curves) > 1 else Rows([]), "curves of two sizes with m >= 2 N")
    return within(slope_of(curves), most=VANISHES, what=f"{distribution}: power of m in the excess")


LEAST, MOST = 1e-3, 30.0  # errors outside are drawn at these limits


def _share(row: Row) -> float:
    return float(min(max(row["error"] / row["variance"], LEAST), MOST))


EXPERIMENT = Experiment(
    name="uniform-and-general",
    paper="A",
    place="Theorems 5 and 8, Lemma 7",
    title="Samples under the uniform distribution and under others",
    summary="Random one-sparse networks of 8 units on 12 signs are learned by polynomials (least squares; averages of "
    "y times a character) and, from uniform points, by empirical risk minimisation in the class (a search: exact in "
    "membership, heuristic in the minimum). Points are uniform; or signs biased (+1 with probability 0.8); or each "
    "sign equal to the one before with probability 0.8; or uniform on a random eighth of the cube. Errors are exact, "
    "under the same distribution.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="fewer",
            place="Theorems 5 and 8",
            statement="Under the uniform distribution ERM in the class needs fewer samples than polynomials do.",
            printed="O(k s n / epsilon^2) against n^poly(k W B log(n s) / epsilon)",
            rule="samples from which on the error is at most 0.1 variance (twice the most where there are none), of "
            "ERM over the best degree (2 to 4): holds if the 95 % interval of the mean log2 lies below 0",
            refuted_if="ERM significantly needs more samples than the best degree",
            judge=_judge_fewer,
        ),
        Claim(
            name="averages",
            place="Lemma 7",
            statement="Averages of y times a character tend to the best polynomial.",
            printed="for the uniform distribution",
            rule=RULE + "; judged apart for the uniform distribution, and for biased and correlated signs",
            refuted_if="the power is significantly above -1/2 under the uniform distribution, too",
            judge=lambda rows: only_if(
                "the distribution is uniform",
                excess(rows, AVERAGES, UNIFORM),
                every(*(excess(rows, AVERAGES, name) for name in (BIASED, CORRELATED))),
            ),
        ),
        Claim(
            name="least-squares",
            statement="Least squares of degree 2 tends to the best polynomial under any of these distributions.",
            rule=RULE + "; under every distribution",
            refuted_if="the power is significantly above -1/2 under some distribution",
            judge=lambda rows: every(*(excess(rows, "least squares, degree 2", name) for name in DISTRIBUTIONS)),
        ),
    ),
    charts=(
        Chart(
            "samples",
            "Error against samples under four distributions",
            "Median over seeds and its interval; exact under the distribution that the points come from. Errors below "
            "a thousandth of the variance, or above thirty times, are drawn at these limits.",
            lambda rows: panelled(
                {
                    name: curves(rows.where(distribution=name), "{learner}", "m", _share, "error / variance")
                    for name in DISTRIBUTIONS
                },
                "distribution",
            ),
            panel_plot(
                "samples m",
                "squared error / variance",
                log_x=2,
                log_y=10,
                levels={"a tenth of the variance": ENOUGH},
                panel=(4.1, 2.9),
            ),
        ),
    ),
    order=240,
)
