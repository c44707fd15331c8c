"""A table and its target as arrays and frames, as scikit-learn takes them: the same fit as of the columns by name."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparsact as sa

RNG = np.random.default_rng(5)
X = RNG.integers(0, 2, (61, 4))
Y = 2.0 * X[:, 1] - X[:, 2] * X[:, 3] + 0.1 * RNG.normal(size=61)
OPTIONS = {"degree": 2, "alpha": 0.5, "folds": 3}
NAMES = ["x0", "x1", "x2", "x3"]


def terms(result):
    return [(term.subset, term.coefficient) for term in result.targets[0].listed()]


def by_name(target="y", names=NAMES):
    return sa.fit_table(pd.DataFrame(X, columns=names).assign(**{target: Y}), target, **OPTIONS)


def test_a_matrix_and_a_vector():
    before = X.copy(), Y.copy()
    found = sa.fit_table(X, Y, **OPTIONS)
    assert terms(found) == terms(by_name())
    assert found.call == "sa.fit_table(data, target, degree=2, alpha=0.5, folds=3)"
    assert terms(eval(found.call, {"sa": sa, "data": X, "target": Y})) == terms(found)
    np.testing.assert_array_equal(found.predict(X[:7]), found.predict(pd.DataFrame(X[:7], columns=NAMES)))
    np.testing.assert_array_equal(before[0], X)
    np.testing.assert_array_equal(before[1], Y)
    assert terms(sa.fit_table(X, Y.tolist(), **OPTIONS)) == terms(found)
    assert terms(sa.fit_table(np.column_stack([X, Y]), "x4", **OPTIONS)) == terms(found)


def test_a_frame_and_a_series_keep_their_names():
    frame, series = pd.DataFrame(X, columns=list("abcd")), pd.Series(Y, name="bright")
    found = sa.fit_table(frame, series, **OPTIONS)
    assert found.encoding.target_names == ("bright",)
    assert terms(found) == terms(by_name("bright", list("abcd")))
    assert sa.fit_table(frame, series.rename(None), **OPTIONS).encoding.target_names == ("y",)
    assert list(frame.columns) == list("abcd")


def test_several_targets():
    both = np.column_stack([Y, Y**2])
    assert sa.fit_table(X, both, **OPTIONS).encoding.target_names == ("y0", "y1")
    named = pd.DataFrame(both, columns=["one", "other"])
    assert sa.fit_table(pa.table(pd.DataFrame(X)), named, **OPTIONS).encoding.target_names == ("one", "other")


@pytest.mark.parametrize("dtype", [str, object])
def test_classes_and_texts(dtype):
    texts, classes = np.where(X, "on", "off").astype(dtype), np.where(Y > 0, "high", "low").astype(dtype)
    found = sa.fit_table(texts, classes, **OPTIONS)
    assert found.task == "classification"
    assert set(found.predict(texts)) == {"high", "low"}


@pytest.mark.parametrize("dtype", [float, object])
def test_masked_entries_are_missing(dtype):
    """In the target and in the data, rows with a masked entry are refused, or left out, like rows with NaN."""
    target = np.ma.masked_array(Y.astype(dtype), mask=np.arange(61) == 8)
    rows = np.ma.masked_array(X.astype(dtype), mask=np.arange(244).reshape(61, 4) == 81)  # x1 of row 20
    with pytest.raises(ValueError, match="column 'y', row 9: the value is missing"):
        sa.fit_table(X, target, **OPTIONS)
    with pytest.raises(ValueError, match="column 'x1', row 21: the value is missing"):
        sa.fit_table(rows, Y, **OPTIONS)
    kept = np.delete(np.arange(61), [8, 20])
    found = sa.fit_table(rows, target, drop_missing=True, **OPTIONS)
    assert terms(found) == terms(sa.fit_table(X[kept], Y[kept], **OPTIONS))


@pytest.mark.parametrize(
    ("data", "target", "error"),
    [
        (X, Y[:9], "`data` has 61 rows and `target` 9 values; pass one for each row, or names of columns"),
        (X, 3.0, r"`target` is 3\.0; pass names of columns, or a value for each row"),
        (X[:, 0], Y, r"an array of shape \(61,\) is no table: pass a matrix, a row for each sample"),
        (
            pd.DataFrame({"a": X[:, 0], "y": Y}),
            pd.Series(Y, name="y"),
            "`data` has a column 'y', and so is the target named",
        ),
        ("t.csv", Y, "`target` holds values, but `data` names files; pass the name of the target column"),
        (X, X + 1j, "column 'y0' holds complex128, need float64 or smaller"),
        (X, np.array([1, "a"] * 30 + [2], dtype=object), "a column mixes kinds of values"),
        (X, Y.reshape(61, 1, 1), r"an array of shape \(61, 1, 1\) is no table"),
    ],
)
def test_errors_name_the_remedy(data, target, error):
    with pytest.raises(ValueError, match=error):
        sa.fit_table(data, target, **OPTIONS)


def test_each_class_has_scores_of_its_own():
    """Class "a" follows a column, and the others are drawn: their mean is in the verdict."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (240, 3))
    labels = np.where(X[:, 0] == 1, "a", rng.choice(["b", "c"], 240))
    found = sa.fit_table(X, labels, degree=1)
    a, b, c = (found.scores.r2[name] for name in "abc")
    assert a.mean > 0.99 > 0.7 > max(b.mean, c.mean)
    assert b.folds != c.folds
    assert {name: row["linear_r2"] for name, row in zip("abc", found.scores.records(), strict=True)} == {
        name: found.scores.r2[name].mean for name in "abc"
    }
    mean = np.mean([a.folds, b.folds, c.folds], axis=0).mean()
    assert f"R² of the class indicators is {mean:.3f} ±" in found.verdict
    assert found.learned


def test_columns_of_a_frame_may_be_named_by_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (90, 4)))
    frame[4] = frame[0] + 2 * frame[2]
    by_number = sa.fit_table(frame, 4, columns=[0, 2], groups=3, degree=1)
    assert by_number.encoding.target_names == ("4",)
    assert by_number.encoding.feature_names == ("0", "2")
    assert by_number.call == "sa.fit_table(data, '4', degree=1, columns=['0', '2'], groups='3', folds=2)"
    with pytest.raises(ValueError, match="no target '7' in the table; its columns are 0, 1, 2, 3, 4"):
        sa.fit_table(frame, 7)
    with pytest.raises(ValueError, match="`target` is None; pass names of columns, or a value for each row"):
        sa.fit_table(frame, None)
    with pytest.raises(ValueError, match="`target` 2 values; pass one for each row, or names of columns, as texts"):
        sa.fit_table(frame, [3, 4])
    with pytest.raises(ValueError, match="two columns named '1'; give each its own name"):
        sa.fit_table(frame.set_axis([0, 1, "1", 3, 4], axis=1), 4)


def test_a_table_without_columns_is_refused():
    with pytest.raises(ValueError, match="the table has no columns; pass one or more"):
        sa.fit_table(np.empty((90, 0)), np.arange(90))
