"""Stages, trees and columns of LSHRegressor: what is frozen, and that the table on top of it stays exact."""

from copy import deepcopy
from functools import cache
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from grids import few_of

import sparsact
from sparsact import LSHRegressor
from sparsact.learners.lsh import model_choice, trees
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.layout import Layout, grid_hashes
from sparsact.learners.lsh.leave_one_out import LeftOut
from sparsact.learners.lsh.predict import TablePredictor
from sparsact.learners.lsh.prediction_limits import Policy
from sparsact.learners.lsh.tuning import LSHConfig
from sparsact.statistics.statistic import Batch

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 1, (300, 3)).round(2)  # of at most 255 values trees take no percentiles, which take longest
Y = np.sin(3 * X[:, 0] + X[:, 1]) * np.cos(2 * X[:, 2]) + 0.3 * (X[:, 1] > 0.2)
NEW = RNG.uniform(-1, 1, (150, 3))
FORMS = {
    "stages": {"n_stages": 3},
    "trees": {"base": "trees", "n_stages": 1},
    "both": {"base": "trees", "n_stages": 2},
}


def staged(**parameters):
    fixed = {"n_tables": 4, "degree": 1, "random_state": 3}
    return LSHRegressor(**(fixed | parameters))


@pytest.fixture(autouse=True, scope="module")
def short_boosting():
    with patch.multiple(trees, MOST_ROUNDS=12, FOREST=12, SKLEARN_CHOICES=trees.SKLEARN_CHOICES[:1]):
        yield


@cache
def _fitted(form, n_targets):
    return staged(**FORMS[form]).fit(X, Y if n_targets == 1 else np.column_stack([Y, X[:, 0] ** 2]))


def fitted(form, n_targets=1):
    """A copy, for the test to change, of a model that is fitted once."""
    return deepcopy(_fitted(form, n_targets))


