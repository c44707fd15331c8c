"""What no learner may take for a number: masked entries, dates, texts, bit strings that lost their zeros."""

import numpy as np
import pandas as pd
import pytest

from sparsact import (
    DSMRegressor,
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


@pytest.mark.parametrize("learner", LEARNERS)
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
