"""What a fitted regressor certifies: its rows by count, the cube by proof."""

from __future__ import annotations

import numpy as np
import pytest
from planted import index

import sparsact
from sparsact import SparselyActivatedRegressor
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
