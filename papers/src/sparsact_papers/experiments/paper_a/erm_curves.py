"""Learning curves of risk minimisation in H_{n,s,k} against dense networks and polynomials: Theorems 5, 16 and 17.

By the theorems the sparse class needs of order k s n samples where the dense class of s units needs of order s^2: but
these are bounds, and of the best network in the class, which no algorithm is known to find. Here learners that run are
compared, on networks of the sparse class, with the same points and the same labels for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact_papers.experiments import (
    Claim,
    Experiment,
    MissingRowsError,
    Outcome,
    Rows,
    Scale,
    Verdict,
    mean_of,
    needed,
    only_if,
    slope_of,
    within,
)
from sparsact_papers.experiments.paper_a.class_learners import DENSE, LEARNERS, LOW_DEGREE, SPARSE, WIDE, fitted
from sparsact_papers.experiments.paper_a.learning_targets import GATED, planted
from sparsact_papers.experiments.paper_a.uniform_and_general import UNIFORM, probabilities, samples_needed

RANDOM = "random"
NOISE = 0.25  # variance of the noise, in variances of the target
FLOOR = 1e-3  # errors below this part of the variance count as this: an exact fit would decide every mean alone
CLEAN: dict[str, Any] = {"noise": 0.0, "distribution": UNIFORM}
Cell = tuple[str, int, int, float, str]  # target, units, active units, noise, distribution
CELLS: tuple[Cell, ...] = (
    *((RANDOM, s, 1, 0.0, UNIFORM) for s in (4, 8, 16)),
    (GATED, 8, 1, 0.0, UNIFORM),
    *((RANDOM, s, 2, 0.0, UNIFORM) for s in (4, 8)),
    *((RANDOM, 8, k, NOISE, UNIFORM) for k in (1, 2)),
    (GATED, 8, 1, NOISE, UNIFORM),
)
SIZES = {Scale.SMOKE: 5, Scale.QUICK: 8, Scale.FULL: 12}
SAMPLES = {Scale.SMOKE: (8, 16), Scale.QUICK: (32, 128), Scale.FULL: (64, 128, 256, 512, 1024)}
FURTHER = {Scale.SMOKE: (), Scale.QUICK: (), Scale.FULL: (2048, 4096)}  # to see how many samples 16 units need
SEEDS = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """A task for each target, learner, number of samples and seed."""
    cells = (CELLS[0], *CELLS[6:8]) if scale is Scale.SMOKE else CELLS
    for seed in range(SEEDS[scale]):
        for target, s, k, noise, distribution in cells:
            network: dict[str, int | float | str] = {"target": target, "n": SIZES[scale], "s": s, "k": k}
            labels: dict[str, int | float | str] = {"noise": noise, "distribution": distribution}
            plain = not noise and distribution == UNIFORM
            for m in (*SAMPLES[scale], *(FURTHER[scale] if plain and k == 1 else ())):
                for learner in _compared(plain, m in FURTHER[scale]):
                    yield {**network, **labels, "learner": learner, "m": m, "seed": seed}


def _compared(plain: bool, further: bool) -> tuple[str, ...]:
    """The wide network's choice of its weight decay takes longest: it is not made where no claim asks for it."""
    return LEARNERS[:2] if further else LEARNERS if plain else LEARNERS[:3]


def measure(
    *, target: str, n: int, s: int, k: int, noise: float, distribution: str, learner: str, m: int, seed: int
) -> dict[str, float]:
    """Exact error against the function under the distribution, and the mean squared error on the labels seen."""
    cube = points(n)
    network = (
        planted(target, n, seed) if target == GATED else random_network(n, s, k, rng=np.random.default_rng([seed, 1]))
    )
    values = network(cube)
    chances = probabilities(distribution, n, seed)
    variance = float(chances @ (values - chances @ values) ** 2)
    seen = np.random.default_rng([seed, 2]).choice(2**n, size=m, p=chances)
    labels = values[seen] + np.random.default_rng([seed, 3]).normal(size=m) * np.sqrt(noise * variance)
    model = fitted(learner, s, k, cube[seen], labels, seed)
    error = float(chances @ (model.predict(cube) - values) ** 2)
    train = float(np.mean((model.predict(cube[seen]) - labels) ** 2))
    return {
        "error": error,
        "train": train,
        "variance": variance,
        "share": max(error / variance, FLOOR),
        "gap": (error + noise * variance - train) / variance,  # on new labels less on those seen
    }


