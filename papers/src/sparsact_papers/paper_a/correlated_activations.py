"""Units that fire together: what correlated activation patterns change in bounds, learning and recovery.

Two units behind opposite halfspaces of random direction are never active at once. Two such pairs have normals of
correlation rho: at rho near 1 a unit of the one fires with a unit of the other at nearly all points; k is 2 whatever
rho is. The output weights of units that fire together have the same sign, or opposed ones. The guarantee
AS <= 4 k^2 W^2 does not see rho; its form by activity, AS <= 4 W^2 E[active^2], does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds import average_sensitivity_bound, average_sensitivity_bound_by_activity
from sparsact.hypercube import n_subsets
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, bounded, every, needed, only_if, within
from sparsact_papers.common.distributions import UNIFORM, draw, unseen
from sparsact_papers.common.planted import opposite_pairs
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of
from sparsact_papers.paper_a.support_recovery import RECOVERED, overlaps

SAME, OPPOSED = "pairs of the same sign", "pairs of opposed signs"
SIZES: Final = {
    Scale.SMOKE: (9, 60, 500),
    Scale.QUICK: (14, 300, 2000),
    Scale.FULL: (24, 1200, 4000),
}  # n, m, new points
CORRELATIONS: Final = {Scale.SMOKE: (0.0, 0.99), Scale.QUICK: (0.0, 0.99), Scale.FULL: (0.0, 0.8, 0.99)}
SEEDS: Final = {Scale.SMOKE: 1, Scale.QUICK: 2, Scale.FULL: 10}
DEGREE, RATIO = 2, 4  # of least squares: degree, samples a monomial


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """Pairs of both signs at every correlation."""
    n, m, fresh = SIZES[scale]
    for seed, rho, kind in product(range(SEEDS[scale]), CORRELATIONS[scale], (SAME, OPPOSED)):
        yield {"kind": kind, "rho": rho, "n": n, "m": m, "fresh": fresh, "seed": seed}


def planted(kind: str, rho: float, n: int, seed: int) -> SparselyActivatedNetwork:
    """Two pairs of opposite halfspaces: unit j and unit j + 2 are opposite, units 2 i and 2 i + 1 correlated."""
    rng = np.random.default_rng([seed, 1])
    first = rng.choice([-1.0, 1.0], 2)
    other = first if kind == SAME else -first
    return opposite_pairs(n, 2, rng, correlation=rho, outputs=np.stack([first, other], axis=1).ravel())


def measure(*, kind: str, rho: float, n: int, m: int, fresh: int, seed: int) -> dict[str, float]:
    """Sensitivity and bounds, errors of least squares and of ERM, overlap of the units found, at new points."""
    from sparsact.learners import LowDegreeRegressor, SparselyActivatedRegressor

    network = planted(kind, rho, n, seed)
    X = draw(UNIFORM, n, max(m, ceil(RATIO * n_subsets(n, DEGREE))), seed, np.random.default_rng([seed, 2]))
    new = unseen(draw(UNIFORM, n, fresh, seed, np.random.default_rng([seed, 4])), X)
    truth, active, W = network(new), network.active(new), network.scale().W
    counts = active.sum(axis=1)
    polynomial = LowDegreeRegressor(degree=DEGREE).fit(X, network(X))
    erm = SparselyActivatedRegressor(network.s, 2, n_restarts=1, max_iter=100, random_state=seed)
    erm.fit(X[:m], network(X[:m]))
    return {
        "k": int(counts.max()),
        "together": _together(active),
        "sensitivity": sensitivity(network, new),
        "bound": average_sensitivity_bound(int(counts.max()), W),
        "bound_by_activity": average_sensitivity_bound_by_activity(float(np.mean(counts**2)), W),
        "variance": float(truth.var()),
        "error": float(np.mean((polynomial.predict(new) - truth) ** 2)),
        "erm_error": float(np.mean((erm.predict(new) - truth) ** 2)),
        "overlap": float(overlaps(network, erm.network_, new).mean()),
        "n_units": erm.network_.s,
    }


def sensitivity(network: SparselyActivatedNetwork, X: NDArray[np.int64]) -> float:
    """Mean over points of the sum over inputs of a quarter of the squared change by flipping it."""
    values, total = network(X), 0.0
    for i in range(X.shape[1]):
        flipped = X.copy()
        flipped[:, i] *= -1
        total += float(np.mean((network(flipped) - values) ** 2)) / 4
    return total


def _together(active: NDArray[np.bool_]) -> float:
    """Mean Jaccard index of the active sets of units that are alike at full correlation."""
    one, two = active[:, ::2], active[:, 1::2]
    return float(np.mean((one & two).sum(axis=0) / np.maximum((one | two).sum(axis=0), 1)))


def _growth(rows: Rows, kind: str, of: str, over: str) -> list[float]:
    """For each seed log2 of how a quotient grows from no correlation to the largest."""
    found, growth = needed(rows.where(kind=kind), kind, 2), []
    for group in found.groups("seed").values():
        first, last = (group.where(rho=end(group.column("rho")))[0] for end in (min, max))
        growth.append(float(np.log2((last[of] / last[over]) / (first[of] / first[over]))))
    return growth


def _judge_sensitivity(rows: Rows) -> Verdict:
    under, otherwise = (
        within(mean_of(_growth(rows, kind, "sensitivity", "bound")), least=0, what=f"log2 of its growth, {kind}:")
        for kind in (SAME, OPPOSED)
    )
    return only_if("the outputs of units that fire together have the same sign", under, otherwise)


def _judge_low_degree(rows: Rows) -> Verdict:
    under, otherwise = (
        within(mean_of(_growth(rows, kind, "error", "variance")), most=1, what=f"log2 of its growth, {kind}:")
        for kind in (SAME, OPPOSED)
    )
    return only_if("the outputs of units that fire together have the same sign", under, otherwise)


def _judge_apart(rows: Rows) -> Verdict:
    found, change = needed(rows.where(kind=SAME), SAME, 2), []
    for group in found.groups("seed").values():
        first, last = (group.where(rho=end(group.column("rho")))[0] for end in (min, max))
        change.append(last["overlap"] - first["overlap"])
    return within(mean_of(change), most=0, what="change of the overlap")


def _judge_prediction(rows: Rows) -> Verdict:
    pairs = needed(rows.where(kind=SAME), SAME, 2)
    last = pairs.where(rho=max(pairs.column("rho")))
    return every(
        within(mean_of(last.array("erm_error / variance")), most=0.01, what="error / variance"),
        within(mean_of(last.array("overlap")), most=RECOVERED, what="overlap"),
    )


CORRELATION: Final = "correlation rho of the normals"
KINDS: Final = (SAME, OPPOSED)
LEARNERS: Final = {f"degree {DEGREE}": "error", "ERM": "erm_error"}
LEAST: Final = 1e-6  # smaller errors are drawn here


def _error_frame(rows: Rows) -> Frame:
    shown = Rows(
        row.with_values(**{column: max(row[f"{column} / variance"], LEAST) for column in LEARNERS.values()})
        for row in rows
    )
    return joined(
        *(
            curves(shown.where(kind=kind), f"{learner}, {kind}", "rho", column, "error / variance")
            for learner, column in LEARNERS.items()
            for kind in KINDS
        )
    )


EXPERIMENT: Final = Experiment(
    name="correlated-activations",
    paper="A",
    place="beyond the paper (Lemma 9, Theorem 8)",
    title="Units that fire together",
    summary="Two pairs of units behind opposite halfspaces, on 24 signs, whose normals have correlation rho; k is 2 "
    "throughout. Measured at 4,000 new points: average sensitivity against its bounds, least squares of degree 2 from "
    "4 samples a monomial, ERM in the class (a heuristic search, told s and k, from 1,200 samples), and the overlap of "
    "its units with the planted ones.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="bounds",
            place="Lemma 9, beyond the paper",
            statement="AS is at most 4 k^2 W^2, and at most 4 W^2 times the mean square activity, for any correlation.",
            printed="O(k^4 W^2 sqrt(n) log(n s) + k^3 B^2 sqrt(log s))",
            rule="holds if no row exceeds either",
            refuted_if="some row exceeds one of the two bounds",
            judge=lambda rows: every(
                within(range_of(rows.array("k")), most=2, what="active units"),
                bounded(range_of(rows.array("sensitivity / bound")), "AS / 4 k^2 W^2"),
                bounded(range_of(rows.array("sensitivity / bound_by_activity")), "AS / 4 W^2 E[active^2]"),
            ),
        ),
        Claim(
            name="sensitivity",
            statement="Networks whose units fire together come nearer to the bound 4 k^2 W^2.",
            rule="AS / bound at the largest correlation over that at none, paired by seed: holds if the 95 % interval "
            "of the mean log2 lies above 0; judged apart for pairs of the same sign and of opposed signs",
            refuted_if="AS / bound significantly falls with the correlation of units of the same sign, too",
            judge=_judge_sensitivity,
        ),
        Claim(
            name="low-degree",
            statement="Correlation does not hurt the low-degree algorithm: its error / variance at most doubles.",
            rule="holds if the 95 % interval of the mean log2 of its growth lies below 1; judged apart as above",
            refuted_if="error / variance significantly more than doubles for either kind of pairs",
            judge=_judge_low_degree,
        ),
        Claim(
            name="apart",
            statement="Units that fire together are harder to tell apart: the overlap with learned units falls.",
            rule="holds if the 95 % interval of the change of the overlap lies below 0 (pairs of the same sign)",
            refuted_if="the overlap significantly rises with the correlation",
            judge=_judge_apart,
        ),
        Claim(
            name="prediction",
            statement="Predictions are accurate although the learned units differ from the true units.",
            rule="holds if at the largest correlation error / variance is below 0.01 and the overlap below 0.9",
            refuted_if="at the largest correlation the error is significantly above 0.01 of the variance or the "
            "overlap above 0.9",
            judge=_judge_prediction,
        ),
    ),
    charts=(
        Chart(
            "sensitivity",
            "Average sensitivity and its bounds against correlation",
            "Median over seeds and its interval, in units of 4 k^2 W^2; dashed: the bound by activity of pairs of the "
            "same sign.",
            lambda rows: joined(
                *[curves(rows.where(kind=kind), "AS, {kind}", "rho", "sensitivity / bound", "share") for kind in KINDS],
                curves(rows.where(kind=SAME), "4 W^2 E[active^2]", "rho", "bound_by_activity / bound", "share"),
            ),
            curve_plot(
                CORRELATION,
                "share of the bound 4 k^2 W^2",
                log=(0, 10),
                lines=("4 W^2 E[active^2]",),
                levels={"4 k^2 W^2": 1.0},
            ),
        ),
        Chart(
            "errors",
            "Errors against correlation",
            "Median over seeds and its interval, at new points; errors below a millionth of the variance are drawn "
            "there.",
            _error_frame,
            curve_plot(
                CORRELATION,
                "squared error / variance",
                log=(0, 10),
            ),
        ),
        Chart(
            "overlap",
            "Recovery of the units against correlation",
            "Median over seeds and its interval: learned units matched one to one with planted ones. Dashed: how far "
            "the active sets of two units that fire together agree.",
            lambda rows: joined(
                *[curves(rows.where(kind=kind), "learned, {kind}", "rho", "overlap") for kind in KINDS],
                curves(rows.where(kind=SAME), "units that fire together", "rho", "together", "overlap"),
            ),
            curve_plot(
                CORRELATION,
                "mean overlap of active sets (Jaccard)",
                lines=("units that fire together",),
            ),
        ),
    ),
    order=260,
    version=2,
)
