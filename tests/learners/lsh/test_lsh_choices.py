"""What is chosen, by which seed, and what has no say in it."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from grids import few_of
from hashed_rows import families, model, rows
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from sparsact import LSHClassifier, LSHRegressor
from sparsact.kernels.hashing import hash_generator
from sparsact.learners.lsh import estimator
from sparsact.learners.lsh.layout import differing_arrays, random_rotation
from sparsact.learners.lsh.model_choice import choose

X, Y = rows(m=120)
QUERIES = rows(m=37, seed=4)[0]


@families
def test_a_seed_is_a_model(options):
    one, again = (model(**options).fit(X, Y) for _ in range(2))
    other = model(**options | {"random_state": 8}).fit(X, Y)
    np.testing.assert_array_equal(one.predict(QUERIES), again.predict(QUERIES))
    assert one.trials_ == again.trials_
    assert not np.array_equal(one.table_.layout.hashes.directions, other.table_.layout.hashes.directions)
    assert not np.intersect1d(one.table_.index.keys, other.table_.index.keys).size


def test_random_state_may_be_a_generator_of_states():
    states = [np.random.RandomState(5) for _ in range(2)]
    one, again = (model(random_state=state).fit(X, Y).predict(QUERIES) for state in states)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(model(random_state=states[0]).fit(X, Y).predict(QUERIES), one)
    model(random_state=None).fit(X, Y)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1])
def test_hashes_are_never_in_step_with_data_of_the_same_seed(seed):
    """Correlations of 4,096 pairs beyond 6 / sqrt(4096) have probability below 1e-8 if they are independent."""
    n = 4096
    ours = hash_generator(seed).normal(size=n)
    theirs = [np.random.default_rng(seed).normal(size=n), np.random.RandomState(seed).normal(size=n)]
    theirs += [child.normal(size=n) for child in np.random.default_rng(seed).spawn(3)]
    for stream in theirs:
        assert not np.intersect1d(ours, stream).size
        assert abs(np.corrcoef(ours, stream)[0, 1]) < 6 / np.sqrt(n)


def test_directions_are_no_rows_of_data_of_the_same_seed():
    data = np.random.default_rng(7).normal(size=(300, 5))
    learner = LSHRegressor(2, 3, 1.0, 0, "euclidean", random_state=7).fit(data, data[:, 0])
    assert not np.intersect1d(learner.table_.layout.hashes.directions, data).size


def test_rotations_are_orthogonal_and_of_both_signs():
    """32 determinants, all of one sign with probability 2^-31."""
    rng = np.random.default_rng(0)
    rotations = [random_rotation(3, rng) for _ in range(32)]
    assert all(np.allclose(Q.T @ Q, np.eye(3)) for Q in rotations)
    assert {round(float(np.linalg.det(Q))) for Q in rotations} == {-1, 1}


@families
def test_the_order_of_rows_has_no_say(options):
    shuffled = np.random.default_rng(0).permutation(len(X))
    one, other = model(**options).fit(X, Y), model(**options).fit(X[shuffled], Y[shuffled])
    assert one.bucket_width_ == other.bucket_width_
    assert not differing_arrays(one.table_.layout.arrays(), other.table_.layout.arrays())
    np.testing.assert_allclose(one.predict(QUERIES), other.predict(QUERIES), rtol=1e-7, atol=1e-7)


@families
def test_inputs_and_the_global_generator_are_left_alone(options):
    held = X.copy(), Y.copy(), np.ones(len(X))
    for array in held:
        array.setflags(write=False)
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - that it is not touched is the test
    learner = model(**options).fit(*held).partial_fit(*held).remove(*held)
    learner.predict(held[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(held[0], X)
    np.testing.assert_array_equal(held[1], Y)


def test_memory_order_and_types_have_no_say():
    expected = model().fit(X, Y).predict(QUERIES)
    strided = np.zeros((2 * len(X), 10))
    strided[::2, ::2] = X
    for given in (np.asfortranarray(X), strided[::2, ::2], X.tolist(), X.astype(np.longdouble)):
        np.testing.assert_array_equal(model().fit(given, Y.tolist()).predict(QUERIES), expected)
    np.testing.assert_array_equal(model().fit(X, Y).predict(np.asfortranarray(QUERIES)), expected)


def test_threads_change_nothing():
    one, two = (model(n_jobs=n).fit(X, Y) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(QUERIES), two.predict(QUERIES))
    np.testing.assert_array_equal(one.predict_interval(QUERIES), two.predict_interval(QUERIES))


def test_the_layout_of_few_rows_is_chosen_on_one_thread(monkeypatch):
    seen = []

    def watched(*args):
        seen.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"})
        return choose(*args)

    monkeypatch.setattr(estimator, "choose", watched)
    for most in (estimator.WORTH_THREADS, 0):
        monkeypatch.setattr(estimator, "WORTH_THREADS", most)
        with threadpool_limits(2, "openmp"):
            model().fit(X, Y)
    assert seen == [{1}, {2}]


def test_copies_and_clones():
    learner = model().fit(X, Y)
    copy, fresh = deepcopy(learner), clone(learner)
    learner.remove(X[:100], Y[:100])
    np.testing.assert_array_equal(copy.predict(QUERIES), model().fit(X, Y).predict(QUERIES))
    assert fresh.get_params() == learner.get_params()
    assert not hasattr(fresh, "table_")


def test_parameters_of_prediction_may_be_set_later():
    learner = model().fit(X, Y)
    far = X[:2] + 1e6
    assert np.isfinite(learner.predict(far)).all()
    assert np.isnan(learner.set_params(fallback="nan").predict(far)).all()
    np.testing.assert_allclose(learner.set_params(fallback="mean").predict(far), Y.mean())
    np.testing.assert_array_equal(learner.set_params(n_tables=9).predict(X), model().fit(X, Y).predict(X))


def test_a_second_fit_begins_anew():
    learner = model().fit(X[:, :3], Y * 5)
    np.testing.assert_array_equal(learner.fit(X, Y).predict(QUERIES), model().fit(X, Y).predict(QUERIES))


def test_the_width_has_the_least_error_of_all_tried():
    learner = model(directions="principal").fit(X, Y)
    best = min(learner.trials_, key=lambda trial: trial.error)
    assert (best.bucket_width, best.alpha) == (learner.bucket_width_, learner.alpha_)
    assert len({trial.bucket_width for trial in learner.trials_}) > 2


def test_the_error_of_a_trial_matches_models_without_the_row():
    """Leaving one out, literally: as many models as rows, which are too few for folds."""
    fixed = {"bucket_width": 1.0, "alpha": 0.1, "n_hashes": 3}
    learner = model(directions="auto", fallback="nan", extrapolate="linear", **fixed).fit(X, Y)
    trial = [t for t in learner.trials_ if t.directions == learner.directions_][-1]
    errors = []
    for row in range(len(X)):
        value = learner.remove(X[[row]], Y[[row]]).predict(X[[row]])[0]
        level = (
            learner.table_.layout.level[0]
            + ((X[row] - learner.table_.layout.hashes.centre) @ learner.table_.layout.trend)[0]
        )
        errors.append((level if np.isnan(value) else value) - Y[row])
        learner.partial_fit(X[[row]], Y[[row]])
    unit = learner.table_.layout.unit[0]
    assert np.sqrt(np.mean(np.square(errors))) / unit == pytest.approx(trial.error, rel=1e-6)


def test_gradients_find_the_direction_in_which_the_target_moves():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(900, 6))
    learner = LSHRegressor(random_state=0, directions="gradients", n_stages=1, columns="all").fit(
        Z, np.sin(2 * Z[:, 4])
    )
    leading = learner.table_.layout.hashes.local[:, 0]
    assert abs(leading[4]) > 0.99 * np.linalg.norm(leading)


def test_scales_and_shifts_of_the_rows_change_nothing():
    # What is chosen by held-out rows is given: which rows those are depends on the bits of their numbers.
    fixed = {"directions": "principal", "n_hashes": 3, "degree": 2, "bucket_width": 1.4, "alpha": 1e-5, "n_stages": 1}
    expected = model(**fixed).fit(X, Y).predict(QUERIES)
    for scale in (1e-300, 1e-150, 2.0**20, 1e150, 1e299):
        scaled = model(**fixed).fit(X * scale, Y).predict(QUERIES * scale)
        np.testing.assert_allclose(scaled, expected, rtol=1e-6, atol=1e-6)
    for scale in (1e-300, 1e-150, 1e150, 1e300):
        scaled = model(**fixed).fit(X, Y * scale).predict(QUERIES)
        np.testing.assert_allclose(scaled / scale, expected, rtol=1e-6, atol=1e-6)


def test_the_classifier_shares_the_layout():
    labels = np.where(Y.mean() < Y, "high", "low")
    learner = LSHClassifier(3, random_state=7).fit(X, labels)
    targets = model(directions="auto", columns="all").fit(
        X, np.column_stack([labels == "high", labels == "low"]).astype(float)
    )
    assert not differing_arrays(learner.table_.layout.arrays(), targets.table_.layout.arrays())


def test_a_stream_may_begin_with_a_single_row():
    """The layout is chosen anew as rows double, and then stands: no row is lost, the model is as good as one fit."""
    rng = np.random.default_rng(8)
    points = rng.uniform(-1, 1, (3000, 2))
    target = np.abs(points).sum(axis=1)
    options = {"n_tables": 8, "n_stages": 1, "degree": 1, "directions": "principal", "random_state": 0}
    streamed, whole = (LSHRegressor(**options) for _ in range(2))
    for start, stop in zip([0, 1, 2, 5, 20, 100, 700, 2100], [1, 2, 5, 20, 100, 700, 2100, 3000], strict=True):
        streamed.partial_fit(points[start:stop], target[start:stop])
    whole.fit(points, target)
    new = rng.uniform(-1, 1, (500, 2))
    errors = [np.sqrt(np.mean((model.predict(new) - np.abs(new).sum(axis=1)) ** 2)) for model in (streamed, whole)]
    assert streamed.n_samples_seen_ == 3000
    assert errors[0] < 1.5 * errors[1] < 0.1
    layout = streamed.table_.layout
    streamed.partial_fit(points + 3, target)
    assert streamed.table_.layout is layout


def test_rows_of_a_young_stream_can_be_removed_and_merged():
    rng = np.random.default_rng(9)
    points = rng.normal(size=(60, 2))
    target = points[:, 0] ** 2
    model = LSHRegressor(random_state=0).partial_fit(points[:10], target[:10]).remove(points[:3], target[:3])
    model.partial_fit(points[10:], target[10:])
    assert model.n_samples_seen_ == 57
    other = model.blank().partial_fit(points[:3], target[:3])
    assert model.merge(other).n_samples_seen_ == 60
    layout = model.table_.layout
    model.partial_fit(points + 1, target).partial_fit(points + 2, target)
    assert model.table_.layout is layout
    with pytest.raises(ValueError, match="was not added"):
        model.remove(points + 5, target)


@pytest.mark.parametrize(("m", "d"), few_of([(150, 100), (50, 100)], [(50, 100)]))
def test_a_line_through_noise_is_no_trend(m, d):
    """With as many columns as rows every noise has a line through it; held-out scores must be nearly the mean's."""
    rng = np.random.default_rng(m)
    points, noise = rng.normal(size=(m + 400, d)), rng.normal(size=m + 400)
    fitted = LSHRegressor(random_state=0).fit(points[:m], noise[:m])
    assert fitted.score(points[m:], noise[m:]) > -0.2


