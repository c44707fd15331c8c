"""Files, pickles: what was saved comes back, and a file that was tampered with does not."""

import pickle

import numpy as np
import pytest
from hashed_rows import families, model, rows, same, state

import sparsact
from sparsact import LSHClassifier
from sparsact.kernels import bucket_statistics
from sparsact.learners.lsh.tuning import LSHConfig
from sparsact.saving.modelfile import ModelFileError, write

X, Y = rows()
QUERIES = np.concatenate([rows(m=37, seed=4)[0], np.full((1, 5), 1e6)])


@families
@pytest.mark.parametrize("statistic", [True, False])
def test_a_saved_model_comes_back(options, statistic, tmp_path):
    learner = model(**options).fit(X, Y)
    learner.save(tmp_path / "model", statistic=statistic)
    again = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(QUERIES), learner.predict(QUERIES))
    np.testing.assert_array_equal(again.predict_interval(QUERIES), learner.predict_interval(QUERIES))
    np.testing.assert_array_equal(again.apply(QUERIES), learner.apply(QUERIES))
    assert again.get_params() == learner.get_params()
    assert again.trials_ == learner.trials_
    for name in ("bucket_width_", "alpha_", "directions_"):
        assert getattr(again, name) == getattr(learner, name)
    if statistic:
        assert same(state(again), state(learner))
        again.remove(X[:50], Y[:50]).partial_fit(X[:3], Y[:3])
        learner.remove(X[:50], Y[:50]).partial_fit(X[:3], Y[:3])
        np.testing.assert_array_equal(again.predict(QUERIES), learner.predict(QUERIES))


def test_without_its_statistic_a_model_takes_rows_and_gives_none_away(tmp_path):
    learner = model().fit(X, Y)
    learner.save(tmp_path / "small", statistic=False)
    learner.save(tmp_path / "whole")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size
    small = sparsact.load(tmp_path / "small")
    assert small.n_samples_seen_ == 211
    with pytest.raises(ValueError, match="statistic=True"):
        small.remove(X, Y)
    small.save(tmp_path / "again", statistic=False)
    np.testing.assert_array_equal(sparsact.load(tmp_path / "again").predict(QUERIES), learner.predict(QUERIES))
    again = sparsact.load(tmp_path / "again").partial_fit(X[:60], Y[:60])
    np.testing.assert_array_equal(again.predict(QUERIES), learner.partial_fit(X[:60], Y[:60]).predict(QUERIES))
    small.fit(X, Y).remove(X[:2], Y[:2])


def test_a_stream_that_chose_its_layout_again_is_a_fit_of_its_rows(tmp_path):
    """The number of tables changes: 64 for few rows; errors and scores of rows left out belong to the new layout."""

    class FewRows(LSHConfig):
        few_rows = 150

    streamed, whole = model(n_tables="auto"), model(n_tables="auto")
    streamed._limits = whole._limits = FewRows
    streamed.partial_fit(X[:50], Y[:50]).partial_fit(X[50:], Y[50:])
    whole.fit(X, Y)
    assert streamed.n_tables_ < 64
    np.testing.assert_array_equal(streamed.table_errors_, whole.table_errors_)
    streamed.save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(QUERIES), whole.predict_interval(QUERIES))


def test_blank_models_and_several_targets(tmp_path):
    learner = model().fit(X, np.column_stack([Y, Y**2]))
    learner.blank().save(tmp_path / "blank")
    again = sparsact.load(tmp_path / "blank").partial_fit(X, np.column_stack([Y, Y**2]))
    np.testing.assert_array_equal(again.predict(QUERIES), learner.predict(QUERIES))


@pytest.mark.parametrize(
    "labels", [np.array(["low", "middle", "high"]), np.array([3, -1, 7]), np.array([1.0, 2.0, 4.0])]
)
def test_classes_come_back(labels, tmp_path):
    y = labels[np.digitize(Y, [0.5, 1.0])]
    learner = LSHClassifier(3, random_state=0).fit(X, y)
    learner.save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    np.testing.assert_array_equal(again.classes_, learner.classes_)
    np.testing.assert_array_equal(again.predict(QUERIES), learner.predict(QUERIES))
    again.remove(X[:5], y[:5])


