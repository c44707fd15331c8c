"""`predict_table` and `sparsact predict`: names of rows, intervals, rows to doubt."""

import json
from dataclasses import asdict
from datetime import date
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import run

import sparsact as sa
from sparsact.datasets import Encoding
from sparsact.datasets.table_summary import TableDesign
from sparsact.datasets.unseen_rows import DesignSums, unseen_pairs
from sparsact.statistics.held_out_rows import HeldOutRows

COLOURS = ("blue", "green", "red")


def rows(rng, m):
    """Rows in which some values never meet: a with b, colour red with c = 1."""
    a, b, c, d = rng.integers(0, 2, (4, m))
    colour = np.array(COLOURS)[rng.integers(0, 3, m)]
    b[a == 1], c[colour == "red"] = 0, 0
    u = rng.uniform(-3, 5, m)
    y = a - 2.0 * c * d + (colour == "blue") + 0.3 * u + 0.1 * rng.normal(size=m)
    names = [f"row {i}" for i in range(m)]
    return {"strain": names, "a": a, "b": b, "c": c, "d": d, "colour": colour, "u": u, "y": y}


def everywhere():
    """Every combination of the values, with numbers inside of their range, and two beyond."""
    found = [
        (a, b, c, d, colour, u)
        for (a, b, c, d), colour, u in product(product((0, 1), repeat=4), COLOURS, (0.0, -9.0, 8.0))
    ]
    table = dict(zip(("a", "b", "c", "d", "colour", "u"), map(list, zip(*found, strict=True)), strict=True))
    return table | {"name": [f"new {i}" for i in range(len(found))]}


@pytest.fixture(scope="module")
def fitted():
    table = rows(np.random.default_rng(5), 400)
    return table, sa.fit_table(pa.table(table), "y", ignore="strain", model="low-degree")


def test_rows_are_outside_where_two_values_never_met_or_a_number_is_beyond(fitted):
    """By a look at every pair of columns and every row of the training table."""
    table, result = fitted
    new = everywhere()
    found = sa.predict_table(result, pa.table(new))["outside"].to_pylist()
    names = ("a", "b", "c", "d", "colour")
    met = {(x, y): set(zip(table[x], table[y], strict=True)) for x, y in combinations(names, 2)}
    for i, reason in enumerate(found):
        pairs = [(x, y) for x, y in met if (new[x][i], new[y][i]) not in met[x, y]]
        beyond = not min(table["u"]) <= new["u"][i] <= max(table["u"])
        assert bool(reason) == bool(pairs or beyond)
        if beyond:
            assert reason.startswith(f"u={new['u'][i]:g} {'below' if new['u'][i] < 0 else 'above'}")
        elif pairs:
            assert any(x in reason and y in reason and " with " in reason for x, y in pairs)
    assert {"a=1 with b=1", "c=1 with colour=red"} <= set(found)


def test_intervals_hold_new_measurements_as_often_as_they_say(fitted):
    _, result = fitted
    new = rows(np.random.default_rng(6), 4_000)
    for confidence in (0.5, 0.9):
        found = sa.predict_table(result, pa.table(new), confidence=confidence)
        low, high, y = (found[name].to_numpy() for name in ("y_low", "y_high", "y"))
        assert abs(np.mean((low <= new["y"]) & (new["y"] <= high)) - confidence) < 0.04
        np.testing.assert_allclose((low + high) / 2, y, atol=1e-12)
    np.testing.assert_array_equal(y, result.predict(pa.table(new)))


@pytest.mark.grid
def test_intervals_of_a_process_are_its_posteriors():
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2, (80, 5))
    columns = {name: bits[:, i] for i, name in enumerate("abcde")}
    y = bits[:, 0] * bits[:, 1] + 0.1 * rng.normal(size=80)
    result = sa.fit_table(pa.table(columns | {"y": y}), "y", model="gp")
    found = sa.predict_table(result, pa.table(columns), confidence=0.8)
    expected = result.model.prediction_intervals(bits.astype(bool), 0.8)
    np.testing.assert_allclose(np.stack([found["y_low"], found["y_high"]], axis=1), expected, rtol=1e-12)


