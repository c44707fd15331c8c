"""The worst sparse network that a search finds, for bounds from which random networks stay far away.

The search is a hill climb from the copies of :func:`~.spectral_networks.pairs`, which
attain AS = 4 k^2 W^2, and from random networks: normal steps, kept where no point has more than k active units and the
share of the bound does not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.experiments import Rows, Scale, Verdict, bounded, needed, range_of
from sparsact_papers.experiments.paper_a.spectral_networks import pairs, with_unit_scale

SEARCHED = "searched"
SEARCH_STREAM = 6
N_SEARCHES = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 3}
N_RANDOM, STEPS = 3, 1000  # random starts; steps from each start
WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of the steps, in turn
Share = Callable[[SparselyActivatedNetwork], float]


def worst_network(n: int, s: int, k: int, seed: int, share: Share) -> SparselyActivatedNetwork:
    """The network of s units, at most k of them active, with the largest share of a bound that the search finds."""
    rng = np.random.default_rng([seed, SEARCH_STREAM])
    starts = [pairs(n, k)] if s == 2 * k else []
    starts += [with_unit_scale(random_network(n, s, k, rng=rng)) for _ in range(N_RANDOM)]
    found = [_climb(start, k, share, rng) for start in starts]
    return max(found, key=lambda pair: pair[0])[1]


def _climb(
    network: SparselyActivatedNetwork, k: int, share: Share, rng: np.random.Generator
) -> tuple[float, SparselyActivatedNetwork]:
    cube, best = points(network.n), share(network)
    for step in range(STEPS):
        width = WIDTHS[step % len(WIDTHS)]
        unit = rng.integers(network.s)
        u, W, b = network.u.copy(), np.array(network.W), network.b.copy()
        u[unit] += width * rng.normal()
        W[unit] += width * rng.normal(size=network.n) * (rng.random(network.n) < rng.random())
        b[unit] += width * rng.normal()
        if int(((cube @ W.T - b) > 0).sum(axis=1).max()) > k:
            continue
        candidate = SparselyActivatedNetwork(u, W, b)
        reached = share(candidate)
        if reached >= best:
            network, best = candidate, reached
    return best, network


def judge_bound(rows: Rows, shares: Sequence[float], what: str) -> Verdict:
    """Verdict on an upper bound from the share that each row reaches, with the worst network of the search."""
    verdict = bounded(range_of(shares), what)
    searched = [(share, i) for i, share in enumerate(shares) if rows[i]["model"] == SEARCHED]
    needed(Rows(rows[i] for _, i in searched), "networks found by search")
    share, i = max(searched)
    worst = f"worst network found by search: {share:.3g} (n = {rows[i]['n']}, s = {rows[i]['s']}, k = {rows[i]['k']})"
    return replace(verdict, measured=f"{verdict.measured}; {worst}")
