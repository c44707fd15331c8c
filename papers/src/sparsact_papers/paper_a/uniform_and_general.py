"""Polynomials under the uniform distribution (Theorem 8) and under others, beside ERM in the class (Theorems 5, 17).

Sums of opposite halfspaces, with at most two active units at any point of the cube, are learned under four
distributions. Errors are means over new points of the same distribution, beside the least error that any polynomial of
degree 2 has on these very points.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import characters, n_subsets, subset_masks, subsets_of
from sparsact_papers.charts import Chart, curves, panel_plot, panelled
from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.common.distributions import BIASED, CORRELATED, DISTRIBUTIONS, IN_WORDS, UNIFORM, draw, unseen
from sparsact_papers.common.learners import LOW_DEGREE, SPARSE, chosen
from sparsact_papers.common.planted import opposite_pairs
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

DEGREE: Final = 2
SQUARES, AVERAGES = "least squares, degree 2", "averages, degree 2"
POLYNOMIALS: Final = (SQUARES, AVERAGES)
COMPARED: Final = (SPARSE, LOW_DEGREE)
VANISHES: Final = -0.5  # halfway between an estimate's error, 1 / m, and a bias, which stays
RULE: Final = (
    "power of m with which error - least error of degree 2 falls (m >= 2 N, N monomials): -1 for the error of an "
    "estimate, 0 for a bias; holds if the 95 % interval of its mean over seeds lies below -1/2"
)
NOISE: Final = 0.3  # standard deviation, relative to the target's
TWICE: Final = 1.0  # log2
SIZES: Final = {Scale.SMOKE: 6, Scale.QUICK: 14, Scale.FULL: 24}
K = 2
SAMPLES: Final = {Scale.SMOKE: (60, 120), Scale.QUICK: (250, 500), Scale.FULL: (600, 1200, 2400, 4800)}
LEARNED: Final = {Scale.SMOKE: 60, Scale.QUICK: 250, Scale.FULL: 1200}  # by the search, and by the chosen degree
FRESH: Final = {Scale.SMOKE: 400, Scale.QUICK: 4000, Scale.FULL: 12000}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """A task for each distribution, learner, number of samples and seed."""
    for seed, distribution in product(range(SEEDS[scale]), DISTRIBUTIONS):
        for learners, sizes in ((POLYNOMIALS, SAMPLES[scale]), (COMPARED, (LEARNED[scale],))):
            for learner, m in product(learners, sizes):
                size: dict[str, int | str] = {"n": SIZES[scale], "k": K, "m": m, "fresh": FRESH[scale]}
                yield {"distribution": distribution, "learner": learner, **size, "seed": seed}


def measure(
    *, distribution: str, learner: str, n: int, k: int, m: int, fresh: int, seed: int, deviation: float = NOISE
) -> dict[str, float]:
    """Error at points not seen, beside the variance there and the least error there of any such polynomial."""
    network = opposite_pairs(n, k, np.random.default_rng([seed, 1]))
    X = draw(distribution, n, m, seed, np.random.default_rng([seed, 2]))
    new = unseen(draw(distribution, n, fresh, seed, np.random.default_rng([seed, 4])), X)
    truth = network(new)
    noise = np.random.default_rng([seed, 3]).normal(size=m) * deviation * truth.std()
    model = _fitted(learner, network.s, k, X, network(X) + noise, seed)
    error = float(np.mean((model.predict(new) - truth) ** 2))
    return {"error": error, "variance": float(truth.var()), "least": least_error(new, truth, DEGREE)}


def _fitted(learner: str, s: int, k: int, X: NDArray[np.int64], y: NDArray[np.float64], seed: int) -> Any:
    from sparsact.learners import LowDegreeRegressor, SparselyActivatedRegressor

    if learner == LOW_DEGREE:
        return chosen(learner, s, k, X, y, seed)
    if learner == SPARSE:
        return SparselyActivatedRegressor(s, k, n_restarts=1, max_iter=100, random_state=seed).fit(X, y)
    return LowDegreeRegressor(degree=DEGREE, solver="correlation" if learner == AVERAGES else "auto").fit(X, y)


def least_error(X: NDArray[np.int64], values: NDArray[np.float64], degree: int) -> float:
    """Least mean squared error of any polynomial of the degree on points."""
    columns = characters(X, subsets_of(subset_masks(X.shape[1], degree))).astype(np.float64)
    best = columns @ np.linalg.lstsq(columns, values)[0]
    return float(np.mean((best - values) ** 2))


LEAST, MOST = 1e-3, 30.0  # errors outside are drawn at these limits


def _log_ratios(one: Rows, other: Rows) -> list[float]:
    """For each seed and sample size, log2 of a ratio of errors, as shares of the variance."""
    return [float(np.log2(a["error / variance"] / b["error / variance"])) for a, b in one.paired(other, "seed", "m")]


def _judge_less(rows: Rows) -> Verdict:
    return every(
        *(
            within(
                mean_of(_log_ratios(group.where(learner=SPARSE), group.where(learner=LOW_DEGREE))),
                most=0,
                what=f"{name}:",
            )
            for (name,), group in needed(rows, "errors").groups("distribution").items()
        )
    )


def _judge_general(rows: Rows) -> Verdict:
    found = needed(rows.where(learner=SPARSE), SPARSE)
    uniform = found.where(distribution=UNIFORM)
    ratios = {name: _log_ratios(found.where(distribution=name), uniform) for name in DISTRIBUTIONS if name != UNIFORM}
    return every(*(within(mean_of(each), most=TWICE, what=f"{name}:") for name, each in ratios.items()))


def excess(rows: Rows, learner: str, distribution: str) -> Verdict:
    """Power of m with which a learner's error above the least error of its degree falls, from m >= 2 N on."""
    found = needed(rows.where(learner=learner, distribution=distribution), f"{learner}, {distribution}", 2)
    enough = Rows(row for row in found if row["m"] >= 2 * n_subsets(row["n"], DEGREE))
    curves = [
        (one.column("m"), (one.array("error") - one.array("least")).tolist())
        for one in enough.groups("seed").values()
        if len(one) > 1
    ]
    needed(enough if len(curves) > 1 else Rows([]), "curves of two sizes with m >= 2 N")
    return within(slope_of(curves), most=VANISHES, what=f"{distribution}: power of m in the excess")


