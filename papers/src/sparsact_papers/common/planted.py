"""Planted networks whose active sets are halfspaces of any direction, and the points at which they are k-sparse.

Points at which more than k units are active are drawn again: each network belongs to the class, exactly, under the
distribution of the points that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import gated
from sparsact.network import SparselyActivatedNetwork

Array = NDArray[np.float64]
Generator = np.random.Generator
ROTATED, CAPS, CELLS = "rotated gates", "caps of a sphere", "halfspace cells"
MEMBERS, REAL = "random members", "rows of pol"
N_CENTRES, SPREAD = 12, 0.35  # clusters of the points of random members; their standard deviation in each direction
CHUNK: Final = 4096  # points drawn at once: a larger sample begins as a smaller one
TRIES: Final = 2000
LEFT_OUT: Final = 0.1  # most points at which a random member may have more than k active units: they are left out
TEST_POINTS: Final = 4000
PAIR_THRESHOLD: Final = 0.25  # of opposite pairs
POINTS, NEW_POINTS = 2, 4  # streams of a seed


def sample(
    family: str, n: int, s: int, k: int, m: int, seed: int, n_new: int = TEST_POINTS
) -> tuple[SparselyActivatedNetwork, Array, Array]:
    """A network of a family, m points to learn from, and ``n_new`` other points to test on.

    The network is the same for every m, and the points begin alike. Inputs of ``REAL`` are rows of the table: there
    are no more points than the table has rows.
    """
    draw, network = _drawn(family, n, s, k, seed)
    X = _first(m, draw, network, k, np.random.default_rng([seed, POINTS]))
    new = _first(n_new + m, draw, network, k, np.random.default_rng([seed, POINTS if family == REAL else NEW_POINTS]))
    seen = {row.tobytes() for row in X}
    return network, X, np.array([row for row in new if row.tobytes() not in seen][:n_new])


Draw = Callable[[Generator], Iterator[Array]]  # chunks of points, without end or until the table ends


def _drawn(family: str, n: int, s: int, k: int, seed: int) -> tuple[Draw, SparselyActivatedNetwork]:
    rng = np.random.default_rng([seed, 1])
    if family == ROTATED:
        network = sum_of_gated(n, s, k, rng)
        turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
        rotated = SparselyActivatedNetwork(network.u, network.W @ turn, network.b)
        return _endless(lambda points: points.choice([-1.0, 1.0], (CHUNK, n)) @ turn), rotated
    if family == CAPS:
        return _endless(lambda points: on_sphere(points.normal(size=(CHUNK, n)))), halfspaces(n, s, 1.0, rng)
    if family == CELLS:
        height = float(np.sqrt(2 * np.log(max(0.4 * s / k, 1.0))))
        return _endless(lambda points: points.normal(size=(CHUNK, n))), halfspaces(n, s, height, rng)
    if family == MEMBERS:
        centres = rng.normal(size=(N_CENTRES, n))
        near = _endless(
            lambda points: centres[points.integers(N_CENTRES, size=CHUNK)] + SPREAD * points.normal(size=(CHUNK, n))
        )
        return near, random_member(np.concatenate([next(near(rng)) for _ in range(4)]), s, k, rng)
    if family == REAL:
        table = table_inputs()
        return (
            lambda points: iter(np.array_split(table[points.permutation(len(table))], 4)),
            random_member(table, s, k, rng),
        )
    raise ValueError(f"unknown family {family!r} of planted networks.")


def _endless(chunk: Callable[[Generator], Array]) -> Draw:
    def draw(rng: Generator) -> Iterator[Array]:
        while True:
            yield chunk(rng)

    return draw


def _first(m: int, draw: Draw, network: SparselyActivatedNetwork, k: int, rng: Generator) -> Array:
    kept: list[Array] = []
    for chunk in draw(rng):
        kept.append(chunk[network.n_active(chunk) <= k])
        if sum(map(len, kept)) >= m:
            break
    return np.concatenate(kept)[:m]


def on_sphere(X: Array) -> Array:
    """Points moved to the sphere of radius sqrt(n)."""
    return np.asarray(X * (np.sqrt(X.shape[1]) / np.linalg.norm(X, axis=1, keepdims=True)))


def sum_of_gated(n: int, s: int, k: int, rng: Generator) -> SparselyActivatedNetwork:
    """Sum of k networks of Appendix A, each of s / k units (a power of two), with its own address columns and signs."""
    n_units = s // k
    bits = n_units.bit_length() - 1
    order, parts = rng.permutation(n), []
    for part in range(k):
        one = gated(rng.normal(size=(n_units, n - bits)) / np.sqrt(n), bits)
        W = np.empty_like(one.W)
        W[:, np.roll(order, -part * bits)] = one.W
        parts.append((rng.choice([-1.0, 1.0], n_units), W, one.b))
    return SparselyActivatedNetwork(*map(np.concatenate, zip(*parts, strict=True)))


def halfspaces(n: int, s: int, height: float, rng: Generator) -> SparselyActivatedNetwork:
    """Units of random directions, signs and sizes, with thresholds near a height."""
    W = rng.normal(size=(s, n))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    return SparselyActivatedNetwork(_outputs(s, rng), W, height + rng.uniform(-0.1, 0.1, s))


def random_member(X: Array, s: int, k: int, rng: Generator) -> SparselyActivatedNetwork:
    """Random units, each rejected if with it more than k are active at over a tenth of the points, until there are s.

    The normal of a unit is the difference of two points. It is active at a random share of them, of the order of k / s,
    which falls with the number of tries.
    """
    W, b, active = np.zeros((s, X.shape[1])), np.zeros(s), np.zeros(len(X), dtype=np.int64)
    found = 0
    for number in range(TRIES):
        one, other = X[rng.integers(len(X), size=2)]
        length = float(np.linalg.norm(one - other))
        if not length:
            continue
        values = X @ (one - other) / length
        share = (0.4 + rng.random()) * (1 - number / TRIES) * min(k / s, 0.25)
        threshold = float(np.quantile(values, 1 - share))
        with_it = active + (values > threshold)
        if np.mean(with_it > k) > LEFT_OUT * (found + 1) / s:
            continue
        W[found], b[found], active = (one - other) / length, threshold, with_it
        found += 1
        if found == s:
            return SparselyActivatedNetwork(_outputs(s, rng), W, b)
    raise ValueError(f"{found} of {s} units found in {TRIES} tries; pass fewer units or a larger k.")


def _outputs(s: int, rng: Generator) -> Array:
    return np.asarray(rng.choice([-1.0, 1.0], s) * rng.uniform(0.7, 1.3, s))


def table_inputs() -> Array:
    """Distinct rows of the table pol (telephone exchanges, 26 columns), each column standardised."""
    from sparsact_papers.data.files import load_tabular

    X = np.unique(load_tabular("pol").X, axis=0)
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def opposite_pairs(
    n: int, k: int, rng: Generator, *, correlation: float = 0.0, outputs: Array | None = None
) -> SparselyActivatedNetwork:
    """Pairs of units behind opposite halfspaces, k of them: one of each pair at most is active, at any point.

    Parameters
    ----------
    n, k : int
    rng : Generator
    correlation : float
        Correlation of the normals of any two pairs: 1 if all pairs are alike.
    outputs : ndarray of shape (2 k,), optional
        Output weights, first of the pairs' one side and then of the other; random signs and sizes by default.

    Returns
    -------
    network : SparselyActivatedNetwork
        A network of 2 k units, with normals of norm 1.
    """
    common, own = rng.normal(size=(1, n)), rng.normal(size=(k, n))
    W = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    u = _outputs(2 * k, rng) if outputs is None else outputs
    return SparselyActivatedNetwork(u, np.concatenate([W, -W]), np.full(2 * k, PAIR_THRESHOLD))
