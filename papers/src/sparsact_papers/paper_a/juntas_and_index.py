"""Juntas and Index_b as one-sparse networks (Theorem 13, Introduction), and samples that recover them exactly.

Every Fourier coefficient of a function of p signs with values +-1 is a multiple of ``2**(1 - p)``; of Index_b, with
values 0 and 1, of ``2**-(b + 1)``. So a learner that estimates all N coefficients of degree at most p within half of
that step recovers the function exactly, by rounding. By Hoeffding's inequality averages do so with probability
1 - delta from ``2 ln(2 N / delta) / (step / 2)**2`` samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, log
from typing import TYPE_CHECKING, Final

import numpy as np

from sparsact.constructions import indexing, junta
from sparsact.fourier import Spectrum
from sparsact.hypercube import n_subsets, points
from sparsact.network import SparselyActivatedNetwork
from sparsact.reports.figure import Chart, Frame, figure, scale, styled
from sparsact_papers.charts import curves, draw_curves, joined
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.learners import drawn
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, range_of, share_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_SQUARES, AVERAGES = "least squares", "averages"
SOLVERS: Final = {LEAST_SQUARES: "auto", AVERAGES: "correlation"}
JUNTA, INDEX = "junta", "index"
FAILURE: Final = 0.05
TARGETS: Final = {
    Scale.SMOKE: ((JUNTA, 2, 6), (INDEX, 1, 3)),
    Scale.QUICK: ((JUNTA, 2, 12), (JUNTA, 3, 12), (INDEX, 2, 6)),
    Scale.FULL: ((JUNTA, 2, 12), (JUNTA, 3, 12), (JUNTA, 4, 12), (INDEX, 2, 6), (INDEX, 3, 11)),
}
SHARES: Final = {  # of the samples that Hoeffding's inequality requires
    Scale.SMOKE: (0.25, 1.0),
    Scale.QUICK: (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0),
    Scale.FULL: (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0),
}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 8, Scale.FULL: 20}


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str]]:
    """A task for each target, share of samples, learner and seed."""
    for seed, (kind, size, n), share, learner in product(range(SEEDS[scale]), TARGETS[scale], SHARES[scale], SOLVERS):
        yield {"kind": kind, "size": size, "n": n, "share": share, "learner": learner, "seed": seed}


def built(kind: str, size: int, n: int, seed: int) -> tuple[SparselyActivatedNetwork, np.ndarray, int, float]:
    """The network, the function's values by its definition, its degree, and the step of its coefficients."""
    cube = points(n)
    if kind == INDEX:
        address = (cube[:, :size] < 0) @ (1 << np.arange(size))
        return indexing(size), (1 + cube[np.arange(len(cube)), size + address]) / 2, size + 1, 2.0 ** -(size + 1)
    rng = np.random.default_rng([seed, 1])
    table = rng.choice([-1.0, 1.0], 2**size)
    variables = np.sort(rng.permutation(n)[:size])
    values = table[(cube[:, variables] < 0) @ (1 << np.arange(size))]
    return junta(table, variables.tolist(), n), values, size, 2.0 ** (1 - size)


def measure(*, kind: str, size: int, n: int, share: float, learner: str, seed: int) -> dict[str, float | bool]:
    """Whether the network is the function, how active it is, and whether rounded coefficients recover it."""
    from sparsact.learners import LowDegreeRegressor

    network, values, degree, step = built(kind, size, n, seed)
    N = n_subsets(n, degree)
    m = ceil(share * 2 * log(2 * N / FAILURE) / (step / 2) ** 2)
    seen = drawn(n, m, seed)
    cube = points(n)
    model = LowDegreeRegressor(degree=degree, solver=SOLVERS[learner]).fit(cube[seen], values[seen])
    found = np.round(Spectrum.of(model.predict(cube)).coefficients / step) * step
    truth = Spectrum.of(values).coefficients
    active = network.n_active(cube)
    W, B = network.scale()
    return {
        "m": m,
        "n_monomials": N,
        "n_units": network.s,
        "difference": float(np.abs(network(cube) - values).max()),
        "certified": network.certify().upper,
        "W": W,
        "B": B,
        "none_active": float(np.mean(active == 0)),
        "support": bool(np.array_equal(found != 0, truth != 0)),
        "exact": bool(np.array_equal(found, truth)),
    }


def _judge_represented(rows: Rows) -> Verdict:
    found = needed(rows.where(kind=JUNTA), "juntas")
    logarithm = np.log2(found.array("n_units"))
    return every(
        within(range_of(found.array("difference")), most=0, what="largest difference"),
        within(range_of(found.array("certified")), most=1, what="certified active units"),
        within(range_of(found.array("W") / np.sqrt(logarithm)), most=1 + 1e-12, what="W / sqrt(log2 s)"),
        within(range_of(found.array("B") / logarithm), most=1, what="B / log2 s"),
    )


def _judge_index(rows: Rows) -> Verdict:
    found = needed(rows.where(kind=INDEX), "Index_b")
    return every(
        within(range_of(found.array("difference")), most=0, what="largest difference"),
        within(range_of(found.array("certified")), most=1, what="certified active units"),
        within(range_of(found.array("n_units") / 2 ** found.array("size")), least=1, most=1, what="units / 2^b"),
    )


def share_true(exact: Sequence[bool]) -> Interval:
    """Share of successes among repetitions, with its exact interval."""
    return share_of(int(np.sum(exact)), len(exact))


