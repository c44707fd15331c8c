"""Networks of the papers, and random ones of every kind of weights, for tests."""

import numpy as np

from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork

KINDS = ("integers", "eighths", "tenths", "reals", "wide", "faint", "far", "subnormal", "enormous", "alike")


def index(b):
    """Index_b of paper A: b address bits, 2**b data bits."""
    addresses = bits_to_signs(np.arange(2**b)[:, None] >> np.arange(b) & 1)
    return SparselyActivatedNetwork(np.ones(2**b), np.hstack([addresses, np.eye(2**b) / 2]), np.full(2**b, b - 0.5))


def lifted_parity(m):
    """Units of the parity of m bits on the quadratic lift, one for each possible sum a."""
    a = np.arange(-m, m + 1, 2)
    W = np.full((m + 1, m, m), -1.0)
    W[:, np.arange(m), np.arange(m)] = 2 * a[:, None]
    return SparselyActivatedNetwork(np.ones(m + 1), W.reshape(m + 1, -1), m + a**2 - 0.5)


def random_network(kind, s, n, rng):
    """Random weights with many ties, and thresholds low enough that units are on somewhere."""
    W, b = rng.integers(-3, 4, (s, n)).astype(float), rng.integers(-2, 5, s).astype(float)
    if kind == "eighths":
        W, b = W / 8, b / 8
    if kind == "tenths":  # 0.1 + 0.2 is not 0.3: rounding decides signs wrongly
        W, b = W * 0.1, b * 0.1
    if kind == "reals":
        W, b = rng.normal(size=(s, n)), rng.normal(size=s) + 1
    if kind == "wide":  # a million steps of the smallest: beyond what a solver's tolerance can tell
        W, b = W * 1e6 + rng.integers(-1, 2, (s, n)), b * 1e6
    if kind == "faint":  # weights that a solver would drop
        W, b = rng.choice([1e-12, 1.0, -1.0, -1e-12, 0.0], (s, n)), rng.choice([0, 1.0, 1e-12], s)
    if kind == "far":  # more digits apart than two float64 hold together
        W, b = rng.choice([1e-45, 1.0, -1.0, -1e-45, 0.0], (s, n)), rng.choice([0, 1.0, 1e-45], s)
    if kind == "subnormal":
        W, b = W * 5e-324, b * 5e-324
    if kind == "enormous":
        W, b = W * 1e306, b * 1e306
    if kind == "alike":
        W = W[:, rng.integers(0, min(2, n), n)] * rng.choice([-1, 1], n)
    return SparselyActivatedNetwork(rng.normal(size=s), W, b)