def _share(row: Row) -> float:
    return float(min(max(row["error / variance"], LEAST), MOST))


EXPERIMENT: Final = Experiment(
    name="uniform-and-general",
    paper="A",
    place="Theorems 5, 8 and 17, Lemma 7",
    title="Samples under the uniform distribution and under others",
    summary="Two pairs of units behind opposite halfspaces of random direction, on 24 signs: at most two units are "
    "active at any point. They are learned by polynomials (least squares of degree 2; averages of y times a character; "
    "a degree chosen on held-out rows) and by empirical risk minimisation in the class (a search: exact in membership, "
    f"heuristic in the minimum; told s and k). {IN_WORDS} Labels have "
    "noise of 0.3 standard deviations. Errors are against the function at 12,000 new points of the same distribution.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="less",
            place="Theorems 5 and 8",
            statement="ERM in the class errs less than polynomials from as many samples, under each distribution.",
            printed="O(k s n / epsilon^2) against n^poly(k W B log(n s) / epsilon), which is for uniform inputs",
            rule="log2 of the ratio of errors (degree chosen on held-out rows), paired by seed: "
            "holds if the 95 % interval of its mean lies below 0 for every distribution",
            refuted_if="ERM significantly errs more under some distribution",
            judge=_judge_less,
        ),
        Claim(
            name="general",
            place="Theorem 17",
            statement="ERM in the class learns as well under other distributions as under the uniform one.",
            printed="O((W R + B)^2 k s n / epsilon^2) samples under any distribution",
            rule="log2 of error / variance over that under the uniform distribution, from as many samples, paired by "
            "seed: holds if the 95 % interval of its mean lies below 1, that is, the error at most "
            "doubles, for every other distribution",
            refuted_if="the error significantly more than doubles under some distribution",
            judge=_judge_general,
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
            judge=lambda rows: every(*(excess(rows, SQUARES, name) for name in DISTRIBUTIONS)),
        ),
    ),
    charts=(
        Chart(
            "samples",
            "Error against samples under four distributions",
            "Median over seeds and its interval, at new points of the distribution that the samples come from. Errors "
            "below a thousandth of the variance, or above thirty times, are drawn at these limits.",
            lambda rows: panelled(
                {
                    name: curves(rows.where(distribution=name), "{learner}", "m", _share, "error / variance")
                    for name in DISTRIBUTIONS
                },
                "distribution",
            ),
            panel_plot("samples m", "squared error / variance", log=(2, 10), panel=(4.1, 2.9)),
        ),
    ),
    order=240,
    version=2,
)
