"""Hyperplane LSH: patterns and cells against definitions."""

import numpy as np
import pytest

from sparsact_papers.paper_b.hyperplane_buckets import DIMENSION, cells, measure, patterns

SIZES = {"n_train": 700, "n_test": 90, "seed": 4}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).uniform(-1, 1, (400, DIMENSION))


@pytest.mark.parametrize("offset", ["none", "uniform"])
def test_hyperplanes_are_nested(points, offset):
    (few,), (more,) = (patterns(m, 4, points, offset=offset) for m in (5, 6))
    assert np.array_equal(more % 32, few)
    assert len(np.unique(more)) > len(np.unique(few))


def test_patterns_through_the_origin_belong_to_rays(points):
    central, scaled = patterns(7, 4, points, 0.01 * points, offset="none")
    assert np.array_equal(central, scaled)
    opposite = patterns(7, 4, -points, offset="none")[0]
    assert np.array_equal(opposite, 127 - central)
    shifted, scaled = patterns(7, 4, points, 0.01 * points, offset="uniform")
    assert (shifted != scaled).any()
    assert len(np.unique(scaled)) < len(np.unique(shifted))  # near the origin few hyperplanes pass


@pytest.mark.parametrize(("m", "d"), [(1, 2), (3, 2), (5, 2), (4, 3)])
def test_cells_match_random_points(m, d):
    rng = np.random.default_rng([m, d])
    normals, shifts = rng.normal(size=(m, d)), rng.normal(size=m)
    X = 1e3 * rng.standard_cauchy((200_000, d)) ** 3  # near and far
    X = np.concatenate([X, rng.normal(0, 3, (200_000, d))])
    for through_origin in (True, False):
        signs = X @ normals.T + (0 if through_origin else shifts) > 0
        assert len(np.unique(signs @ 2 ** np.arange(m))) == cells(m, d, through_origin=through_origin)


def test_cells_of_the_experiment():
    """All sign patterns of up to 8 hyperplanes; of 9, all but one pattern, and through the origin its opposite."""
    assert [cells(m, 8, through_origin=True) for m in (5, 8, 9)] == [2**5, 2**8, 2**9 - 2]
    assert [cells(m, 8, through_origin=False) for m in (8, 9)] == [2**8, 2**9 - 1]


def test_measure_is_deterministic_and_consistent():
    task = {"model": "LSH", "target": "hypercube", "offset": "none", "n_units": 512, "epochs": 0, **SIZES}
    values = measure(**task)
    assert values == measure(**task)
    assert values["n_trained"] <= values["n_non_empty"] <= values["n_cells"] == 510
    assert values["flops"] == 9 * 2 * 8
    assert 0 < values["missed"] < 1
    assert values["linear_mse"] < values["variance"]
    trained = measure(**task | {"epochs": 2})
    same = ("variance", "linear_mse", "missed", "n_non_empty")
    assert all(trained[name] == values[name] for name in same)
    # 44 steps of 1e-5 / sqrt(0.1) at most: the scalars are next to their start, 0.
    raw = values["variance"]
    assert trained["mse"] == pytest.approx(raw, rel=0.1)


def test_dense_layer_beats_the_line():
    task = {"model": "dense ReLU", "target": "hypercube", "offset": "uniform", "n_units": 64, "epochs": 0}
    values = measure(**task, n_train=4000, n_test=1000, seed=0)
    assert values["mse"] < 0.9 * values["linear_mse"]
    assert values["flops"] == 64 * (2 * DIMENSION + 1 + 2)


def test_forward_pass_costs():
    task = {"model": "LSH", "target": "polynomial", "n_units": 64, "epochs": 0, **SIZES}
    costs = [measure(**task, offset=offset)["flops"] for offset in ("none", "uniform")]
    assert costs == [6 * 16, 6 * 17]
