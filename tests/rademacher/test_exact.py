"""Rademacher complexity on a few points: by hand, by duality and by brute force."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import sqrt

import numpy as np
import pytest
from dual_bounds import assert_best_on
from scipy.linalg import hadamard

from sparsact.hypercube import points
from sparsact.rademacher import exact_complexity
from sparsact.rademacher.dichotomies import dichotomies
from sparsact.rademacher.exact import Units, packings

SQUARE = points(2).astype(float)
CUBE = points(3).astype(float)
PLANE = np.random.default_rng(0).normal(size=(7, 2))


@pytest.mark.parametrize(("X", "expected"), [(CUBE, 104), (SQUARE, 14), (PLANE, 7 * 6 + 2), (CUBE[:1], 2)])
def test_number_of_dichotomies(X, expected):
    """104 threshold functions of three bits; m (m - 1) + 2 in general position in the plane."""
    sets = dichotomies(X)
    assert len(np.unique(sets, axis=0)) == len(sets) == expected


def test_dichotomies_do_not_depend_on_place_and_size():
    assert len(dichotomies(PLANE * 1e-12)) == len(dichotomies(PLANE * 1e9 + 1e10)) == 44


def test_dichotomies_match_random_halfspaces():
    rng = np.random.default_rng(1)
    cut = rng.normal(size=(20_000, 2)) @ PLANE.T > rng.normal(size=(20_000, 1))
    found = {tuple(row) for row in dichotomies(PLANE)}
    assert {tuple(row) for row in cut} <= found


@pytest.mark.parametrize(
    ("X", "W", "B"),
    [
        (CUBE, 1.0, 1.0),
        (CUBE, 0.5, 2.0),
        (PLANE, 2.0, 0.3),
        (PLANE * 1e-7, 1e7, 0.4),
        (PLANE + 50, 1.0, 3.0),
        (np.array([[0.0, 0], [1, 0], [2, 0], [3, 0], [0, 1]]), 1.0, 0.7),  # four on a line
        (np.array([[0.0, 0, 1], [1, 1, 1], [2, 2, 1]]), 1.0, 1.0),  # in a subspace
        (hadamard(7 + 1)[:7].astype(float), 1.0, 0.4),
    ],
)
def test_the_best_units_meet_their_dual_bounds(X, W, B):
    """Each is in its cone and of its scale, and no unit of the cone does better."""
    rng = np.random.default_rng(2)
    units = Units(X, W, B)
    C = np.concatenate([rng.choice([-1.0, 1.0], size=(2, len(X))), rng.normal(size=(1, len(X)))])
    values, best = units.best(C)
    for (draw, at), value in np.ndenumerate(values):
        inside, unit = units.sets[at], best[draw, at]
        assert_best_on(X, inside, C[draw], W, B, unit, value)


def test_packings_by_brute_force():
    rng = np.random.default_rng(3)
    sets, values = rng.random((6, 4)) < 0.4, rng.random((3, 6))
    for k in (1, 2, 3):
        totals = packings(values, sets, 3, k)
        for size in range(4):
            choices = [c for t in range(size + 1) for c in combinations_with_replacement(range(6), t)]
            legal = [list(c) for c in choices if (sets[list(c)].sum(axis=0) <= k).all()]
            assert totals[:, size] == pytest.approx(np.max([values[:, c].sum(axis=1) for c in legal], axis=0))


def test_one_unit_on_one_point():
    """The most that W |x| + B can be, whatever the sign."""
    assert exact_complexity([[3.0, 4.0]], 1, W=2.0, B=0.5).value == pytest.approx(10.5)


def test_two_points_by_hand():
    """One point alone is worth 2 W, at b = -W; both together 2 B where signs agree, and 2 W where they differ."""
    X = [[1.0], [-1.0]]
    assert exact_complexity(X, 1, W=1.0, B=1.0).value == pytest.approx(2 / 2)
    assert exact_complexity(X, 2, W=1.0, B=1.0).value == pytest.approx(4 / 2)
    assert exact_complexity(X, 1, W=1.0, B=4.0).value == pytest.approx((8 + 2) / 2 / 2)
    assert exact_complexity(X, 3, None, W=1.0, B=4.0).value == pytest.approx(3 * (8 + 2) / 2 / 2)


def test_dense_units_decouple():
    one = exact_complexity(SQUARE, 1, W=1.0, B=0.7).value
    dense = exact_complexity(SQUARE, [1, 2, 5], None, W=1.0, B=0.7).value
    assert dense == pytest.approx(one * np.array([1, 2, 5]))
    assert exact_complexity(SQUARE, 2, 2, W=1.0, B=0.7).value == pytest.approx(2 * one)


def test_complexity_grows_with_units_and_with_sparsity():
    sizes = [1, 2, 3, 4]
    by_k = np.array([exact_complexity(SQUARE, sizes, k, W=1.0, B=1.0).value for k in (1, 2, 3, None)])
    assert (np.diff(by_k, axis=0) >= -1e-9).all()
    assert (np.diff(by_k, axis=1) >= -1e-9).all()
    assert (by_k <= by_k[-1:] + 1e-9).all()


def test_complexity_scales_with_the_scale():
    small, large = (exact_complexity(PLANE[:5], 2, W=w, B=2 * w).value for w in (0.5, 1.5))
    assert large == pytest.approx(3 * small)


def test_a_wider_support_lowers_the_complexity():
    sample = CUBE[[0, 3, 5, 6]]
    alone, on_the_cube = (exact_complexity(sample, 3, support=more).value for more in (None, CUBE))
    assert on_the_cube < alone
    assert exact_complexity(sample, 3, support=sample).value == pytest.approx(alone)


def test_repeated_points_add_up():
    X = SQUARE[[0, 0, 1, 2]]
    signs = points(4)
    assert exact_complexity(X, 2, signs=signs).value == pytest.approx(exact_complexity(X, 2).value)
    agree = exact_complexity(X[:2], 1, W=1.0, B=1.0).value
    assert agree == pytest.approx((sqrt(2) + 1) / 2)  # half of the time the two signs cancel


def test_drawn_signs_carry_an_error():
    signs = np.random.default_rng(4).choice([-1, 1], size=(50, 4))
    estimate = exact_complexity(SQUARE, 1, signs=signs)
    assert (estimate.n_samples, exact_complexity(SQUARE, 1).standard_error) == (50, 0)
    assert 0 < estimate.standard_error < 0.1
    assert abs(estimate.value - exact_complexity(SQUARE, 1).value) < 5 * estimate.standard_error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": 0}, "`s` must be"),
        ({"s": 1.5}, "`s` must be"),
        ({"k": 0}, "`k` must be"),
        ({"W": 0.0}, "scale `W`"),
        ({"B": np.inf}, "scale `B`"),
        ({"X": [1.0, 2.0]}, "one row per point"),
        ({"X": [[np.nan]]}, "finite"),
        ({"X": np.arange(29.0)[:, None]}, "use lower_complexity"),
        ({"X": points(4), "s": 3, "k": 2}, "use lower_complexity"),
        ({"X": np.eye(16)}, "65536 sets"),
        ({"X": np.arange(13.0)[:, None]}, "rng.choice"),
        ({"signs": [[1, 1, -1]]}, "4 columns"),
        ({"signs": [[1, 1, -1, 1]]}, "at least 2 rows"),
        ({"signs": [[1, 1, -1, 2], [1, 1, 1, 1]]}, "signs"),
        ({"support": points(3)}, "2 columns"),
    ],
)
def test_bad_input(change, message):
    arguments = {"X": SQUARE, "s": 2, **change}
    with pytest.raises(ValueError, match=message):
        exact_complexity(**arguments)


def test_more_units_than_can_be_active_add_nothing():
    sizes = exact_complexity(SQUARE, [4, 5, 10**9], 1).value
    assert sizes == pytest.approx(sizes[0])
    assert sizes[0] > exact_complexity(SQUARE, 2, 1).value


def test_sizes_of_any_kind_and_bits():
    assert exact_complexity(SQUARE, np.int8(3), np.int8(2)).value == exact_complexity(SQUARE, 3, 2).value
    with pytest.raises(ValueError, match="a table of"):
        exact_complexity(np.arange(64.0)[:, None], 2, np.int64(1), signs=np.ones((2, 64)))
    with pytest.raises(ValueError, match="`X` holds bits"):
        exact_complexity(SQUARE > 0, 1)
    with pytest.raises(ValueError, match="`support` holds bits"):
        exact_complexity(SQUARE, 1, support=SQUARE > 0)


def test_the_error_of_two_draws_by_hand():
    """Points +-1 with W = 1, B = 4: 8 / 2 where the signs agree, 2 / 2 where they differ."""
    estimate = exact_complexity([[1.0], [-1.0]], 1, W=1.0, B=4.0, signs=[[1, 1], [1, -1]])
    assert estimate.value == pytest.approx(2.5)
    assert estimate.standard_error == pytest.approx(1.5)
