"""Parity in four networks, and the low-degree algorithm: why activity, and the distribution, matter.

A *dense* layer computes the parity of p of n signs by a zigzag of their sum, with p + 1 units. On the uniform cube no
polynomial of degree below p correlates with it. *Sparse* networks of as many units reach only the parity of log2 s
signs (Theorem 13), and random ones have most weight at low degree. On the quadratic *lift* parity is one-sparse with
floor(p / 2) + 1 units (Section 4), but there the distribution is not uniform, and degree d means degree 2 d in y.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import junta, parity, random_network
from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, n_subsets, points
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.charts import Chart, Frame, curve_plot, curves
from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.learners import drawn
from sparsact_papers.common.networks import zigzag
from sparsact_papers.experiment import Experiment, Row, Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

DENSE, RANDOM, JUNTA, LIFTED = "dense: parity", "1-sparse: random", "1-sparse: parity of log2 s", "1-sparse on the lift"
KINDS: Final = (DENSE, RANDOM, JUNTA)
RATIO: Final = 4  # samples a monomial
SIZES: Final = {Scale.SMOKE: ((3, 6),), Scale.QUICK: ((5, 10),), Scale.FULL: ((3, 14), (5, 14))}  # of S, and n
LIFTS: Final = {Scale.SMOKE: ((3, 4),), Scale.QUICK: ((5, 7),), Scale.FULL: ((5, 8), (7, 10))}
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}
NONE: Final = 1e-9  # an error of at most this share of the variance is rounding


def parameters(scale: Scale) -> Iterator[dict[str, int | str]]:
    """Every kind of network at every degree up to one beyond parity's; on the lift up to half of it."""
    for seed in range(SEEDS[scale]):
        for (size, n), kind in product(SIZES[scale], KINDS):
            for degree in range(1, size + 2):
                yield {"kind": kind, "size": size, "n": n, "degree": degree, "seed": seed}
        for size, n in LIFTS[scale]:
            for degree in range(1, (size + 1) // 2):
                yield {"kind": LIFTED, "size": size, "n": n, "degree": degree, "seed": seed}


def built(kind: str, size: int, n: int, seed: int) -> SparselyActivatedNetwork:
    """A network of as many units and the same W as the dense one; on the lift, parity's own."""
    rng = np.random.default_rng([seed, 1])
    subset = np.sort(rng.permutation(n)[:size])
    dense = zigzag(subset, n)
    if kind == DENSE:
        return dense
    if kind == LIFTED:
        return parity(subset.tolist(), n)
    if kind == JUNTA:
        few = subset[: int(np.log2(dense.s))]
        sparse = junta(1 - 2.0 * (np.bitwise_count(np.arange(2 ** len(few))) % 2), few.tolist(), n)
    else:
        sparse = random_network(n, dense.s, 1, rng=rng)
    return SparselyActivatedNetwork(sparse.u * (dense.scale().W / sparse.scale().W), sparse.W, sparse.b)


def measure(*, kind: str, size: int, n: int, degree: int, seed: int) -> dict[str, float | None]:
    """Exact error of least squares of that degree, and facts about the network."""
    from sparsact.learners import LowDegreeRegressor

    network, cube = built(kind, size, n, seed), points(n)
    X = Lift.quadratic(n)(cube) if kind == LIFTED else cube
    values = network(X)
    spectrum = Spectrum.of(values)  # over y where there is a lift
    reached = 2 * degree if kind == LIFTED else degree
    N = n_subsets(n, reached)
    m = ceil(RATIO * N)
    seen = drawn(n, m, seed)
    model: Any = LowDegreeRegressor(degree=degree).fit(X[seen], values[seen])
    return {
        "error": float(np.mean((model.predict(X) - values) ** 2)),
        "variance": spectrum.variance(),
        "tail": spectrum.tail(reached),
        "m": m,
        "n_monomials": N,
        "n_units": network.s,
        "active": int(network.n_active(X).max()),
        "W": network.scale().W,
        "sensitivity": spectrum.total_influence(),
        "wrong": float(np.abs(values - _parity(kind, size, n, seed)).max()) if kind in (DENSE, LIFTED) else None,
    }


def _parity(kind: str, size: int, n: int, seed: int) -> NDArray[np.float64]:
    """Parity by its definition: a character; on the lift 1 where it is 1, else 0."""
    subset = np.sort(np.random.default_rng([seed, 1]).permutation(n)[:size])
    product = characters(points(n), [subset.tolist()])[:, 0]
    return np.asarray((1 + product) / 2 if kind == LIFTED else product)


def _share(rows: Rows) -> NDArray[np.float64]:
    return rows.array("error / variance")


def _below(rows: Rows, kind: str, limit: Any) -> Rows:
    kept = Rows(row for row in rows.where(kind=kind) if row["degree"] < limit(row))
    return needed(kept, f"{kind}, low degrees")


def _judge_defeats(rows: Rows) -> Verdict:
    low = _below(rows, DENSE, lambda row: row["size"])
    high = needed(Rows(row for row in rows.where(kind=DENSE) if row["degree"] >= row["size"]), "degrees from |S|")
    return every(
        within(range_of(low.array("wrong")), most=1e-9, what="difference from parity"),
        within(range_of(_share(low)), least=1 - NONE, what="error / variance below degree |S|"),
        within(range_of(_share(high)), most=NONE, what="from degree |S|"),
    )


def _judge_logarithm(rows: Rows) -> Verdict:
    reach = [int(np.log2(row["n_units"])) for row in needed(rows.where(kind=JUNTA), "sparse parities")]
    degrees = np.array(rows.where(kind=JUNTA).column("degree"))
    share, low = _share(rows.where(kind=JUNTA)), degrees < np.array(reach)
    return every(
        within(range_of(share[low]), least=1 - NONE, what="error / variance below degree log2 s"),
        within(range_of(share[~low]), most=NONE, what="from degree log2 s"),
    )


def _judge_lifted(rows: Rows) -> Verdict:
    found = needed(rows.where(kind=LIFTED), "parity on the lift")
    return every(
        within(range_of(found.array("wrong")), most=0, what="difference from parity"),
        within(range_of(found.array("active")), most=1, what="active units"),
        within(range_of(found.array("n_units") - found.array("size") // 2), least=1, most=1, what="units - |S| div 2"),
        within(range_of(_share(found)), least=1 - NONE, what="error / variance, 2 d < |S|,"),
    )


def frame(rows: Rows) -> Frame:
    """Median over seeds of error / variance for the largest S, a row a network and degree (in y, on the lift)."""
    largest = {name: max(row["size"] for row in rows if row["kind"] == name) for name in rows.distinct("kind")}
    return curves(
        Rows(_in_y(row) for row in rows if row["size"] == largest[row["kind"]]),
        "{kind}, |S| = {size}, s = {n_units}",
        "degree",
        "error / variance",
        "error / variance",
    )


def _in_y(row: Row) -> Row:
    """On the lift degree d reaches degree 2 d in y."""
    if row["kind"] != LIFTED:
        return row
    return replace(row, parameters={**row.parameters, "degree": 2 * row["degree"]})


EXPERIMENT: Final = Experiment(
    name="parity-defeats",
    paper="A",
    place="Sections 1 and 4, Theorems 3 and 13",
    title="Parity, dense and sparse, against the low-degree algorithm",
    summary="Parity of S as a dense layer of |S| + 1 units, random one-sparse networks of as many units and the same "
    "W, the one-sparse parity of log2 s signs, and parity on the quadratic lift are learned by least squares of each "
    "degree from 4 uniform samples a monomial (of y on the lift). Errors are exact.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="dense-defeats",
            place="Section 1",
            statement="A dense layer of |S| + 1 units is parity of S, which degrees below |S| cannot learn.",
            rule="holds if on every row the error is the variance or more below degree |S|, and rounding from there",
            refuted_if="a degree below |S| errs by less than the variance, or degree |S| by more than rounding",
            judge=_judge_defeats,
        ),
        Claim(
            name="dense-activity",
            statement="The dense layer of that parity is not sparsely activated: some input switches all units on.",
            rule="holds if on every row the largest number of active units is the number of units",
            refuted_if="some row leaves a unit off at every input",
            judge=lambda rows: within(
                range_of(needed(rows.where(kind=DENSE), "dense parity").array("active / n_units")),
                least=1,
                what="active / units",
            ),
        ),
        Claim(
            name="sparse-learned",
            place="Theorem 8",
            statement="Random one-sparse networks of the same s and W are learned below degree |S|.",
            rule="holds if the 95 % interval of error / variance at degree |S| - 1 lies below 1/2",
            refuted_if="error / variance at degree |S| - 1 is significantly above 1/2",
            judge=lambda rows: within(
                mean_of(
                    _share(
                        needed(
                            Rows(row for row in rows.where(kind=RANDOM) if row["degree"] == row["size"] - 1),
                            "degree |S| - 1",
                            2,
                        )
                    )
                ),
                most=0.5,
                what="error / variance at degree |S| - 1",
            ),
        ),
        Claim(
            name="logarithm",
            place="Theorem 13",
            statement="One-sparse networks of s units can defeat degrees below log2 s: parity of log2 s signs does.",
            printed="no algorithm in time n^o(log s), under Conjecture 12",
            rule="holds if on every row the error is the variance or more below log2 s, and rounding from there",
            refuted_if="a degree below log2 s errs by less than the variance, or degree log2 s by more than rounding",
            judge=_judge_logarithm,
        ),
        Claim(
            name="lifted",
            place="Section 4, Theorem 3",
            statement="On the lift parity is one-sparse with floor(|S| / 2) + 1 units, and degrees below |S| / 2 fail.",
            printed="O(m) units on m^2 inputs; even sums in place of sums modulo 4",
            rule="holds if on every row values and units are right, one unit at most is active, error >= variance",
            refuted_if="some row has a wrong value, another number of units, two active units or an error below the "
            "variance",
            judge=_judge_lifted,
        ),
    ),
    charts=(
        Chart(
            "degree",
            "Parity against the degree",
            "Median over seeds of the exact error of least squares from 4 samples a monomial, and its interval; s is "
            "the number of units. With m samples and N monomials an error of the variance grows to m / (m - N) times "
            "it.",
            frame,
            curve_plot(
                "degree of the polynomial (in y, on the lift)",
                "squared error / variance",
                levels={"variance": 1.0},
                ticks=True,
                bottom=-0.03,
            ),
        ),
    ),
    order=230,
)
