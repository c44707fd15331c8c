r"""Rademacher complexity of the sparse and of the dense class against the number of units: Theorem 19 to Conjecture 20.

Complexities are exact maxima over the whole class (:mod:`sparsact.rademacher`) on all points of the cube, averaged over
all sign vectors or over drawn ones; on orthogonal points a network of the class is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsact import bounds
from sparsact.experiments import (
    Claim,
    Experiment,
    Interval,
    Outcome,
    Rows,
    Scale,
    Verdict,
    every,
    mean_of,
    needed,
    only_if,
    range_of,
    within,
)
from sparsact.hypercube import points
from sparsact.rademacher import compare, exact_complexity, orthogonal_network

W = 1.0
USUAL = 1.0  # B, where only one is taken
BIASES: dict[Scale, tuple[float, ...]] = {
    Scale.SMOKE: (1.0,),
    Scale.QUICK: (1.0, 2.0),
    Scale.FULL: (0.5, 1.0, 2.0),
}
UNITS = 8
ROUNDING = 1e-6  # accuracy of exact maxima
MOST_GROWTH = 1.8
BLOCK = 10  # sign vectors of a task
CUBES: dict[Scale, tuple[int, ...]] = {Scale.SMOKE: (2,), Scale.QUICK: (2, 3), Scale.FULL: (2, 3)}
BLOCKS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 12}
LARGE_BLOCKS = {Scale.SMOKE: 0, Scale.QUICK: 0, Scale.FULL: 10}  # of two sign vectors on the 4-cube
ORTHOGONAL = {Scale.SMOKE: (4, 8), Scale.QUICK: (2, 4, 8, 16, 32), Scale.FULL: (2, 4, 8, 16, 32, 64, 128)}


def parameters(scale: Scale) -> Iterator[dict[str, str | int | float | None]]:
    """Orthogonal samples, small cubes with all signs, blocks of drawn signs; the 3-cube also for k = 2."""
    for m in ORTHOGONAL[scale]:
        yield {"sample": "orthogonal", "n": m, "k": 1, "B": None, "n_draws": BLOCK, "seed": 0}
    for n in CUBES[scale]:
        yield {"sample": "cube", "n": n, "k": 2, "B": USUAL, "n_draws": None, "seed": 0}
        for B in BIASES[scale]:
            yield {"sample": "cube", "n": n, "k": 1, "B": B, "n_draws": None, "seed": 0}
    for seed in range(BLOCKS[scale]):
        for B in BIASES[scale]:
            yield {"sample": "cube", "n": CUBES[scale][-1], "k": 1, "B": B, "n_draws": BLOCK, "seed": seed}
    for seed in range(LARGE_BLOCKS[scale]):
        yield {"sample": "cube", "n": 4, "k": 1, "B": USUAL, "n_draws": 2, "seed": seed}


def measure(*, sample: str, n: int, k: int, B: float | None, n_draws: int | None, seed: int) -> dict[str, Any]:
    """Complexities for every number of units, beside their bounds; ``n_draws`` None takes all signs."""
    rng = np.random.default_rng([seed, 1])
    if sample == "orthogonal" or B is None:  # the network there sets its own B
        return _on_orthogonal_points(n, BLOCK if n_draws is None else n_draws, rng)
    X = points(n)
    signs = None if n_draws is None else rng.choice([-1, 1], size=(n_draws, len(X)))
    units = list(range(1, UNITS + 1))
    sparse = exact_complexity(X, units, k, W=W, B=B, signs=signs)
    dense = exact_complexity(X, units, None, W=W, B=B, signs=signs)
    beside = compare(sparse, X, units, k, W=W, B=B)
    # with more than s units asked for, s of them are searched for together, though k = s does not bind them
    pair = exact_complexity(X, [2, 3], 2, W=W, B=B, signs=signs) if k == 2 else None
    return {
        "units": units,
        "sparse": sparse.value.tolist(),
        "dense": dense.value.tolist(),
        "conjecture": beside.conjecture.tolist(),
        "sparse_bound": beside.sparse_bound.tolist(),
        "dense_bound": beside.dense_bound.tolist(),
        "pair": None if pair is None else float(pair.value[0]),
    }


def _on_orthogonal_points(m: int, n_draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """What two units reach on the rows of a Hadamard matrix, beside what the conjecture allows."""
    from scipy.linalg import hadamard

    X = hadamard(m)
    reached, most_active, scales = [], 0, []
    for signs in rng.choice([-1, 1], size=(n_draws, m)):
        network = orthogonal_network(X, signs, W=W)
        reached.append(float(signs @ network(X)) / m)
        most_active = max(most_active, int(network.n_active(X).max()))
        scales.append(network.scale())
    width, bias = max(scale.W for scale in scales), max(scale.B for scale in scales)
    allowed = bounds.sparse_complexity_conjecture(2, 1, width, bias, np.sqrt(m), m)
    return {"reached": float(np.mean(reached)), "allowed": allowed, "most_active": most_active}


def growth_of(blocks: Rows) -> Interval:
    """Complexity of the most units over that of one, a ratio of means over blocks, by the jackknife."""
    last, first = (np.array([row["sparse"][at] for row in needed(blocks, "blocks of signs", 2)]) for at in (-1, 0))
    whole, n = last.mean() / first.mean(), len(blocks)
    without = (last.sum() - last) / (first.sum() - first)
    return mean_of(n * whole - (n - 1) * without)


def _largest_cube(rows: Rows) -> int:
    return int(max(needed(rows.where(sample="cube", n_draws=None, k=1), "a cube with all signs").column("n")))


def judge_growth(rows: Rows) -> Verdict:
    """From one unit to eight, on the largest cube with all signs: of drawn signs and exactly, for each B."""
    n = _largest_cube(rows)
    verdicts = {}
    for (B,), group in rows.where(sample="cube", n=n, k=1).groups("B").items():
        blocks = Rows(row for row in group if row["n_draws"] is not None)
        exact = needed(group.where(n_draws=None), "all signs")[0]["sparse"]
        drawn = growth_of(blocks)
        what = f"R(s=8)/R(s=1) at n = {n}, B = {B:g}, {sum(blocks.column('n_draws'))} sign vectors:"
        verdicts[B] = every(
            within(drawn, most=MOST_GROWTH, what=what),
            within(range_of([exact[-1] / exact[0]]), most=MOST_GROWTH, what="all:"),
        )
    return _where_it_holds(verdicts)


def _where_it_holds(verdicts: dict[float, Verdict]) -> Verdict:
    """One verdict of those for several B: it holds only for some, if it fails for others and none is undecided."""
    together = every(*verdicts.values())
    held = [B for B, verdict in verdicts.items() if verdict.outcome is Outcome.HOLDS]
    decided = all(verdict.outcome is not Outcome.UNDECIDED for verdict in verdicts.values())
    if together.outcome is Outcome.HOLDS or not held or not decided:
        return together
    tried = ", ".join(f"{B:g}" for B in verdicts)
    condition = f"B is {' or '.join(f'{B:g}' for B in held)}, of {tried} tried with W = 1"
    return Verdict(Outcome.HOLDS_ONLY_IF, together.measured, condition)


def judge_dense(rows: Rows) -> Verdict:
    """Deviation from s times one unit, relative, of every row; and of two units that were searched for together."""
    cubes = needed(rows.where(sample="cube"), "a cube")
    off = [
        max(abs(d / (s * row["dense"][0]) - 1) for s, d in zip(row["units"], row["dense"], strict=True))
        for row in cubes
    ]
    together = [abs(row["pair"] / (2 * row["dense"][0]) - 1) for row in cubes if row["pair"] is not None]
    return every(
        within(range_of(off), most=ROUNDING, what="relative deviation"),
        within(range_of(together), most=ROUNDING, what="of two units searched for together"),
    )


def judge_bound(rows: Rows) -> Verdict:
    """Complexity as a share of the explicit form of (15), of every row and number of units."""
    cubes = needed(rows.where(sample="cube"), "a cube")
    shares = [r / b for row in cubes for r, b in zip(row["sparse"], row["sparse_bound"], strict=True)]
    return within(range_of(shares), most=1 + ROUNDING, what="complexity / bound")


def cube_ratios(rows: Rows) -> list[tuple[int, int, float, int, Interval]]:
    """(n, k, B, s, complexity over conjecture) on cubes: exact where all signs were taken, else a mean over blocks."""
    ratios = []
    for (n, k, B), group in needed(rows.where(sample="cube"), "a cube").groups("n", "k", "B").items():
        whole = group.where(n_draws=None)
        for at, s in enumerate(group[0]["units"]):
            if k > s:
                continue  # the dense class, for which the conjecture has s in place of k
            of = range_of if len(whole) else mean_of
            ratios.append((n, k, B, s, of([row["sparse"][at] / row["conjecture"][at] for row in whole or group])))
    return ratios


def judge_conjecture(rows: Rows) -> Verdict:
    """The largest ratio on a cube, and that on orthogonal points."""
    n, k, B, s, worst = max(cube_ratios(rows), key=lambda ratio: ratio[-1].low)
    orthogonal = needed(rows.where(sample="orthogonal"), "orthogonal points")
    tried = ", ".join(f"{n}" for n in rows.where(sample="cube").distinct("n"))
    largest = max(orthogonal, key=lambda row: row["n"])
    return only_if(
        f"the points are the whole cube (measured for n = {tried}, s up to {UNITS}, k = 1 and 2)",
        _exceeds(worst, f"largest ratio on a cube (n = {n}, k = {k}, B = {B:g}, s = {s})"),
        _exceeds(
            range_of([largest["reached"] / largest["allowed"]]), f"at least, on {largest['n']} orthogonal points,"
        ),
    )


def _exceeds(ratio: Interval, what: str) -> Verdict:
    """Refuted only if the whole interval lies above 1, which is what 'not beyond the error' means."""
    outcome = Outcome.DOES_NOT_HOLD if ratio.low > 1 + ROUNDING else Outcome.HOLDS
    return Verdict(outcome, f"{what} {ratio}")


EXPERIMENT = Experiment(
    name="rademacher",
    paper="A",
    place="Section 5, Theorem 19, equation (15), Conjecture 20",
    title="Rademacher complexity against the number of units",
    summary=(
        "Exact maxima over all networks with W = 1 on all points of the cube, by enumeration of the sets that "
        "halfspaces cut from it; averaged over all sign vectors (n = 2, 3) or drawn ones (n = 3, 4). On rows of a "
        "Hadamard matrix two units, one active at each point, bound the complexity from below."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            "sublinear",
            "Section 5",
            "The complexity of the sparse class grows far more slowly with the units than that of the dense class.",
            "sqrt(s) against s",
            "holds if, for every B, the jackknife 95 % interval of R(s=8)/R(s=1) over blocks of signs, and its exact "
            "value, are at most 1.8 (the dense class grows 8-fold); holds only if B is such where some B fail",
            judge_growth,
        ),
        Claim(
            "dense",
            "beyond the paper",
            "Units of the dense class decouple: its complexity is exactly s times that of one unit.",
            "Theorem 5 states a rate without proof",
            "holds if the relative deviation is at most 1e-6 on every row, also for two units searched for together",
            judge_dense,
        ),
        Claim(
            "bound",
            "Theorem 19 and equation (15)",
            "The complexity is at most (WR + B) sqrt(s n k log(...) / m); here with every constant explicit.",
            "no numbers",
            "holds if no row and no number of units exceeds the explicit bound",
            judge_bound,
        ),
        Claim(
            "conjecture",
            "Conjecture 20",
            "The complexity is at most (WR + B) sqrt(s k / m), without the dimension, on any points.",
            "constant 1",
            "refuted on a sample if the whole interval of complexity / conjecture lies above 1; without sampling "
            "error where all signs are taken; a network reached on orthogonal points is a lower bound there",
            judge_conjecture,
        ),
    ),
    order=50,
)
