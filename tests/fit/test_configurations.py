"""Tables of options: numbers of few values, and targets that span decades."""

import numpy as np
import pandas as pd
import pytest

import sparsact as sa
from sparsact.cli import main
from sparsact.datasets import Encoding
from sparsact.datasets.columns import Real
from sparsact.fit.table_model import letters_and_numbers
from sparsact.learners.letters.alphabet import features_of_quantity


def options(m: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Run times that two switches multiply, and a number of threads divides, almost without noise."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.integers(0, 2, (m, 3)), columns=["a", "b", "c"]).assign(threads=2 ** rng.integers(0, 5, m))
    logs = 4 + 2.5 * table["a"] + 2 * table["b"] * table["c"] - 0.8 * np.log(table["threads"])
    return table, np.exp(logs + 0.01 * rng.normal(size=m)).to_numpy()


@pytest.mark.grid
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


@pytest.mark.grid
def test_a_quantity_is_the_nearest_one_known_and_must_be_a_number():
    rows = np.array([[a, t] for a in "xy" for t in ("1", "2", "4", "8")] * 3)
    y = np.arange(24.0)
    model = sa.LettersRegressor(quantities=[1], random_state=0).fit(rows, y)
    assert model.predict([["x", "7"]]) == model.predict([["x", "8"]])
    with pytest.raises(ValueError, match="quantity"):
        sa.LettersRegressor(quantities=[0]).fit(rows, y)
    with pytest.raises(ValueError, match="counted from 0"):
        sa.LettersRegressor(quantities=[2]).fit(rows, y)
    for text in ("nan", "inf"):
        with pytest.raises(ValueError, match=f"holds '{text}'"):
            sa.LettersRegressor(quantities=[1]).fit(np.where(rows == "8", text, rows), y)


def test_features_of_quantities_match_their_multiples():
    expected = features_of_quantity(["-1", "2", "4"])
    for factor in (1e300, 1e-300):
        assert features_of_quantity([repr(each * factor) for each in (-1, 2, 4)]) == pytest.approx(expected)


def test_quantities_are_the_numbers_of_the_table():
    numbers = np.array([-8.0, 0.0, 0.1, 16.0, 1e9, 12345.678])
    X = np.random.default_rng(0).choice(numbers, 200)
    scale, centre = X.std(), X.mean()
    encoding = Encoding((Real("x", centre, scale),), (Real("y"),))
    texts = letters_and_numbers(encoding, ((numbers - centre) / scale)[:, None])
    assert texts.ravel().tolist() == ["-8", "0", "0.1", "16", "1000000000", "12345.678"]


def test_effects_of_logarithms_are_said_to_be_such_by_inspect(tmp_path, capsys):
    X, y = options(60, 0)
    result = sa.fit_table(X.assign(y=y)[["a", "b", "c", "y"]], "y", model="low-degree", log_target=True, folds=2)
    result.save(tmp_path / "model")
    for asked in ([], ["--contrast", "a=1", "a=0"]):
        assert main(["inspect", str(tmp_path / "model"), *asked]) == 0
        assert "natural logarithm" in " ".join(capsys.readouterr().out.split())
