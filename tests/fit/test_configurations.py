"""Tables of options: numbers of few values, and targets that span decades."""

import numpy as np
import pandas as pd
import pytest

import sparsact as sa


def options(m: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Run times that two switches multiply, and a number of threads divides, almost without noise."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, 2, (m, 3)), columns=["a", "b", "c"]).assign(threads=2 ** rng.integers(0, 5, m))
    logs = 4 + 2.5 * table["a"] + 2 * table["b"] * table["c"] - 0.8 * np.log(table["threads"])
    return table, np.exp(logs + 0.01 * rng.normal(size=m)).to_numpy()


def test_numbers_of_few_values_are_learned_as_logarithms_and_saved(tmp_path):
    X, y = options(90, 0)
    result = sa.fit_table(X.assign(y=y), "y", explain=False, folds=2)
    assert any("log_target=False" in note for note in result.encoding.notes)
    new, actual = options(200, 1)
    predicted = np.asarray(result.predict(new))
    assert np.mean(np.abs(predicted / actual - 1)) < 0.05  # five times the noise
    letters = sa.fit_table(X.assign(y=np.log(y)), "y", model="letters", explain=False, folds=2)
    letters.save(tmp_path / "model")
    again = sa.load(tmp_path / "model")
    assert np.asarray(sa.predict_table(again, new)["y"]) == pytest.approx(np.asarray(letters.predict(new)))
    assert "trees of 8 leaves" in again.weights_


def test_a_quantity_is_the_nearest_one_known_and_must_be_a_number():
    rows = np.array([[a, t] for a in "xy" for t in ("1", "2", "4", "8")] * 3)
    y = np.arange(24.0)
    model = sa.LettersRegressor(quantities=[1], random_state=0).fit(rows, y)
    assert model.predict([["x", "7"]]) == model.predict([["x", "8"]])
    with pytest.raises(ValueError, match="quantity"):
        sa.LettersRegressor(quantities=[0]).fit(rows, y)
    with pytest.raises(ValueError, match="counted from 0"):
        sa.LettersRegressor(quantities=[2]).fit(rows, y)
