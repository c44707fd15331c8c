"""Rows added and taken away again: the bits of never seen, whatever their size."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsact import LowDegreeClassifier, LowDegreeRegressor, LSHClassifier, LSHRegressor, kernels
from sparsact.kernels import dispatch

rng = np.random.default_rng(0)
m, n = 61, 5
SIGNS = 1 - 2 * rng.integers(0, 2, (m, n))
COLUMNS = rng.normal(size=(m, n))
Y = rng.normal(size=m) + 2 * SIGNS[:, 0] * SIGNS[:, 3]
SIZES = [5e-324, 1e-300, 1e-160, 1.0, 1e160, 1e300]
reals = st.builds(lambda size, value: size * value, st.sampled_from(SIZES), st.integers(-9, 9).map(float))
powers = st.sampled_from([1.0, 0.5, 2.0**60, 2.0**-20])
rows = st.lists(st.tuples(st.integers(0, m - 1), reals, powers), min_size=1, max_size=9)


def part(drawn):
    """Rows whose weights are powers of two, with targets on which these neither overflow nor lose a digit."""
    place, y, weights = (np.array(column) for column in zip(*drawn, strict=True))
    room = (np.abs(y) < 1e150) & ((np.abs(y) > 1e-200) | (y == 0))
    return SIGNS[place], y, np.where(room, weights, 1.0)


def answers(model):
    return [model.coefficients_, model.intercept_, model.r2_, model.residual_variance_, model.n_samples_seen_]


def same_bits(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("solver", ["cells", "moments", "kernel", "correlation"])
@settings(max_examples=15)
@given(rows)
def test_rows_forgotten_leave_no_bit(solver, drawn):
    X, y, weights = part(drawn)
    never = LowDegreeRegressor(2, solver=solver).fit(SIGNS, Y)
    model = LowDegreeRegressor(2, solver=solver).fit(SIGNS, Y).partial_fit(X, y, weights)
    assert model.n_samples_seen_ == m + len(y)
    same_bits(answers(model.remove(X, y, weights)), answers(never))


@pytest.mark.grid
@settings(max_examples=15)
@given(rows, rows)
def test_any_grouping_of_rows_gives_the_same_bits(one, other):
    parts = [(SIGNS, Y, np.ones(m)), part(one), part(other)]
    whole = LowDegreeRegressor(2, solver="moments").fit(
        *(np.concatenate(column) for column in zip(*parts, strict=True))
    )
    first, second, third = (LowDegreeRegressor(2, solver="moments").partial_fit(*each) for each in parts)
    same_bits(answers(third.merge(first.merge(second))), answers(whole))


@pytest.mark.parametrize("solver", ["cells", "moments"])
def test_forgotten_beside_2_to_the_60_copies(solver):
    many = LowDegreeRegressor(2, solver=solver).fit(SIGNS, Y)
    for _ in range(60):
        many.merge(deepcopy(many))
    before = answers(many)
    huge = np.where(np.arange(7) % 2, 1e300, 5e-324)
    same_bits(answers(many.partial_fit(SIGNS[:7], huge).remove(SIGNS[:7], huge)), before)


def test_classes_forgotten():
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, m)]
    never = LowDegreeClassifier(2).fit(SIGNS, labels)
    model = LowDegreeClassifier(2).fit(SIGNS, labels)
    weights = np.full(9, 2.0**300)
    model.partial_fit(SIGNS[:9], labels[:9], sample_weight=weights).remove(SIGNS[:9], labels[:9], weights)
    np.testing.assert_array_equal(model.predict_proba(SIGNS), never.predict_proba(SIGNS))


@pytest.mark.parametrize("make", [LowDegreeClassifier, lambda: LSHClassifier(2, random_state=0)])
def test_weights_that_stand_where_classes_do(make):
    labels = rng.integers(0, 3, m)
    model = make().fit(SIGNS, labels)
    with pytest.raises(ValueError, match=r"`classes` must be \[0, 1, 2\].*sample_weight="):
        model.partial_fit(SIGNS[:9], labels[:9], np.full(9, 2.0))
    assert model.partial_fit(SIGNS[:9], labels[:9], [2, 1, 0]).n_samples_seen_ == m + 9


def test_rows_of_buckets_taken_away():
    """Bucket sums are floats: integers come back to the bit, other numbers within rounding of the largest."""
    X = rng.integers(-8, 9, (m, n)).astype(float)
    wish = {"bucket_width": 4.0, "alpha": 0.5, "degree": 0, "random_state": 0}
    learner = LSHRegressor(3, **wish).fit(X, Y)
    held = learner.table_.counts.copy(), learner.table_.sums.copy()
    learner.partial_fit(X[:9], Y[:9], np.full(9, 2.0**40)).remove(X[:9], Y[:9], np.full(9, 2.0**40))
    np.testing.assert_array_equal(learner.table_.counts, held[0])
    np.testing.assert_allclose(learner.table_.sums, held[1], atol=2.0**40 * 1e-13)
    with pytest.raises(ValueError, match="row 0 was not added"):
        learner.remove(X[:1], Y[:1] + 1.0)
    np.testing.assert_array_equal(learner.table_.counts, held[0])


@pytest.mark.parametrize("solver", ["cells", "moments", "kernel", "lasso"])
@pytest.mark.parametrize("power", [-640, 0, 640])
def test_the_reference_kernels_give_the_same_bits(solver, power):
    if dispatch.native is None:
        pytest.skip("the native kernels are not built")
    found = []
    for backend in ("native", "reference"):
        with kernels.using(backend):
            model = LowDegreeRegressor(2, 0.01 if solver == "lasso" else 0.0, solver=solver)
            model.fit(SIGNS, np.ldexp(Y, power)).partial_fit(SIGNS[:3], [1e200, -1e300, 5e-324])
            found.append([model.remove(SIGNS[:3], [1e200, -1e300, 5e-324]).coefficients_, model.r2_])
    same_bits(*found)
