"""Numbers far from 1: targets of any unit and offset, columns far from zero, and rows and columns that say nothing.

A model of ``c * y + a`` is c times the model of y, plus a, and columns may lie anywhere: the same choices, and
predictions within the rounding of the numbers given.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from grids import few_of, grid
from sklearn.base import clone

import sparsact as sa
from sparsact.learners.stacking import stacking_weights

M = 48
rng = np.random.default_rng(0)
GRID = rng.integers(-2048, 2048, (M, 3)) / 1024  # offsets of 1e9 round nothing
SIGNS = 1.0 - 2.0 * rng.integers(0, 2, (M, 4))
LETTERS = rng.choice(list("BJO"), (M, 3))
NOISE = rng.integers(-100, 100, M) / 1024
TARGETS = {
    "numbers": GRID[:, 0] + np.abs(GRID[:, 1]) * GRID[:, 2] + NOISE,
    "signs": SIGNS[:, 0] + 2 * SIGNS[:, 1] * SIGNS[:, 2] + NOISE,
    "letters": 1.0 * (LETTERS[:, 0] == "B") + 2.0 * (LETTERS[:, 1] == "O") + NOISE,
}
ROWS = {"numbers": GRID, "signs": SIGNS, "letters": LETTERS}
SEED = {"random_state": 0}
TABLES = {"n_stages": 1, **SEED}
QUICK = {"n_restarts": 1, "max_iter": 8, **SEED}
LEARNERS = {
    "hash tables": ("numbers", sa.LSHRegressor(3, **TABLES)),
    "hyperplanes": ("numbers", sa.LSHRegressor(3, family="hyperplane", **TABLES)),
    "euclidean": ("numbers", sa.LSHRegressor(3, family="euclidean", **TABLES)),
    "trees": ("numbers", sa.LSHRegressor(3, base="trees", bucket_width=1.0, alpha=0.1, **TABLES)),
    **{
        router: ("numbers", sa.DSMRegressor(16, 4, router, **SEED))
        for router in ("top_k", "nearest", "block_top1", "hyperplane_lsh")
    },
    "biased ReLU": ("numbers", sa.DSMRegressor(16, 4, activation="relu", bias=True, **SEED)),
    "principal": ("numbers", sa.DSMRegressor(16, 4, bottom="pca", **SEED)),
    "trained": ("numbers", sa.DSMRegressor(16, 4, solver="rmsprop", epochs=3, learning_rate=1e-2, **SEED)),
    "linear": ("numbers", sa.LowDegreeRegressor(1)),
    "linear ridges": ("numbers", sa.LowDegreeRegressorCV((0, 1))),
    "one layer of numbers": ("numbers", sa.SparselyActivatedRegressor(6, **QUICK)),
    "cut process": ("numbers", sa.CubeGPRegressor("product", domain="real", **SEED)),
    "cut latent": ("numbers", sa.LatentRegressor(degree=1, domain="real", **SEED)),
    "polynomial": ("signs", sa.LowDegreeRegressor(2)),
    "polynomials": ("signs", sa.LowDegreeRegressorCV((0, 1, 2))),
    "sparse": ("signs", sa.SparseFourierRegressor(2, **SEED)),
    "one layer": ("signs", sa.SparselyActivatedRegressor(6, **QUICK)),
    "process": ("signs", sa.CubeGPRegressor("degree_site", **SEED)),
    "latent": ("signs", sa.LatentRegressor(degree=1, **SEED)),
    "monotone": ("signs", sa.LatentRegressor(degree=1, link="monotone", **SEED)),
    "latent process": ("signs", sa.LatentRegressor("gp", degree=1, **SEED)),
    "letters": ("letters", sa.LettersRegressor(**SEED)),
}
OF_NUMBERS = [name for name, (kind, _) in LEARNERS.items() if kind == "numbers"]
QUICK_ONES = [name for name in LEARNERS if name != "trees"]  # which take a second a fit
every = pytest.mark.parametrize("name", few_of(LEARNERS, QUICK_ONES))
QUICKEST = [name for name in QUICK_ONES if name != "letters"]  # which take half a second


def predictions(name, X, y, asked=None, **options):
    return clone(LEARNERS[name][1]).fit(X, y, **options).predict(X if asked is None else asked)


@cache
def plain(name):
    kind, _ = LEARNERS[name]
    return predictions(name, ROWS[kind], TARGETS[kind])


UNITS = [*product(LEARNERS, (1e-163, 1e155)), ("letters", 1e-30), ("letters", 3e30)]


@pytest.mark.parametrize(("name", "unit"), few_of(UNITS, [(name, 1e-163) for name in QUICKEST]))
def test_targets_in_another_unit(name, unit):
    kind, _ = LEARNERS[name]
    found = predictions(name, ROWS[kind], unit * TARGETS[kind])
    np.testing.assert_allclose(found / unit, plain(name), rtol=0, atol=1e-6)


@every
def test_targets_far_from_zero(name):
    """Networks have no constant: far from zero each row needs a unit, wherever that is."""
    kind, learner = LEARNERS[name]
    near = 1e6 if isinstance(learner, sa.SparselyActivatedRegressor) else 0.0
    expected = predictions(name, ROWS[kind], TARGETS[kind] + near) - near if near else plain(name)
    found = predictions(name, ROWS[kind], TARGETS[kind] + 1e9)
    np.testing.assert_allclose(found - 1e9, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", few_of(OF_NUMBERS, [name for name in OF_NUMBERS if name in QUICK_ONES]))
@pytest.mark.parametrize("offset", few_of([1e4, 1e9], [1e9]))
def test_columns_far_from_zero(name, offset):
    found = predictions(name, GRID + offset, TARGETS["numbers"])
    np.testing.assert_allclose(found, plain(name), rtol=0, atol=1e-13 * offset)


@pytest.mark.parametrize("name", [one for one in few_of(LEARNERS, QUICKEST) if one != "trained"])
@grid(columns=["constant", "copy", "ones"])
def test_columns_that_say_nothing(name, columns):
    """They leave a model no worse than the mean of the targets."""
    kind, _ = LEARNERS[name]
    X, y = ROWS[kind], TARGETS[kind]
    one = {"numbers": 7.3e8, "signs": 1.0, "letters": "B"}[kind]
    added = {"constant": np.full(M, one), "copy": X[:, 1]}
    table = np.full(X.shape, one) if columns == "ones" else np.column_stack([X, added[columns]])
    if (kind, columns) == ("letters", "ones"):
        with pytest.raises(ValueError, match="a fit needs two different rows"):
            predictions(name, table, y)
        return
    assert np.mean((predictions(name, table, y) - y) ** 2) <= (1 + 1e-3) * y.var()


@pytest.mark.parametrize("n_rows", [1, 3])
@every
def test_a_few_rows_have_a_model_or_a_reason(name, n_rows):
    kind, _ = LEARNERS[name]
    X, y = ROWS[kind][:n_rows], TARGETS[kind][:n_rows]
    if name in ("linear ridges", "polynomials") or (name == "letters" and n_rows == 1):
        with pytest.raises(ValueError, match=r"needs a row for each fold; got n_samples=|minimum of 2 is required"):
            predictions(name, X, y)
        return
    found = predictions(name, X, y)
    assert (np.abs(found - y.mean()) <= 2 * np.ptp(y) + 1e-9).all()


@pytest.mark.parametrize("name", [one for one in few_of(LEARNERS, QUICKEST) if one != "sparse"])
def test_a_row_of_weight_zero_may_hold_any_number(name):
    kind, _ = LEARNERS[name]
    X, y, weights = ROWS[kind].copy(), TARGETS[kind].copy(), 1.0 - (np.arange(M) == 7)
    expected = predictions(name, X, y, sample_weight=weights)
    y[7] = 1e300
    if kind == "numbers":
        X[7] = [1e300, -1e300, 1e-300]
    found = predictions(name, X, y, ROWS[kind], sample_weight=weights)
    np.testing.assert_array_equal(found, expected)
    y[7] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        predictions(name, X, y, sample_weight=weights)


WRAPS = {
    "array": np.array,
    "unsigned": lambda X: X.astype(np.uint64),
    "frame": pd.DataFrame,
    "objects": np.vectorize(int),
}


@pytest.mark.parametrize(("name", "wrap"), [*product(OF_NUMBERS, ["array"]), *product(["linear"], WRAPS)])
def test_integers_that_float64_would_round_are_refused(name, wrap):
    X = 2**53 + np.arange(3 * M).reshape(M, 3)
    with pytest.raises(ValueError, match=r"`X` holds 900719925474099[35], an integer beyond 2.*subtract a constant"):
        predictions(name, WRAPS[wrap](X), TARGETS["numbers"])
    assert np.isfinite(predictions(name, WRAPS[wrap](2 * X - 2**53), TARGETS["numbers"])).all()  # which are even
    with pytest.raises(ValueError, match="`y` holds 9007199254740993"):
        predictions(name, GRID, 2**53 + np.arange(M))


@pytest.mark.grid
def test_letters_that_are_integers_of_any_size_stay_apart():
    X = pd.DataFrame(2**53 + (LETTERS == "B"), columns=list("abc"))
    expected = predictions("letters", X, TARGETS["letters"])
    np.testing.assert_array_equal(predictions("letters", X.astype("Int64"), TARGETS["letters"]), expected)


@pytest.mark.grid
@pytest.mark.parametrize("unit", [1e-163, 1e155])
def test_hash_tables_choose_columns_and_codes_in_any_unit(unit):
    """512 rows are enough to leave columns out, and nine categories have codes by their targets."""
    draw = np.random.default_rng(1)
    X = np.column_stack([draw.normal(size=(512, 4)), draw.integers(0, 9, 512)])
    y = np.abs(X[:, 0]) + np.sin(X[:, 4]) + 0.1 * draw.normal(size=512)
    options = {"directions": "principal", "degree": 0, "n_tables": 2, "categorical_features": [4], **TABLES}
    one, other = (sa.LSHRegressor(**options).fit(X, c * y) for c in (1.0, unit))
    assert len(one.columns_) < 4 + 1
    assert one.columns_.tolist() == other.columns_.tolist()
    np.testing.assert_allclose(other.predict(X) / unit, one.predict(X), rtol=1e-9)
    here, there = one.drift(X[:99], y[:99] + 0.1), other.drift(X[:99], unit * (y[:99] + 0.1))
    assert there.bias_p_value == pytest.approx(here.bias_p_value, rel=1e-6)
    assert (there.bias / unit, there.rmse / unit) == pytest.approx((here.bias, here.rmse), rel=1e-9)


@pytest.mark.parametrize("constant", [0.1, 7.3])
def test_a_constant_column_turns_no_hash(constant):
    """Its mean is off by the last bit, which turned the signs of principal directions."""
    model = sa.LSHRegressor(**TABLES)
    found = model.fit(np.column_stack([GRID, np.full(M, constant)]), TARGETS["numbers"])
    found = found.predict(np.column_stack([GRID, np.full(M, constant)]))
    np.testing.assert_allclose(found, model.fit(GRID, TARGETS["numbers"]).predict(GRID), rtol=0, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-163, 1e155])
def test_weights_of_an_ensemble_in_any_unit(unit):
    y = TARGETS["signs"]
    predicted = np.column_stack([y, y + 0.1 * NOISE, 0.5 * y])
    expected = stacking_weights(predicted, y, np.ones(3))
    np.testing.assert_allclose(stacking_weights(unit * predicted, unit * y, np.ones(3)), expected, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e3, 1e7, 1e12])
def test_columns_of_unlike_units_are_all_fitted(unit):
    X = GRID * [unit, 1.0, 1 / unit]
    model = sa.LowDegreeRegressor(1).fit(X, GRID @ [1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.coefficients_ * [unit, 1.0, 1 / unit], [1.0, 2.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize("weight", [1e-50, 1e9, 1e50])
def test_weights_of_real_columns_in_any_unit(weight):
    y = GRID @ [1.0, 2.0, 3.0]
    model = sa.LowDegreeRegressor(1).fit(GRID + 10, y, sample_weight=np.full(M, weight))
    np.testing.assert_allclose(model.predict(GRID + 10), y, atol=1e-9)


@pytest.mark.parametrize("learner", [sa.LowDegreeRegressor, sa.LowDegreeClassifier])
def test_products_of_columns_are_kept_or_refused(learner):
    """At 1e4 deviations from 0 a product is kept; at 1e6 it is another sum of the columns, as far as floats tell."""
    y = np.sign(GRID[:, 1] * GRID[:, 2] + 0.1)
    expected = learner(2).fit(GRID, y).predict(GRID)
    np.testing.assert_allclose(learner(2).fit(GRID + 1e4, y).predict(GRID + 1e4), expected, atol=1e-4)
    message = r"columns \d, \d of `X` lie so far from 0 .* subtract their means, .* or choose a degree below 2"
    for offset in (1e6, 1e9):
        with pytest.raises(ValueError, match=message):
            learner(2).fit(GRID + offset, y)
        learner(1).fit(GRID + offset, y)


def test_degrees_whose_products_are_lost_are_not_tried():
    y = TARGETS["numbers"]
    for learner in (sa.LowDegreeRegressorCV(), sa.LowDegreeRegressor("auto")):
        with pytest.warns(UserWarning, match="degrees from 2 on are not tried: .* subtract their means"):
            assert learner.fit(GRID + 1e6, y).degree_ <= 1
    with pytest.raises(ValueError, match="or choose a degree below 2"):
        sa.LowDegreeRegressorCV((2,)).fit(GRID + 1e6, y)
