"""Overlaps by hand, recovery of a tiny network."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sparsact.constructions import random_network
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.paper_a import support_recovery as experiment

TASK = {"family": experiment.CAPS, "n": 6, "s": 2, "noise": 0.0, "m": 200, "seed": 3}


def test_overlaps_by_hand() -> None:
    planted = SparselyActivatedNetwork([1, 1], [[1, 0, 0], [-1, 0, 0]], [0, 0])
    learned = SparselyActivatedNetwork([1], [[-1, -1, 0]], [1])  # a quarter of the cube, inside the second unit's half
    assert experiment.overlaps(planted, learned, points(3)).tolist() == [0.0, 0.5]
    assert experiment.overlaps(planted, planted, points(3)).tolist() == [1.0, 1.0]
    seen = points(3)[points(3)[:, 0] < 0]  # where the first unit is never active: it does not count
    assert experiment.overlaps(planted, learned, seen).tolist() == [0.5]


def test_the_matching_is_the_best() -> None:
    one, other = (random_network(6, 4, 2, rng=np.random.default_rng(seed)) for seed in (0, 1))
    a, b = one.active(points(6)), other.active(points(6))
    index = np.array([[np.sum(p & q) / np.sum(p | q) for q in b.T] for p in a.T])
    best = max(sum(index[i, j] for i, j in enumerate(order)) for order in permutations(range(4)))
    assert experiment.overlaps(one, other, points(6)).sum() == pytest.approx(best)


def test_a_tiny_network_is_recovered() -> None:
    found = experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found == experiment.measure(**TASK)  # type: ignore[arg-type]
    assert found["overlap"] > 0.9
    assert found["overlap"] > found["chance"]
    assert found["error"] < 0.01 * found["variance"]
