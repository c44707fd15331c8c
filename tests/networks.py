"""Networks that tests of several parts share, and their sparsity by brute force."""

from __future__ import annotations

import numpy as np

from sparsact import SparselyActivatedNetwork
from sparsact.hypercube import points


def index(b):
    """Index_b (paper A, Section 1): the bit that the first b bits number, 0 or 1; 1-sparse, B = b - 1/2."""
    addresses = points(b).astype(float)
    selected = np.eye(2**b) / 2
    return SparselyActivatedNetwork(np.ones(2**b), np.hstack([addresses, selected]), np.full(2**b, b - 0.5))


def parity(p, n):
    """The parity of the first p of n variables as a junta (Theorem 13): 2^p units, one active everywhere."""
    corners = points(p).astype(float)
    W = np.zeros((2**p, n))
    W[:, :p] = corners
    return SparselyActivatedNetwork(corners.prod(axis=1), W, np.full(2**p, p - 1.0))


def copies(k, n=1):
    """k copies of relu(x_0 + 1) - relu(1 - x_0) = 2 x_0: k units active everywhere, W = 1."""
    W = np.zeros((2 * k, n))
    W[:k, 0], W[k:, 0] = 1, -1
    return SparselyActivatedNetwork(np.repeat([1.0, -1.0], k), W, -np.ones(2 * k))


def random(n, s, rng, threshold=0.0):
    """Random weights; ``threshold`` switches units off."""
    return SparselyActivatedNetwork(
        rng.choice([1.0, -1.0], s), rng.normal(size=(s, n)), threshold * np.sqrt(n) + rng.normal(size=s)
    )


def most_active(network):
    """Most units that any point switches on, by looking at all points."""
    return int(network.n_active(points(network.n)).max())
