"""Rows may come in pieces, leave again, and be learned by many workers: the table is a sum."""

import numpy as np
import pytest
from hashed_rows import families, model, rows, same, state
from hypothesis import given
from hypothesis import strategies as st

from sparsact import LSHClassifier, LSHRegressor

X, Y = rows()
QUERIES = rows(m=37, seed=4)[0]
GIVEN = {"bucket_width": 0.7, "alpha": 0.1, "directions": "principal", "n_hashes": 3}


@families
def test_fit_is_partial_fit_in_pieces_is_a_merge_of_workers(options, kernels_in_use):
    whole = model(**options).fit(X, Y)
    pieces = whole.blank()
    for part in np.array_split(np.arange(len(X)), 4):
        pieces.partial_fit(X[part], Y[part])
    merged = whole.blank().partial_fit(X[:50], Y[:50]).merge(whole.blank().partial_fit(X[50:], Y[50:]))
    for other in (pieces, merged):
        assert same(state(whole), state(other), 1e-9)
        np.testing.assert_allclose(other.predict(QUERIES), whole.predict(QUERIES), rtol=1e-9, atol=1e-9)
        assert other.n_samples_seen_ == 211


@families
def test_what_is_removed_was_never_there(options, kernels_in_use):
    both = model(**options).fit(X, Y)
    left = both.blank().partial_fit(X[:150], Y[:150])
    both.remove(X[150:], Y[150:])
    assert same(state(left), state(both), 1e-9)
    np.testing.assert_allclose(both.predict(QUERIES), left.predict(QUERIES), rtol=1e-8, atol=1e-8)


@pytest.mark.grid
@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=30))
def test_any_order_of_adding_and_removing_counts_what_is_left(steps):
    """Against a multiset kept by hand: refusals included."""
    learner = model(bucket_width=0.8, n_hashes=2, alpha=0.1, directions="principal").fit(X, Y).blank()
    held = np.zeros(13, dtype=int)
    for row, come in steps:
        if come:
            learner.partial_fit(X[[row]], Y[[row]])
        elif held[row]:
            learner.remove(X[[row]], Y[[row]])
        else:
            with pytest.raises(ValueError, match="nothing was removed"):
                learner.remove(X[[row]], Y[[row]])
            continue
        held[row] += 1 if come else -1
    again = learner.blank()
    for row in np.flatnonzero(held):
        for _ in range(held[row]):
            again.partial_fit(X[[row]], Y[[row]])
    assert learner.n_samples_seen_ == held.sum()
    assert learner.n_buckets_ == again.n_buckets_
    if held.any():
        np.testing.assert_allclose(learner.predict(QUERIES), again.predict(QUERIES), rtol=1e-7, atol=1e-7)


def test_an_empty_bucket_is_dropped():
    learner = model(bucket_width=0.1).fit(X, Y)
    buckets = learner.apply(X)
    alone = np.flatnonzero((learner.bucket_counts_[buckets] == 1).all(axis=1))[:1]
    n_buckets = learner.n_buckets_
    learner.remove(X[alone], Y[alone])
    assert learner.n_buckets_ == n_buckets - 3
    assert (learner.apply(X[alone]) == -1).all()
    assert learner.bucket_counts_.min() > 0


def test_all_rows_may_leave_and_come_back():
    learner = model().fit(X, Y)
    before = learner.predict(QUERIES)
    learner.remove(X, Y)
    assert learner.n_buckets_ == 0
    with pytest.raises(ValueError, match="holds no rows"):
        learner.predict(QUERIES)
    np.testing.assert_allclose(learner.partial_fit(X, Y).predict(QUERIES), before, rtol=1e-9)


