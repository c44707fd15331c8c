"""What a demanding user would try: the right answer or a clear error, never silence."""

import numpy as np
import pytest
import scipy.sparse as sp
from grids import few_of
from hashed_rows import families, model, rows, same, state

from sparsact import LSHClassifier, LSHRegressor

X, Y = rows()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(wrong):
    learner = model().fit(X, Y)
    spoiled, target = X.copy(), Y.copy()
    spoiled[5, 2] = target[5] = wrong
    weights = np.where(np.arange(len(X)) == 5, wrong, 1.0)
    before = state(learner)
    calls = [lambda m: m.partial_fit(spoiled, Y), lambda m: m.remove(spoiled, Y)]
    calls += [lambda m: m.fit(spoiled, Y), lambda m: m.predict(spoiled), lambda m: m.apply(spoiled)]
    calls += [lambda m: m.predict_interval(spoiled)]
    of_targets = [lambda m: m.partial_fit(X, target), lambda m: m.partial_fit(X, Y, weights)]
    for call in of_targets if np.isnan(wrong) else calls + of_targets:  # NaN in X is a missing value
        with pytest.raises(ValueError, match=r"NaN|infinity|Negative"):
            call(learner)
    assert same(before, state(learner))


def test_other_dimensions_than_the_first_rows_have():
    learner = model().fit(X, np.column_stack([Y, Y]))
    for columns in (4, 6):
        other = np.ones((3, columns))
        for call in (learner.predict, learner.apply, lambda Z: learner.partial_fit(Z, np.ones((3, 2)))):
            with pytest.raises(ValueError, match="5 features"):
                call(other)
    with pytest.raises(ValueError, match="1 targets"):
        learner.partial_fit(X, Y)
    with pytest.raises(ValueError, match="3 targets"):
        learner.remove(X, np.ones((211, 3)))
    with pytest.raises(ValueError, match="inconsistent"):
        learner.partial_fit(X[:5], np.ones((4, 2)))


def test_no_rows_or_the_wrong_number_of_axes():
    for call in (lambda: model().fit(X[:0], Y[:0]), lambda: model().fit(X, Y).predict(X[:0])):
        with pytest.raises(ValueError, match="0 sample"):
            call()
    for wrong in (X[0], X[None], 3.0):
        with pytest.raises(ValueError, match=r"2D|dim"):
            model().fit(X, Y).predict(wrong)


@families
def test_one_row_two_rows_and_rows_that_are_all_alike(options):
    queries = np.concatenate([X[:3], X[:1] * 50])
    np.testing.assert_allclose(model(**options).fit(X[:1], [3.5]).predict(queries), 3.5)
    assert np.isfinite(model(**options).fit(X[:2], Y[:2]).predict(queries)).all()
    alike = model(**options).fit(np.repeat(X[:1], 9, axis=0), np.arange(9.0))
    np.testing.assert_allclose(alike.predict(X[:1]), 4.0)
    assert alike.predict_interval(X[:1]).shape == (1, 2)


@families
def test_a_constant_target_is_learned_exactly(options):
    np.testing.assert_allclose(model(**options).fit(X, np.full(len(X), 7.25)).predict(X * 2), 7.25)


@families
def test_a_constant_column_and_a_repeated_one_change_little(options):
    more = np.column_stack([X, np.full(len(X), 1e9), X[:, 0]])
    predicted = model(**options).fit(more, Y).predict(more)
    assert np.isfinite(predicted).all()
    assert np.abs(predicted).max() < 10 * np.abs(Y).max()


