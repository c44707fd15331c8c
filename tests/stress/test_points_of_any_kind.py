"""Points in every dtype and layout, of 1 and of 1024 columns, in 1 row and in none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from grids import few_of, grid

from sparsact import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    SparselyActivatedRegressor,
)

rng = np.random.default_rng(0)
m, n = 61, 5
BITS = rng.integers(0, 2, (m, n))
SIGNS = 1 - 2 * BITS
Y = rng.normal(size=m) + 2 * SIGNS[:, 0] * SIGNS[:, 3]
TABLES = {"n_tables": 3, "degree": 1, "directions": "principal", "random_state": 0}
REGRESSORS = {
    "cells": lambda: LowDegreeRegressor(2, solver="cells"),
    "moments": lambda: LowDegreeRegressor(2, solver="moments"),
    "kernel": lambda: LowDegreeRegressor(2, solver="kernel"),
    "folds": lambda: LowDegreeRegressorCV((1, 2)),
    "real": lambda: LowDegreeRegressor(2, domain="real"),
    "buckets": lambda: LSHRegressor(**TABLES, n_stages=1),
    "masks": lambda: DSMRegressor(16, 4, random_state=0),
    "trained": lambda: DSMRegressor(16, 4, solver="rmsprop", epochs=2, random_state=0),
    "network": lambda: SparselyActivatedRegressor(4, n_restarts=1, max_iter=8, random_state=0),
}
QUICK = [name for name in REGRESSORS if name != "network"]  # a network takes a second and a half
CLASSIFIERS = {"classes": LowDegreeClassifier, "classes of buckets": lambda: LSHClassifier(**TABLES)}
EVERY = REGRESSORS | CLASSIFIERS
TAKE_SPARSE = ("cells", "moments", "kernel", "folds", "real", "classes")
TAKE_MISSING = ("buckets", "classes of buckets")


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "int8": lambda X: X.astype(np.int8),
    "int16": lambda X: X.astype(np.int16),
    "float16": lambda X: X.astype(np.float16),
    "float32": lambda X: X.astype(np.float32),
    "long double": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "a list": lambda X: X.tolist(),
    "Fortran": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "a part of a table": lambda X: np.pad(X, 3)[3:-3, 3:-3],
}


@pytest.mark.parametrize("name", few_of(REGRESSORS, QUICK))
def test_layouts(name):
    """One layout of memory, another: the same bits, and the rows are left as they were."""
    y = read_only(Y)
    expected = REGRESSORS[name]().fit(SIGNS.astype(np.float64), y).predict(SIGNS.astype(np.float64))
    layouts = LAYOUTS if name == "moments" else {k: LAYOUTS[k] for k in ("int8", "Fortran", "read-only")}
    for made in layouts.values():
        X = made(SIGNS)
        model = REGRESSORS[name]().fit(X, y)
        np.testing.assert_array_equal(model.predict(X), expected)
        np.testing.assert_array_equal(np.asarray(X, dtype=np.int64), SIGNS)


@pytest.mark.parametrize("name", few_of(REGRESSORS, QUICK))
def test_bits_of_every_type(name):
    expected = REGRESSORS[name]().fit(BITS, Y).predict(BITS)
    for dtype in (bool, np.uint8, np.uint64, np.float32):
        np.testing.assert_array_equal(
            REGRESSORS[name]().fit(BITS.astype(dtype), Y).predict(BITS.astype(dtype)), expected
        )


@pytest.mark.parametrize("name", ["cells", "moments", "kernel", "network"])
def test_bits_are_signs(name):
    """On the cube 0/1 and +1/-1 are one; elsewhere columns are numbers."""
    np.testing.assert_allclose(
        REGRESSORS[name]().fit(BITS, Y).predict(BITS), REGRESSORS[name]().fit(SIGNS, Y).predict(SIGNS), rtol=1e-12
    )


@pytest.mark.parametrize("name", EVERY)
def test_frames(name):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(SIGNS, columns=list("abcde"))
    y = pandas.Series(Y if name in REGRESSORS else (Y > 0).astype(int))
    model, plain = EVERY[name]().fit(frame, y), EVERY[name]().fit(SIGNS, y.to_numpy())
    np.testing.assert_array_equal(model.predict(frame), plain.predict(SIGNS))
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacde")])


@pytest.mark.grid
@grid(name=EVERY)
def test_what_is_refused(name):
    y = Y if name in REGRESSORS else (Y > 0).astype(int)
    make, fitted = EVERY[name], EVERY[name]().fit(SIGNS, y)
    if name not in TAKE_SPARSE:
        with pytest.raises(TypeError, match="Sparse data was passed"):
            make().fit(sp.csr_array(BITS), y)
    with pytest.raises(ValueError, match="Complex data"):
        make().fit(SIGNS.astype(complex), y)
    for rows in (SIGNS[:0], SIGNS[:, :0]):
        with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)"):
            make().fit(rows, y[: len(rows)])
    for rows in (SIGNS[:0], SIGNS[:, :4]):
        with pytest.raises(ValueError, match=r"0 sample\(s\)|expecting 5 features"):
            fitted.predict(rows)
    with pytest.raises(ValueError, match="inconsistent"):
        make().fit(SIGNS, y[:-1])
    with pytest.raises(ValueError, match="1D"):
        make().fit(SIGNS[0], y[:1])


@pytest.mark.grid
@grid(name=EVERY, bad=[np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(name, bad):
    y = Y if name in REGRESSORS else (Y > 0).astype(int)
    X, weights = SIGNS.astype(float), np.ones(m)
    X[7, 2] = weights[11] = bad
    fitted = EVERY[name]().fit(SIGNS, y)
    if name in TAKE_MISSING and np.isnan(bad):
        assert len(EVERY[name]().fit(X, y).predict(X)) == len(fitted.predict(X)) == m
    else:
        with pytest.raises(ValueError, match=f"`X` holds {bad} at row 7, column 2"):
            EVERY[name]().fit(X, y)
        with pytest.raises(ValueError, match="row 7"):
            fitted.predict(X)
    with pytest.raises(ValueError, match=f"`sample_weight` holds {bad} at row 11"):
        EVERY[name]().fit(SIGNS, y, weights)
    if name in REGRESSORS:
        y = Y.copy()
        y[13] = bad
        with pytest.raises(ValueError, match=f"`y` holds {bad} at row 13"):
            EVERY[name]().fit(SIGNS, y)


@pytest.mark.parametrize("name", REGRESSORS)
def test_one_row_and_one_column(name):
    if name != "folds":
        alone = REGRESSORS[name]().fit(SIGNS[:1], Y[:1])
        assert name == "trained" or alone.predict(SIGNS[:1]) == pytest.approx(Y[:1])
    column = SIGNS[:, :1]
    values = REGRESSORS[name]().fit(column, Y).predict(np.array([[1], [-1]]))
    if name in ("cells", "moments", "kernel", "real"):
        means = [Y[column[:, 0] == sign].mean() for sign in (1, -1)]
        np.testing.assert_allclose(values, means)
    assert np.isfinite(values).all()


def test_one_row_is_too_few_for_folds_and_classes():
    with pytest.raises(ValueError, match="n_samples=1"):
        LowDegreeRegressorCV().fit(SIGNS[:1], Y[:1])
    with pytest.raises(ValueError, match="at least 2 classes; `y` holds 1 class, 7"):
        LowDegreeClassifier().fit(SIGNS, np.full(m, 7))
    assert LSHClassifier(random_state=0).fit(SIGNS, np.full(m, 7)).predict(SIGNS[:2]).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("solver", "degree"), [("kernel", 1), pytest.param("kernel", 2, marks=pytest.mark.slow), ("correlation", 1)]
)
def test_1024_columns(solver, degree):
    X = rng.integers(0, 2, (101, 1024))
    y = rng.normal(size=101)
    model = LowDegreeRegressor(degree, solver=solver).fit(X, y)
    assert len(model.subsets_) == {1: 1024, 2: 1024 + 1024 * 1023 // 2}[degree]
    if solver == "kernel":
        np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
    else:
        np.testing.assert_allclose(model.coefficients_, (1 - 2 * X).T @ y / 101, atol=1e-13)
    for made in (X.astype(bool), np.asfortranarray(X.astype(np.uint8))):
        np.testing.assert_array_equal(
            LowDegreeRegressor(degree, solver=solver).fit(made, y).predict(made), model.predict(X)
        )


def test_1024_columns_have_more_pairs_than_memory():
    X = rng.integers(0, 2, (11, 1024))
    with pytest.raises(MemoryError, match="524,800 monomials of 1024 coordinates"):
        LowDegreeRegressor(2, solver="moments").fit(X, np.arange(11.0))
    with pytest.raises(ValueError, match="26 coordinates; `X` has 1024"):
        LowDegreeRegressor(2, solver="cells").fit(X, np.arange(11.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moments", "buckets", "masks", "trained", "network"])
def test_1024_columns_of_every_learner(name):
    X = rng.integers(0, 2, (151, 1024))
    y = rng.normal(size=151)
    model = LowDegreeRegressor(1, solver="moments") if name == "moments" else REGRESSORS[name]()
    assert np.isfinite(model.fit(X, y).predict(X)).all()
