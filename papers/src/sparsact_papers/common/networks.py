"""Networks of paper A whose spectra are known: drawn at random, and the worst that are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.constructions import extremal, random_network
from sparsact.fourier import walsh_hadamard
from sparsact.fourier.networks import values_on_the_cube
from sparsact.fourier.spectrum import Spectrum
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.claims import Verdict, bounded, needed
from sparsact_papers.intervals import range_of
from sparsact_papers.results import Rows, Scale

NETWORK_STREAM, DENSE_STREAM = 1, 2
EXTREMAL: Final = "extremal"


def network_of(model: str, n: int, s: int, k: int, seed: int) -> SparselyActivatedNetwork:
    """The network of a task: k is the sparsity of all but "parity" and "dense", which takes its B from that of k."""
    if model == "parity":
        return with_unit_scale(zigzag(np.arange(n), n))
    if model == "copies":
        return pairs(n, k)
    if model == EXTREMAL:
        network = extremal(n - 1, k, 1.0)
        return SparselyActivatedNetwork(network.u, sp.csr_array(network.W).toarray(), network.b)
    sparse = with_unit_scale(random_network(n, s, k, rng=np.random.default_rng([seed, NETWORK_STREAM])))
    if model == "sparse":
        return sparse
    if model == "dense":
        return dense_network(n, s, sparse.scale().B, rng=np.random.default_rng([seed, DENSE_STREAM]))
    raise ValueError(f"`model` must be sparse, dense, parity, copies or {EXTREMAL}; got {model!r}.")


def extremal_tasks(inputs: Sequence[int], sparsities: Sequence[int]) -> Iterator[dict[str, int | str]]:
    """The networks whose weight above degree n - 1 is the largest, all of it at degree n."""
    for n, k in product(inputs, sparsities):
        yield {"model": EXTREMAL, "n": n, "s": k * 2**n, "k": k, "seed": 0}


def with_unit_scale(network: SparselyActivatedNetwork) -> SparselyActivatedNetwork:
    """The network with output weights divided by its W."""
    return SparselyActivatedNetwork(network.u / network.scale().W, network.W, network.b)


def dense_network(n: int, s: int, B: float, *, rng: np.random.Generator) -> SparselyActivatedNetwork:
    """Units of random direction and norm 1, random sign, and thresholds spread over [-B, B]: about half are active."""
    W = rng.normal(size=(s, n))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    b = rng.uniform(-1, 1, s)
    return SparselyActivatedNetwork(rng.choice([-1.0, 1.0], s), W, b * B / np.abs(b).max())


def zigzag(subset: NDArray[np.intp], n: int) -> SparselyActivatedNetwork:
    """The character of a subset as a dense layer: |S| + 1 units, all of them functions of the sum over S.

    The first unit gives the value at sum -|S|, with slope of that value; each later one turns the slope round.
    """
    p = len(subset)
    W = np.zeros((p + 1, n))
    W[:, subset] = 1
    signs = [(-1.0) ** (p + j) for j in range(p + 1)]
    u = np.array([signs[0], *(2 * sign for sign in signs[1:])])
    return SparselyActivatedNetwork(u, W, np.array([-p - 1, *range(-p, p, 2)], dtype=np.float64))


def pairs(n: int, k: int) -> SparselyActivatedNetwork:
    """Sum of k copies of relu(x_1 + 1) - relu(1 - x_1) = 2 x_1: 2 k units, k of them active at every point."""
    W = np.zeros((2 * k, n))
    W[:, 0] = np.tile([1.0, -1.0], k)
    return SparselyActivatedNetwork(np.tile([1.0, -1.0], k), W, -np.ones(2 * k))


def spectrum_of(network: SparselyActivatedNetwork) -> Spectrum:
    """All coefficients, from the table of values; one route for every network, so that times compare."""
    table = values_on_the_cube(network.u, np.asarray(network.W), network.b)
    return Spectrum.from_coefficients(walsh_hadamard(table, overwrite=True))


LEAST_SHARE: Final = 1e-8  # below it a share is rounding


def tails(rows: Rows) -> Rows:
    """A row for each degree with a share of the variance above it."""
    return Rows(
        row.with_values(degree=d, share=share)
        for row in rows
        for d, share in enumerate(row["tail_share"])
        if share > LEAST_SHARE
    )


SEARCHED: Final = "searched"
SPARSITIES: Final = (1, 2, 4)
SEARCH_STREAM: Final = 6
N_SEARCHES: Final = {Scale.SMOKE: 1, Scale.QUICK: 3, Scale.FULL: 3}
N_RANDOM, STEPS = 3, 1000  # random starts; steps from each start
WIDTHS: Final = (1.0, 0.3, 0.1, 0.03, 0.01)  # of the steps, in turn
Share = Callable[[SparselyActivatedNetwork], float]


def tasks(scale: Scale, inputs: Sequence[int], s: int, n_seeds: int, searched: int) -> Iterator[dict[str, int | str]]:
    """Sparse networks of every k, the copies that attain the average sensitivity, and the searched ones."""
    for n, k in product(inputs, SPARSITIES):
        for seed in range(n_seeds):
            yield {"model": "sparse", "n": n, "s": s, "k": k, "seed": seed}
        yield {"model": "copies", "n": n, "s": 2 * k, "k": k, "seed": 0}
    for k, seed in product(SPARSITIES[:1] if scale is Scale.SMOKE else SPARSITIES, range(N_SEARCHES[scale])):
        yield {"model": SEARCHED, "n": searched, "s": 2 * k, "k": k, "seed": seed}


def worst_network(
    n: int, s: int, k: int, seed: int, share: Share, *known: SparselyActivatedNetwork
) -> SparselyActivatedNetwork:
    """The network of s units, at most k of them active, with the largest share of a bound that the search finds.

    It starts from random networks, and from ``known`` ones of fewer units, with units that are off everywhere.
    """
    rng = np.random.default_rng([seed, SEARCH_STREAM])
    starts = [pairs(n, k)] if s == 2 * k else []
    starts += [with_unit_scale(random_network(n, s, k, rng=rng)) for _ in range(N_RANDOM)]
    for network in known:
        W = np.vstack([np.asarray(network.W), np.zeros((s - network.s, n))])
        starts.append(
            SparselyActivatedNetwork(np.resize(network.u, s), W, np.append(network.b, np.ones(s - network.s)))
        )
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
