"""The degree that leaves squared error epsilon: measured, by Theorem 8, and by the sharper 4 k^2 W^2 / epsilon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from sparsact.bounds import sufficient_degree, uniform_degree
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, bounded, every, needed, within
from sparsact_papers.common.networks import (
    SEARCHED,
    SPARSITIES,
    judge_bound,
    network_of,
    spectrum_of,
    tasks,
    worst_network,
)
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

SHARES: Final = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)  # epsilon as a share of the variance
INPUTS: Final = {Scale.SMOKE: (6, 7), Scale.QUICK: (8, 10, 12), Scale.FULL: (8, 10, 12, 14, 16, 18)}
UNITS: Final = {Scale.SMOKE: 8, Scale.QUICK: 32, Scale.FULL: 64}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}
SEARCHED_INPUTS: Final = {Scale.SMOKE: 5, Scale.QUICK: 8, Scale.FULL: 10}
TENTH: Final = SHARES.index(0.1)


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Sparse networks of every k, the copies that attain the average sensitivity, and the searched ones."""
    return tasks(scale, INPUTS[scale], UNITS[scale], SEEDS[scale], SEARCHED_INPUTS[scale])


def measure(*, model: str, n: int, s: int, k: int, seed: int) -> Mapping[str, Any]:
    """For each epsilon the least degree that leaves at most epsilon, and the degrees of the bounds (not cut at n)."""

    def found(network: SparselyActivatedNetwork) -> dict[str, Any]:
        W, B = network.scale()
        spectrum = spectrum_of(network)
        tails = [spectrum.tail(d) for d in range(n + 1)]
        epsilons = [share * tails[0] for share in SHARES]
        if not tails[0]:  # a constant network, on the way of the search
            return {"measured": [0], "theorem_8": [1]}
        return {
            "share": SHARES,
            "epsilon": epsilons,
            "measured": [next(d for d, tail in enumerate(tails) if tail <= epsilon) for epsilon in epsilons],
            "sharper": [sufficient_degree(k, W, epsilon) for epsilon in epsilons],
            "theorem_8": [uniform_degree(n, s, k, W, B, epsilon) for epsilon in epsilons],
        }

    if model == SEARCHED:
        return found(worst_network(n, s, k, seed, lambda network: _ratio(found(network), "measured", "theorem_8")))
    return found(network_of(model, n, s, k, seed))


def _ratio(row: Row | Mapping[str, Any], part: str, whole: str) -> float:
    """The largest ratio of two degrees over the epsilons; of d + 1, so that a degree of 0 counts."""
    return float(max((less + 1) / (more + 1) for less, more in zip(row[part], row[whole], strict=True)))


def _ratios(rows: Rows, part: str, whole: str) -> list[float]:
    return [_ratio(row, part, whole) for row in needed(rows, "degrees")]


def _judge_useful(rows: Rows) -> Verdict:
    sparse = needed(rows.where(model="sparse"), "sparse networks")
    verdicts = []
    for name, told in (("sharper", "4k²W²/ε"), ("theorem_8", "Theorem 8")):
        least = [min(row[name]) / row["n"] for row in sparse]
        verdicts.append(within(range_of(least), most=np.nextafter(1, 0), what=f"least {told} / n"))
    return every(*verdicts)


def _judge_constant(rows: Rows) -> Verdict:
    sparse = needed(rows.where(model="sparse"), "sparse networks")
    slopes = []
    for group in sparse.groups("seed").values():
        of_k = [
            float(np.polyfit(one.array("n"), [row["measured"][TENTH] for row in one], 1)[0])
            for one in group.groups("k").values()
            if len(one.distinct("n")) > 1
        ]
        if of_k:
            slopes.append(float(np.mean(of_k)))
    return within(mean_of(slopes), most=0.0, what="degrees per input")


SHARE: Final = "epsilon / variance"
OURS, THEOREM, MOST = "4k²W²/ε, k = 1", "Theorem 8, k = 1, constant 1", "n"