def _judge_least_squares(rows: Rows) -> Verdict:
    found = [row for row in rows.where(learner=LEAST_SQUARES) if row["m"] >= 2 * row["n_monomials"]]
    exact = [row["exact"] for row in needed(Rows(found), "least squares with m >= 2 N")]
    return within(share_true(exact), least=1 - FAILURE, what="recovered")


def frame(rows: Rows) -> Frame:
    """Share of seeds with exact recovery, a row a target, learner and number of samples."""
    groups = rows.groups("kind", "size", "n_monomials")
    return joined(_of(Rows([]), "", 0), *(_of(group, _named(*key), key[2]) for key, group in groups.items()))


def _of(rows: Rows, name: str, N: int) -> Frame:
    one = curves(rows, "{learner}", "m", "exact", "recovered", interval=share_true)
    named: Frame = {"target": [name] * len(one["m"]), "N": [N] * len(one["m"])}
    return named | one


def _named(kind: str, size: int, N: int) -> str:
    return f"Index_{size}, N = {N}" if kind == INDEX else f"juntas of {size}, N = {N}"


@styled
def plot(frame: Frame) -> Figure:
    """A panel a target, with the number of monomials as a line."""
    names = list(dict.fromkeys(frame["target"]))
    across = min(3, len(names))
    down = -(-len(names) // across)
    drawing = figure(3.1 * across + 0.6, 2.5 * down + 0.9)
    panels = drawing.subplots(down, across, sharey=True, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, names, strict=False):
        own = [i for i, target in enumerate(frame["target"]) if target == name]
        part: Frame = {
            column: [values[i] for i in own] for column, values in frame.items() if column not in ("target", "N")
        }
        draw_curves(axes, part, levels={})
        axes.axvline(frame["N"][own[0]], color="black", lw=0.9, ls=(0, (1, 1.5)), label="N monomials")
        scale(axes, log_x=10, log_y=0)
        axes.set_title(name)
        axes.set_xlabel("samples m")
    for row in panels:
        row[0].set_ylabel("share of seeds recovered")
    drawing.legend(
        *panels.flat[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=len(SOLVERS) + 1
    )
    return drawing


EXPERIMENT: Final = Experiment(
    name="juntas-and-index",
    paper="A",
    place="Theorem 13 and Introduction",
    title="Juntas and Index_b: represented and recovered",
    summary="Random +-1 functions of 2 to 4 of 12 signs and Index_b are built as one-sparse networks, compared with "
    "the function at every point, and certified. The low-degree algorithm, by least squares and by averages, then "
    "estimates their coefficients from uniform samples. All coefficients are multiples of one step: rounded to it, "
    "the estimates must be exact.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="juntas",
            place="Theorem 13",
            statement="Juntas of log2 s signs are one-sparse networks of s units with W = sqrt(log2 s), B = log2 s.",
            printed="W = sqrt(log2 s), B = log2 s",
            rule="holds if on every row values are equal, one unit at most is active by proof, and W, B are not larger",
            refuted_if="some row computes another function, has two active units, or needs a larger W or B",
            judge=_judge_represented,
        ),
        Claim(
            name="index",
            place="Introduction",
            statement="Index_b is a one-sparse network of 2^b units.",
            printed="2^b units, k = 1",
            rule="holds if on every row values are equal, one unit at most is active by proof, and 2^b units are used",
            refuted_if="some row computes another function, has two active units, or other than 2^b units",
            judge=_judge_index,
        ),
        Claim(
            name="index-activated",
            place="Introduction",
            statement="On every input of Index_b the neuron of the address is activated.",
            printed="on input z only the neuron alpha = x is activated",
            rule="holds if no point leaves all units off (a chosen sign of -1 gives a pre-activation of exactly 0)",
            refuted_if="some point leaves all units off",
            judge=lambda rows: within(
                range_of(needed(rows.where(kind=INDEX), "Index_b").array("none_active")),
                most=0,
                what="share of points without an active unit",
            ),
        ),
        Claim(
            name="averages",
            place="Lemma 7",
            statement="Averages recover the function exactly from 8 ln(2N / delta) / step^2 samples, delta = 0.05.",
            printed="O(n^d C^2 log(1 / delta) / epsilon) samples",
            rule="holds if the 95 % interval of the share of recoveries lies above 0.95",
            refuted_if="the share of exact recoveries is significantly below 0.95",
            judge=lambda rows: within(
                share_true(
                    needed(rows.where(learner=AVERAGES, share=1.0), "averages from the full number of samples").column(
                        "exact"
                    )
                ),
                least=1 - FAILURE,
                what="recovered",
            ),
        ),
        Claim(
            name="least-squares",
            place="Lemma 7",
            statement="Least squares of the function's degree recovers it exactly from 2 N samples.",
            printed="O(n^d C^2 log(1 / delta) / epsilon) samples",
            rule="holds if the 95 % interval of the share of recoveries with m >= 2 N lies above 0.95",
            refuted_if="the share of exact recoveries with m >= 2 N is significantly below 0.95",
            judge=_judge_least_squares,
        ),
    ),
    charts=(
        Chart(
            "recovery",
            "Exact recovery against samples",
            "Share of seeds on which all coefficients, rounded, are the function's; bars: 95 % interval of a share.",
            frame,
            plot,
        ),
    ),
    order=220,
)
