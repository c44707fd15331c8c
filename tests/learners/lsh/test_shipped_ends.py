"""Limits, empty buckets and names as they ship: predictors, C and ONNX say what ``predict`` says, or refuse to ship."""

import pickle
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from exported_models import shipped_values
from grids import few_of, grid
from hashed_rows import model, rows

import sparsact
from sparsact import LSHClassifier
from sparsact.learners.lsh.prediction_limits import Ends, Policy

X, Y = rows(m=300, d=3)
KINDS = ["as it is", "float64", "float32", "file", "c", "onnx"]
LIMITS = ["clip", "linear", "nan"]
FORMS = {
    "grid": {"bucket_width": 0.4, "n_stages": 1},
    "stages": {"bucket_width": 0.4, "n_stages": 2},
    "hyperplane": {"family": "hyperplane", "n_hashes": 9, "degree": 2},
}


@cache
def fitted(form):
    return model(**FORMS[form]).fit(X, Y)


def at_edges(learner):
    """Pairs of rows that are one float apart, and in other cells of the first table."""
    below, above = X[:30].copy(), X[:30].copy()
    above[:, 1] += 0.7
    inside = learner.apply(below)[:, 0]
    crossed = learner.apply(above)[:, 0] != inside
    for _ in range(60):
        middle = below.copy()
        middle[:, 1] = below[:, 1] / 2 + above[:, 1] / 2
        same = (learner.apply(middle)[:, 0] == inside)[:, None]
        below, above = np.where(same, middle, below), np.where(same, above, middle)
    assert crossed.sum() > 15
    assert (np.nextafter(below[crossed, 1], np.inf) == above[crossed, 1]).all()
    return np.concatenate([below[crossed], above[crossed]])


@cache
def queries(form):
    rng = np.random.default_rng(4)
    sizes = np.array([2.0, 50.0, 1e6, 1e155, 1e200, 1e300])[:, None, None]
    far = (sizes * np.sign(rng.normal(size=(6, 3, 3))) * [1.0, 0.3, 0.7]).reshape(-1, 3)
    alone = np.concatenate([sizes * np.eye(3), -sizes * np.eye(3)]).reshape(-1, 3)
    gaps = [[np.nan, 0.1, 0.2], [np.nan, 50.0, np.nan]]
    return np.concatenate([X[:9], rows(m=15, d=3, seed=8)[0], at_edges(fitted(form)), far, alone, gaps])


def one_by_one(function, table):
    """Values (m,), NaN where a row is refused."""
    found = np.full(len(table), np.nan)
    for place, row in enumerate(table):
        try:
            found[place] = function(row)
        except ValueError as error:
            if "every bucket is empty" not in str(error) and "beyond any float" not in str(error):
                raise
    return found


def shipped(kind, learner, table, folder):
    if kind in ("c", "onnx"):
        return shipped_values(kind, learner.predictor("float64"), table, folder)[:, 0]
    predict = learner.predictor(None if kind == "as it is" else "float64" if kind == "file" else kind)
    if kind == "file":
        predict.save(folder / "predictor")
        predict = pickle.loads(pickle.dumps(sparsact.load(folder / "predictor")))
    single = one_by_one(predict, table)
    np.testing.assert_array_equal(one_by_one(lambda row: predict(row[None])[0], table), single)
    return single


ENDS = [*product(["coarse", "mean", "nan", "raise", "nearest"], LIMITS)]
SLOW = {("grid", "c"), ("stages", "c")}  # a C compiler takes a second
ONCE = [
    (form, kind)
    for form, kind in product(FORMS, KINDS)
    if (form == "grid" or kind not in ("float64", "as it is")) and (form, kind) not in SLOW
]


