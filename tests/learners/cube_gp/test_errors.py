"""What CubeGPRegressor refuses, and what it says then."""

import numpy as np
import pytest
from learners.cube_gp.test_regressor import PRODUCT, M, N, fixed, table

from sparsact import CubeGPRegressor, CubeKernel, LatentRegressor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": lambda X: np.where(X[3, 1] == X, X, 0.5)}, "0.5"),
        ({"X": lambda X: np.where(np.arange(N) == 2, np.nan, X)}, "nan at column 2, row 0"),
        ({"y": lambda y: np.where(np.arange(M) == 4, np.nan, y)}, "row 4"),
        ({"sample_weight": lambda y: np.zeros(M)}, "at least one non-zero"),
        ({"sample_weight": lambda y: -np.ones(M)}, "[Nn]egative"),
        ({"kernel": "sites"}, "names 'sites'"),
        ({"kernel": CubeKernel.product(1.0, [0.5])}, "1 coordinates and `X` 5 columns"),
        ({"noise_variance": 0.0}, "noise_variance"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y, _ = table(15)
    options = {name: value for name, value in change.items() if name in ("kernel", "noise_variance")}
    X = change.get("X", lambda X: X)(X)
    weights = change["sample_weight"](y) if "sample_weight" in change else None
    with pytest.raises(ValueError, match=message):
        CubeGPRegressor(domain="cube", **options).fit(X, change.get("y", lambda y: y)(y), weights)


def test_wrong_questions_are_named():
    X, y, _ = table(16)
    model = fixed(PRODUCT).fit(X, y)
    with pytest.raises(ValueError, match="names coordinate 7"):
        model.standard_errors([(7,)])
    with pytest.raises(ValueError, match="holds 6 parameters"):
        model.log_marginal_likelihood(np.zeros(3))
    with pytest.raises(ValueError, match="confidence"):
        model.confidence_intervals(confidence=1.0)
    with pytest.raises(ValueError, match="column 1, row 0"):
        model.predict([[1, 3, 1, 1, 1]])


@pytest.mark.parametrize("model", [fixed(PRODUCT), LatentRegressor("gp", degree=1)])
def test_a_matrix_without_memory_is_refused(model, monkeypatch):
    """The remedy is one that the model has: a measurement model has no inducing points."""
    monkeypatch.setattr("sparsact.learners.gp.cholesky.has_room", lambda nbytes: nbytes < 1_000)
    X, y, _ = table(17)
    with pytest.raises(
        ValueError,
        match=r"need 0\.0 GiB, more than is free: pass fewer rows, or lower max_inducing",
    ):
        model.fit(X, y)
