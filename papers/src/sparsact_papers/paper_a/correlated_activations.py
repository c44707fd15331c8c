"""Units that fire together: what correlated activation patterns change in bounds, learning and recovery.

Two networks of Appendix A share their addresses: behind each gate are two linear functions, of correlation rho. At rho
near 1 both units of a pair are on at nearly the same points; k is 2 whatever rho is. Outputs of a pair have the same
sign, or opposed ones. Beside them: two independent decision trees, as :func:`random_network` plants them. The guarantee
AS <= 4 k^2 W^2 does not see rho; its form by activity, AS <= 4 W^2 E[active^2], does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil

import numpy as np

from sparsact.bounds import average_sensitivity_bound, average_sensitivity_bound_by_activity
from sparsact.constructions import gated, random_network
from sparsact.fourier import Spectrum
from sparsact.hypercube import n_subsets, points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined
from sparsact_papers.claims import Claim, Verdict, bounded, every, needed, only_if, within
from sparsact_papers.common.learners import drawn, squared_error
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of
from sparsact_papers.paper_a.support_recovery import RECOVERED, overlaps

SAME, OPPOSED, INDEPENDENT = "pairs of the same sign", "pairs of opposed signs", "independent trees"
SIZES = {  # n, address signs, samples and restarts of ERM
    Scale.SMOKE: (4, 1, 40, 0),
    Scale.QUICK: (7, 1, 200, 0),
    Scale.FULL: (10, 2, 800, 4),
}
CORRELATIONS = {Scale.SMOKE: (0.0, 0.99), Scale.QUICK: (0.0, 0.8, 0.99), Scale.FULL: (0.0, 0.5, 0.8, 0.95, 0.99)}
SEEDS = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 8}
DEGREE, RATIO = 3, 4  # of least squares: degree, samples a monomial


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """Pairs of both signs at every correlation, and independent trees (as if of correlation 0)."""
    n, b, m, restarts = SIZES[scale]
    for seed, rho in product(range(SEEDS[scale]), CORRELATIONS[scale]):
        for kind in (SAME, OPPOSED, *((INDEPENDENT,) if rho == 0 else ())):
            yield {"kind": kind, "rho": rho, "n": n, "b": b, "m": m, "restarts": restarts, "seed": seed}


def planted(kind: str, rho: float, n: int, b: int, seed: int) -> SparselyActivatedNetwork:
    """Pairs of gated units (unit j and unit j + 2^b), or two independent trees of 2^b leaves."""
    rng = np.random.default_rng([seed, 1])
    if kind == INDEPENDENT:
        return random_network(n, 2 ** (b + 1), 2, rng=rng)
    first, other = rng.normal(size=(2, 2**b, n - b)) / np.sqrt(n - b)
    one, two = (gated(weights, b) for weights in (first, rho * first + np.sqrt(1 - rho**2) * other))
    signs = rng.choice([-1.0, 1.0], 2**b)
    outputs = np.concatenate([signs, signs if kind == SAME else -signs])
    return SparselyActivatedNetwork(outputs, np.vstack([one.W, two.W]), np.concatenate([one.b, two.b]))


def measure(*, kind: str, rho: float, n: int, b: int, m: int, restarts: int, seed: int) -> dict[str, float]:
    """Sensitivity and bounds, errors of least squares and of ERM, overlap of the units that ERM finds."""
    from sparsact.learners import LowDegreeRegressor, SparselyActivatedRegressor

    network, cube = planted(kind, rho, n, b, seed), points(n)
    values, active = network(cube), network.active(cube)
    counts = active.sum(axis=1)
    spectrum, W = Spectrum.of(values), network.scale().W
    rows = drawn(n, ceil(RATIO * n_subsets(n, DEGREE)), seed)
    polynomial = LowDegreeRegressor(degree=DEGREE).fit(cube[rows], values[rows])
    seen = rows[:m] if m <= len(rows) else drawn(n, m, seed)
    erm = SparselyActivatedRegressor(n_units=network.s, max_active=2, n_restarts=restarts, random_state=seed)
    erm.fit(cube[seen], values[seen])
    return {
        "k": int(counts.max()),
        "together": _together(active) if kind != INDEPENDENT else 0.0,
        "sensitivity": spectrum.total_influence(),
        "bound": average_sensitivity_bound(int(counts.max()), W),
        "bound_by_activity": average_sensitivity_bound_by_activity(float(np.mean(counts**2)), W),
        "W": W,
        "variance": spectrum.variance(),
        "tail": spectrum.tail(DEGREE),
        "error": squared_error(polynomial, values),
        "erm_error": squared_error(erm, values),
        "overlap": float(overlaps(network, erm.network_).mean()),
    }


def _together(active: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> float:
    """Mean Jaccard index of the active sets of the two units of a pair."""
    one, two = np.split(active, 2, axis=1)
    return float(np.mean((one & two).sum(axis=0) / (one | two).sum(axis=0)))


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
        within(mean_of(last.array("erm_error") / last.array("variance")), most=0.01, what="error / variance"),
        within(mean_of(last.array("overlap")), most=RECOVERED, what="overlap"),
    )


CORRELATION = "correlation rho of the linear functions of a pair"
KINDS = (SAME, OPPOSED)
LEARNERS = {f"degree {DEGREE}": "error", "ERM": "erm_error"}
LEAST = 1e-6  # smaller errors are drawn here


def _level(rows: Rows, of: str, name: str, y_name: str) -> Frame:
    """What independent trees give, as a horizontal line over all correlations."""
    one = curves(rows.where(kind=INDEPENDENT), name, "rho", of, y_name)
    wide = rows.distinct("rho")
    return {column: list(values) * len(wide) for column, values in one.items()} | {"rho": wide} if one["rho"] else one


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
        ),
        *(
            _level(rows, f"{column} / variance", f"{learner}, {INDEPENDENT}", "error / variance")
            for learner, column in LEARNERS.items()
        ),
    )


EXPERIMENT = Experiment(
    name="correlated-activations",
    paper="A",
    place="beyond the paper (Lemma 9, Theorem 8)",
    title="Units that fire together",
    summary="Pairs of gated units share their gate, and their linear functions have correlation rho; beside them two "
    "independent decision trees of as many units. k is 2 throughout. Measured: average sensitivity against its "
    "bounds, least squares of degree 3 from 4 samples a monomial, ERM in the class (a heuristic search), and the "
    "overlap of its units with the planted ones.",
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
                bounded(range_of(rows.array("sensitivity") / rows.array("bound")), "AS / 4 k^2 W^2"),
                bounded(
                    range_of(rows.array("sensitivity") / rows.array("bound_by_activity")), "AS / 4 W^2 E[active^2]"
                ),
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
            statement="Correlation does not hurt the low-degree algorithm: error / variance at most doubles.",
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
            statement="They need not be told apart to predict: the error is small although units differ.",
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
            "Median over seeds and its interval, exact over the cube, in units of 4 k^2 W^2; dashed: independent "
            "trees, and the bound by activity of pairs of the same sign.",
            lambda rows: joined(
                *[curves(rows.where(kind=kind), "AS, {kind}", "rho", "sensitivity / bound", "share") for kind in KINDS],
                _level(rows, "sensitivity / bound", f"AS, {INDEPENDENT}", "share"),
                curves(rows.where(kind=SAME), "4 W^2 E[active^2]", "rho", "bound_by_activity / bound", "share"),
            ),
            curve_plot(
                CORRELATION,
                "share of the bound 4 k^2 W^2",
                log_y=10,
                lines=(f"AS, {INDEPENDENT}", "4 W^2 E[active^2]"),
                levels={"4 k^2 W^2": 1.0},
            ),
        ),
        Chart(
            "errors",
            "Errors against correlation",
            "Median over seeds and its interval, exact over the cube; errors below a millionth of the variance are "
            "drawn there.",
            _error_frame,
            curve_plot(
                CORRELATION,
                "squared error / variance",
                log_y=10,
                lines=tuple(f"{learner}, {INDEPENDENT}" for learner in LEARNERS),
            ),
        ),
        Chart(
            "overlap",
            "Recovery of the units against correlation",
            "Median over seeds and its interval: learned units matched one to one with planted ones. Dashed: "
            "independent trees; and how far the active sets of the two units of a pair agree.",
            lambda rows: joined(
                *[curves(rows.where(kind=kind), "learned, {kind}", "rho", "overlap") for kind in KINDS],
                _level(rows, "overlap", f"learned, {INDEPENDENT}", "overlap"),
                curves(rows.where(kind=SAME), "the two units of a pair", "rho", "together", "overlap"),
            ),
            curve_plot(
                CORRELATION,
                "mean overlap of active sets (Jaccard)",
                lines=(f"learned, {INDEPENDENT}", "the two units of a pair"),
            ),
        ),
    ),
    order=260,
)
