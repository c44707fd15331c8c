"""What the command says of a model that learned a little, or nothing."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import fit_json, run

pytestmark = pytest.mark.usefixtures("few_rivals")


@pytest.mark.grid
def test_noise_is_called_noise(capsys, tmp_path):
    rng = np.random.default_rng(11)
    columns = {name: rng.integers(0, 2, 301) for name in "abcdef"}
    pa.csv.write_csv(pa.table(columns | {"y": rng.normal(size=301)}), tmp_path / "noise.csv")
    status, out, _ = run(capsys, "fit", tmp_path / "noise.csv", "--target", "y")
    assert status == 0
    assert out.startswith("Held-out R² -0.0")
    assert (
        " Nothing of degree ≤ 6, nor by a sparse polynomial, a lasso polynomial, a Gaussian process or an ensemble of "
        "models, was found in these columns; predicting the mean gives R² 0.\n"
    ) in out


@pytest.mark.grid
def test_a_rare_class_may_be_learned_and_never_named(capsys, tmp_path):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (3000, 4))
    ill = rng.random(3000) < np.where(bits[:, 0] ^ bits[:, 1], 0.35, 0.02)
    columns = {name: bits[:, i] for i, name in enumerate("abcd")}
    pa.csv.write_csv(pa.table(columns | {"state": np.where(ill, "ill", "well")}), tmp_path / "t.csv")
    told = fit_json(capsys, tmp_path / "t.csv", "--target", "state")
    assert told["learned"]
    assert told["accuracy"] == told["majority"]
    assert "predicting the class frequencies gives 0" in told["verdict"]


@pytest.mark.grid
def test_too_high_a_degree_is_not_called_nothing(capsys, tmp_path):
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, (600, 12))
    np.savez(tmp_path / "t.npz", X=bits, y=bits[:, 0] + rng.normal(size=600))
    told = fit_json(capsys, tmp_path / "t.npz", "--target", "y", "--degree", "4", "--alpha", "1")
    assert not told["learned"]
    assert "by a polynomial of degree 4; " in told["verdict"]
    assert "It does not predict held-out rows, but degree 1 does" in told["verdict"]
    assert told["verdict"].endswith("choose degree 1.")
