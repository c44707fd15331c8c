"""Outputs of a sparse network of 1,024 units at 100,000 points, compared with dense NumPy.

The network is Index_10: n = 1034 inputs and s = 1024 units of 11 weights. NumPy computes
``np.maximum(X @ W.T - b, 0) @ u`` in blocks of rows, whose products stay in the cache. Both get the same float64 ``X``
on one thread and return equal values. Unit: seconds, medians of repeats in turns. Target: ``net(X)``, with its check of
``X``, at least 8 times as fast. Without a target: int8, which NumPy has to convert, and the number of active units.

Roofline: ``X`` read twice from memory, once to be checked, at the speed of ``X.sum()``.
"""

from __future__ import annotations

from argparse import Namespace
from statistics import median
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.program import program
from sparsact import SparselyActivatedNetwork
from sparsact.hypercube import bits_to_signs

ROWS: Final = 1024


def index_network(address: int) -> SparselyActivatedNetwork:
    """The unit of address a is on where the first inputs spell a and the input that a selects is +1."""
    s = 2**address
    units = np.arange(s)
    addresses = bits_to_signs(units[:, None] >> np.arange(address) & 1)
    W = sp.hstack([sp.csr_array(addresses, dtype=float), 0.5 * sp.eye_array(s)], format="csr")
    return SparselyActivatedNetwork(np.ones(s), W, np.full(s, address - 0.5))


def dense_values(X: NDArray[Any], W: NDArray[np.float64], b: NDArray[np.float64], u: NDArray[np.float64]) -> Any:
    """The network's values by NumPy, block of rows by block of rows."""
    blocks = (X[start : start + ROWS] for start in range(0, len(X), ROWS))
    return np.concatenate([np.maximum(block @ W.T - b, 0) @ u for block in blocks])


def measure(address: int, m: int, repeats: int) -> list[Figure]:
    """Every figure of one size."""
    net = index_network(address)
    W, X8 = net.W.toarray(), bits_to_signs(np.random.default_rng(2024).integers(0, 2, size=(m, net.n), dtype=np.int8))
    X = X8.astype(np.float64)
    times = interleaved(
        {
            "ours": lambda: net(X),
            "ours from int8": lambda: net(X8),
            "active units from int8": lambda: net.n_active(X8),
            "dense": lambda: dense_values(X, W, net.b, net.u),
            "sum of X": lambda: X.sum(),
        },
        repeats,
    )
    error = float(np.abs(net(X) - dense_values(X, W, net.b, net.u)).max())
    work = f"Index_{address} m={m:,}"
    return [
        *(Figure.of(work, f"{name}, seconds", values, "s") for name, values in times.items()),
        Figure.ratio(work, "times as fast", times["dense"], times["ours"], least=8),
        Figure.ratio(work, "from int8, times as fast", times["dense"], times["ours from int8"]),
        Figure(work, "roofline, seconds", 2 * median(times["sum of X"]), "s"),
        Check(work, "difference of values", error, "", most=0.0),
    ]


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    size = (5, 2_000) if arguments.quick else (10, 100_000)
    return measure(*size, arguments.repeats)