@pytest.mark.grid
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 24), marks=pytest.mark.slow)], ids=str)
def test_thin_buckets_without_a_penalty(degree, seeds):
    """Buckets with hardly more rows than coefficients: the order of rows and the units of y change nothing."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        m, d = int(rng.integers(8, 120)), int(rng.integers(1, 5))
        X, Q, order = rng.normal(size=(m, d)), rng.normal(size=(50, d)), rng.permutation(m)
        y = X[:, 0] + 0.3 * rng.normal(size=m)
        model = LSHRegressor(alpha=0.0, degree=degree, bucket_width="auto" if seed % 3 else 0.5, random_state=0)
        fitted, scaled = clone(model).fit(X, y), clone(model).fit(X, 1024 * y)
        expected = fitted.predict(Q)
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(clone(model).fit(X[order], y[order]).predict(Q), expected, atol=1e-6 * scale)
        for part in ("local", "directions", "offsets"):
            mine, theirs = (getattr(m.table_.layout.hashes, part) for m in (fitted, scaled))
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(scaled.predict(Q), 1024 * expected, atol=1e-3 * scale)


def kinked(m=200):
    rng = np.random.default_rng(1)
    table, queries = rng.normal(size=(m, 3)), rng.normal(size=(60, 3))
    return table, np.abs(table[:, 0]) + table[:, 1] + 0.05 * rng.normal(size=m), queries


@cache
def of_kinks(alpha):
    table, y, _ = kinked()
    return LSHRegressor(random_state=0, alpha=alpha).fit(table, y)


@pytest.mark.grid
@pytest.mark.parametrize(
    "change", few_of(["noise", "offset", "unit", "y", "copies", "order"], ["noise", "y", "copies"])
)
def test_rounding_offsets_units_and_copies_turn_no_choice(change):
    """The same layout is chosen; offsets and units are powers of two times 3, so that sums are rounded elsewhere."""
    table, y, queries = kinked()
    other, z, there = table.copy(), y.copy(), queries.copy()
    if change == "noise":
        other = table * (1 + 1e-14 * np.random.default_rng(2).normal(size=table.shape))
    elif change in ("offset", "unit"):
        other, there = (part + 3e4 if change == "offset" else part * 3e-5 for part in (table, queries))
    elif change == "y":
        z = 3 * y + 3e5
    elif change == "copies":
        other, z = np.concatenate([table, table]), np.concatenate([y, y])
    else:
        other, z = table[::-1], y[::-1]
    penalties = (0.01, 0.02) if change == "copies" else ("auto", "auto")  # a penalty is in rows
    first, second = of_kinks(penalties[0]), LSHRegressor(random_state=0, alpha=penalties[1]).fit(other, z)
    chosen = [(one.degree_, one.n_tables_, one.n_stages_, one.directions_) for one in (first, second)]
    assert chosen[0] == chosen[1]
    assert change == "copies" or first.alpha_ == second.alpha_
    assert first.columns_.tolist() == second.columns_.tolist()
    found = (second.predict(there) - 3e5) / 3 if change == "y" else second.predict(there)
    assert np.median(np.abs(found - first.predict(queries))) < 1e-4


def test_of_equally_good_directions_the_first_is_taken():
    """In one dimension all directions are one; which has the lesser last bit must not matter."""
    table, y, _ = kinked()
    assert LSHRegressor(random_state=0, n_stages=1).fit(table[:, :1], y).directions_ == "principal"


@pytest.mark.parametrize("family", ["pca_grid", "euclidean", "hyperplane"])
@pytest.mark.parametrize("offset", few_of([1e4, 1e9], [1e9]))
def test_every_family_learns_rows_and_targets_far_from_zero(offset, family):
    table, y, queries = kinked()
    truth = np.abs(queries[:, 0]) + queries[:, 1]
    options = {"family": family, "random_state": 0, "n_tables": 8, "degree": 1, "n_stages": 1}
    error = np.abs(LSHRegressor(**options).fit(table, y).predict(queries) - truth).mean()
    found = LSHRegressor(**options).fit(table + offset, y + offset).predict(queries + offset) - offset
    assert np.abs(found - truth).mean() < 1.2 * error + 1e-3
