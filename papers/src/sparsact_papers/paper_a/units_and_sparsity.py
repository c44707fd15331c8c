"""What the number of units does at fixed sparsity, and sparsity at fixed units: sensitivity, tail, error of degree 2.

Neither is a figure of the paper: it bounds by k and (weakly) s, and a reader asks which of them matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from sparsact.hypercube import points
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.networks import network_of, spectrum_of
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, mean_of, slope_of

CENTRE = {"n": 14, "s": 64, "k": 2}
SMALL = {"n": 8, "s": 16, "k": 2}
UNITS = {Scale.SMOKE: (8, 16), Scale.QUICK: (16, 64, 256), Scale.FULL: (16, 32, 64, 128, 256, 512)}
SPARSITIES = {Scale.SMOKE: (1, 2), Scale.QUICK: (1, 4, 16), Scale.FULL: (1, 2, 4, 8, 16, 32)}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}
POINTS_STREAM = 3
DEGREE, ROWS_PER_MONOMIAL = 2, 20
SAME = 0.1  # a power within +-0.1 changes a figure by at most 7 % per doubling


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Units varied at fixed k, and k varied at fixed units; each network with the points of its seed."""
    centre = SMALL if scale is Scale.SMOKE else CENTRE
    for seed in range(SEEDS[scale]):
        for s in UNITS[scale]:
            yield {**centre, "s": s, "varied": "s", "seed": seed}
        for k in SPARSITIES[scale]:
            yield {**centre, "k": k, "varied": "k", "seed": seed}


def measure(*, n: int, s: int, k: int, varied: str, seed: int) -> Mapping[str, float]:
    """Exact sensitivity and tail, and the error of the low-degree learner on all points of the cube."""
    from sparsact.learners import LowDegreeRegressor

    network = network_of("sparse", n, s, k, seed)
    spectrum = spectrum_of(network)
    n_monomials = 1 + n + n * (n - 1) // 2
    m = ROWS_PER_MONOMIAL * n_monomials
    X = 1 - 2 * np.random.default_rng([seed, POINTS_STREAM]).integers(2, size=(m, n))
    learner = LowDegreeRegressor(degree=DEGREE).fit(X, network(X))
    errors = learner.predict(points(n)) - spectrum.values()
    variance = spectrum.variance()
    return {
        "sensitivity": spectrum.total_influence(),
        "sensitivity_share": spectrum.total_influence() / variance,
        "variance": variance,
        "tail_share": spectrum.tail(DEGREE) / variance,
        "error_share": float(np.mean(errors**2)) / variance,
        "fit_factor": 1 + n_monomials / (m - n_monomials),
    }


def power(rows: Rows, varied: str, column: str) -> Interval:
    """Power of s or k with which a column grows, over seeds."""
    sweep = needed(rows.where(varied=varied), f"a sweep of {varied}", 2)
    curves = [group for group in sweep.groups("seed").values() if len(group.distinct(varied)) > 1]
    return slope_of((curve.column(varied), curve.column(column)) for curve in curves)


def _judge_tail(rows: Rows) -> Verdict:
    found = needed(rows, "errors")
    ratios = found.array("error_share / tail_share") / found.array("fit_factor")
    half = float(np.mean(found.array("fit_factor")) - 1) / 2
    by_seed = [float(np.mean(ratios[found.array("seed") == seed])) for seed in found.distinct("seed")]
    return within(mean_of(by_seed), least=1 - half, most=1 + half, what="error / (tail · m/(m − N))")


LABELS = {"s": "units s, at fixed k", "k": "active units k, at fixed s"}
COLUMNS = {
    "average sensitivity, W = 1": "sensitivity",
    "tail above degree 2 / variance": "tail_share",
    "error of degree 2 / variance": "error_share",
}


def _frame(rows: Rows, varied: str) -> Frame:
    sweep = rows.where(varied=varied)
    return joined(*(curves(sweep, name, varied, column, "value") for name, column in COLUMNS.items()))


EXPERIMENT = Experiment(
    name="units-and-sparsity",
    paper="A",
    place="beyond the paper (Section 3)",
    title="Units at fixed sparsity, sparsity at fixed units",
    summary="Random k-sparse networks on 14 inputs with W = 1: s varied at k = 2, and k at s = 64. Sensitivity and "
    "the tail above degree 2 are exact; the low-degree learner has degree 2 and 20 uniform points for each of its "
    "monomials, and its error is taken over the whole cube. Shares are of each network's variance.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="units",
            statement="At fixed k the number of units s changes neither the sensitivity nor the error of degree 2.",
            rule=f"holds if the 95 % intervals of both powers of s lie within {SAME} of 0, fails if one lies outside",
            refuted_if="the power of s in the sensitivity or in the error is significantly farther from 0 than the "
            "rule allows",
            judge=lambda rows: every(
                within(power(rows, "s", "sensitivity"), least=-SAME, most=SAME, what="power of s in AS"),
                within(power(rows, "s", "error_share"), least=-SAME, most=SAME, what="in the error"),
            ),
        ),
        Claim(
            name="sparsity-and-sensitivity",
            statement="At fixed s more active units make a network more sensitive, at most as k^2.",
            rule="holds if the 95 % interval of the fitted power of k lies between 0 and 2",
            refuted_if="the fitted power of k is significantly below 0 or above 2",
            judge=lambda rows: within(
                power(rows, "k", "sensitivity"), least=np.nextafter(0, 1), most=2, what="power of k in AS"
            ),
        ),
        Claim(
            name="sparsity-and-error",
            statement="At fixed s sparser networks are easier for degree 2: the error share grows with k.",
            rule="holds if the 95 % interval of the fitted power of k lies above 0, fails if below",
            refuted_if="the fitted power of k is significantly below 0",
            judge=lambda rows: within(
                power(rows, "k", "error_share"), least=np.nextafter(0, 1), what="power of k in the error"
            ),
        ),
        Claim(
            name="error-is-the-tail",
            statement="The learner's error is the tail above its degree times m / (m - N): N monomials, m points.",
            rule="holds if the 95 % interval of the mean ratio over seeds is nearer to 1 than to (m - N) / m, its "
            "value if the error were the tail alone: within half of N / (m - N)",
            refuted_if="the mean ratio is significantly farther from 1 than that",
            judge=_judge_tail,
        ),
    ),
    charts=tuple(
        Chart(
            f"against-{varied}",
            f"Sensitivity, tail and error against {label}",
            "Points: median over seeds; bars: its interval.",
            partial(_frame, varied=varied),
            curve_plot(LABELS[varied], "sensitivity, or share of the variance", log=(2, 10), ticks=True),
        )
        for varied, label in LABELS.items()
    ),
    order=140,
)