@pytest.mark.parametrize(("form", "kind"), few_of(product(FORMS, KINDS), ONCE))
@grid(ends=ENDS)
def test_what_ships_has_the_ends_of_the_model(form, ends, kind, tmp_path):
    fallback, extrapolate = ends
    if form != "grid" and kind in ("c", "onnx", "file") and (fallback == "coarse") == (extrapolate == "clip"):
        return  # a compiler takes its time: each limit and each fallback is compiled with stages and hyperplanes once
    learner = pickle.loads(pickle.dumps(fitted(form))).set_params(fallback=fallback, extrapolate=extrapolate)
    table = queries(form)
    before, folder = table.copy(), tmp_path / f"{fallback}-{extrapolate}"  # a library is loaded once from a path
    folder.mkdir()
    if kind != "as it is" and (fallback == "nearest" or (fallback == "raise" and kind in ("c", "onnx"))):
        with pytest.raises(ValueError, match=rf"fallback=['\"]{fallback}.*set_params\(fallback="):
            shipped(kind, learner, table, folder)
        return
    expected = one_by_one(lambda row: learner.predict(row[None])[0], table)
    values = shipped(kind, learner, table, folder)
    np.testing.assert_array_equal(table, before)
    np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
    sizes = np.fmax.reduce(np.abs(table), axis=1) if extrapolate == "linear" else np.ones(len(table))
    with np.errstate(over="ignore"):  # of the size of a degree-2 polynomial's terms
        tolerance = (1e-6 if kind == "float32" else 1e-11) * np.fmax(sizes**2, 1.0)
    known = ~np.isnan(expected)
    assert known.sum() > 50
    assert (np.abs(values - expected)[known] <= tolerance[known]).all()


@pytest.mark.parametrize("kind", ["c", "onnx"])
def test_a_row_with_an_infinity_has_no_value_in_a_program(kind, tmp_path):
    table = np.array([[np.inf, 0.0, 0.0], [0.1, -np.inf, np.nan], [0.1, 0.2, 0.3]])
    assert np.isnan(shipped(kind, fitted("grid"), table, tmp_path)).tolist() == [True, True, False]


def test_limits_allow_for_rounding():
    """Values of a constant are not beyond it, in float32 either; a target off by a thousandth of the range is."""
    learner = model(extrapolate="nan", fallback="mean").fit(X, np.full(len(X), 0.1 + 1e6))
    for predict in (learner.predict, learner.predictor("float32")):
        np.testing.assert_allclose(predict(X), 0.1 + 1e6, rtol=1e-12)
    table = model().fit(X, Y).table_
    ends = Ends.of(Policy(extrapolate="nan"), table.low, table.high, None)
    width = np.ptp(Y)
    values = Y.min() + width * np.array([[-1e-3], [0.0], [0.5], [1.0], [1.001]])
    assert np.isnan(ends.limited(values))[:, 0].tolist() == [True, False, False, False, True]


def test_a_mean_follows_updates_of_single_rows():
    learner = model(bucket_width=0.4, fallback="mean", extrapolate="linear").fit(X, Y)
    far, targets = np.full((1, 3), 60.0), Y.tolist()
    assert learner.predict(far)[0] == pytest.approx(np.mean(targets))
    for row, target in ((X[3], 5.0), (X[4], -7.0)):
        learner.partial_fit(row[None], np.array([target]))
        targets.append(target)
        assert learner.predict(far)[0] == pytest.approx(np.mean(targets))


def named(order="abc"):
    return pd.DataFrame(X, columns=list("abc"))[list(order)]


@pytest.mark.parametrize("dtype", [None, "float64"])
@pytest.mark.parametrize("saved", [False, True])
def test_predictors_take_columns_by_name(saved, dtype, tmp_path):
    learner = model().fit(named(), Y)
    if saved:
        learner.save(tmp_path / "model")
        learner = sparsact.load(tmp_path / "model")
    predict = learner.predictor(dtype)
    if saved and dtype:
        predict.save(tmp_path / "predictor")
        predict = sparsact.load(tmp_path / "predictor")
    expected = learner.predict(named())
    for table in (named(), named("cab")):
        np.testing.assert_allclose(predict(table), expected, rtol=1e-12)
        np.testing.assert_allclose(predict(table.iloc[:1]), expected[:1], rtol=1e-12)
        assert predict(table.iloc[7]) == pytest.approx(expected[7], rel=1e-12)
        np.testing.assert_allclose(predict(table.convert_dtypes()), expected, rtol=1e-12)
    np.testing.assert_allclose(predict(X), expected, rtol=1e-12)
    for wrong in (named().rename(columns={"b": "d"}), named()[["a", "b", "b"]], named()[["a", "b"]]):
        with pytest.raises(ValueError, match="columns of fit by name"):
            predict(wrong)


def test_predictors_take_columns_of_polars_by_name():
    polars = pytest.importorskip("polars", reason="polars is optional")
    learner = model().fit(named(), Y)
    table = polars.DataFrame({name: named()[name].to_numpy() for name in "bca"})
    np.testing.assert_allclose(learner.predictor("float64")(table), learner.predict(named()), rtol=1e-12)