WRONG = {
    "never added": lambda X, Y: (X + np.array([0, 0, 0, 0, 1e-9]), Y, None),
    "another target": lambda X, Y: (X, Y + np.array([0, 1e-9, 0]), None),
    "another weight": lambda X, Y: (X, Y, [1, 1, 1.5]),
    "too often": lambda X, Y: (X[[0, 1, 0]], Y[[0, 1, 0]], None),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_removal_changes_nothing(wrong):
    learner = model().fit(X, Y)
    before = state(learner)
    with pytest.raises(ValueError, match="nothing was removed"):
        learner.remove(*WRONG[wrong](X[:3], Y[:3]))
    assert same(before, state(learner))


@pytest.mark.parametrize("wrong", [-np.inf, np.inf, 1e80])
def test_a_wrong_addition_changes_nothing(wrong):
    learner = model().fit(X, Y)
    before = state(learner)
    far = X[:4].copy()
    far[2, 1] = wrong
    with pytest.raises(ValueError, match=r"NaN|infinity|row 2 lies too far"):
        learner.partial_fit(far, Y[:4])
    assert same(before, state(learner))
    with pytest.raises(ValueError, match=r"NaN|infinity|too large"):
        learner.partial_fit(X[:4], np.where(np.arange(4) == 2, wrong, Y[:4]))
    assert same(before, state(learner))


DIFFERENT = {
    "seeds": {"random_state": 8},
    "degree": {"degree": 2},
    "directions": {"n_hashes": 2},
}


@pytest.mark.parametrize("part", DIFFERENT)
def test_merging_what_differs_names_it(part):
    ours, theirs = model(**GIVEN).fit(X, Y), model(**{**GIVEN, **DIFFERENT[part]}).fit(X, Y)
    before = state(ours)
    with pytest.raises(ValueError, match=part):
        ours.merge(theirs)
    assert same(before, state(ours))


@pytest.mark.grid
def test_merging_other_columns_names_or_kinds():
    ours = model().fit(X, Y)
    with pytest.raises(ValueError, match="centre"):
        ours.merge(model().fit(X[:, :4], Y))
    with pytest.raises(ValueError, match="itself"):
        ours.merge(ours)
    with pytest.raises(TypeError, match="LSHClassifier"):
        ours.merge(LSHClassifier(random_state=7).fit(X, Y > 0))
    pandas = pytest.importorskip("pandas", reason="names of columns come with pandas")
    named = model().fit(pandas.DataFrame(X, columns=list("abcde")), Y)
    renamed = model().fit(pandas.DataFrame(X, columns=list("abcdf")), Y)
    for one, other in ((named, renamed), (ours, named)):
        with pytest.raises(ValueError, match="names of columns"):
            one.merge(other)


def test_a_merge_leaves_the_other_alone():
    whole = model().fit(X, Y)
    one, other = whole.blank().partial_fit(X[:90], Y[:90]), whole.blank().partial_fit(X[90:], Y[90:])
    before = state(other)
    one.merge(other)
    one.remove(X[90:95], Y[90:95]).partial_fit(X[:3], Y[:3])
    assert same(before, state(other))


def test_blanks_share_hashes_and_nothing_else():
    whole = model().fit(X, Y)
    before = state(whole)
    blank = whole.blank()
    assert blank.n_buckets_ == 0
    blank.partial_fit(X[:9], Y[:9])
    assert same(before, state(whole))
    assert blank.miss_rate_ > whole.miss_rate_


def test_equal_rows_are_counted_as_often_as_they_come():
    twice = model().fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2))
    twice.remove(X[:5], Y[:5]).remove(X[:5], Y[:5])
    with pytest.raises(ValueError, match="row 0"):
        twice.remove(X[:5], Y[:5])
    assert twice.n_samples_seen_ == 2 * 206


def test_minus_zero_is_zero():
    learner = LSHRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    assert learner.remove([[-0.0]], [-0.0]).n_samples_seen_ == 2


@pytest.mark.parametrize(("options", "rounding"), [(GIVEN, 1e-9), ({}, 1e-6)])
def test_weights_are_repetitions_also_to_the_choice_of_a_layout(options, rounding):
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = model(**options).fit(X, Y, weights.astype(float))
    repeated = model(**options).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    assert weighted.bucket_width_ == pytest.approx(repeated.bucket_width_)
    np.testing.assert_allclose(weighted.predict(QUERIES), repeated.predict(QUERIES), rtol=rounding, atol=rounding)
    assert weighted.n_samples_seen_ == np.count_nonzero(weights)


def test_rows_of_no_weight_are_left_out():
    weights = (X[:, 0] > 0).astype(float)
    part, whole = model().fit(X, Y, weights), model().fit(X[weights > 0], Y[weights > 0])
    np.testing.assert_array_equal(part.predict(QUERIES), whole.predict(QUERIES))


@pytest.mark.parametrize("size", [1e9, 1e12])
def test_targets_far_off_leave_no_trace(size):
    """Predictions and intervals after 20 of them came and went, alone and at once."""
    rng = np.random.default_rng(50)
    X = rng.normal(size=(600, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    learner = LSHRegressor(n_tables=8, bucket_width=0.5, degree=1, n_stages=1, random_state=1).fit(X, y)
    before, values = learner.predict_interval(X), learner.predict(X)
    far = X[:20] * 1.01, size * rng.normal(size=20)
    learner.partial_fit(*far).remove(*far)
    for i in range(20):
        learner.partial_fit(far[0][i : i + 1], far[1][i : i + 1])
    learner.merge(learner.blank().partial_fit(*far)).remove(*far).remove(*far)
    np.testing.assert_allclose(learner.predict(X), values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.predict_interval(X), before, rtol=1e-6, atol=1e-6)
