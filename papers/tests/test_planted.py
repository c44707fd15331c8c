"""Planted networks: membership, points that are new, and the same network for every number of points."""

import numpy as np
import pytest

from sparsact.hypercube import points
from sparsact_papers.common import planted
from sparsact_papers.common.real_data import absent

TABLE = "tabular/pol.data.csv.gz"

FAMILIES = [
    (planted.ROTATED, 11, 8, 2),
    (planted.CAPS, 7, 5, 2),
    (planted.CELLS, 13, 6, 1),
    (planted.MEMBERS, 12, 6, 2),
    (planted.REAL, 26, 7, 1),
]


@pytest.mark.parametrize(("family", "n", "s", "k"), FAMILIES, ids=[each[0] for each in FAMILIES])
def test_networks_belong_to_the_class_and_test_points_are_new(family, n, s, k):
    if family == planted.REAL and absent(TABLE):
        pytest.skip(absent(TABLE))
    network, X, new = planted.sample(family, n, s, k, 300, 5, 200)
    assert (network.s, network.n) == (s, n)
    assert X.shape == (300, n)
    assert 0 < len(new) <= 200
    assert max(network.n_active(X).max(), network.n_active(new).max()) <= k
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in new}
    again, fewer, _ = planted.sample(family, n, s, k, 100, 5, 10)
    np.testing.assert_array_equal(fewer, X[:100])
    np.testing.assert_array_equal(np.asarray(again.W), np.asarray(network.W))


def test_sums_of_gates_are_sparse_on_the_whole_cube():
    network = planted.sum_of_gated(9, 12, 3, np.random.default_rng(2))
    assert network.n_active(points(9)).max() == 3


def test_random_members_leave_out_few_points():
    X = np.random.default_rng(4).normal(size=(3000, 8))
    network = planted.random_member(X, 9, 2, np.random.default_rng(5))
    assert np.mean(network.n_active(X) > 2) <= planted.LEFT_OUT
    np.testing.assert_allclose(np.linalg.norm(np.asarray(network.W), axis=1), 1)


def test_one_of_each_opposite_pair_at_most_is_active_anywhere():
    network = planted.opposite_pairs(6, 3, np.random.default_rng(0), correlation=0.4)
    active = network.active(np.random.default_rng(1).normal(size=(500, 6)))
    assert not (active[:, :3] & active[:, 3:]).any()
