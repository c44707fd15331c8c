from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact.learners.points import Points, detect_encoding, median_cuts, pack, unpack

pytestmark = pytest.mark.usefixtures("kernels_in_use")
shapes = {"m": st.integers(0, 70), "n": st.integers(1, 67), "seed": st.integers(0, 99)}
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@properties
@given(**shapes)
def test_pack_and_unpack(m, n, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (m, n), dtype=np.int8)
    points = pack(bits, "bits")
    assert (points.n, points.n_rows) == (n, m)
    np.testing.assert_array_equal(unpack(points, "bits"), bits)
    np.testing.assert_array_equal(unpack(points), 1 - 2 * bits)
    np.testing.assert_array_equal(pack(1 - 2 * bits, "signs").columns, points.columns)


@properties
@given(**shapes)
def test_codes_number_the_points_in_table_order(m, n, seed):
    bits = np.random.default_rng(seed).integers(0, 2, (m, n))
    points = pack(bits, "bits")
    codes = points.codes()
    numbers = [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in codes]
    assert numbers == [sum(int(bit) << i for i, bit in enumerate(row)) for row in bits]
    again = Points.from_codes(codes, n)
    np.testing.assert_array_equal(again.columns, points.columns)


@pytest.mark.parametrize(
    ("rows", "encoding"),
    [
        ([[0, 1]], "bits"),
        ([[0, 0]], "bits"),
        ([[-0.0, 1.0]], "bits"),
        ([[True, True]], "bits"),
        ([[-1, 1]], "signs"),
        ([[-1, -1]], "signs"),
        ([[1, 1]], "ones"),
        ([[0, -1]], "real"),
        ([[0, 2]], "real"),
        ([[1.0, 1.0 + 2e-16 * 2]], "real"),
    ],
)
def test_how_rows_are_written(rows, encoding):
    assert detect_encoding(np.array(rows))[0] == encoding


def test_ones_without_a_sign_are_bits():
    assert detect_encoding(np.ones((5, 3), dtype=np.uint8))[0] == "bits"


def test_the_first_bad_value_row_by_row_is_named():
    X = np.ones((67, 3))
    X[65, 2], X[66, 0] = 0.5, 7
    with pytest.raises(ValueError, match=r"holds 0.5 at column 2, row 65, where signs \+1/-1 are expected"):
        pack(X, "signs")
    with pytest.raises(ValueError, match="at column 'c', row 65"):
        pack(X, "signs", np.array(["a", "b", "c"], dtype=object))


@pytest.mark.parametrize(
    ("rows", "encoding", "remedy"),
    [
        ([[1, 0]], "signs", r"1 - 2 \* X"),
        ([[1, -1]], "bits", r"\(1 - X\) / 2"),
        ([[1, 3]], "bits", 'domain="real"'),
        ([[True, False]], "signs", r"1 - 2 \* X"),
    ],
)
def test_errors_say_what_to_do(rows, encoding, remedy):
    with pytest.raises(ValueError, match=remedy):
        pack(np.array(rows), encoding)


def test_weighted_cuts_match_repeated_rows():
    rng = np.random.default_rng(19)
    rows = np.column_stack([rng.normal(size=31), rng.integers(0, 3, 31), np.ones(31)])
    weights = rng.integers(1, 5, 31)
    np.testing.assert_array_equal(
        median_cuts(rows, weights.astype(float)), median_cuts(np.repeat(rows, weights, axis=0))
    )
    np.testing.assert_array_equal(median_cuts(rows, np.ones(31)), median_cuts(rows))
