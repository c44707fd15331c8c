"""Every estimator that is fitted to a data frame is saved with the names of its columns, and predicts by them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import sparsact
from sparsact import (
    CubeGPRegressor,
    CubeKernel,
    DSMRegressor,
    LatentRegressor,
    LettersRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    SparseFourierRegressor,
    SparselyActivatedClassifier,
    SparselyActivatedRegressor,
)

ESTIMATORS = [
    CubeGPRegressor(random_state=0),
    CubeGPRegressor(CubeKernel.product(1.0, [0.5, 0.6, 0.7, 0.8]), optimizer=None),
    CubeGPRegressor("product", domain="real", optimizer=None),
    DSMRegressor(12, 5, random_state=0),
    LatentRegressor(degree=1, random_state=0),
    LatentRegressor("gp", degree=1, random_state=0),
    LettersRegressor(random_state=0),
    LowDegreeClassifier(degree=1),
    LowDegreeRegressor(degree=2),
    LowDegreeRegressorCV(degrees=(0, 1), alphas=(0.0,), cv=3),
    LSHClassifier(2, degree=1, directions="principal", random_state=0),
    LSHRegressor(2, degree=1, directions="principal", n_stages=1, random_state=0),
    SparseFourierRegressor(degree=2),
    SparselyActivatedClassifier(n_units=4, n_restarts=1, max_iter=5, random_state=0),
    SparselyActivatedRegressor(n_units=4, n_restarts=1, max_iter=5, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_a_file_knows_the_names_of_the_columns(estimator, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (61, 4)), columns=["d", "b", "c", "a"])
    y = frame["a"] - 2.0 * frame["b"] * frame["c"] + 0.1 * rng.normal(size=61)
    estimator = clone(estimator)
    estimator.fit(frame, np.where(y > 0, "high", "low") if type(estimator).__name__.endswith("Classifier") else y)
    estimator.save(tmp_path / "model.sparsact")
    loaded = sparsact.load(tmp_path / "model.sparsact")
    assert loaded.feature_names_in_.tolist() == ["d", "b", "c", "a"]
    np.testing.assert_array_equal(loaded.predict(frame), estimator.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["a", "b", "c", "d"]])


def test_no_estimator_is_left_out():
    public = [getattr(sparsact, name) for name in sparsact.__all__]
    saved = {one for one in public if isinstance(one, type) and hasattr(one, "fit") and hasattr(one, "save")}
    assert saved == {type(estimator) for estimator in ESTIMATORS}
