"""What the public doors refuse: whatever NumPy would silently take for numbers, or for other numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sparsact import LowDegreeRegressor
from sparsact.validation.arrays import checked_columns, checked_points, checked_reals, checked_signs
from sparsact.validation.parameters import checked_size

STRANGE = {
    "strings": (np.array([["1", "2"]]), "must hold"),
    "dates": (np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"), "must hold"),
    "complex": (np.array([[1j, 1]]), "must"),
    "sparse": (sp.csr_array([[1.0, 1.0]]), "pass its toarray"),
    "masked": (np.ma.masked_array([[1, 1]], mask=[[True, False]]), "masked entries"),
    "ragged": ([[1], [1, 1]], "rectangular"),
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE)
def test_what_is_no_array_of_numbers_is_refused(strange):
    values, complaint = strange
    for check in (
        lambda X: checked_reals(X, "`X`"),
        lambda X: checked_columns(X, 2),
        lambda X: checked_points(X, 2),
        lambda X: checked_signs(X, 2),
    ):
        with pytest.raises(ValueError, match=f"`X` .*{complaint}"):
            check(values)


@pytest.mark.parametrize("entry", ["1", None, 1j, b"1"])
def test_objects_must_be_numbers(entry):
    with pytest.raises(ValueError, match="must hold real numbers; got"):
        checked_reals(np.array([1, entry], dtype=object), "`u`")
    assert checked_reals(np.array([Fraction(1, 4), 2], dtype=object), "`u`").tolist() == [0.25, 2.0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float32, np.int64, object])
def test_numbers_of_any_kind_are_taken(dtype):
    ones = np.ones((3, 2), dtype=dtype)
    assert checked_columns(ones, 2).dtype == np.float64
    assert checked_signs(ones, 2).dtype == dtype
    with pytest.raises(ValueError, match="row 2, column 1 holds 0"):
        checked_signs(np.array([[1, 1], [1, 1], [1, 0]], dtype=dtype), 2)


def test_sizes_are_integers_in_a_range():
    assert checked_size(np.int8(3), "`s`") == 3
    assert type(checked_size(np.int8(3), "`s`")) is int
    assert checked_size(0, "`b`", minimum=0) == 0
    with pytest.raises(ValueError, match="`s` must be 1 or more; got 0"):
        checked_size(0, "`s`")
    with pytest.raises(ValueError, match="`d` must lie between 1 and 3; got 4"):
        checked_size(4, "`d`", maximum=3)
    for strange in (1.0, True, None):
        with pytest.raises(TypeError, match="`s` must be an integer; got"):
            checked_size(strange, "`s`")


def refitted(X, y):
    """Fit a learner again that was fitted to a frame before."""
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    return LowDegreeRegressor(1, domain="real").fit(frame, np.arange(3.0)).fit(X, y)


def test_plain_arrays_are_fitted_like_lists():
    """Arrays of float64 skip what scikit-learn would look for, and leave what it leaves."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(17, 2)), rng.normal(size=17)
    plain, listed = refitted(X, y), refitted(X.tolist(), y.tolist())
    assert (plain.n_features_in_, hasattr(plain, "feature_names_in_")) == (2, False)
    assert vars(plain).keys() == vars(listed).keys()
    np.testing.assert_array_equal(plain.coefficients_, listed.coefficients_)


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), np.ones(2), "`X` holds nan at row 0, column 1"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), np.ones(2), "`X` holds inf at row 0, column 1"),
        (np.eye(2), np.array([1.0, np.nan]), "`y` holds nan at row 1"),
        (np.ones((0, 2)), np.ones(0), "0 sample"),
        (np.ones((2, 0)), np.ones(2), "0 feature"),
        (np.ones(2), np.ones(2), "Expected 2D"),
        (np.eye(2), np.ones(3), "inconsistent numbers of samples"),
    ],
)
def test_plain_arrays_are_refused_like_others(X, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        LowDegreeRegressor(1, domain="real").fit(X, y)


def test_sums_beyond_floats_are_no_infinity():
    y = np.array([1.5e308, 1.6e308, 1.0, -1.0])
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    assert LowDegreeRegressor(0).fit(X, y).intercept_ == pytest.approx(y[0] / 4 + y[1] / 4)