def test_duplicated_rows_are_not_left_in_where_one_is_left_out():
    """A width chosen on copies must not be one at which each row finds its copy."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=len(X))
    once, twice = model().fit(X, noise), model().fit(np.repeat(X, 2, axis=0), np.repeat(noise, 2))
    assert twice.bucket_width_ > once.bucket_width_ / 1.5
    assert min(trial.error for trial in twice.trials_) > 0.9  # of the deviation: a copy left in would explain all


@pytest.mark.grid
@families
def test_types_of_numbers(options):
    small, y = (X[:120] * 4).astype(np.int8), Y[:120]
    expected = model(**options).fit(small.astype(float), y).predict(small.astype(float))
    for kind in (np.int8, np.int64, np.float16, np.float32, object):
        np.testing.assert_array_equal(model(**options).fit(small.astype(kind), y).predict(small.astype(kind)), expected)
    assert np.isfinite(model(**options).fit(small > 0, y > 0).predict(small > 0)).all()


def test_sparse_complex_and_words():
    for learner in (LSHRegressor(), LSHClassifier()):
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            learner.fit(sp.csr_array(X), Y > 0)
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        model().fit(X + 1j, Y)
    with pytest.raises(ValueError, match="holds texts, such as 'a'; pass numbers"):
        model().fit([["a", "b"]] * 3, [1, 2, 3])
    with pytest.raises(ValueError, match="targets second"):
        model().fit(Y, X)


@pytest.mark.parametrize("outlier", [-99999.0, 1e6, 1e12])
def test_an_outlier_does_not_blind_the_model(outlier):
    """A sentinel sets neither directions nor widths: the error at other rows stays what it was without it."""
    whole, target = rows(m=600)
    X, queries = whole[:300], whole[300:]
    spoiled, rest = X.copy(), np.arange(300) != 3
    spoiled[3, 1] = outlier
    without = model(n_tables=8).fit(X[rest], target[:300][rest])
    learner = model(n_tables=8).fit(spoiled, target[:300])
    np.testing.assert_allclose(learner.predict(queries), without.predict(queries), rtol=1e-6, atol=1e-6)
    assert np.isfinite(learner.predict(spoiled)).all()


@families
@pytest.mark.parametrize("outlier", few_of([1e6, 1e12, 1e200, 1e304], [1e12, 1e304]))
def test_an_outlier_among_the_rows(options, outlier):
    """Whatever its size, nothing overflows, or it is refused as too far from the others."""
    spoiled, target = X.copy(), Y.copy()
    spoiled[3, 1] = outlier
    if outlier > 1e49:
        with pytest.raises(ValueError, match="row 3 lies too far"):
            model(**options).fit(spoiled, Y)
    else:
        assert np.isfinite(model(**options).fit(spoiled, Y).predict(spoiled)).all()
    target[3] = outlier
    assert np.isfinite(model(**options).fit(X, target).predict(X)).all()


@families
def test_an_outlier_among_later_rows_leaves_the_others_alone(options):
    learner = model(**options).fit(X, Y)
    before, held = learner.predict(X[:50]), state(learner)
    far = X[:1] * 1e6
    learner.partial_fit(far, Y[:1])
    if options["family"] != "hyperplane":  # these share buckets with it
        np.testing.assert_allclose(learner.predict(X[:50]), before, rtol=1e-9)
    learner.remove(far, Y[:1])
    assert same(state(learner), held, 1e-3 if options["family"] == "hyperplane" else 1e-9)
    with pytest.raises(ValueError, match="row 1 lies too far"):
        learner.partial_fit(np.concatenate([X[:1], X[:1] * 1e200]), Y[:2])


@pytest.mark.parametrize("kind", [LSHRegressor, LSHClassifier])
def test_numbers_that_leave_no_room(kind):
    labels = (Y > 1).astype(int)
    with pytest.raises(ValueError, match="beyond 1e\\+305"):
        kind().fit(X * 1e307, labels)
    with pytest.raises(ValueError, match="weight of row 0 is 1e-200"):
        kind().fit(X, labels, np.full(len(X), 1e-200))
    with pytest.raises(ValueError, match="weight of row 0 is 1e\\+200"):
        kind(random_state=0).fit(X, labels, np.full(len(X), 1e200))
    with pytest.raises(ValueError, match="beyond 1e\\+305"):
        LSHRegressor().fit(X, Y * 1e307)


@pytest.mark.parametrize("family", ["pca_grid", "euclidean"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_widths_of_any_size(family, degree):
    for width in (1e-12, 1e12, 1e300):
        learner = model(family=family, degree=degree, bucket_width=width, n_hashes=3).fit(X, Y)
        assert np.isfinite(learner.predict(X * 1.1)).all()
        rows_in_a_bucket = {1e-12: 1, 1e12: len(X), 1e300: len(X)}[width]
        assert learner.bucket_counts_.max() == rows_in_a_bucket
    if degree == 0:
        one = model(family=family, degree=0, bucket_width=1e12, n_hashes=3).fit(X, Y)
        np.testing.assert_allclose(one.predict(X), Y.mean())
    for width in (1e-300, 5e-324):
        with pytest.raises(ValueError, match="bucket_width"):
            model(family=family, degree=degree, bucket_width=width, n_hashes=3).fit(X, Y)


@pytest.mark.grid
@families
def test_more_columns_than_rows_and_many_columns(options):
    rng = np.random.default_rng(0)
    for m, d in ((10, 40), (150, 300)):
        wide = rng.normal(size=(m, d))
        learner = model(**options).fit(wide, wide[:, 0])
        assert np.isfinite(learner.predict(rng.normal(size=(7, d)))).all()


def test_buckets_beyond_reason_are_refused():
    wide = np.random.default_rng(0).normal(size=(50, 200))
    with pytest.raises(ValueError, match="lower `degree` or `n_hashes`"):
        model(n_hashes=100, degree=2).fit(wide, wide[:, 0])
    assert np.isfinite(model(n_hashes=20).fit(wide, wide[:, 0]).predict(wide)).all()


def test_more_hashes_than_columns():
    assert model(n_hashes=40).fit(X, Y).n_hashes_ == 3  # in as many dimensions do the rows lie
    assert model(n_hashes=40).fit(X + np.random.default_rng(0).normal(size=X.shape), Y).n_hashes_ == 5
    for family in ("euclidean", "hyperplane"):
        assert model(family=family, n_hashes=40).fit(X, Y).n_hashes_ == 40


def test_weights_that_are_none():
    with pytest.raises(ValueError, match=r"non-zero|weight zero"):
        model().fit(X, Y, np.zeros(len(X)))
    learner = model().fit(X, Y)
    before = state(learner)
    for weights in (np.zeros(len(X)), -np.ones(len(X)), np.ones(3), np.ones((len(X), 2))):
        with pytest.raises(ValueError, match=r"non-zero|[Nn]egative|shape|[Ss]ample weights"):
            learner.partial_fit(X, Y, weights)
    assert same(before, state(learner))


OUT_OF_RANGE = {"n_tables": [0], "n_hashes": [0], "bucket_width": [0.0, -1.0, "wide"], "degree": [3, -1]}
OUT_OF_RANGE |= {"family": ["cubes"], "fallback": ["zero"], "alpha": [-0.1], "min_count": [0], "extrapolate": ["cut"]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in OUT_OF_RANGE for value in OUT_OF_RANGE[name]])
def test_parameters_out_of_range(name, value):
    for kind in (LSHRegressor, LSHClassifier):
        for learn in (kind.fit, kind.partial_fit):
            with pytest.raises(ValueError, match=name):
                learn(kind(**{name: value}), X, Y > 1)


def test_before_any_fit():
    learner = LSHRegressor()
    calls = [(call, [X]) for call in (learner.predict, learner.apply, learner.predict_interval)]
    calls += [(learner.predictor, []), (learner.blank, []), (learner.merge, [LSHRegressor()]), (learner.remove, [X, Y])]
    for call, arguments in calls:
        with pytest.raises((ValueError, TypeError), match="not fitted"):
            call(*arguments)
