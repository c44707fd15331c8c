"""Complexities of networks sparse in the mean, on repeated directions, and of sparse ones, by search on blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, hadamard

from sparsact import bounds
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.rademacher import (
    correlating_network,
    gathered_complexity,
    gathered_network,
    orthogonal_network,
)
from sparsact_papers.charts import Frame, curve_frame
from sparsact_papers.claims import Outcome, Verdict, bounded, every, needed
from sparsact_papers.experiment import Rows, Scale
from sparsact_papers.intervals import mean_of, range_of

DIRECTIONS, BLOCKS, CUBES = "directions", "blocks", "cubes"
COPIES: Final = 100
MANY: Final = {
    Scale.SMOKE: (4, 64),
    Scale.QUICK: (4, 64, 1024),
    Scale.FULL: (4, 16, 64, 256, 1024, 4096, 16384, 65536),
}
MOST_BUILT: Final = 64  # directions up to which networks are built and counted
# Kind and inputs of a block, blocks, units, active units, draws: a pair of units for each block, fewer, or more.
DESIGNS: Final = {
    Scale.SMOKE: ((BLOCKS, 2, 2, 4, 1, 3), (CUBES, 2, 1, 2, 1, 3)),
    Scale.QUICK: ((BLOCKS, 4, 4, 8, 1, 4), (CUBES, 3, 2, 4, 1, 4)),
    Scale.FULL: (
        *((BLOCKS, 8, blocks, 2 * blocks, 1, 4) for blocks in (1, 2, 4, 8, 16, 32)),
        *((BLOCKS, 4, blocks, 2 * blocks, 1, 4) for blocks in (8, 32)),
        *((BLOCKS, 16, blocks, 2 * blocks, 1, 4) for blocks in (2, 8)),
        (BLOCKS, 64, 1, 2, 1, 4),
        *((BLOCKS, 8, 8, s, 1, 4) for s in (2, 4, 8, 32, 64)),
        *((BLOCKS, 8, 8, s, 2, 4) for s in (16, 32, 64)),
        *((CUBES, 4, blocks, s, 1, 4) for blocks, s in ((1, 4), (2, 8), (4, 8), (4, 32), (8, 16), (8, 64))),
    ),
}
ROUNDS, STARTS = 8, 32  # of the search
MOST_GROWTH: Final = 1.5  # of a constant
LIMIT: Final = float(np.sqrt(2))


Parameters = dict[str, str | int | float | None]


def parameters(scale: Scale) -> Iterator[Parameters]:
    """Tasks of both families, the larger ones first."""
    for sample, n, blocks, s, k, draws in sorted(DESIGNS[scale], key=lambda design: -design[2] * design[3]):
        design: Parameters = {"sample": sample, "n": n, "s": s, "k": k, "bias": None, "draws": draws, "seed": 0}
        yield {**design, "blocks": blocks}
    for M in MANY[scale]:
        directions: Parameters = {"sample": DIRECTIONS, "n": M, "s": M, "k": 1, "bias": None, "draws": None, "seed": 0}
        yield {**directions, "copies": COPIES}


def on_directions(n: int, copies: int, k: int, seed: int) -> dict[str, Any]:
    """Exact means on n directions with W = R = 1, the bounds, and the activity of a network of the family."""
    m, scale = n * copies, {"W": 1.0, "B": 0.0, "R": 1.0}
    mean_active = None
    if n <= MOST_BUILT:
        signs = np.random.default_rng([seed, 2]).choice([-1, 1], size=(n, copies))
        mean_active = float(gathered_network(signs, k).n_active(np.repeat(np.eye(n), copies, axis=0)).mean())
    return {
        "gathered": gathered_complexity(n, copies, k),
        "spread": gathered_complexity(1, copies, k),
        "mean_active": mean_active,
        "conjecture": bounds.sparse_complexity_conjecture(k * n, k, **scale, m=m),
        "chain": bounds.rademacher_sparse_free_of_dimension(k * n, k, **scale, m=m),
        "dense_bound": bounds.dense_complexity_bound(k * n, **scale, m=m),
    }


def on_blocks(sample: str, n: int, blocks: int, s: int, k: int, draws: int, seed: int) -> dict[str, Any]:
    """The best of a search and of pairs of units, for each block or for all, on points e_c (x) y; W = 1 and B = 1."""
    block = hadamard(n) if sample == BLOCKS else points(n)
    X, R, rng = np.kron(np.eye(blocks), block), np.sqrt(n), np.random.default_rng([seed, 3])
    signs = rng.choice([-1, 1], size=(draws, len(X)))
    searched = [correlating_network(X, z, s, k, n_rounds=ROUNDS, n_starts=STARTS, rng=rng) for z in signs]
    built = [_pairs(z, block, blocks, k) for z in signs] if s >= 2 * k * blocks else []
    if sample == BLOCKS:  # all points are orthogonal
        built += [orthogonal_network(X, z) for z in signs]
    networks = searched + built
    scales = [network.scale() for network in networks]
    reached = np.array([signs[i % draws] @ net(X) for i, net in enumerate(networks)]) / len(X)
    return {
        "searched": reached[:draws].tolist(),
        "reached": reached.reshape(-1, draws).max(axis=0).tolist(),
        "conjecture": bounds.sparse_complexity_conjecture(s, k, 1.0, 1.0, R, len(X)),
        "most_active": max(int(network.n_active(X).max()) for network in networks),
        "is_of_the_class": all(scale.W <= 1 and scale.B <= 1 for scale in scales),
    }


def _pairs(signs: NDArray[np.int_], block: NDArray[Any], blocks: int, k: int) -> SparselyActivatedNetwork:
    """K pairs of opposite units for each block, off at all others; of two opposite units one is on at most."""
    sums = signs.reshape(blocks, len(block)) @ block
    weights = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True) * (1 + 1e-12), 1e-12)
    rows = np.repeat(block_diag(*weights), k, axis=0)
    u = np.repeat([1.0, -1.0], len(rows))
    return SparselyActivatedNetwork(u, np.concatenate([rows, -rows]), np.zeros(len(u)))


def factors(rows: Rows, of: str) -> dict[int, float]:
    """Complexity over the conjecture by the number of directions."""
    found = needed(rows.where(sample=DIRECTIONS), "directions", 2)
    return dict(sorted((row["n"], row[of] / row["conjecture"]) for row in found))


def judge_mean_sparsity(rows: Rows) -> Verdict:
    """Whether the multiple of the conjecture stays what it is on few directions."""
    members = [row for row in rows.where(sample=DIRECTIONS) if row["mean_active"] is not None]
    if any(row["mean_active"] > row["k"] for row in members):
        return Verdict(Outcome.UNDECIDED, "networks have more active units than the class allows")
    found = factors(rows, "gathered")
    first, *_, last = found
    outcome = Outcome.DOES_NOT_HOLD if found[last] > MOST_GROWTH * found[first] else Outcome.HOLDS
    return Verdict(outcome, f"{found[first]:.3g} times the conjecture at s = {first}, {found[last]:.3g} at s = {last}")


def judge_blocks(rows: Rows) -> Verdict:
    """The largest multiple of the conjecture that networks of the class were found to reach."""
    found = [row for kind in (BLOCKS, CUBES) for row in rows.where(sample=kind, is_of_the_class=True)]
    legal = needed([row for row in found if row["most_active"] <= row["k"]], "networks of the class")
    shares = [mean_of(np.array(row["reached"]) / row["conjecture"] / LIMIT) for row in legal]
    verdict = every(*(bounded(share, "") for share in shares))
    largest, row = max(zip(shares, legal, strict=True), key=lambda pair: pair[0].estimate)
    at = f"{row['blocks']} of the {row['sample']}, n = {row['n']}, s = {row['s']}, k = {row['k']}"
    told = f"at most {largest.estimate * LIMIT:.3g} times the conjecture, on {at}; {len(legal)} designs"
    return replace(verdict, measured=told)


MEAN, EVERYWHERE, TAILS = "sparse in the mean", "sparse everywhere", "limit √(2 ln 2s)"


def frame(rows: Rows) -> Frame:
    """Multiples of the conjecture on directions, and what sub-Gaussian tails allow."""
    if not rows.where(sample=DIRECTIONS):
        return curve_frame([], "units s", "complexity / Conjecture 20")
    lines = {MEAN: factors(rows, "gathered"), EVERYWHERE: factors(rows, "spread")}
    lines[TAILS] = {n: float(np.sqrt(2 * np.log(2 * n))) for n in lines[MEAN]}
    found = [(name, n, range_of([value])) for name, line in lines.items() for n, value in line.items()]
    return curve_frame(found, "units s", "complexity / Conjecture 20")
