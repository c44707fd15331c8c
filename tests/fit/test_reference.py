"""Effects from a reference: differences of predictions, by every row of the cube."""

import json
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run

import sparsact as sa
from sparsact.fit.effects import reference_effects

NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (150, 4))
    y = X[:, 0] - 2 * X[:, 1] * X[:, 2] + X[:, 0] * X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=150)
    table = pa.table({name: X[:, i] for i, name in enumerate(NAMES)} | {"y": y, "z": y**2})
    return {
        "low-degree": sa.fit_table(table, ["y", "z"], degree=3),
        "gp": sa.fit_table(table, "y", ignore="z", model="gp"),
    }


@pytest.mark.parametrize("kind", ["low-degree", "gp"])
@pytest.mark.parametrize("wild", [(0, 0, 0, 0), (1, 0, 1, 0)])
def test_effects_are_alternating_sums_of_predictions(fitted, kind, wild):
    result = fitted[kind]
    cube = np.array(list(product((0, 1), repeat=4)))
    predicted = result.predict(pa.table({name: cube[:, i] for i, name in enumerate(NAMES)})).reshape(16, -1)
    f = {tuple(row): value for row, value in zip(cube.tolist(), predicted, strict=True)}

    def alternating(subset, others):
        found = 0
        for size in range(len(subset) + 1):
            for changed in combinations(subset, size):
                point = list(others)
                for i in subset:
                    point[i] = 1 - wild[i] if i in changed else wild[i]
                found = found + (-1) ** (len(subset) - size) * f[tuple(point)]
        return found

    reference = {name: value for name, value in zip(NAMES, wild, strict=True) if value}
    rows = reference_effects(result.model, result.encoding, reference or "a=0", order=3)
    assert len(rows) == 14 * len(result.targets)
    for row in rows:
        subset = tuple(NAMES.index(text[0]) for text in row["columns"])
        assert row["columns"] == [f"{NAMES[i]}={wild[i]}→{1 - wild[i]}" for i in subset]
        place = [target.name for target in result.targets].index(row["target"])
        assert row["at_reference"] == pytest.approx(alternating(subset, wild)[place], abs=1e-9)
        everywhere = np.mean([alternating(subset, point) for point in f], axis=0)
        assert row["averaged"] == pytest.approx(everywhere[place], abs=1e-9)
    sizes = [abs(row["at_reference"]) for row in rows if row["target"] == "y"]
    assert sizes == sorted(sizes, reverse=True)


def test_the_command_takes_a_reference(capsys, fitted, tmp_path):
    result = fitted["gp"]
    result.save(tmp_path / "m.sparsact")
    pyarrow.csv.write_csv(pa.table({"d": [0], "c": [1], "b": [0], "a": [1]}), tmp_path / "wt.csv")
    expected = result.effects_from({"a": 1, "c": 1})[:3]
    for reference in ("c=1, a=1", tmp_path / "wt.csv"):
        words = ("inspect", tmp_path / "m.sparsact", "--reference", reference, "--top", 3)
        assert json.loads(run(capsys, *words, "--json")[1])["reference_effects"] == expected
        out = run(capsys, *words)[1]
        assert "at the reference" in out
        assert all(row["low"] < row["at_reference"] < row["high"] for row in expected)
        assert " × ".join(expected[0]["columns"]) in out


REFUSED = {
    "e=1": "no column 'e' in the table",
    "a=2": "column 'a', row 1: '2' is not among the values",
    "a=": "column 'a', row 1: '' is not among the values",
    "none.csv": "none.csv",
}


@pytest.mark.parametrize("reference", REFUSED)
def test_bad_references_are_refused_in_one_line(fitted, reference):
    with pytest.raises((ValueError, FileNotFoundError), match=REFUSED[reference]) as refused:
        fitted["gp"].effects_from(reference)
    assert "\n" not in str(refused.value)


def test_columns_of_numbers_have_no_reference():
    table = pa.table({"x": np.linspace(0, 1, 30) ** 2, "b": [0, 1] * 15, "y": list(range(30))})
    result = sa.fit_table(table, "y", degree=1)
    with pytest.raises(ValueError, match="'x' holds numbers"):
        result.effects_from("b=1")