def test_names_of_columns_come_back(tmp_path):
    pandas = pytest.importorskip("pandas", reason="names of columns come with pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    learner = model().fit(frame, Y)
    learner.save(tmp_path / "model")
    again = sparsact.load(tmp_path / "model")
    assert again.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(again.predict(frame), learner.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"e": "z"}))


@pytest.mark.parametrize("position", [0.02, 0.3, 0.6, 0.95])
def test_an_altered_file_is_refused(position, tmp_path):
    model().fit(X, Y).save(tmp_path / "model")
    data = bytearray((tmp_path / "model").read_bytes())
    data[int(position * len(data))] ^= 8
    (tmp_path / "model").write_bytes(bytes(data))
    with pytest.raises(ModelFileError):
        sparsact.load(tmp_path / "model")


WRONG = {
    "name other columns": lambda state, arrays: state["learned"].update(n_features_in_=4),
    "two buckets have the same key": lambda state, arrays: arrays.update(
        keys=np.repeat(arrays["keys"][:1], len(arrays["keys"]))
    ),
    "negative": lambda state, arrays: arrays.update(counts=-arrays["counts"]),
    "not finite": lambda state, arrays: arrays.update(sums=arrays["sums"] * np.nan),
    "sums": lambda state, arrays: arrays.update(sums=arrays["sums"][:, :-1].copy()),
    "totals": lambda state, arrays: arrays.update(totals=arrays["totals"][:-1].copy()),
    "the degree is 3": lambda state, arrays: arrays.update({"layout.degree": np.array(3)}),
    "do not fit together": lambda state, arrays: arrays.update(
        {"layout.seeds": np.append(arrays["layout.seeds"], arrays["layout.seeds"][:1])}
    ),
    "trend": lambda state, arrays: arrays.update({"layout.trend": arrays["layout.trend"][:-1].copy()}),
    "rows.copies": lambda state, arrays: arrays.update({"rows.copies": arrays["rows.copies"][:-1].copy()}),
    "family": lambda state, arrays: state["params"].update(family="cubes"),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_file_with_a_digest_of_its_own_is_checked_all_the_same(message, tmp_path, monkeypatch):
    """Whoever writes a file can write its digest too: shapes and ranges are looked at one by one."""
    kept = {}
    monkeypatch.setattr(
        "sparsact.saving.modelfile.write", lambda path, kind, state, arrays: kept.update(s=state, a=arrays)
    )
    model().fit(X, Y).save(tmp_path / "never written")
    monkeypatch.undo()
    WRONG[message](kept["s"], kept["a"])
    write(tmp_path / "model", "LSHRegressor", kept["s"], kept["a"])
    with pytest.raises(ValueError, match=message):
        sparsact.load(tmp_path / "model")


@families
def test_pickles(options):
    learner = model(**options).fit(X, Y)
    learner.predict(QUERIES)
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.predict(QUERIES), learner.predict(QUERIES))
    assert same(state(again), state(learner))
    compiled = pickle.loads(pickle.dumps(learner.predictor()))
    np.testing.assert_array_equal(compiled(QUERIES), learner.predict(QUERIES))


def test_sums_of_all_products_are_read_as_sums_of_monomials():
    """Version 0.1 kept each product of two features of degree 2, equal ones too; later ones had no low words."""
    X, y = rows(m=90)
    table = model(degree=2, n_tables=2, bucket_width=1.0, alpha=0.1).fit(X, y).table_
    layout, sums = table.layout, table.sums
    p, end = layout.n_local, (layout.n_features + 1) * layout.n_targets
    products = sums[:, p + bucket_statistics.products(p, 2)]
    former = np.concatenate([sums[:, :p], products, sums[:, -2 * end : -end]], axis=1)
    assert former.shape[1] > sums.shape[1] - end
    high = np.concatenate([sums[:, :-end], np.zeros((len(sums), end))], axis=1)
    for found, due in ((former, high), (sums[:, :-end], high), (sums, sums)):
        np.testing.assert_array_equal(layout.sums_of_file(found), due)
    again = table.empty()
    again.restore({}, table.state()[1] | {"sums": former})
    np.testing.assert_array_equal(again.sums, high)
