"""How fast the error falls where a network of the class fits the rows exactly: as 1 / m, or as 1 / sqrt(m).

The square loss is smooth and not negative. So by Srebro, Sridharan and Tewari (2010) a network of the class that fits
its rows exactly errs by order of (W R + B)^2 s k / m, up to logarithms, where Theorem 17 has 1 / sqrt(m). Two things
are measured: how the error of a search in the class falls on planted networks, with noise and without; and a member of
the class on which no learner's error falls faster than 1 / m as long as cells remain that no row has met:

*Decision lists.* Unit c of n is active where the first -1 among the signs stands at place c, with value v_c:
w_c = (1, ..., 1, -1) / 2 on the first c signs, b_c = c / 2 - 1. At most one unit is active at any point, and cell c has
probability 2^-c. If the values are independent random signs, a cell without a row can only be guessed: whatever the
learner, its expected error is at least the probability of these cells. Zero there and the value seen elsewhere is a
network of the class with no error on the rows, and attains that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.planted import CAPS, CELLS, ROTATED, sample
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, share_of, slope_of

LISTS: Final = "decision lists"
FAMILIES: Final = (ROTATED, CELLS, CAPS)
INPUTS, UNITS = 16, 4
NOISE: Final = 0.3  # standard deviation over the target's
PLACES: Final = 24  # of a decision list: cells of probability 2^-24, which no row meets, are left
SAMPLES: Final = {
    Scale.SMOKE: (50, 100),
    Scale.QUICK: (100, 400, 1600),
    Scale.FULL: (100, 200, 400, 800, 1600, 3200),
}
SEEDS: Final = {
    Scale.SMOKE: 1,
    Scale.QUICK: 2,
    Scale.FULL: 12,
}  # 36 runs of a family with ample rows: fewer leave a share of 1 undecided
N_LISTS: Final = 32  # a seed
FLOOR: Final = 1e-9  # of the variance: smaller errors are rounding, and count as this
AMPLE: Final = 8  # rows a weight, from which a power is fitted where there is noise
MIDDLE: Final = -0.75  # between the powers -1/2 and -1


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """Planted networks without and with noise, and decision lists, from several numbers of rows."""
    for seed, m in product(range(SEEDS[scale]), SAMPLES[scale]):
        for family, noise in product(FAMILIES, (0.0, NOISE)):
            yield {"family": family, "n": INPUTS, "s": UNITS, "noise": noise, "m": m, "seed": seed}
        yield {"family": LISTS, "n": PLACES, "s": PLACES, "noise": 0.0, "m": m, "seed": seed}


def measure(*, family: str, n: int, s: int, noise: float, m: int, seed: int) -> dict[str, float]:
    """Error on new points, and on the rows, as shares of the variance."""
    if family == LISTS:
        return _list_error(n, m, seed)
    from sparsact.learners import SparselyActivatedRegressor

    network, X, new = sample(family, n, s, 1, m, seed)
    truth = network(new)
    labels = network(X) + noise * truth.std() * np.random.default_rng([seed, 3]).normal(size=m)
    model = SparselyActivatedRegressor(s, 1, n_restarts=1, random_state=seed).fit(X, labels)
    return {
        "share": float(np.mean((model.predict(new) - truth) ** 2) / truth.var()),
        "train": float(np.mean((model.predict(X) - labels) ** 2) / truth.var()),
    }


def decision_list(values: NDArray[np.float64]) -> SparselyActivatedNetwork:
    """The network with one unit for each place of the first -1, which is 0 where there is none."""
    places = np.arange(len(values))
    W = (np.less.outer(places, places).T.astype(np.float64) - np.eye(len(values))) / 2
    return SparselyActivatedNetwork(values, W, (places + 1) / 2 - 1)


def _list_error(n: int, m: int, seed: int) -> dict[str, float]:
    """Mean over several decision lists, each with rows of its own, as shares of the mean square (nearly 1)."""
    rng = np.random.default_rng([seed, 2])
    probability = 2.0 ** -np.arange(1, n + 1)  # of each cell
    shares, train = [], []
    for _ in range(N_LISTS):
        values, X = rng.choice([-1.0, 1.0], n), rng.choice([-1.0, 1.0], (m, n))
        network = decision_list(values)
        met = network.active(X).any(axis=0)
        fitted = SparselyActivatedNetwork(np.where(met, values, 0.0), network.W, network.b)
        shares.append(float(probability @ (values - fitted.u) ** 2 / probability.sum()))
        train.append(float(np.mean((fitted(X) - network(X)) ** 2)))
    return {"share": float(np.mean(shares)), "train": max(train)}


def power(rows: Rows) -> Interval:
    """Power of m in the error (a geometric mean over families), a slope for each seed."""
    curves = []
    for seed in rows.groups("seed").values():
        sizes = seed.groups("m")
        errors = [float(np.exp(np.mean(np.log(np.maximum(at.array("share"), FLOOR))))) for at in sizes.values()]
        curves.append(([float(m) for (m,) in sizes], errors))
    return slope_of(needed([curve for curve in curves if len(curve[0]) > 1], "a power of m"))


def _planted(rows: Rows, noise: float) -> Rows:
    return Rows(row for family in FAMILIES for row in rows.where(family=family, noise=noise))


def _ample(rows: Rows) -> Rows:
    return Rows(row for row in rows if row["m"] >= AMPLE * row["s"] * (row["n"] + 1))


def _judge_faster(rows: Rows) -> Verdict:
    return within(power(needed(_planted(rows, 0.0), "errors")), most=MIDDLE, what="power of m")


def _judge_recovered(rows: Rows) -> Verdict:
    verdicts = []
    for (family,), group in needed(_ample(_planted(rows, 0.0)), "ample rows").groups("family").items():
        exact = share_of(int((group.array("share") <= FLOOR).sum()), len(group))
        verdicts.append(within(exact, least=0.9, what=f"{family}: exact in"))
    return every(*verdicts)


def _judge_attained(rows: Rows) -> Verdict:
    lists = needed(rows.where(family=LISTS), "decision lists")
    return within(power(lists), least=-1.25, most=MIDDLE, what="power of m")


def _judge_noise(rows: Rows) -> Verdict:
    return within(power(needed(_ample(_planted(rows, NOISE)), "ample rows with noise")), most=MIDDLE, what="power of m")


def _frame(rows: Rows) -> Frame:
    named = Rows(
        row.with_values(name=row["family"] + (", noise" if row["noise"] else ""), error=max(float(row["share"]), FLOOR))
        for row in rows
    )
    return curves(named, "{name}", "m", "error", "error / variance")


EXPERIMENT: Final = Experiment(
    name="fast-rates",
    paper="A",
    place="Theorem 17, beyond the paper",
    title="How the error falls with the rows: 1 / m or 1 / sqrt(m)",
    summary="Networks of 4 units on 16 inputs, one of them active at a point: gates rotated in space, cells of random "
    "halfspaces, caps of a sphere. The search for the least error in the class is told s and k. Labels have no noise, "
    "or noise of 0.3 standard deviations; errors are against the function at 4,000 new points. And 32 "
    "decision lists of 24 places on uniform signs, one-sparse networks with random values, fitted exactly, with 0 in "
    "cells that no row has met: no learner has a smaller expected error. The rules were fixed after runs on two other "
    "seeds, which showed that errors without noise come down to rounding.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="faster",
            place="Theorem 17",
            statement="Without noise the error falls faster than the 1 / sqrt(m) of Theorem 17, at least as fast as "
            "the 1 / m of realizable learning.",
            printed="O((W R + B)^2 k s n / epsilon^2) samples",
            rule="power of m in the error at new points (geometric mean over families, errors below 1e-9 of the "
            "variance count as this), a slope over all numbers of rows for each seed: holds if the 95 % interval of "
            "its mean lies below -3/4, nearer to -1 than to -1/2",
            refuted_if="the power is significantly above -3/4",
            judge=_judge_faster,
        ),
        Claim(
            name="recovered",
            statement=f"Without noise, from {AMPLE} rows a weight on, the function itself is found.",
            rule="share of runs with at most 1e-9 of the variance as error at new points: holds if its 95 % interval "
            "lies above 0.9 for each family",
            refuted_if="for some family significantly more than a tenth of the runs err by more",
            judge=_judge_recovered,
        ),
        Claim(
            name="attained",
            statement="The rate 1 / m is attained: on decision lists with random values no learner is faster.",
            rule="power of m in the error: holds if the 95 % interval of its mean over seeds lies within 1/4 of -1",
            refuted_if="the power is significantly farther than 1/4 from -1",
            judge=_judge_attained,
        ),
        Claim(
            name="noise",
            place="Theorem 17",
            statement="With noise, too, the error against the function falls faster than 1 / sqrt(m).",
            printed="O((W R + B)^2 k s n / epsilon^2) samples",
            rule=f"power of m as above, over the numbers of rows of at least {AMPLE} a weight: holds if the 95 % "
            "interval of its mean over seeds lies below -3/4, nearer to -1 than to -1/2",
            refuted_if="the power is significantly above -3/4",
            judge=_judge_noise,
        ),
    ),
    charts=(
        Chart(
            "errors",
            "Error against rows",
            "Median over seeds and its interval, at new points. Errors below 1e-9 of the variance are drawn there.",
            _frame,
            curve_plot("rows m", "squared error / variance", log=(2, 10)),
        ),
    ),
    order=335,
)
