"""The estimator: weights, encodings, randomness, bad input, files."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted import index, signs
from safetensors.numpy import load_file
from sklearn.base import clone

import sparsact
from sparsact import SparselyActivatedRegressor, fourier
from sparsact.hypercube import points
from sparsact.saving import modelfile
from sparsact.saving.modelfile import ModelFileError

QUICK = {"n_units": 5, "n_restarts": 1, "max_iter": 20, "random_state": 0}


def data(m=90, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (m, n))
    return X, X[:, 0] * (1.0 - 3.0 * X[:, 2]) + 0.3 * rng.normal(size=m)


@pytest.mark.parametrize(
    ("kind", "k"), [("bits", 1), ("real", 1), ("real", 2), pytest.param("bits", 2, marks=pytest.mark.grid)]
)
def test_a_weight_is_a_number_of_rows(kind, k):
    X, y = data()
    X = X if kind == "bits" else np.random.default_rng(5).normal(size=X.shape) + X
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    model = SparselyActivatedRegressor(max_active=k, **QUICK)
    weighted = clone(model).fit(X, y, counts)
    order = np.random.default_rng(2).permutation(counts.sum())
    repeated = clone(model).fit(np.repeat(X, counts, axis=0)[order], np.repeat(y, counts)[order])
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)
    assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-4)


@pytest.mark.grid
def test_weights_below_one_are_shares():
    X, y = data()
    weights = np.random.default_rng(1).integers(1, 4, len(y)) / 1e6
    small = SparselyActivatedRegressor(**QUICK).fit(X, y, weights)
    assert_allclose(small.predict(X), SparselyActivatedRegressor(**QUICK).fit(X, y, weights * 17 / 1e5).predict(X))
    plain = SparselyActivatedRegressor(**QUICK).fit(X, y, np.full(len(y), 0.25))
    assert_allclose(plain.predict(X), SparselyActivatedRegressor(**QUICK).fit(X, y).predict(X))


@pytest.mark.grid
def test_rows_of_weight_zero_are_not_there():
    X, y = data()
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    X[weights == 0] = 1 - X[weights == 0]
    seen = SparselyActivatedRegressor(**QUICK).fit(X, y, weights)
    kept = SparselyActivatedRegressor(**QUICK).fit(X[weights > 0], y[weights > 0])
    assert_array_equal(seen.predict(X), kept.predict(X))


@pytest.mark.grid
def test_encodings_say_the_same():
    X, y = data()
    models = {name: SparselyActivatedRegressor(**QUICK) for name in ("bits", "bool", "signs")}
    spelled = {"bits": X, "bool": X.astype(bool), "signs": 1 - 2 * X}
    for name, model in models.items():
        model.fit(spelled[name], y)
        assert (model.domain_, model.encoding_) == ("cube", "signs" if name == "signs" else "bits")
        assert_array_equal(model.predict(spelled[name]), models["bits"].predict(X))
    assert_array_equal(models["bits"].network_(1 - 2 * X), models["bits"].predict(X))
    with pytest.raises(ValueError, match="where signs"):
        models["signs"].predict(X)
    with pytest.raises(ValueError, match="where bits 0/1 are expected"):
        models["bits"].predict(1 - 2 * X)
    real = SparselyActivatedRegressor(domain="real", **QUICK).fit(X, y)
    assert real.domain_ == "real"
    assert real.predict(X + 0.5).shape == y.shape


def test_same_seed_same_network_and_nothing_else_is_touched():
    X, y = data()
    X = X + np.random.default_rng(0).normal(size=X.shape)
    before, targets, state = X.copy(), y.copy(), np.random.get_state()[1].copy()  # noqa: NPY002 - the global state
    models = [SparselyActivatedRegressor(**QUICK | {"random_state": seed}).fit(X, y) for seed in (0, 0, None)]
    assert_array_equal(models[0].network_.W, models[1].network_.W)
    assert_array_equal(models[0].network_.b, models[1].network_.b)
    assert_array_equal(X, before)
    assert_array_equal(y, targets)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_the_spectrum_matches_the_network():
    X, y = data()
    model = SparselyActivatedRegressor(**QUICK).fit(X, y)
    spectrum = fourier.Spectrum.of(model)
    assert_allclose(spectrum(points(6)), model.network_(points(6)), atol=1e-12)
    with pytest.raises(AttributeError, match="no spectrum"):
        _ = SparselyActivatedRegressor(**QUICK).fit(X + 0.5 * y[:, None], y).spectrum_
    wide = SparselyActivatedRegressor(n_restarts=0).fit(signs(50, 24, 0), y[:50])
    with pytest.raises(AttributeError, match="at most 20 columns; got 24"):
        _ = wide.spectrum_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_units": 0}, "n_units"),
        ({"max_active": 0}, "max_active"),
        ({"max_active": 1.5}, "max_active"),
        ({"max_weight": 0.0}, "max_weight"),
        ({"max_bias": -1.0}, "max_bias"),
        ({"n_restarts": -1}, "n_restarts"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1e-3}, "tol"),
        ({"domain": "sphere"}, "domain"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        SparselyActivatedRegressor(**parameters).fit(X, y)


def test_bad_rows():
    X, y = data()
    model = SparselyActivatedRegressor(**QUICK)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X == 1, np.nan, X), y)
    bad = X.copy()
    bad[3, 1] = 2
    with pytest.raises(ValueError, match="2 at column 1, row 3"):
        clone(model).set_params(domain="cube").fit(bad, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="weights are 0 or more"):
        model.fit(X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="zero"):
        model.fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="features"):
        model.fit(X, y).predict(X[:, :-1])


def test_verbose_names_each_candidate(capsys):
    X, y = data()
    SparselyActivatedRegressor(**QUICK | {"verbose": 1}).fit(X, y)
    told = capsys.readouterr().out
    assert "constant: 1 units" in told
    assert "trees" in told
    assert "descent" in told


@pytest.mark.parametrize("kind", ["bits", "signs", "real"])
def test_a_file_gives_the_same_model(tmp_path, kind):
    X, y = data()
    X = {"bits": X, "signs": 1 - 2 * X, "real": X + 0.1 * y[:, None]}[kind]
    model = SparselyActivatedRegressor(**QUICK | {"max_weight": np.float64(9.0)}).fit(X, y)
    model.save(tmp_path / "m")
    loaded = sparsact.load(tmp_path / "m")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_params() == model.get_params()
    for name in ("loss_", "n_iter_", "origin_", "domain_", "encoding_", "expected_active_bound_"):
        assert getattr(loaded, name) == getattr(model, name)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_file_that_does_not_fit_together_is_refused(tmp_path):
    X, y = data()
    SparselyActivatedRegressor(**QUICK).fit(X, y).save(tmp_path / "m")
    kind, state, arrays = modelfile.read(tmp_path / "m")
    assert set(load_file(tmp_path / "m")) == set(arrays)
    for change in (
        {"learned": state["learned"] | {"encoding_": "runes"}},
        {"learned": state["learned"] | {"n_features_in_": 7}},
        {"params": state["params"] | {"n_units": -1}},
    ):
        modelfile.write(tmp_path / "bad", kind, state | change, arrays)
        with pytest.raises(ModelFileError, match="bad"):
            sparsact.load(tmp_path / "bad")


def test_names_of_columns_are_kept(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = data()
    table = pandas.DataFrame(X, columns=list("abcdef"))
    model = SparselyActivatedRegressor(**QUICK).fit(table, y)
    model.save(tmp_path / "m")
    assert sparsact.load(tmp_path / "m").feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="column 'b', row 0"):
        model.predict(table.assign(b=3))


def test_an_address_of_index_is_a_tree():
    function, n = index(2)
    X = points(n)
    model = SparselyActivatedRegressor(random_state=0).fit(X, function(X))
    assert model.origin_ == "trees"
    assert model.n_iter_ >= 1