# ---- claims ----


def log_ratios(rows: Rows, column: str, other: str) -> list[float]:
    """Of each seed: mean over targets and numbers of samples of log2 (sparse / other), the same points for both."""
    found = []
    for group in rows.groups("seed").values():
        cells = group.groups("target", "s", "k", "noise", "distribution", "m").values()
        pairs = [(cell.where(learner=SPARSE), cell.where(learner=other)) for cell in cells]
        logs = [_log(one[0][column]) - _log(two[0][column]) for one, two in pairs if one and two]
        if logs:
            found.append(float(np.mean(logs)))
    return found


def _log(value: float) -> float:
    return float(np.log2(max(value, FLOOR)))


def _below(rows: Rows, column: str, other: str, k: int) -> Verdict:
    ratios = log_ratios(rows.where(k=k), column, other)
    return within(mean_of(ratios), most=0, what=f"k = {k}: log2 of the {column} over that of {other!r}")


def judge_less(rows: Rows, *, other: str, column: str = "share", **cell: Any) -> Verdict:
    """The sparse learner's error (or gap) below another's: for k = 1 and for k = 2."""
    asked = needed(rows.where(**cell), str(cell))
    return only_if("k = 1", _below(asked, column, other, 1), _below(asked, column, other, 2))


def judge_minimum(rows: Rows, *, learner: str) -> Verdict:
    """Share of a learner's runs without noise that fit the labels, as the planted network does."""

    def share(k: int) -> Verdict:
        runs = needed(rows.where(learner=learner, k=k, **CLEAN), f"k = {k}")
        by_seed = runs.groups("seed").values()
        fits = [float(np.mean(one.array("train") <= FLOOR * one.array("variance"))) for one in by_seed]
        return within(mean_of(fits), least=0.9, what=f"k = {k}: share of runs")

    return only_if("k = 1", share(1), share(2))


def _plain(rows: Rows, **cell: Any) -> Rows:
    return rows.where(target=RANDOM, **CLEAN, **cell)


def growth(rows: Rows, learner: str) -> tuple[list[tuple[list[float], list[float]]], int]:
    """Of each seed: units, and samples from which on the error is at most a tenth of the variance.

    Networks not learned from the most samples count as twice these; their number is the second value.
    """
    found = _plain(rows, learner=learner, k=1)
    units = [float(s) for s in needed(found, learner).distinct("s")]
    table = np.array([samples_needed(found.where(s=s)) for s in units])
    if len(units) < 2:
        raise MissingRowsError("a power of s wants two sizes")
    return [(units, curve.tolist()) for curve in table.T], int(np.sum(table > max(found.column("m"))))


def judge_growth(rows: Rows) -> Verdict:
    """Power of s with which the sparse learner's samples grow, k = 1."""
    curves, n_unknown = growth(rows, SPARSE)
    verdict = within(slope_of(curves), most=2 - 1e-9, what="power of s:")
    if not n_unknown:
        return verdict
    told = f"{verdict.measured}; {n_unknown} networks need more than the most samples, and count as twice these"
    outcome = Outcome.UNDECIDED if verdict.outcome is Outcome.HOLDS else verdict.outcome
    return replace(verdict, outcome=outcome, measured=told)


def judge_rate(rows: Rows) -> Verdict:
    """Power of m with which the gap falls, from noisy labels, k = 1: a mean over targets of each seed."""
    noisy = needed(rows.where(learner=SPARSE, noise=NOISE, k=1), "noisy labels")
    by_seed = [
        (group.distinct("m"), [float(np.mean(one.array("gap"))) for one in group.groups("m").values()])
        for group in noisy.groups("seed").values()
    ]
    if any(min(gaps) <= 0 for _, gaps in by_seed):
        raise MissingRowsError("gaps above 0: a power needs them")
    return within(slope_of(by_seed), most=-0.5, what="power of m:")


BELOW_RULE = (
    "log2 of the ratio ({what} below 0.001 of the variance count as this), a mean over targets and numbers of samples "
    "of each seed: holds if the 95 % interval of its mean over seeds lies below 0; for k = 1 and k = 2 apart"
)


