"""What a fitted regressor certifies: its rows by count, the cube by proof."""

from __future__ import annotations

import numpy as np
import pytest
from planted import index

import sparsact
from sparsact import SparselyActivatedRegressor
from sparsact.bounds import expected_active_bound
from sparsact.hypercube import points


def test_rows_and_cube(tmp_path):
    function, n = index(2)
    X = points(n)[::3]
    model = SparselyActivatedRegressor(n_restarts=0, random_state=0).fit(X, function(X))
    model.save(tmp_path / "m")
    for one in (model, sparsact.load(tmp_path / "m")):
        certificate = one.certificate_
        assert (certificate.max_active, certificate.upper, certificate.exact) == (1, 1, True)
        assert one.network_.n_active(certificate.witness[None]).tolist() == [1]
        assert sum(certificate.distribution) == len(X)
        assert "at any of the 22 rows fitted" in str(certificate)
        assert one.cube_certificate_.exact


@pytest.mark.parametrize("k", [1, 2])
def test_real_rows(k):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(70, 3)), rng.normal(size=70)
    y += np.abs(X[:, 0])
    model = SparselyActivatedRegressor(max_active=k, n_restarts=2, random_state=0).fit(X, y, np.arange(70) % 5)
    certificate = model.certificate_
    assert certificate.max_active <= k
    assert model.network_.n_active(certificate.witness[None]).tolist() == [certificate.max_active]
    assert sum(certificate.distribution) == 56
    with pytest.raises(AttributeError, match="no certificate over the cube"):
        _ = model.cube_certificate_


def test_activity_on_fresh_rows(tmp_path):
    """Signs have norm sqrt(n), real rows any; rows of weight 0 do not count. The mean over the whole cube is below."""
    rng = np.random.default_rng(1)
    X, function = rng.choice([-1.0, 1.0], size=(3000, 6)), index(2)[0]
    model = SparselyActivatedRegressor(n_restarts=0, random_state=0).fit(X, function(X), np.arange(3000) > 0)
    assert model.expected_active_bound_ == expected_active_bound(model.network_, X[1:], R=6**0.5)
    assert model.network_.n_active(points(6)).mean() <= model.expected_active_bound_ < 0.6 * model.network_.s
    weighted = SparselyActivatedRegressor(n_restarts=0, random_state=0).fit(X, function(X), np.arange(3000) % 2 + 1)
    assert weighted.expected_active_bound_ == weighted.network_.s
    model.save(tmp_path / "m")
    assert sparsact.load(tmp_path / "m").expected_active_bound_ == model.expected_active_bound_
    real = SparselyActivatedRegressor(n_restarts=0, domain="real", random_state=0).fit(X, function(X))
    assert real.expected_active_bound_ == expected_active_bound(real.network_, X)


@pytest.mark.grid
def test_activity_on_fresh_rows_of_units_that_were_sought():
    """More units are on at fresh rows than at fitted ones in some samples, and never more than the bound.

    A sample fails with probability .05 at most: 4 failures of 6 have a probability below 1e-4. A bound of all units
    would not be one.
    """
    rows = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(400, 3))
        y = np.abs(X).sum(axis=1) + 0.3 * rng.normal(size=400)
        model = SparselyActivatedRegressor(8, 2, n_restarts=2, max_iter=20, random_state=0).fit(X, y)
        fresh = model.network_.n_active(rng.normal(size=(20_000, 3))).mean()
        rows.append((model.network_.n_active(X).mean(), fresh, model.expected_active_bound_, model.network_.s))
    fitted, fresh, bound, s = np.array(rows).T
    assert (fresh > bound).sum() < 4
    assert (fresh > fitted).any()
    assert (bound < s).sum() >= 4
