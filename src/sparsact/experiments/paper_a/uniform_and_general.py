"""Samples needed under the uniform distribution and under others: polynomials (Theorem 8) against ERM (Theorem 17).

The low-degree theorem speaks of the uniform distribution alone; empirical risk minimisation in the class needs of order
(W R + B)^2 k s n / epsilon^2 samples of any distribution, in time that nobody bounds. Here one-sparse networks are
learned under four distributions, and errors are exact: expectations over the same distribution, by its probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import random_network
from sparsact.experiments import Claim, Experiment, Rows, Scale, Verdict, every, mean_of, needed, only_if, within
from sparsact.hypercube import characters, points, subset_masks, subsets_of

UNIFORM, BIASED, CORRELATED, SUBSET = "uniform", "biased signs", "correlated signs", "an eighth of the cube"
DISTRIBUTIONS = (UNIFORM, BIASED, CORRELATED, SUBSET)
BIAS, STAY = 0.8, 0.8  # a biased sign is +1, a correlated one equals the one before it, with these probabilities
ERM, AVERAGES = "ERM in the class", "averages, degree 3"
SQUARES = {f"least squares, degree {degree}": degree for degree in (2, 3, 4)}
DEGREES = SQUARES | {AVERAGES: 3}
LEARNERS = (ERM, *DEGREES)
ENOUGH = 0.1  # of the variance: the error whose samples are counted
N_UNITS = {Scale.SMOKE: 2, Scale.QUICK: 4, Scale.FULL: 8}
SIZES = {Scale.SMOKE: 6, Scale.QUICK: 9, Scale.FULL: 12}
SAMPLES = {
    Scale.SMOKE: (50, 200),
    Scale.QUICK: (100, 300, 900),
    Scale.FULL: (50, 100, 200, 400, 800, 1600, 3200),
}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each distribution, learner, number of samples and seed."""
    for seed in range(SEEDS[scale]):
        for distribution in DISTRIBUTIONS:
            for learner in LEARNERS:
                for m in SAMPLES[scale]:
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


# ---- claims ----


def samples_needed(rows: Rows) -> list[float]:
    """Of each seed: samples from which on the error is at most a tenth of the variance; twice the most if none."""
    found = []
    for group in rows.groups("seed").values():
        over = [row["m"] for row in group if row["error"] > ENOUGH * row["variance"]]
        later = [row["m"] for row in group if row["m"] > max(over, default=0)]
        found.append(float(min(later, default=2 * max(group.column("m")))))
    return found


def judge_fewer(rows: Rows) -> Verdict:
    """Uniform: samples of ERM over those of the best degree of least squares, a geometric mean over seeds."""
    uniform = rows.where(distribution=UNIFORM)
    needed(uniform.where(learner=ERM), "ERM", 2)
    best = np.min([samples_needed(uniform.where(learner=name)) for name in SQUARES], axis=0)
    ratio = np.log2(np.array(samples_needed(uniform.where(learner=ERM))) / best)
    return within(mean_of(ratio), most=0, what="log2 of (samples of ERM / samples of least squares)")


def _at_most(rows: Rows, learner: str, distribution: str) -> Rows:
    kept = needed(rows.where(learner=learner, distribution=distribution), f"{learner}, {distribution}", 2)
    return kept.where(m=max(kept.column("m")))


def judge_general(rows: Rows) -> Verdict:
    """ERM under every distribution: error / variance from the most samples, a mean over seeds."""
    return every(
        *(within(mean_of(_shares(_at_most(rows, ERM, name))), most=ENOUGH, what=f"{name}:") for name in DISTRIBUTIONS)
    )


def _shares(rows: Rows) -> NDArray[np.float64]:
    return rows.array("error") / rows.array("variance")


def judge_averages(rows: Rows) -> Verdict:
    """Averages against the least error of their degree: near it if uniform, far from it if not."""

    def excess(name: str) -> Verdict:
        found = _at_most(rows, AVERAGES, name)
        values = np.log10((found.array("error") - found.array("least")) / found.array("variance"))
        return within(mean_of(values), most=float(np.log10(0.25)), what=f"log10 of the excess, {name}:")

    return only_if("the distribution is uniform", excess(UNIFORM), every(excess(BIASED), excess(CORRELATED)))


def judge_squares(rows: Rows) -> Verdict:
    """Least squares of degree 2 under every distribution: error over the least error of that degree, a mean."""
    name = "least squares, degree 2"
    parts = {each: _at_most(rows, name, each) for each in DISTRIBUTIONS}
    ratios = {each: mean_of(found.array("error") / found.array("least")) for each, found in parts.items()}
    return every(*(within(ratio, most=1.25, what=f"{each}:") for each, ratio in ratios.items()))


EXPERIMENT = Experiment(
    name="uniform-and-general",
    paper="A",
    place="Theorems 5, 8 and 17",
    title="Samples under the uniform distribution and under others",
    summary=(
        "Random one-sparse networks of 8 units on 12 signs are learned by polynomials (least squares; averages of "
        "y times a character) and by empirical risk minimisation in the class (a search: exact in membership, "
        "heuristic in the minimum). Points are uniform; or signs biased (+1 with probability 0.8); or each sign equal "
        "to the one before with probability 0.8; or uniform on a random eighth of the cube. Errors are exact, under "
        "the same distribution."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="fewer",
            place="Theorems 5 and 8",
            statement="Under the uniform distribution ERM in the class needs fewer samples than polynomials do.",
            printed="O(k s n / epsilon^2) against n^poly(k W B log(n s) / epsilon)",
            rule=(
                "samples from which on the error is at most 0.1 variance (twice the most where there are none), of ERM "
                "over the best degree (2 to 4): holds if the 95 % interval of the mean log2 lies below 0"
            ),
            refuted_if="ERM significantly needs more samples than the best degree",
            judge=judge_fewer,
        ),
        Claim(
            name="general",
            place="Theorem 17",
            statement="ERM in the class learns under any distribution of the inputs.",
            printed="O((W R + B)^2 k s n / epsilon^2) samples",
            rule="holds if from the most samples the 95 % interval of error / variance lies below 0.1, in all four",
            refuted_if="from the most samples error / variance is significantly above 0.1 under some distribution",
            judge=judge_general,
        ),
        Claim(
            name="averages",
            place="Lemma 7",
            statement="Averages of y times a character learn the best polynomial.",
            printed="for the uniform distribution",
            rule=(
                "excess: (error - least error of that degree) / variance from the most samples; holds if the 95 % "
                "interval of its mean logarithm lies below that of 0.25; judged apart for the uniform distribution, "
                "and for biased and correlated signs"
            ),
            refuted_if="the excess is significantly above 0.25 under the uniform distribution, too",
            judge=judge_averages,
        ),
        Claim(
            name="least-squares",
            place="beyond the paper",
            statement="Least squares finds nearly the best polynomial under any of these distributions.",
            printed="",
            rule="holds if from the most samples the 95 % interval of error / least error of degree 2 lies below 1.25",
            refuted_if="from the most samples error / least error is significantly above 1.25 under some distribution",
            judge=judge_squares,
        ),
    ),
    order=240,
)
