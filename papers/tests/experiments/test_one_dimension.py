"""Buckets of a line: models against each other."""

import numpy as np

from sparsact_papers.common.bucket_scalars import bucket_lines
from sparsact_papers.paper_b.one_dimension import measure

SIZES = {"n_train": 3000, "n_test": 500, "seed": 2}


def test_bucket_lines_are_least_squares():
    rng = np.random.default_rng(0)
    bucket, x, y = rng.integers(3, size=41), rng.uniform(size=41), rng.normal(size=41)
    bucket[0] = 4  # alone there
    heights, slopes = bucket_lines(bucket, x, y, 6)
    for j in range(3):
        expected = np.polynomial.Polynomial.fit(x[bucket == j], y[bucket == j], 1).convert().coef
        np.testing.assert_allclose([heights[j], slopes[j]], expected)
    assert (heights[4], slopes[4]) == (y[0], 0)
    assert (heights[5], slopes[5]) == (0, 0)


def test_models_of_a_draw_share_target_and_points():
    tasks = [("constants", 16, 0), ("constants", 16, 3), ("lines", 16, 0), ("dense ReLU", 16, 0)]
    constants, trained, lines, dense = (
        measure(model=model, n_units=n, epochs=epochs, **SIZES) for model, n, epochs in tasks
    )
    for other in (trained, lines, dense):
        assert (other["variance"], other["linear_mse"]) == (constants["variance"], constants["linear_mse"])
    assert lines["mse"] < 0.1 * constants["mse"]
    assert constants["mse"] < 0.1 * constants["variance"] < trained["mse"]  # 282 steps go nowhere
    assert dense["mse"] < constants["linear_mse"]
    assert constants == measure(model="constants", n_units=16, epochs=0, **SIZES)


def test_a_line_is_learned_by_no_dense_layer_worse_than_by_the_best_line():
    two = measure(model="dense ReLU", n_units=2, epochs=0, **SIZES)
    many = measure(model="dense ReLU", n_units=64, epochs=0, **SIZES)
    assert many["mse"] < 1e-2 * min(two["mse"], two["linear_mse"])
