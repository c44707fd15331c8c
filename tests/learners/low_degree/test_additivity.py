"""Any split of the rows, in any order, merged in any tree: the same bits."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sparsact import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.solvers.solver import solvers

properties = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOLVERS = ["auto", *sorted(name for name, one in solvers().items() if one.by_name)]


def sample(rng, m, n, T=2, magnitudes=9):
    X = rng.integers(0, 2, (m, n))
    X[: m // 4] = 1  # a row of ones may be bits or signs
    y = rng.normal(size=(m, T)) * 10.0 ** rng.integers(-magnitudes, magnitudes + 1, (m, 1))
    weights = rng.random(m) * rng.integers(0, 2, m)
    weights[-1] = 1.0
    return X, y, weights


def same(a, b):
    assert a.subsets_ == b.subsets_
    assert a.n_samples_seen_ == b.n_samples_seen_
    assert a.encoding_ == b.encoding_
    assert_array_equal(a.coefficients_, b.coefficients_)
    assert_array_equal(a.intercept_, b.intercept_)
    assert_array_equal(a.r2_, b.r2_)


@pytest.mark.grid
@pytest.mark.parametrize("solver", SOLVERS)
@properties
@given(
    written=st.sampled_from(["bits", "signs"]),
    m=st.integers(1, 40),
    n=st.integers(1, 6),
    degree=st.integers(1, 3),
    seed=st.integers(0, 999),
)
def test_any_order_and_any_split(solver, written, m, n, degree, seed):
    rng = np.random.default_rng(seed)
    X, y, weights = sample(rng, m, n, magnitudes=0 if solver == "lasso" else 9)  # the lasso has a scale: alpha
    if written == "signs":
        X = 1 - 2 * X
    make = LowDegreeRegressor(degree, 0.1, solver)
    whole = clone(make).fit(X, y, weights)
    streamed = clone(make)
    order = rng.permutation(m)
    for rows in np.split(order, np.sort(rng.integers(0, m + 1, rng.integers(0, 2 * m)))):
        if len(rows):
            streamed.partial_fit(X[rows], y[rows], weights[rows])
    same(streamed, whole)


@pytest.mark.grid
@properties
@given(m=st.integers(2, 40), n=st.integers(1, 6), solver=st.sampled_from(SOLVERS), data=st.data())
def test_any_tree_of_merges(m, n, solver, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    X, y, weights = sample(rng, m, n, magnitudes=0 if solver == "lasso" else 9)
    make = LowDegreeRegressor(2, 0.1, solver)
    cuts = sorted(data.draw(st.lists(st.integers(1, m - 1), max_size=9, unique=True)))
    leaves = [clone(make).partial_fit(X[rows], y[rows], weights[rows]) for rows in np.split(rng.permutation(m), cuts)]
    while len(leaves) > 1:
        other = leaves.pop(data.draw(st.integers(0, len(leaves) - 1)))
        before = copy.deepcopy(other)
        place = data.draw(st.integers(0, len(leaves) - 1))
        assert leaves[place].merge(other) is leaves[place]
        if before.accumulator_.domain is not None and before.accumulator_.n_rows:
            assert_array_equal(other.coefficients_, before.coefficients_)  # what is merged is left as it was
    same(leaves[0], clone(make).fit(X, y, weights))


def test_batches_that_were_read_still_add():
    """A batch of ones that was fitted, and read, may still turn out to be bits or signs."""
    X, y, _ = sample(np.random.default_rng(3), 24, 4)
    for rows in (X, 1 - 2 * X):
        ones = LowDegreeRegressor(1).fit(np.ones((2, 4)), y[:2])
        assert ones.predict(np.ones((1, 4))).shape == (1, 2)
        whole = LowDegreeRegressor(1).fit(np.concatenate([np.ones((2, 4)), rows]), np.concatenate([y[:2], y]))
        same(LowDegreeRegressor(1).fit(rows, y).merge(ones), whole)
        ones.partial_fit(rows, y)
        same(ones, whole)


def test_a_buffer_may_be_used_again():
    X, y, weights = np.ones((2, 3)), np.array([3.0, 4.0]), np.array([1.0, 2.0])
    model = LowDegreeRegressor(1).partial_fit(X, y, weights)
    X[:], y[:], weights[:] = [[0, 1, 0], [1, 0, 0]], [7.0, -1.0], [5.0, 1.0]
    model.partial_fit(X, y, weights)
    whole = [[1, 1, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0]]
    same(model, LowDegreeRegressor(1).fit(whole, [3.0, 4.0, 7.0, -1.0], [1.0, 2.0, 5.0, 1.0]))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("rows", [np.ones((2, 3)), np.eye(3, dtype=int)])
def test_merging_with_itself_doubles(rows):
    y = np.arange(float(len(rows)))
    model = LowDegreeRegressor(1, 0.5).partial_fit(rows, y)
    model.merge(model)
    same(model, LowDegreeRegressor(1, 0.5).fit(np.tile(rows, (2, 1)), np.tile(y, 2)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_forgetting(solver):
    X, y, weights = sample(np.random.default_rng(5), 53, 5, magnitudes=0)
    make = LowDegreeRegressor(2, 0.1, solver)
    kept = clone(make).fit(X[20:], y[20:], weights[20:])
    model = clone(make).fit(X, y, weights)
    assert model.remove(X[:20][::-1], y[:20][::-1], weights[:20][::-1]) is model
    same(model, kept)
    model.remove(X[20:], y[20:], weights[20:])  # everything
    assert model.n_samples_seen_ == 0
    model.partial_fit(X[20:], y[20:], weights[20:])
    same(model, kept)


@pytest.mark.parametrize("n", [1, 2])
def test_columns_that_are_constant_once_rows_are_forgotten(n):
    """Removal leaves a Gram matrix of rounding alone, of either sign; nothing of it is taken for a slope."""
    for seed in range(9):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(3, 1, (9, n)), rng.normal(size=9)
        X[:4] = X[0]
        model = LowDegreeRegressor(1, alpha=0.0, domain="real").fit(X, y).remove(X[4:], y[4:])
        assert not model.coefficients_.any()


def test_forgetting_most_of_many_rows():
    """66,000 rows become moments; the 20 that stay are fewer than the monomials."""
    rng = np.random.default_rng(6)
    X, y = rng.integers(0, 2, (66_000, 30)), rng.normal(size=66_000)
    model = LowDegreeRegressor(1).fit(X, y)
    model.remove(X[20:], y[20:])
    np.testing.assert_allclose(model.coefficients_, LowDegreeRegressor(1).fit(X[:20], y[:20]).coefficients_, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_integer_weights_are_repetitions(solver):
    rng = np.random.default_rng(7)
    X, y, _ = sample(rng, 31, 5, magnitudes=0)
    times = rng.integers(0, 4, 31)
    make = LowDegreeRegressor(2, 0.1, solver)
    weighted = clone(make).fit(X, y, times)
    repeated = clone(make).fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    assert_array_equal(weighted.coefficients_, repeated.coefficients_)
    assert_array_equal(weighted.intercept_, repeated.intercept_)
    assert weighted.n_samples_seen_ == (times > 0).sum()
    assert repeated.n_samples_seen_ == times.sum()


def test_the_form_of_the_statistic_changes_on_the_way():
    """Rows, then cells; rows, then moments: growing streams change form and keep the sums."""
    rng = np.random.default_rng(8)
    for n, m, solver in [(9, 300, "auto"), (8, 70_000, "moments")]:
        X, y = rng.integers(0, 2, (m, n)), rng.normal(size=m)
        streamed, kinds = LowDegreeRegressor(2, solver=solver), []
        for start in (0, 1, 7, m // 2):
            stop = {0: 1, 1: 7, 7: m // 2}.get(start, m)
            streamed.partial_fit(X[start:stop], y[start:stop])
            kinds.append(type(streamed.accumulator_.statistics[0]).__name__)
        assert len(set(kinds)) == 2
        same(streamed, LowDegreeRegressor(2, solver=solver).fit(X, y))
        rows_first = LowDegreeRegressor(2, solver=solver).partial_fit(X[:3], y[:3])
        same(rows_first.merge(LowDegreeRegressor(2, solver=solver).fit(X[3:], y[3:])), streamed)


def test_real_columns_add_within_rounding():
    rng = np.random.default_rng(10)
    X, y, weights = rng.normal(size=(61, 3)) + 5, rng.normal(size=61), rng.random(61)
    whole = LowDegreeRegressor(2).fit(X, y, weights)
    streamed = LowDegreeRegressor(2).partial_fit(X[:20], y[:20], weights[:20])
    streamed.merge(LowDegreeRegressor(2).fit(X[20:50], y[20:50], weights[20:50]))
    streamed.partial_fit(X[40:], y[40:], weights[40:]).remove(X[40:50], y[40:50], weights[40:50])
    np.testing.assert_allclose(streamed.coefficients_, whole.coefficients_, rtol=1e-6)
    assert streamed.n_samples_seen_ == 61


def test_real_columns_may_begin_with_ones():
    rng = np.random.default_rng(11)
    X, y = np.concatenate([np.ones((3, 2)), rng.normal(size=(30, 2))]), rng.normal(size=33)
    streamed = LowDegreeRegressor(1).partial_fit(X[:3], y[:3]).partial_fit(X[3:], y[3:])
    np.testing.assert_allclose(streamed.coefficients_, LowDegreeRegressor(1).fit(X, y).coefficients_, rtol=1e-9)


def test_classifiers_add():
    rng = np.random.default_rng(12)
    X, labels = rng.integers(0, 2, (73, 5)), rng.choice(["a", "b", "c"], 73)
    whole = LowDegreeClassifier(2).fit(X, labels)
    streamed = LowDegreeClassifier(2)
    for start in range(0, 73, 10):
        streamed.partial_fit(X[start : start + 10], labels[start : start + 10], classes=["c", "a", "b"])
    merged = LowDegreeClassifier(2).merge(streamed)
    for model in (streamed, merged):
        assert_array_equal(model.coefficients_, whole.coefficients_)
        assert_array_equal(model.predict(X), whole.predict(X))
    half = LowDegreeClassifier(2).fit(X[:40], labels[:40])
    assert_array_equal(streamed.remove(X[40:], labels[40:]).coefficients_, half.coefficients_)


def test_copies_and_pickles_go_on():
    X, y, weights = sample(np.random.default_rng(14), 41, 5)
    whole = LowDegreeRegressor(2).fit(X, y, weights)
    begun = LowDegreeRegressor(2).partial_fit(X[:17], y[:17], weights[:17])
    for twin in (copy.deepcopy(begun), pickle.loads(pickle.dumps(begun))):
        same(twin.partial_fit(X[17:], y[17:], weights[17:]), whole)
    assert begun.n_samples_seen_ == (weights[:17] > 0).sum()


def test_a_fit_forgets_what_was_before():
    X, y, _ = sample(np.random.default_rng(15), 41, 5)
    model = LowDegreeRegressor(2).fit(1 - 2 * X[:, :3], y[:, 0])
    same(model.fit(X, y), LowDegreeRegressor(2).fit(X, y))


def test_a_failed_batch_leaves_no_trace():
    rng = np.random.default_rng(16)
    X, y = rng.integers(0, 2, (70_000, 3)).astype(float), rng.normal(size=70_000)
    bad = X.copy()
    bad[69_000, 1] = 2
    for make in (LowDegreeRegressor(1), LowDegreeRegressorCV((1,), (0.0,), 3)):
        model = clone(make).partial_fit(X[:12], y[:12])
        with pytest.raises(ValueError, match=r"holds 2.0"):
            model.partial_fit(bad, y)
        assert model.n_samples_seen_ == 12
        same(model.partial_fit(X[12:90], y[12:90]), clone(make).fit(X[:90], y[:90]))


@pytest.mark.parametrize("n", [3, 26])
@pytest.mark.parametrize("later", [{"degree": 3}, {"min_degree": 2}, {"subsets": [(0, 2)]}])
def test_sums_of_other_monomials_are_not_read(n, later):
    """Real columns, and rows that were summed into moments: what was not summed cannot be had."""
    rng = np.random.default_rng(17)
    X = rng.normal(size=(31, n)) if n == 3 else rng.integers(0, 2, (1 << 16, n))
    model = LowDegreeRegressor(2, solver="auto").fit(X, X[:, 0])
    model.set_params(**later).partial_fit(X[:9], X[:9, 0])
    with pytest.raises(ValueError, match="fit all rows again"):
        _ = model.coefficients_
    np.testing.assert_allclose(
        model.set_params(degree=1, min_degree=1, subsets=None).coefficients_[0], 1 if n == 3 else -0.5
    )