def _frame_of_bounds(rows: Rows) -> Frame:
    largest = rows.where(model="sparse", n=max(rows.distinct("n")))
    points = largest.unfolded(
        **{SHARE: "share"}, **{f"at_{name}": name for name in ("measured", "sharper", "theorem_8")}
    )
    one = points.where(k=1)
    return joined(
        curves(points, "measured, k = {k}", SHARE, "at_measured", "degree"),
        curves(one, OURS, SHARE, "at_sharper", "degree"),
        curves(one, THEOREM, SHARE, "at_theorem_8", "degree"),
        curves(one, MOST, SHARE, "n", "degree"),
    )


def _frame_of_inputs(rows: Rows) -> Frame:
    sparse = Rows(row for k in SPARSITIES for row in rows.where(model="sparse", k=k))
    measured = curves(sparse, "k = {k}", "n", lambda row: row["measured"][TENTH], "degree")
    return joined(measured, curves(sparse.where(k=1), MOST, "n", "n", "degree"))


EXPERIMENT: Final = Experiment(
    name="sufficient-degree",
    paper="A",
    place="Section 3, Theorem 8",
    title="The degree that is enough",
    summary="For random k-sparse networks and k copies of 2 x1, all of W = 1, and the network that a hill climb finds "
    "to need the largest share of Theorem 8's degree: the least degree above which at most epsilon of the weight "
    "lies, from the exact spectrum, beside Theorem 8 (its constant is 1) and the sharper 4 k^2 W^2 / epsilon. Epsilon "
    "is a share of each network's variance, since any more would be error of the mean.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="theorem-8",
            place="Theorem 8",
            statement="Degree Theta((k^8 W^4 log^4(ns) + k^6 B^4 log s) / epsilon^2) leaves squared error epsilon.",
            printed="an order without its constant",
            rule="with the constant 1 no network needs more at any epsilon; consistent if none needs as much",
            refuted_if="some network, random or found by search, needs a higher degree than the theorem gives",
            judge=lambda rows: judge_bound(
                rows, _ratios(rows, "measured", "theorem_8"), "measured / Theorem 8, of d + 1"
            ),
        ),
        Claim(
            name="sharper",
            statement="Degree 4 k^2 W^2 / epsilon leaves squared error epsilon.",
            rule="holds if no row needs more at any epsilon",
            refuted_if="some row needs a higher degree at some epsilon",
            judge=lambda rows: bounded(range_of(_ratios(rows, "measured", "sharper")), "measured / 4k²W²/ε, of d + 1"),
        ),
        Claim(
            name="sharper-than-theorem-8",
            statement="The degree 4 k^2 W^2 / epsilon is lower than that of Theorem 8 (with the constant 1).",
            rule="holds if it is no higher on any row, at any epsilon",
            refuted_if="it is higher than that of Theorem 8 on some row",
            judge=lambda rows: within(
                range_of(_ratios(rows, "sharper", "theorem_8")), most=1.0, what="4k²W²/ε / Theorem 8, of d + 1"
            ),
        ),
        Claim(
            name="below-n",
            statement="The bounds say something on few inputs: their degrees lie below n.",
            rule="for each random network the degree that a bound gives, at half of the variance, over n; "
            "holds if both bounds lie below 1 on every row, fails if one lies above on every row",
            refuted_if="on every row one of the bounds gives degree n or more",
            judge=_judge_useful,
        ),
        Claim(
            name="constant-in-n",
            statement="At fixed k and s the degree that leaves a tenth of the variance does not grow with n.",
            rule="holds if the 95 % interval of the slope of the measured degree in n, a mean over k for each seed, "
            "lies below 0",
            refuted_if="the slope of the measured degree in n is significantly above 0",
            judge=_judge_constant,
        ),
    ),
    charts=(
        Chart(
            "bounds",
            "Measured degree and bounds",
            "Points: median over seeds at the largest n; bars: its interval. Above n no bound says anything.",
            _frame_of_bounds,
            curve_plot(
                "squared error ε / variance", "degree that is enough", log=(10, 10), lines=(OURS, THEOREM, MOST)
            ),
        ),
        Chart(
            "against-n",
            "Measured degree against the inputs",
            "Points: median over seeds; bars: its interval.",
            _frame_of_inputs,
            curve_plot("inputs n", "degree for ε = variance / 10", lines=(MOST,), ticks=True, bottom=0),
        ),
    ),
    order=130,
)
