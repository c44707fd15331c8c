"""A model and its file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sparsact as sa

rng = np.random.default_rng(43)
X, Y = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"]), rng.normal(size=(60, 2))


def model(**changes):
    return sa.DSMRegressor(**({"n_units": 21, "n_active": 6, "random_state": 2, "epochs": 3} | changes))


@pytest.mark.parametrize("solver", ["ridge", "rmsprop"])
@pytest.mark.parametrize("targets", [Y, Y[:, 0]])
def test_a_saved_model_is_the_model(tmp_path, solver, targets):
    fitted = model(solver=solver, bottom="pca", activation="relu", absolute=True).fit(X, targets)
    fitted.save(tmp_path / "m.safetensors")
    loaded = sa.load(tmp_path / "m.safetensors")
    assert type(loaded) is sa.DSMRegressor
    assert loaded.get_params() == fitted.get_params()
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.active_units(X), fitted.active_units(X))
    np.testing.assert_array_equal(loaded.feature_names_in_, ["a", "b", "c"])
    assert (loaded.n_rows_, loaded.flops(), loaded.n_active_) == (60, fitted.flops(), 6)
    assert np.shape(loaded.intercept_) == np.shape(fitted.intercept_)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[["b", "a", "c"]])


def test_sums_go_on_after_loading(tmp_path):
    fitted = model().fit(X[:40], Y[:40])
    fitted.save(tmp_path / "m.safetensors", statistic=True)
    loaded = sa.load(tmp_path / "m.safetensors").partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(loaded.predict(X), fitted.partial_fit(X[40:], Y[40:]).predict(X))
    assert loaded.n_rows_ == 60


def test_without_its_sums_a_model_takes_no_more_rows(tmp_path):
    fitted = model().fit(X, Y)
    fitted.save(tmp_path / "m.safetensors")
    loaded = sa.load(tmp_path / "m.safetensors")
    expected = loaded.predict(X)
    for change in (lambda: loaded.partial_fit(X, Y), lambda: loaded.merge(fitted), lambda: fitted.merge(loaded)):
        with pytest.raises(ValueError, match="save it with statistic=True"):
            change()
    np.testing.assert_array_equal(loaded.predict(X), expected)
    assert (tmp_path / "m.safetensors").stat().st_size < 8_000


def test_training_goes_on_after_loading(tmp_path):
    whole = model(solver="rmsprop").fit(X, Y)
    begun = model(solver="rmsprop", epochs=2).fit(X, Y)
    begun.save(tmp_path / "m.safetensors")
    loaded = sa.load(tmp_path / "m.safetensors").partial_fit(X, Y)
    np.testing.assert_allclose(loaded.coefficients_, whole.coefficients_, rtol=1e-12)
    np.testing.assert_allclose(loaded.loss_curve_, whole.loss_curve_, rtol=1e-12)


def test_an_unfitted_model_and_an_altered_file_are_refused(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        model().save(tmp_path / "m.safetensors")
    model().fit(X, Y).save(tmp_path / "m.safetensors")
    content = bytearray((tmp_path / "m.safetensors").read_bytes())
    content[-3] ^= 1
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(sa.saving.ModelFileError, match="altered"):
        sa.load(tmp_path / "m.safetensors")


def test_a_router_that_was_passed_comes_back(tmp_path):
    from sparsact.routing import TopK

    fitted = model(router=TopK(5, absolute=True)).fit(X, Y)
    fitted.save(tmp_path / "m.safetensors")
    loaded = sa.load(tmp_path / "m.safetensors")
    assert loaded.router == loaded.layer_.router == TopK(5, absolute=True)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