@pytest.mark.grid
@pytest.mark.parametrize("form", FORMS)
def test_rows_added_and_removed_leave_the_model_as_it_was(form):
    model = fitted(form)
    before = model.predict(NEW)
    model.partial_fit(NEW, np.ones(len(NEW)))
    assert np.abs(model.predict(NEW) - before).max() > 0.01
    model.remove(NEW, np.ones(len(NEW)))
    np.testing.assert_allclose(model.predict(NEW), before, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_the_fit_are_removed_with_the_residual_they_came_with(form):
    """What is left are the rows added since: the same as if a blank model had seen them alone."""
    model = fitted(form)
    alone = model.blank().partial_fit(NEW, np.ones(len(NEW)))
    model.partial_fit(NEW, np.ones(len(NEW))).remove(X, Y)
    np.testing.assert_allclose(model.predict(NEW), alone.predict(NEW), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(model.n_samples_seen_, len(NEW))


def test_the_frozen_part_is_asked_only_for_rows_that_it_was_not_learned_from():
    model, asked = fitted("stages"), []
    values = FixedPart.values

    def counted(self, rows, n_threads=1):
        asked.append(rows)
        return values(self, rows, n_threads)

    model.partial_fit(NEW[:20], np.ones(20))
    with patch.object(FixedPart, "values", counted):
        model.remove(X[:50], Y[:50]).remove(np.concatenate([X[50:90], NEW[:20]]), np.append(Y[50:90], np.ones(20)))
    np.testing.assert_array_equal(np.concatenate(asked), NEW[:20])


@pytest.mark.grid
def test_a_row_of_the_fit_learned_again_is_another_row():
    model = staged(n_stages=2).fit(X, Y)
    before = model.predict(NEW)
    model.partial_fit(X[:40], Y[:40]).remove(X[:40], Y[:40])  # removes the rows of the fit
    assert model.n_samples_seen_ == len(X)
    assert np.abs(model.predict(NEW) - before).max() > 0
    model.remove(X[:40], Y[:40])
    with pytest.raises(ValueError, match="row 0 was not added"):
        model.remove(X[:1], Y[:1])
    again = staged(n_stages=2).fit(X, Y).remove(X[:40], Y[:40])
    np.testing.assert_allclose(model.predict(NEW), again.predict(NEW), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_parts_merge_to_the_whole(form):
    first = fitted(form)
    more = RNG.uniform(-1, 1, (200, 3))
    targets = more.sum(axis=1)
    whole = first.blank().partial_fit(more, targets)
    parts = [first.blank().partial_fit(more[i::2], targets[i::2]) for i in range(2)]
    merged = parts[0].merge(parts[1])
    np.testing.assert_allclose(merged.predict(NEW), whole.predict(NEW), rtol=1e-8, atol=1e-8)


@pytest.mark.grid
def test_models_of_other_stages_do_not_merge():
    model, other = (staged(n_stages=2).fit(X, y) for y in (Y, Y + 0.1 * X[:, 0] ** 2))
    with pytest.raises(ValueError, match="cannot be merged"):
        model.merge(other.blank().partial_fit(X, Y))


@pytest.mark.grid
@pytest.mark.parametrize("form", few_of(["stages", "both"], ["both"]))
def test_neither_order_nor_copies_of_rows_matter(form):
    order = np.random.default_rng(0).permutation(len(X))
    expected = staged(**FORMS[form]).fit(X, Y, np.full(len(X), 2.0)).predict(NEW)
    for rows in (order, np.repeat(order, 2)):
        weights = np.full(len(rows), 2.0 * len(X) / len(rows))
        found = staged(**FORMS[form]).fit(X[rows], Y[rows], weights).predict(NEW)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "statistic"), few_of(product(FORMS, [True, False]), [("both", True), ("stages", False)])
)
def test_files_hold_all_of_it(form, statistic, tmp_path):
    Y2 = np.column_stack([Y, X[:, 0] ** 2])
    model = fitted(form, 2)
    model.save(tmp_path / "model", statistic=statistic)
    loaded = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert loaded.n_stages_ == model.n_stages_
    if statistic:
        np.testing.assert_array_equal(
            loaded.remove(X[:9], Y2[:9]).predict(NEW), model.remove(X[:9], Y2[:9]).predict(NEW)
        )


@pytest.mark.grid
def test_a_prediction_is_the_sum_of_its_parts():
    model = staged(base="trees", n_stages=2, extrapolate="linear").fit(X, Y)
    table, fixed = model.table_, model._fixed
    total = fixed.trees.values(NEW)[:, 0] + fixed.stages[0].values(NEW)[:, 0]
    on_top = TablePredictor(
        table, model.alpha_, Policy(extrapolate="linear"), True, FixedPart(), model._inputs, is_live=False
    )
    np.testing.assert_allclose(model.predict(NEW), total + on_top(NEW), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predictor()(NEW[0]), model.predict(NEW[:1])[0], rtol=1e-12)


@pytest.mark.grid
def test_further_stages_are_added_where_they_help_and_only_there():
    """A sum of two ridges is one stage's; products of six columns are not; noise is nobody's."""
    rng = np.random.default_rng(2)
    rows, noise = rng.uniform(-1, 1, (2000, 6)), rng.normal(size=400)
    assert staged(n_stages="auto").fit(rows[:400], noise).n_stages_ == 1
    products = sum(np.sin(2 * rows[:, i] + 2 * rows[:, (i + 1) % 6] * rows[:, (i + 3) % 6]) for i in range(6))
    models = [staged(n_stages=n).fit(rows[:1500], products[:1500]) for n in ("auto", 1)]
    assert models[0].n_stages_ > 1
    errors = [np.sqrt(np.mean((each.predict(rows[1500:]) - products[1500:]) ** 2)) for each in models]
    assert errors[0] < 0.93 * errors[1]


@pytest.mark.grid
@pytest.mark.parametrize(
    ("base", "target"), [("linear", np.sin(3 * X[:, 0] + X[:, 1])), ("trees", np.sign(X[:, 0] - 0.3))]
)
def test_an_automatic_base_is_the_one_of_less_error_on_rows_left_out(base, target):
    """A ridge needs no trees and a jump does; the model is that of the base asked for by name."""
    with patch.multiple(trees, MOST_ROUNDS=60):
        found, named = (staged(base=each, n_stages=1, columns="all").fit(X, target) for each in ("auto", base))
    assert found.base_ == base
    np.testing.assert_array_equal(found.predict(NEW), named.predict(NEW))


@pytest.mark.grid
def test_an_automatic_base_does_not_depend_on_origins_of_targets():
    """A jump weighs as much beside a line when 1,000 is added to it, and a constant does not matter."""
    targets = np.column_stack([np.sign(X[:, 0] - 0.3), X[:, 1], np.zeros(len(X))])
    with patch.multiple(trees, MOST_ROUNDS=60):
        found = [staged(base="auto", n_stages=1).fit(X, targets + origin).base_ for origin in (0, [1e3, 0, 7.1])]
    assert found == ["trees", "trees"]


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_rows_left_out_by_folds_match_tables_without_them(degree):
    rng = np.random.default_rng(degree)
    hashes = grid_hashes(np.zeros(2), np.eye(2), 0.7, 3, rng)
    layout = Layout(hashes, degree, np.zeros((2, 1)), np.zeros(1), np.ones(1))
    rows, y, weights = rng.uniform(-1, 1, (60, 2)), rng.normal(size=(60, 1)), rng.uniform(1, 2, 60)
    table = BucketTable(layout)
    table.add(Batch(rows, y, weights))
    found = LeftOut(table, rows, y, weights).values(0.1, 1, 4)
    for part in np.array_split(np.arange(60), 4):
        rest = np.setdiff1d(np.arange(60), part)
        other = BucketTable(layout)
        other.add(Batch(rows[rest], y[rest], weights[rest]))
        expected = np.empty((len(part), 1))
        other.compiled(0.1, 1, is_live=False).kernel(rows[part], expected, np.empty(len(part)), 1)
        np.testing.assert_allclose(found[part], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.grid
def test_columns_of_noise_drop_out_and_near_duplicates_are_named():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(600, 12))
    rows[:, 7] = -2 * rows[:, 2] + 0.001 * rng.normal(size=600)
    target = np.sin(2 * rows[:, 4]) + rows[:, 9] ** 2
    options = {"n_tables": 8, "degree": 1, "n_stages": 1, "random_state": 0}
    model = LSHRegressor(**options).fit(rows, target)
    assert set(model.columns_) == {4, 9}
    queries = np.concatenate([rows[:40], rows[:3] * 100])
    for query in (model.predictor(), model.predictor("float64")):  # in one call, as if the table saw all columns
        assert [query._row(x) for x in queries] == query(queries).tolist()
    assert model.near_duplicates_ == ((2, 7),)
    assert model.column_shares_.shape == (12,)
    assert model.column_shares_[[4, 9]].sum() == pytest.approx(1)
    whole = LSHRegressor(**options, columns="all").fit(rows, target)
    errors = []
    fresh = rng.normal(size=(500, 12))
    for each in (model, whole):
        errors.append(np.abs(each.predict(fresh) - np.sin(2 * fresh[:, 4]) - fresh[:, 9] ** 2).mean())
    assert errors[0] < 0.7 * errors[1]


def test_columns_drop_out_for_a_gain_of_one_per_cent_from_500_rows_on():
    """The target is one column of six; the error of the others is given: 1.5 % or .5 % above that of the one."""
    rows = np.random.default_rng(0).normal(size=(500, 6))
    target, ones = np.sin(2 * rows[:, 2:3]), np.ones(500)
    for gain, dropped in ((0.015, True), (0.005, False)):
        found = model_choice.kept_columns(rows, target, ones, lambda some, gain=gain: 1 - gain * (some.shape[1] < 6), 0)
        assert (found is not None) == dropped
        assert not dropped or (2 in found and len(found) < 6)
    few = model_choice.kept_columns(rows[:499], target[:499], ones[:499], lambda some: float(some.shape[1]), 0)
    assert few is None


@pytest.mark.grid
@pytest.mark.parametrize(("offset", "size"), [(3e9, 1.0), (-1e13, 1e3), (0.0, 1e-160)])
def test_trees_learn_targets_of_any_offset_and_size(offset, size):
    plain = trees.learn_trees(X, Y[:, None], np.ones(len(X)), 3)
    found = trees.learn_trees(X, offset + size * Y[:, None], np.ones(len(X)), 3)
    rounding = 1e-15 * abs(offset) / size
    for here, there in ((plain[1], found[1]), (plain[0].values(NEW), found[0].values(NEW))):
        assert here.std() > 0.1
        assert np.abs((there - offset) / size - here).mean() < 0.02 + 10 * rounding


def test_rows_beyond_the_sample_meet_stages_as_new_rows():

    class FewRows(LSHConfig):
        rows_for_stages = 180

    model = staged(n_stages=2)
    model._limits = FewRows
    model.fit(X, Y)
    values = model._fixed.learned.values(X, Y[:, None], np.full((len(X), 1), np.nan))
    assert np.isfinite(values).all()
    inside = np.isclose(values, model._fixed.values(X), rtol=1e-9, atol=1e-9)[:, 0]
    assert inside.sum() >= 120
    np.testing.assert_array_less(np.abs(model.predict(X) - Y).mean(), 0.2)


ADDITIVE = [(1, "linear"), ("auto", "linear"), (3, "constant"), (2, "trees"), ("auto", "trees")]


@pytest.fixture(scope="module", params=ADDITIVE, ids=str)
def learned(request):
    """A model with a frozen part, rows with copies and weights, and the model of them all."""
    n_stages, base = request.param
    rng = np.random.default_rng(4)
    rows = rng.uniform(-1, 1, (640, 4)).round(2)
    target = np.sin(4 * rows[:, 0] * rows[:, 1]) + np.abs(rows[:, 2]) + rows[:, 3] ** 2 + 0.1 * rng.normal(size=640)
    rows[600:], target[600:] = rows[:40], target[:40]
    weights = rng.integers(1, 4, 640).astype(float)
    options = {"n_tables": 6, "bucket_width": 0.7, "degree": 1, "directions": "principal", "random_state": 0}
    model = LSHRegressor(n_stages=n_stages, base=base, **options).fit(rows, target, weights)
    return model, (rows, target, weights), rng.uniform(-1, 1, (90, 4))


def test_merged_parts_are_the_whole(learned):
    whole, rows, queries = learned
    parts = [whole.blank().partial_fit(*(each[i::3] for each in rows)) for i in range(3)]
    merged = parts[2].merge(parts[0]).merge(parts[1])
    np.testing.assert_allclose(merged.predict(queries), whole.predict(queries), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(merged.predict_interval(queries), whole.predict_interval(queries), rtol=1e-7, atol=1e-7)


def test_rows_out_and_in_again_change_nothing(learned):
    model, rows, queries = deepcopy(learned[0]), *learned[1:]
    before = model.predict(queries)
    for some in (slice(0, 50), slice(50, 51), slice(600, 620)):
        those = [each[some] for each in rows]
        model.remove(*those).partial_fit(*those)
    np.testing.assert_allclose(model.predict(queries), before, rtol=1e-9, atol=1e-9)


def test_a_row_goes_out_and_in_alone_as_among_others(learned):
    """By the one native call of a row of weight one, where there is such a call."""
    (model, rows, queries) = deepcopy(learned[0]), *learned[1:]
    alone = np.flatnonzero(rows[2][40:600] == 1)[:9] + 40
    many = deepcopy(model).remove(rows[0][alone], rows[1][alone])
    for i in alone:
        model.predict(queries[:1])
        model.remove(rows[0][i : i + 1], rows[1][i : i + 1])
    np.testing.assert_allclose(model.predict(queries), many.predict(queries), rtol=1e-9, atol=1e-9)