def test_the_command_keeps_names_of_rows(capsys, fitted, tmp_path):
    _, result = fitted
    new = rows(np.random.default_rng(8), 30)
    pa.csv.write_csv(pa.table(new), tmp_path / "new.csv")
    result.save(tmp_path / "m.sparsact")
    assert run(capsys, "predict", tmp_path / "m.sparsact", tmp_path / "new.csv", "--out", tmp_path / "p.csv")[0] == 0
    found = pa.csv.read_csv(tmp_path / "p.csv")
    assert found.column_names == ["strain", "y", "y_low", "y_high", "outside"]
    expected = sa.predict_table(sa.load(tmp_path / "m.sparsact"), pa.table(new))
    assert expected == sa.predict_table(result, pa.table(new))
    assert found.drop(["outside"]).to_pydict() == expected.drop(["outside"]).to_pydict()
    words = ("predict", tmp_path / "m.sparsact", tmp_path / "new.csv", "--id")
    assert run(capsys, *words, "u")[1].startswith('"u","y","y_low","y_high","outside"\n')
    status, _, err = run(capsys, *words, "y")
    assert status == 2
    assert "column 'y' cannot name the rows, since the predictions use that name." in err
    assert "did you mean 'strain'?" in run(capsys, *words, "strains")[2]
    assert run(capsys, *words, "d", "--confidence", "1.5")[0] == 2


def test_classes_have_no_intervals():
    rng = np.random.default_rng(9)
    bits = rng.integers(0, 2, (100, 3))
    columns = {name: bits[:, i] for i, name in enumerate("abc")}
    kind = np.where(bits[:, 0] == 1, "on", "off")
    result = sa.fit_table(pa.table(columns | {"kind": kind}), "kind", model="low-degree")
    found = sa.predict_table(result, pa.table(columns))
    assert found.column_names == ["kind", "outside"]
    assert found["kind"].to_pylist() == kind.tolist()


def test_few_held_out_rows_have_no_wide_interval():
    """The largest of m errors bounds a new one with probability m / (m + 1)."""
    errors = np.array([[1.0], [3.0], [-2.0], [4.0]])
    held_out = HeldOutRows(np.empty((4, 0), bool), np.zeros((4, 1)), errors, 4)
    assert [held_out.reach(0, np.zeros(1), p)[0] for p in (0.2, 0.21, 0.8, 0.81)] == [1.0, 2.0, 4.0, np.inf]


def test_the_design_does_not_depend_on_how_rows_come():
    encoding = sa.fit_table(pa.table(rows(np.random.default_rng(5), 60)), "y", ignore="strain", degree=1).encoding
    rng = np.random.default_rng(1)
    X = np.where(rng.random((90, 8)) < 0.15, -1.0, 1.0)
    X[:, 7] = rng.normal(size=90)
    whole, left, right = (DesignSums(encoding) for _ in range(3))
    whole.add(X)
    for part in range(0, 60, 7):
        left.add(X[part : min(part + 7, 60)])
    right.add(X[60:])
    left.merge(right)
    restored = whole.empty()
    restored.restore(left.arrays())
    assert restored.design() == whole.design()
    design = whole.design()
    assert design.pairs
    assert TableDesign.from_dict(asdict(design)) == design
    assert len(unseen_pairs(encoding, design)) == design.unseen.sum()


@pytest.mark.parametrize(
    "change",
    [{"n_bits": 10**9}, {"pairs": "AAAA"}, {"pairs": "é"}, {"low": []}, {"errors": [[1.0], [2.0]]}, {"n_bits": 1e400}],
)
def test_a_design_that_was_made_up_is_refused(fitted, change):
    found = json.loads(fitted[1].encoding.to_json())
    assert Encoding.from_json(json.dumps(found)) == fitted[1].encoding
    found["design"] |= change
    with pytest.raises(ValueError, match=r"."):
        Encoding.from_json(json.dumps(found))


