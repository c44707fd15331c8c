"""Overlaps by hand, recovery of a tiny network, and the judges on made-up rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.experiments import Row
from sparsact_papers.paper_a import support_recovery as experiment

TASK = {"n": 6, "s": 2, "noise": 0.0, "m": 150, "seed": 3}


def made(overlap: float, error: float, **other: object) -> Row:
    values = {"overlap": overlap, "error": error, "variance": 1.0, "chance": 0.1}
    return Row("0", "support-recovery", 1, TASK | other, values, 0.0, "", {}, {}, "")


def test_overlaps_by_hand() -> None:
    planted = SparselyActivatedNetwork([1, 1], [[1, 0, 0], [-1, 0, 0]], [0, 0])
    learned = SparselyActivatedNetwork([1], [[-1, -1, 0]], [1])  # a quarter of the cube, inside the second unit's half
    assert experiment.overlaps(planted, learned).tolist() == [0.0, 0.5]
    assert experiment.overlaps(planted, planted).tolist() == [1.0, 1.0]


def test_the_matching_is_the_best() -> None:
    one, other = (random_network(6, 4, 2, rng=np.random.default_rng(seed)) for seed in (0, 1))
    a, b = one.active(points(6)), other.active(points(6))
    index = np.array([[np.sum(p & q) / np.sum(p | q) for q in b.T] for p in a.T])
    best = max(sum(index[i, j] for i, j in enumerate(order)) for order in permutations(range(4)))
    assert experiment.overlaps(one, other).sum() == pytest.approx(best)


def test_a_tiny_network_is_recovered() -> None:
    found = experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found == experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found["overlap"] > 0.9
    assert found["overlap"] > found["chance"]
    assert found["error"] < 0.01 * found["variance"]