def with_gaps(m=300):
    """Three towns with the values 0, 1 and 5, and rows of no town with 50."""
    rng = np.random.default_rng(2)
    town = rng.choice(4, m, p=[0.4, 0.3, 0.1, 0.2])
    frame = pd.DataFrame({"size": rng.uniform(-1, 1, m), "town": pd.Categorical.from_codes(town, ["u", "v", "w", "x"])})
    frame.loc[town == 3, "town"] = None
    return frame, np.array([0.0, 1.0, 5.0, 50.0])[town], town


@pytest.mark.parametrize("kind", KINDS)
def test_a_category_that_fit_did_not_meet_has_the_mean_of_those_it_met(kind, tmp_path):
    """0, 1 and 5 in their shares, not the 50 of a missing one; what a line through these points says exactly."""
    frame, y, town = with_gaps()
    learner = model(degree=1).fit(frame, y)  # whose mean is that of fit
    there = town < 3
    strange = pd.DataFrame({"size": [0.3], "town": pd.Categorical(["moon"])})
    with pytest.warns(UserWarning, match="counts as the mean of the categories of fit"):
        expected = learner.predict(strange)[0]
    assert expected == pytest.approx(y[there].mean(), abs=0.05)
    with pytest.warns(UserWarning, match="counts as the mean"):
        learner.predictor()(strange)
    table = learner.predictor("float64").numbers(strange)
    if kind in ("c", "onnx"):
        found = shipped(kind, learner, table, tmp_path)[0]
    else:
        with pytest.warns(UserWarning, match="counts as the mean"):
            found = shipped(kind, learner, table, tmp_path)[0]
    assert found == pytest.approx(expected, rel=1e-6)
    missing = learner.predict(pd.DataFrame({"size": [0.3], "town": pd.Categorical([None], ["u"])}))
    assert missing[0] == pytest.approx(50, abs=0.5)


def test_a_strange_category_has_the_class_of_the_known_ones():
    frame, _, town = with_gaps()
    learner = LSHClassifier(random_state=0).fit(frame, np.where(town == 3, "none", "some"))
    strange = pd.DataFrame({"size": [0.3, -0.2], "town": pd.Categorical(["moon", "mars"])})
    with pytest.warns(UserWarning, match="counts as the mean"):
        assert learner.predict(strange).tolist() == ["some", "some"]


BEYOND = 2**53 + np.arange(3)


@pytest.mark.parametrize(
    ("form", "kind"),
    few_of(
        product(["array", "objects", "Int64", "category"], KINDS),
        [*product(["array", "Int64"], ["as it is", "file"]), ("category", "c"), ("objects", "onnx")],
    ),
)
def test_integers_beyond_floats_are_categories_of_their_own(form, kind, tmp_path):
    """In float64, 2**53, 2**53 + 1 and 2**53 + 2 are two numbers."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, 240)
    numbers = BEYOND[place]
    if form == "array":
        table = np.column_stack([numbers, rng.integers(-5, 5, 240)])
    else:
        table = pd.DataFrame({"id": pd.Series(numbers, dtype=form if form != "objects" else object)})
        table["size"] = rng.uniform(-1, 1, 240)
        if form != "objects":
            table.loc[::40, "id"] = None
    learner = model(n_stages=1, categorical_features=[0]).fit(table, 3.0 * place)
    expected = learner.predict(table)
    known = np.arange(240) % 40 > 0
    assert np.abs(expected - 3.0 * place)[known].max() < 0.5
    found = shipped(kind, learner, learner.predictor("float64").numbers(table), tmp_path)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(learner.predictor()(table), expected, rtol=0, atol=1e-12)


def test_floats_beyond_integers_are_no_categories():
    table = np.column_stack([X[:, 0], np.where(X[:, 1] > 0, 2.0**53, 7.0)])
    with pytest.raises(ValueError, match=r"float beyond 2\*\*53, which stands for several integers"):
        model(categorical_features=[1]).fit(table, Y)
    small = np.where(table > 1e6, 8.0, table)
    learner = model(categorical_features=[1]).fit(small, Y)
    for predict in (learner.predict, learner.predictor(), learner.predictor("float32")):
        with pytest.raises(ValueError, match="row 0, column 1 of `X`: the category"):
            predict(np.array([[0.0, 2.0**60]]))