def test_targets_keep_their_names_where_intervals_would_take_them():
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2, (60, 3))
    columns = {name: bits[:, i] for i, name in enumerate("abc")}
    targets = {"y": rng.normal(size=60), "y_low": rng.normal(size=60), "outside": rng.normal(size=60)}
    result = sa.fit_table(pa.table(columns | targets), list(targets), degree=1)
    found = sa.predict_table(result, pa.table(columns))
    names = ["y", "y_low_", "y_high", "y_low", "y_low_low", "y_low_high"]
    assert found.column_names == [*names, "outside", "outside_low", "outside_high", "outside_"]
    np.testing.assert_array_equal(found.select(list(targets)).to_pandas(), result.predict(pa.table(columns)))


@pytest.mark.parametrize("model", ["ensemble", "letters"])
@pytest.mark.grid
def test_intervals_of_one_width_take_one_evaluation(model, monkeypatch):
    """Their width is known, so that one evaluation gives values and ends."""
    rng = np.random.default_rng(4)
    letters = rng.choice(list("AC" if model == "ensemble" else "ACG"), (90, 3))
    table = pa.table({f"s{i}": letters[:, i] for i in range(3)} | {"y": (letters == "A").sum(1) + rng.normal(size=90)})
    result = sa.fit_table(table, "y", model=model, folds=3, explain=False)
    kind, calls = type(result.model), []
    predict = kind.predict
    monkeypatch.setattr(kind, "predict", lambda self, X: calls.append(len(X)) or predict(self, X))
    found = sa.predict_table(result, table)
    assert calls == [90]
    middle = (found["y_low"].to_numpy() + found["y_high"].to_numpy()) / 2
    np.testing.assert_allclose(middle, found["y"].to_numpy())


@pytest.fixture(scope="module")
def of_bits(tmp_path_factory):
    bits = np.random.default_rng(1).integers(0, 2, (60, 2))
    path = tmp_path_factory.mktemp("models") / "m.sparsact"
    sa.fit_table(pa.table({"a": bits[:, 0], "b": bits[:, 1], "y": bits.sum(1)}), "y", degree=1).save(path)
    return path


def test_infinite_names_of_rows_are_texts_in_json(of_bits, capsys, tmp_path):
    new = {"name": [np.inf, -np.inf, np.nan, 1.5, None], "a": [0, 1, 0, 1, 0], "b": [0, 0, 1, 1, 1]}
    pa.parquet.write_table(pa.table(new), tmp_path / "new.parquet")
    status, out, _ = run(capsys, "predict", of_bits, tmp_path / "new.parquet", "--json")
    found = json.loads(out, parse_constant=pytest.fail)["rows"]
    assert status == 0
    assert [row["name"] for row in found] == ["inf", "-inf", None, 1.5, None]


OTHERS = {
    "dates": [date(2024, 2, 29)] * 3,
    "time stamps": pa.array([0] * 3, pa.timestamp("s")),
    "bytes": [b"\xff"] * 3,
    "lists": [[1, 2]] * 3,
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("ending", ["parquet", "arrow", ""])
def test_columns_that_the_model_does_not_use_may_hold_anything(of_bits, kind, ending, capsys, tmp_path):
    """It names no rows: the next column does."""
    new = pa.table({"other": OTHERS[kind], "a": [0, 1, 0], "b": [0, 0, 1], "next": ["u", "v", "w"]})
    path = tmp_path / f"new.{ending}"
    if not ending:
        assert sa.predict_table(sa.load(of_bits), new).column_names[0] == "next"
        return
    if ending == "parquet":
        pa.parquet.write_table(new, path)
    else:
        with pa.ipc.new_file(path, new.schema) as file:
            file.write_table(new)
    status, out, err = run(capsys, "predict", of_bits, path)
    assert (status, err) == (0, "")
    assert [line.split(",")[0] for line in out.splitlines()] == ['"next"', '"u"', '"v"', '"w"']
    err = run(capsys, "predict", of_bits, path, "--id", "other")[2]
    assert "column 'other' holds" in err
    assert "--ignore" not in err
