"""What no learner may take for a number: masked entries, dates, texts, bit strings that lost their zeros."""

import numpy as np
import pandas as pd
import pytest
from grids import few_of, grid

from sparsact import (
    DSMRegressor,
    LettersRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
    SparselyActivatedClassifier,
    SparselyActivatedRegressor,
)

REGRESSORS = (LowDegreeRegressor, LowDegreeRegressorCV, LSHRegressor, DSMRegressor, SparselyActivatedRegressor)
LEARNERS = (*REGRESSORS, LowDegreeClassifier, LSHClassifier, SparselyActivatedClassifier)
SIGNS = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, (41, 3))
Y = np.where(SIGNS[:, 0] > 0, 1, -1)
HIDDEN = np.arange(41) == 7
DATES = np.arange(41).astype("datetime64[D]")
STRINGS = [f"{number % 16:04b}" for number in range(41)]


def frame(column):
    return pd.DataFrame({"a": SIGNS[:, 0], "b": column})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ma.array(SIGNS, mask=np.tile(HIDDEN[:, None], 3)), "`X` has masked entries"),
        (DATES[:, None], r"`X` holds dates or times \(datetime64\[D\]\)"),
        ((DATES - DATES[0])[:, None], "`X` holds dates or times"),
        (frame(DATES), "column 'b' of `X` holds dates or times"),
        (frame(pd.Series(DATES).dt.tz_localize("UTC")), "column 'b' of `X` holds dates or times"),
        (pd.DataFrame({"g": STRINGS}), "column 'g' of `X` holds texts, such as '0000'"),
        (np.array(STRINGS)[:, None], "`X` holds texts, such as '0000'"),
        (np.array(STRINGS, dtype=object)[:, None], "`X` holds texts, such as '0000'"),
        ([[text] for text in STRINGS], "`X` holds texts, such as '0000'"),
        (pd.DataFrame({"g": map(int, STRINGS)}), "column 'g' of `X` holds integers of digits 0 and 1 only, .* 1111"),
        (np.array(STRINGS, dtype=np.int64)[:, None], "`X` holds integers of digits 0 and 1 only"),
    ],
)
@grid(learner=LEARNERS)
def test_rows_that_are_no_numbers_are_refused(learner, X, message):
    with pytest.raises(ValueError, match=message):
        learner().fit(X, Y)


@pytest.mark.parametrize("learner", REGRESSORS)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ma.array(Y, mask=HIDDEN), "`y` has masked entries"),
        (DATES, "`y` holds dates or times"),
        (np.array(STRINGS, dtype=object), "`y` holds texts"),
    ],
)
def test_targets_that_are_no_numbers_are_refused(learner, y, message):
    with pytest.raises(ValueError, match=message):
        learner().fit(SIGNS, y)


@pytest.mark.parametrize("learner", LEARNERS)
def test_masked_weights_are_refused_and_a_mask_that_hides_nothing_is_none(learner):
    with pytest.raises(ValueError, match="`sample_weight` has masked entries"):
        learner().fit(SIGNS, Y, sample_weight=np.ma.array(np.ones(41), mask=HIDDEN))
    learner().fit(np.ma.array(SIGNS), np.ma.array(Y), sample_weight=np.ma.array(np.ones(41)))


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_negative_weight_is_refused_with_its_row(learner):
    weights = np.where(HIDDEN, -0.5, 1.0)
    with pytest.raises(ValueError, match=r"`sample_weight` holds -0.5 at row 7: negative, and weights are 0 or more\."):
        learner().fit(SIGNS, Y, sample_weight=weights)