def _against(name: str, place: str, statement: str, *, what: str = "errors", printed: str = "", **asked: Any) -> Claim:
    return Claim(
        name,
        place,
        statement,
        printed,
        BELOW_RULE.format(what=what),
        partial(judge_less, **asked),
        refuted_if="the sparse class significantly errs more (or has the larger gap)",
    )


def _minimum(name: str, statement: str, learner: str) -> Claim:
    rule = (
        "share of runs whose training error is at most 0.001 of the variance: holds if the 95 % interval of its mean "
        "over seeds lies above 0.9, fails if below; for k = 1 and k = 2 apart. Where it fails, a difference of errors "
        "is of algorithms, and not of classes"
    )
    return Claim(
        name,
        "beyond the paper",
        statement,
        "",
        rule,
        partial(judge_minimum, learner=learner),
        refuted_if="the share of such runs is significantly below 0.9",
    )


EXPERIMENT = Experiment(
    name="erm-curves",
    paper="A",
    place="Theorems 5 and 19",
    title="Samples: the sparse class against the dense one",
    summary=(
        "Random networks on 12 signs (4, 8 and 16 units, one active; 4 and 8, two active) and a gated one of 8 are "
        "learned by a search for the least training error in the class (told s and k; 3 restarts), by a dense ReLU "
        "network of s units (the least training error of 4 starts of L-BFGS), by one of 64 units (weight decay by "
        "3-fold cross-validation), and by a polynomial (degree 1 to 4 and penalty by 5-fold cross-validation). All see "
        "the same points. Errors are exact over the cube. Also with noise of a quarter of the variance, without the "
        "wide network."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        _against(
            "dense",
            "Theorem 5",
            "Risk minimisation in the sparse class errs less than in the dense class of s units from as many samples.",
            printed="O(k s n / epsilon^2) samples against Omega(s^2 / epsilon^2)",
            other=DENSE,
            **CLEAN,
        ),
        _against(
            "wide",
            "beyond the paper",
            "It errs less than a wide dense network with weight decay by cross-validation.",
            other=WIDE,
            **CLEAN,
        ),
        _against(
            "polynomial",
            "Theorems 5 and 8",
            "It errs less than a polynomial whose degree is chosen by cross-validation.",
            printed="O(k s n / epsilon^2) samples against n^poly(k W B log(n s) / epsilon)",
            other=LOW_DEGREE,
            **CLEAN,
        ),
        _against(
            "noise",
            "beyond the paper",
            "With noisy labels it errs less than the dense network of s units.",
            other=DENSE,
            noise=NOISE,
        ),
        _minimum(
            "minimum",
            "The search is a risk minimiser: without noise it fits every label, as the planted network does.",
            SPARSE,
        ),
        _minimum(
            "dense-minimum",
            "So is the dense network of s units, whose class holds the planted network too.",
            DENSE,
        ),
        Claim(
            name="growth",
            place="Theorem 5",
            statement="Samples needed grow more slowly with s than the dense bound, s^2.",
            printed="of order s against s^2",
            rule=(
                "random networks, k = 1: slope of log samples (from which on the error is at most 0.1 variance) in "
                "log s of each seed; holds if the 95 % interval of its mean lies below 2; a network not learned from "
                "the most samples counts as twice these, and then the claim may fail but not hold"
            ),
            refuted_if="the mean slope is significantly 2 or more",
            judge=judge_growth,
        ),
        _against(
            "gap",
            "Theorems 17 and 19",
            "The gap between error on new points and on those seen is smaller in the sparse class than in the dense.",
            what="gaps",
            printed="Rademacher complexity sqrt(s n k log(k m (R + B)) / m) against s / sqrt(m)",
            other=DENSE,
            column="gap",
            **CLEAN,
        ),
        Claim(
            name="gap-rate",
            place="Theorem 19",
            statement="The gap falls at least as fast as the bound on it, 1 / sqrt(m).",
            printed="sqrt(s n k log(k m (R + B)) / m)",
            rule=(
                "noisy labels, k = 1: slope of log gap (a mean over targets) in log m of each seed; holds if the 95 % "
                "interval of its mean lies below -0.5"
            ),
            refuted_if="the mean slope of log gap in log m is significantly above -0.5",
            judge=judge_rate,
        ),
    ),
    order=330,
)
