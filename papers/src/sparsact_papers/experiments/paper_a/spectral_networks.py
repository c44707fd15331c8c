"""The networks whose spectra are measured, all of scale W = 1, so that weights and sensitivities compare.

"sparse" is :func:`sparsact.constructions.random_network`, sparse by proof. "dense" has as many units, of the same W
and B, without gates. "parity" is a dense network that oscillates: the character of all n inputs. "copies" attains
AS = 4 k^2 W^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import random_network
from sparsact.fourier import walsh_hadamard
from sparsact.fourier.networks import values_on_the_cube
from sparsact.fourier.spectrum import Spectrum
from sparsact.network import SparselyActivatedNetwork

NETWORK_STREAM, DENSE_STREAM = 1, 2


def network_of(model: str, n: int, s: int, k: int, seed: int) -> SparselyActivatedNetwork:
    """The network of a task. k is the sparsity of "sparse" and "copies"; a "dense" one takes its B from that of k."""
    if model == "parity":
        return with_unit_scale(parity_of_all(n))
    if model == "copies":
        return pairs(n, k)
    sparse = with_unit_scale(random_network(n, s, k, rng=np.random.default_rng([seed, NETWORK_STREAM])))
    if model == "sparse":
        return sparse
    if model == "dense":
        return dense_network(n, s, sparse.scale().B, rng=np.random.default_rng([seed, DENSE_STREAM]))
    raise ValueError(f"`model` must be sparse, dense, parity or copies; got {model!r}.")


def with_unit_scale(network: SparselyActivatedNetwork) -> SparselyActivatedNetwork:
    """The network with output weights divided by its W."""
    return SparselyActivatedNetwork(network.u / network.scale().W, network.W, network.b)


def dense_network(n: int, s: int, B: float, *, rng: np.random.Generator) -> SparselyActivatedNetwork:
    """Units of random direction and norm 1, random sign, and thresholds spread over [-B, B]: about half are active."""
    W = rng.normal(size=(s, n))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    b = rng.uniform(-1, 1, s)
    return SparselyActivatedNetwork(rng.choice([-1.0, 1.0], s), W, b * B / np.abs(b).max())


def parity_of_all(n: int) -> SparselyActivatedNetwork:
    """(-1)^n times the product of all signs: n + 1 units whose sum zigzags in the sum of the inputs."""
    u: NDArray[np.float64] = 2 * (-1.0) ** np.arange(n + 1, dtype=np.float64)
    u[0] = 1.0
    knots = np.append(-n - 1.0, np.arange(-n, n, 2))  # the first unit lifts the zigzag to 1 at its left end
    return SparselyActivatedNetwork(u, np.ones((n + 1, n)), knots)


def pairs(n: int, k: int) -> SparselyActivatedNetwork:
    """Copies, k of them, of relu(x_1 + 1) - relu(1 - x_1) = 2 x_1, of which k units are active at every point."""
    W = np.zeros((2 * k, n))
    W[:, 0] = np.tile([1.0, -1.0], k)
    return SparselyActivatedNetwork(np.tile([1.0, -1.0], k), W, -np.ones(2 * k))


def spectrum_of(network: SparselyActivatedNetwork) -> Spectrum:
    """All coefficients, from the table of values; one route for every network, so that times compare."""
    table = values_on_the_cube(network.u, np.asarray(network.W), network.b)
    return Spectrum.from_coefficients(walsh_hadamard(table, overwrite=True))
