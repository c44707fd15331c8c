"""How many units are active on fresh rows, beside the rows on which a network was chosen.

Sparsity generalises: with probability 1 - delta over m rows, every network of s units, also one that was chosen after
seeing them, has on fresh rows on average at most twice the active units that it has on the rows, counted with a
margin, and a term of order s / m more (up to a logarithm and the margin). Trained networks are compared with the first
part. The second is looked for where the first is 0, without a margin: units that are off on all of the rows, in random
directions with thresholds at the largest value of a row, which by symmetry are on at a fresh row with probability
1 / (m + 1); and the worst of many directions, which are chosen by the distribution itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.learners import fitted
from sparsact_papers.common.planted import CELLS, sample
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of, slope_of

Array = NDArray[np.float64]
RANDOM, WORST = "silent units, random", "silent units, the worst"
SPARSE, DENSE = "sparse class", "dense network"
INPUTS, PLANTED, ACTIVE = 16, 8, 2
UNITS: Final = 32
DIRECTIONS: Final = 512  # the worst are taken
NOISE: Final = 0.3  # standard deviation of the labels' noise over the target's
MARGIN: Final = 0.02  # of ||w|| R + |b|
SAMPLES: Final = {
    Scale.SMOKE: (100, 400),
    Scale.QUICK: (100, 400, 1600),
    Scale.FULL: (100, 200, 400, 800, 1600, 3200),
}
FRESH: Final = {Scale.SMOKE: 4000, Scale.QUICK: 20_000, Scale.FULL: 20_000}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 10}
TWICE: Final = 2.0


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Silent units and trained networks, from several numbers of rows."""
    for seed, m, network in product(range(SEEDS[scale]), SAMPLES[scale], (RANDOM, WORST, SPARSE, DENSE)):
        yield {"network": network, "m": m, "fresh": FRESH[scale], "seed": seed}


def measure(*, network: str, m: int, fresh: int, seed: int) -> dict[str, float]:
    """Mean number of active units on the rows, there with a margin, and on fresh rows."""
    planted, X, points = sample(CELLS, INPUTS, PLANTED, ACTIVE, m, seed, 2 * fresh)
    new, known = points[:fresh], points[fresh:]
    if network in (RANDOM, WORST):
        W = np.random.default_rng([seed, 9]).normal(size=(DIRECTIONS, INPUTS))
        b = (X @ W.T).max(axis=0)
        if network == WORST:
            most = np.argsort(-(known @ W.T > b).mean(axis=0))[:UNITS]
            W, b = W[most], b[most]
    else:
        truth = planted(X)
        W, b = _trained(network, X, truth + NOISE * truth.std() * np.random.default_rng([seed, 3]).normal(size=m), seed)
    margin = MARGIN * (np.linalg.norm(W, axis=1) * np.linalg.norm(X, axis=1).max() + np.abs(b))
    values = X @ W.T - b
    return {
        "units": len(b),
        "rows": float((values > 0).sum(axis=1).mean()),
        "near": float((values > -margin).sum(axis=1).mean()),
        "fresh_rows": float((new @ W.T > b).sum(axis=1).mean()),
    }


def _trained(network: str, X: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Weights and thresholds of the units of a network fitted to the rows."""
    if network == SPARSE:
        from sparsact.learners import SparselyActivatedRegressor

        found = SparselyActivatedRegressor(3 * PLANTED, ACTIVE, n_restarts=1, max_iter=100, random_state=seed).fit(X, y)
        return np.asarray(found.network_.W), found.network_.b
    from sklearn.neural_network import MLPRegressor

    settings = {"solver": "lbfgs", "alpha": 1e-3, "max_iter": 300, "random_state": seed}
    dense = fitted(MLPRegressor(hidden_layer_sizes=(UNITS,), **settings), X, y)
    return dense.coefs_[0].T, -dense.intercepts_[0]


def _judge_rate(rows: Rows) -> Verdict:
    verdicts = []
    for network in (RANDOM, WORST):
        seeds = needed(rows.where(network=network), network).groups("seed").values()
        curves = [(one.column("m"), one.column("fresh_rows")) for one in seeds if len(one.distinct("m")) > 1]
        slope = slope_of(needed(curves, f"{network}: seeds with two numbers of rows"))
        verdicts.append(within(slope, least=-1.25, most=-0.75, what=f"{network}: power of m"))
    return every(*verdicts)


def _judge_exact(rows: Rows) -> Verdict:
    seeds = needed(rows.where(network=RANDOM), RANDOM).groups("seed").values()
    over = [float(np.mean(one.array("fresh_rows") * (one.array("m") + 1) / one.array("units"))) for one in seeds]
    return within(mean_of(over), least=0.9, most=1.1, what="active units over s / (m + 1):")


def _judge_trained(rows: Rows) -> Verdict:
    found = Rows(row for network in (SPARSE, DENSE) for row in rows.where(network=network) if row["rows"])
    return every(
        *(
            within(mean_of(cell.array("fresh_rows / rows")), most=TWICE, what=f"{network}, m = {m}:")
            for (network, m), cell in needed(found, "trained networks").groups("network", "m").items()
        )
    )


def _frame(rows: Rows) -> Frame:
    return curves(
        Rows(row for row in rows if row["fresh_rows"]), "{network}", "m", "fresh_rows", "active units on fresh rows"
    )


EXPERIMENT: Final = Experiment(
    name="fresh-sparsity",
    paper="A",
    place="Section 6, Remark 11, and beyond the paper",
    title="Active units on fresh rows",
    summary="Gaussian points in 16 dimensions, at which at most two of eight random halfspaces hold. Silent units: 512 "
    "random directions with thresholds at the largest value of a row, and the 32 of them that are on most often at "
    "20,000 other points. Trained networks: the search for the least error in the class (told k = 2, up to 24 units) "
    "and a dense network of 32 units, from labels with noise of 0.3 standard deviations. All are judged on 20,000 "
    "fresh points. The rules were fixed after runs on two other seeds.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="rate",
            statement="Units chosen to be off on all of m rows are on at fresh rows in proportion to 1 / m, the worst "
            "of many, too: the second term of the theorem is attained, up to its logarithm and the margin.",
            rule="power of m in the mean number of active units at fresh rows, a slope for each seed: holds if the "
            "95 % interval of its mean lies within 1/4 of -1, for random directions and for the worst of 512",
            refuted_if="the power is significantly farther than 1/4 from -1 for one of them",
            judge=_judge_rate,
        ),
        Claim(
            name="symmetry",
            statement="Of s units in random directions, with thresholds at the largest value of m rows, s / (m + 1) "
            "are active at a fresh row.",
            rule="fresh active units over s / (m + 1), a mean over m for each seed: holds if the 95 % interval of its "
            "mean lies within [0.9, 1.1]",
            refuted_if="the mean ratio is significantly outside the limits",
            judge=_judge_exact,
        ),
        Claim(
            name="trained",
            place="Section 6, Remark 11",
            statement="A trained network has on fresh rows less than twice the active units that it has on the rows it "
            "was fitted to, the first term of the theorem without its margin.",
            rule="mean active units on fresh rows over that on the rows: holds if the 95 % interval of its mean over "
            "seeds lies below 2, for sparse and dense networks at every m",
            refuted_if="the mean ratio is significantly above 2 for some network and m",
            judge=_judge_trained,
        ),
    ),
    charts=(
        Chart(
            "fresh",
            "Active units on fresh rows",
            "Median over seeds and its interval. The silent units are off on all of the m rows.",
            _frame,
            curve_plot("rows m", "mean active units on fresh rows", log=(2, 10)),
        ),
    ),
    order=425,
)