@pytest.mark.parametrize("learner", [LSHRegressor, DSMRegressor, LowDegreeRegressor, SparselyActivatedRegressor])
def test_the_size_of_a_row_of_weight_zero_does_not_matter(learner):
    options = {} if learner is LowDegreeRegressor else {"random_state": 0}
    rows, targets, weights = SIGNS.copy(), Y.astype(float), 1.0 - HIDDEN
    expected = learner(**options).fit(rows, targets, sample_weight=weights).predict(SIGNS)
    rows[HIDDEN, 1], targets[HIDDEN] = 0.25, 1e300
    found = learner(**options).fit(rows, targets, sample_weight=weights).predict(SIGNS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


NULLABLE = pd.DataFrame(SIGNS < 0, columns=["a", "b", "c"])


@pytest.mark.grid
@grid(
    learner=[one for one in LEARNERS if one not in (LSHRegressor, LSHClassifier)], dtype=["Int64", "boolean", "Float64"]
)
def test_nullable_columns_are_read_and_a_missing_entry_is_named(learner, dtype):
    options = {} if learner in (LowDegreeRegressor, LowDegreeRegressorCV, LowDegreeClassifier) else {"random_state": 0}
    X = NULLABLE.astype(dtype)
    model, plain = learner(**options).fit(X, Y), learner(**options).fit(NULLABLE.astype(float), Y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(NULLABLE.astype(float)))
    lacking = X.copy()
    lacking.loc[7, "b"] = pd.NA
    with pytest.raises(ValueError, match=r"`X` holds <NA> at row 7, column 'b'"):
        learner(**options).fit(lacking, Y)
    with pytest.raises(ValueError, match=r"(row 7, column|column 'b', row 7)"):
        model.predict(lacking)


@pytest.mark.grid
@pytest.mark.parametrize("dtype", few_of(["string", "category", "object"], ["category"]))
def test_letters_need_an_entry_at_each_site(dtype):
    letters = pd.DataFrame({"s": np.where(SIGNS[:, 0] > 0, "a", "b"), "t": np.where(SIGNS[:, 1] > 0, "c", "d")})
    X = letters.astype(dtype)
    model = LettersRegressor(random_state=0).fit(X, Y)
    X.loc[7, "t"] = None
    for call in (lambda: LettersRegressor().fit(X, Y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="row 7, column 't', has no letter"):
            call()


@pytest.mark.grid
def test_letters_of_whole_numbers_are_the_same_in_every_type():
    X = np.random.default_rng(1).integers(0, 3, (41, 2))
    model = LettersRegressor(random_state=0).fit(X, SIGNS[:, 0])
    for other in (X.astype(float), X.astype(object), X.astype(float).astype(object), X.astype(str)):
        np.testing.assert_array_equal(model.predict(other), model.predict(X))


def test_predictions_ask_the_same():
    model = LowDegreeRegressor().fit(SIGNS, Y)
    with pytest.raises(ValueError, match="`X` has masked entries"):
        model.predict(np.ma.array(SIGNS, mask=True))


@pytest.mark.parametrize("values", [[1, 10, 100, 1000], [0, 1, 10, 11, 12], [11, 11, 1, 0], [110.0, 1.0, 11.0, 111.0]])
def test_other_numbers_are_no_bit_strings(values):
    X = np.array(values)[:, None]
    LowDegreeRegressor(domain="real").fit(X, np.arange(len(X), dtype=float))


@pytest.mark.parametrize("subsets", [[(0.5,)], [(0, 1.0)], [(True,)], [("0",)], [0]])
def test_subsets_hold_integers(subsets):
    with pytest.raises(TypeError, match="a subset "):
        LowDegreeRegressor(subsets=subsets).fit(SIGNS, Y)


@pytest.mark.parametrize(("subsets", "message"), [([(3,)], "coordinate 3"), ([(-1,)], "-1"), ([(1, 1)], "twice")])
def test_subsets_are_within_the_columns(subsets, message):
    with pytest.raises(ValueError, match=message):
        LowDegreeRegressor(subsets=subsets).fit(SIGNS, Y)


@pytest.mark.parametrize("learner", [LSHRegressor(), LowDegreeRegressor(), DSMRegressor()])
def test_rows_without_columns_are_refused_with_a_remedy(learner):
    with pytest.raises(ValueError, match="`X` has no columns; pass one or more for each row"):
        learner.fit(np.empty((9, 0)), np.arange(9.0))
