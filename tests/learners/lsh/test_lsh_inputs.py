"""Missing values, categories, and the rules by which they become numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hashed_rows import model, rows

import sparsact
from sparsact import LSHClassifier, LSHRegressor
from sparsact.learners.lsh.inputs import MOST_ONE_HOT, mean_targets

X, Y = rows()
GAPS = X.copy()
GAPS[::3, 1] = np.nan
GAPS[5, 4] = np.nan


def by_hand(table, of=GAPS):
    """Medians where a value is missing, then an indicator for each column in which ``of`` lacks one."""
    filled = np.where(np.isnan(table), np.nanmedian(of, axis=0), table)
    return np.column_stack([filled, np.isnan(table)[:, np.isnan(of).any(axis=0)]])


def test_missing_values_are_medians_beside_an_indicator():
    learner, reference = model().fit(GAPS, Y), model().fit(by_hand(GAPS), Y)
    queries = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    np.testing.assert_array_equal(learner.predict(queries), reference.predict(by_hand(queries)))
    np.testing.assert_array_equal(learner.apply(queries), reference.apply(by_hand(queries)))
    np.testing.assert_array_equal(learner.predict_interval(queries), reference.predict_interval(by_hand(queries)))
    assert learner.n_features_in_ == 5
    assert learner.column_shares_.shape == (5,)
    assert learner.column_shares_.sum() == pytest.approx(1.0)
    compiled = learner.predictor()
    np.testing.assert_array_equal(compiled(queries), learner.predict(queries))
    assert compiled(queries[0]) == learner.predict(queries[:1])[0]
    with pytest.raises(ValueError, match="infinity"):
        compiled(np.full(5, np.inf))


@pytest.mark.parametrize("fallback", ["nearest", "nan", "mean"])
def test_a_value_that_is_missing_only_in_a_query_is_the_median(fallback):
    learner = model(fallback=fallback).fit(X, Y)
    queries, filled = X[:7].copy(), X[:7].copy()
    queries[2:, 3], filled[2:, 3] = np.nan, np.median(X[:, 3])
    np.testing.assert_array_equal(learner.predict(queries), learner.predict(filled))
    np.testing.assert_array_equal(learner.predictor()(queries), learner.predict(filled))
    np.testing.assert_array_equal(learner.predictor()(queries[3]), learner.predict(filled)[3])


def test_rows_with_missing_values_come_and_go_exactly():
    learner = model().fit(GAPS, Y)
    before, counts = learner.predict(X), learner.bucket_counts_
    learner.partial_fit(GAPS[:20] + 0.01, Y[:20]).remove(GAPS[:20] + 0.01, Y[:20])
    np.testing.assert_allclose(learner.predict(X), before, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(learner.bucket_counts_[: len(counts)], counts)
    with pytest.raises(ValueError, match="was not added"):
        learner.remove(X[:1], Y[:1])  # the same row, but for its missing value
    parts = [learner.blank().partial_fit(GAPS[i::2], Y[i::2]) for i in range(2)]
    np.testing.assert_allclose(parts[0].merge(parts[1]).predict(GAPS), before_of(learner), rtol=1e-9)
    with pytest.raises(ValueError, match="cannot be merged"):
        learner.merge(model().fit(X, Y))


def before_of(learner):
    return learner.blank().partial_fit(GAPS, Y).predict(GAPS)


def test_a_stream_that_begins_with_few_rows_meets_gaps_later():
    learner = model().partial_fit(X[:50], Y[:50]).partial_fit(GAPS[50:], Y[50:])
    whole = np.concatenate([X[:50], GAPS[50:]])
    reference = model().fit(whole, Y)
    np.testing.assert_allclose(learner.predict(GAPS), reference.predict(GAPS), rtol=1e-9)
    learner.remove(whole[40:60], Y[40:60])
    assert learner.n_samples_seen_ == len(X) - 20


def test_a_column_without_values_and_one_line_about_it():
    empty = X.copy()
    empty[:, 2] = np.nan
    with pytest.warns(UserWarning, match="column 2 of `X` holds no value in any row"):
        learner = model().fit(empty, Y)
    constant = np.where(np.arange(5) == 2, 0.0, X)
    np.testing.assert_array_equal(learner.predict(empty), model().fit(constant, Y).predict(constant))


def frame(m, rng, n_towns=40):
    """Size, kind of three, town of many, and a target in which all three matter."""
    towns = rng.normal(size=n_towns)
    kind, town, size = rng.integers(0, 3, m), rng.integers(0, n_towns, m), rng.uniform(-1, 1, m).round(2)
    target = np.array([0.0, 1.0, -2.0])[kind] + 2 * towns[town] + np.sin(3 * size) + 0.1 * rng.normal(size=m)
    names = {
        "kind": np.array(["house", "flat", "barn"])[kind],
        "town": np.array([f"t{i}" for i in range(n_towns)])[town],
    }
    table = pd.DataFrame({"size": size, **{name: pd.Categorical(texts) for name, texts in names.items()}})
    return table, target


@pytest.mark.grid
def test_categories_of_a_frame_by_their_type():
    table, y = frame(1700, np.random.default_rng(3))
    learner = model(n_tables=8).fit(table[:1200], y[:1200])
    assert learner.is_categorical_.tolist() == [False, True, True]
    assert learner.score(table[1200:], y[1200:]) > 0.97
    learner.remove(table[:10], y[:10])
    assert learner.n_samples_seen_ == 1190
    texts = table.astype({"kind": object, "town": object})
    named = model(categorical_features=["kind", "town"]).fit(texts[:200], y[:200])
    by_number = model(categorical_features=[1, 2]).fit(texts.to_numpy()[:200], y[:200])
    expected = model().fit(table[:200], y[:200]).predict(table[1200:])
    np.testing.assert_array_equal(named.predict(texts[1200:]), expected)
    np.testing.assert_array_equal(by_number.predict(texts.to_numpy()[1200:]), expected)


@pytest.mark.grid
def test_few_categories_are_zeros_and_ones():
    rng = np.random.default_rng(0)
    codes = rng.choice([3.0, 7.0, 20.0], 500)
    numbers = rng.uniform(-1, 1, (500, 2))
    y = numbers[:, 0] + (codes == 7.0)
    learner = model(categorical_features=[1]).fit(np.column_stack([numbers[:, 0], codes, numbers[:, 1]]), y)
    ones = np.equal(codes[:, None], [3.0, 7.0, 20.0])
    reference = model().fit(np.column_stack([numbers, ones]), y)
    np.testing.assert_array_equal(
        learner.predict(np.column_stack([numbers[:, 0], codes, numbers[:, 1]])),
        reference.predict(np.column_stack([numbers, ones])),
    )


@pytest.mark.grid
def test_a_category_that_fit_did_not_see_says_nothing_and_one_line_says_so():
    """Its numbers are the mean of the others over rows; so are the numbers of a missing one where fit met none."""
    rng = np.random.default_rng(0)
    codes, numbers = rng.choice([3.0, 7.0, 20.0], 500, p=[0.5, 0.3, 0.2]), rng.uniform(-1, 1, (500, 2))
    y = numbers[:, 0] + (codes == 7.0)
    learner = model(categorical_features=[1]).fit(np.column_stack([numbers[:, 0], codes, numbers[:, 1]]), y)
    ones = np.equal(codes[:, None], [3.0, 7.0, 20.0])
    reference = model().fit(np.column_stack([numbers, ones]), y)
    expected = reference.predict(np.column_stack([numbers[:5], np.tile(ones.mean(axis=0), (5, 1))]))
    new = np.column_stack([numbers[:5, 0], np.full(5, 8.0), numbers[:5, 1]])
    with pytest.warns(UserWarning, match="row 0, column 1 of `X`: a category that fit did not see, in 5 rows"):
        np.testing.assert_allclose(learner.predict(new), expected, rtol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new[:, 1] = np.nan
        np.testing.assert_allclose(learner.predict(new), expected, rtol=1e-9)


def sites(kind="category"):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {"a": rng.normal(size=90), "b": rng.normal(size=90), "site": rng.choice(["oslo", "rome"], 90)}
    ).astype({"site": kind})


@pytest.mark.parametrize("kind", [object, "string"])
def test_a_column_of_texts_says_how_it_becomes_a_category(kind):
    X = sites(kind)
    with pytest.raises(ValueError, match=r"X\['site'\].astype\('category'\) or categorical_features=\['site'\]"):
        model().fit(X, X["a"])
    declared = model(categorical_features=["site"]).fit(X, X["a"])
    np.testing.assert_array_equal(declared.predict(X), model().fit(sites(), X["a"]).predict(sites()))


def test_columns_of_a_frame_with_a_category_are_those_of_fit():
    X = sites()
    learner = model().fit(X, X["a"])
    for call in (learner.predict, learner.predict_interval, lambda rows: learner.partial_fit(rows, X["a"])):
        with pytest.raises(ValueError, match="same order"):
            call(X[["site", "b", "a"]])
        with pytest.raises(ValueError, match="missing:\n- b"):
            call(X[["a", "site"]])
    with pytest.raises(ValueError, match="2 features"):
        learner.predict(X[["a", "b"]].to_numpy())
    with pytest.warns(UserWarning, match="row 0, column 'site' of `X`"):
        learner.predict(X.assign(site=pd.Categorical(["bergen"] * 90)))
    with pytest.raises(ValueError, match=r"got a dict: pass list\(row.values"):
        learner.predictor()({"a": 1.0, "b": 2.0, "site": "oslo"})


def test_mean_targets_of_unequal_categories():
    rng = np.random.default_rng(1)
    places = np.repeat(np.arange(60), rng.integers(1, 80, 60))
    effects = rng.normal(size=60)
    y = effects[places] + rng.normal(size=len(places))
    drawn = mean_targets(places, y[:, None], np.ones(len(y)))[:, 0] * y.std() + y.mean()
    plain = np.bincount(places, y) / np.bincount(places)
    assert np.mean((drawn - effects) ** 2) < np.mean((plain - effects) ** 2)
    noise = rng.normal(size=len(places))
    assert np.abs(mean_targets(places, noise[:, None], np.ones(len(noise)))).max() < 0.3


@pytest.mark.grid
def test_many_categories_that_say_nothing_do_little_harm():
    rng = np.random.default_rng(5)
    numbers, towns = rng.uniform(-1, 1, (2000, 2)).round(2), rng.integers(0, 200, 2000).astype(float)
    y = np.sin(3 * numbers[:, 0]) + numbers[:, 1] + 0.1 * rng.normal(size=2000)
    both = np.column_stack([numbers, towns])
    alone = model(n_tables=8).fit(numbers[:1300], y[:1300]).score(numbers[1300:], y[1300:])
    beside = model(n_tables=8, categorical_features=[2]).fit(both[:1300], y[:1300])
    assert 1 - beside.score(both[1300:], y[1300:]) < 1.5 * (1 - alone)


def test_many_targets_of_a_category_have_few_directions():
    rng = np.random.default_rng(2)
    places = rng.integers(0, 30, 3000)
    Y = rng.normal(size=(30, 2))[places] @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(3000, 6))
    found = mean_targets(places, Y, np.ones(3000))
    assert found.shape == (30, 3)
    assert found[:, 2].std() < 0.1 * found[:, 1].std()


def test_classes_from_categories_and_gaps():
    table, y = frame(1200, np.random.default_rng(4))
    table.loc[::7, "size"] = np.nan
    learner = LSHClassifier(5, directions="principal", random_state=0).fit(table[:800], y[:800] > 0)
    assert learner.score(table[800:], y[800:] > 0) > 0.85


def test_a_file_keeps_the_rules(tmp_path):
    table, y = frame(300, np.random.default_rng(6))
    table.loc[::5, "size"] = np.nan
    learner = model().fit(table, y)
    learner.save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(table), learner.predict(table))
    again.remove(table[:3], y[:3])
    assert again.n_samples_seen_ == 297


@pytest.mark.parametrize("wrong", [["no such column"], [7], [True, False]])
def test_columns_that_are_not_there(wrong):
    table, y = frame(100, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"`categorical_features` has .* but `X` has 3 columns"):
        LSHRegressor(categorical_features=wrong).fit(table, y)


def test_mixed_categories_are_refused_in_one_line():
    table = pd.DataFrame({"a": ["x", 1, 2.5, None] * 10, "b": range(40)})
    with pytest.raises(
        ValueError, match="column 'a' of `X` mixes numbers and other categories; convert all of them to texts"
    ):
        LSHRegressor(categorical_features=["a"]).fit(table, np.arange(40.0))


def test_the_boundary_between_few_and_many():
    for n, coded in ((MOST_ONE_HOT, MOST_ONE_HOT), (MOST_ONE_HOT + 1, 1)):
        codes = np.arange(200.0) % n
        learner = model(categorical_features=[0]).fit(np.column_stack([codes, Y[:200]]), Y[:200])
        assert len(learner._inputs.sources) == 1 + coded


@pytest.mark.parametrize("n_rows", [40, 41])
def test_a_row_of_weight_2_is_the_same_row_twice_also_to_medians(n_rows):
    """Medians of all rows, even and odd in number, are the same floats; the answers differ by the order of sums."""
    table, targets = GAPS[:n_rows], Y[:n_rows]
    weights = np.random.default_rng(3).integers(0, 4, n_rows)
    twice, targets_twice = np.repeat(table, weights, axis=0), np.repeat(targets, weights)
    weighted = model().fit(table, targets, weights.astype(float))
    repeated = model().fit(twice, targets_twice)
    np.testing.assert_array_equal(weighted._inputs.fills, np.nanmedian(twice, axis=0))
    np.testing.assert_array_equal(weighted._inputs.fills, repeated._inputs.fills)
    assert (weighted._inputs.fills != np.nanmedian(table[weights > 0], axis=0)).any()
    np.testing.assert_allclose(weighted.predict(GAPS), repeated.predict(GAPS), rtol=1e-9, atol=1e-9)
