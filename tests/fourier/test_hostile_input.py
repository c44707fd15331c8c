"""Functions that misbehave, and numbers beyond floats, are refused by the estimates and the exact units."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparsact.fourier import (
    Halfspace,
    Neuron,
    Spectrum,
    estimate_average_sensitivity,
    estimate_influences,
    estimate_weight_by_degree,
    estimate_within,
    folding_matrix,
)
from sparsact.network import SparselyActivatedNetwork


def rng():
    return np.random.default_rng(0)


def test_a_function_cannot_change_its_points():
    def clipped(X):
        X[X < 0] = 0
        return X.sum(axis=1)

    with pytest.raises(ValueError, match="read-only"):
        estimate_average_sensitivity(clipped, 5, n_samples=10, rng=rng())


def test_what_is_no_function():
    for estimate in (estimate_average_sensitivity, estimate_influences, estimate_weight_by_degree):
        with pytest.raises(TypeError, match="must be callable"):
            estimate([1, 1, 1, -1], 2, n_samples=10, rng=rng())
        with pytest.raises(ValueError, match="one value per row"):
            estimate(lambda X: 1.0, 2, n_samples=10, rng=rng())
        with pytest.raises(ValueError, match="must be real"):
            estimate(lambda X: 1j * X[:, 0], 2, n_samples=10, rng=rng())


def test_complex_points_are_no_signs():
    with pytest.raises(ValueError, match="`X` must be real"):
        Halfspace([1, 2, 3], 0)(1j * np.ones((2, 3)))


def test_numbers_of_samples():
    def cubes(m):
        return estimate_average_sensitivity(lambda X: X.sum(axis=1) ** 3, 5, n_samples=m, rng=rng())

    assert estimate_within(1e-9, cubes, n_samples=50, most=101).n_samples == 100
    assert estimate_within(1e-9, cubes, n_samples=50, most=102).n_samples == 102
    with pytest.raises(TypeError, match="integer"):
        estimate_average_sensitivity(lambda X: X[:, 0], 5, n_samples=10, n_flips=2.5, rng=rng())
    with pytest.raises(TypeError, match="integer"):
        estimate_weight_by_degree(lambda X: X[:, 0], 5, n_samples=10, n_groups=2.5, rng=rng())
    for groups, degree, need in ((0, 2, "`n_groups` must be 1"), (3, -1, "`degree` must be 0")):
        with pytest.raises(ValueError, match=need):
            folding_matrix(groups, degree)


def test_bad_intervals_and_pools():
    one = estimate_average_sensitivity(lambda X: X[:, 0], 5, n_samples=10, rng=rng())
    for spread in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="`spread` must be a number"):
            one.bounded_interval(spread)
    with pytest.raises(ValueError, match="estimates of one thing"):
        one.pooled(estimate_influences(lambda X: X[:, 0], 5, n_samples=10, rng=rng()))


def test_a_list_that_is_too_long():
    """Three units of 26 inputs each among 100: too many coefficients, found out before any is computed."""
    W = np.zeros((3, 100))
    for j, row in enumerate(W):
        row[j : j + 26] = 1
    with pytest.raises(ValueError, match="sample instead"):
        Spectrum.of(SparselyActivatedNetwork(np.ones(3), W, np.zeros(3)))


def test_units_beyond_floats():
    for w, b in (([1e300, 1e300], 0), ([10**400], 0), ([1], -(10**400))):
        with pytest.raises(ValueError, match="scale `w` and `b` down"):
            Neuron(w, b)
        assert Neuron(w, b, Fraction).second_moment() > 0
    assert Halfspace([1e300, 1e300], 0).mean() == 0.25
    with pytest.raises(ValueError, match="in units of their common step"):
        Halfspace([3 * 10**400, 10**407], 0)
    with pytest.raises(ValueError, match="additions, too many"):
        Halfspace([1] + [200] * 20_000, 0)
