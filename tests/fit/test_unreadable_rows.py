"""Rows of a new table that a model cannot read: each costs its own prediction and no other, and says why."""

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run

import sparsact as sa

RNG = np.random.default_rng(2)
SEQUENCES = ["".join(one) for one in product("ACGT", repeat=3)]
BITS = RNG.integers(0, 2, (64, 2))
TABLE = {
    "seq": SEQUENCES,
    "mutant": [["WT", "M1A", "K2D", "M1A:K2D"][i % 4] for i in range(64)],
    "colour": RNG.choice(["red", "green", "blue"], 64).tolist(),
    "x": RNG.normal(size=64).round(3).tolist(),
    "y": [(text[0] == "A") + 2.0 * (text[1] == "C") + 0.01 * i for i, text in enumerate(SEQUENCES)],
}
OPTIONS = {"model": "low-degree", "degree": 1, "alpha": 1.0, "explain": False}
GOOD = {"name": "fine", "seq": "ACG", "mutant": "M1A", "colour": "red", "x": "0.5"}
BAD = {  # a cell, and what is said of it
    "letter": ({"seq": "ACN"}, "seq: letter 'N' of 'ACN' at place 3 is not among the letters"),
    "length": ({"seq": "AC"}, "seq: 'AC' has 2 letters, and the training table has 3"),
    "no sequence": ({"seq": None}, "seq: the value is missing"),
    "mutation": ({"mutant": "Q3R"}, "mutant: 'Q3R' has a mutation that is not among the mutations"),
    "no list": ({"mutant": "twelve"}, "mutant: 'twelve' is not a list of mutations"),
    "category": ({"colour": "pink"}, "colour: 'pink' is not among the values"),
    "no number": ({"x": "much"}, "x: 'much' is not a finite number"),
    "two": ({"seq": "AC", "colour": "pink"}, "'pink' is not among the values"),
}


@pytest.fixture(scope="module")
def fitted():
    return sa.fit_table(
        pa.table(TABLE), "y", model="low-degree", degree=1, alpha=1.0, explain=False, held_out_rows=True
    )


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A good row before each bad one, and one after a different spelling of the same."""
    rows = [row for cells, _ in BAD.values() for row in (GOOD, GOOD | cells)]
    rows.append(GOOD | {"seq": "acg", "mutant": "p.Met1Ala", "name": "spelled otherwise"})
    path = tmp_path_factory.mktemp("new") / "new.csv"
    pa.csv.write_csv(pa.Table.from_pylist(rows), path)
    return path


def test_a_row_that_cannot_be_read_costs_its_own_prediction(fitted, new):
    found = sa.predict_table(fitted, new)
    assert found.column_names == ["name", "seq", "mutant", "y", "y_low", "y_high", "outside"]
    (expected,) = sa.predict_table(fitted, pa.table({name: [value] for name, value in GOOD.items()})).to_pylist()
    for i, (_, message) in enumerate(BAD.values()):
        good, bad = found.slice(2 * i, 1).to_pylist()[0], found.slice(2 * i + 1, 1).to_pylist()[0]
        assert good == expected
        assert [bad[name] for name in ("y", "y_low", "y_high")] == [None] * 3
        assert message in bad["outside"]
    last = found.to_pylist()[-1]
    assert last == expected | {"name": "spelled otherwise", "seq": "acg", "mutant": "p.Met1Ala"}
    with pytest.raises(ValueError, match="column 'seq', row"):
        fitted.predict(new)  # an array has no room for reasons


def test_the_command_counts_rows_without_a_prediction(capsys, fitted, new, tmp_path):
    fitted.save(tmp_path / "m.sparsact")
    status, out, err = run(capsys, "predict", tmp_path / "m.sparsact", new)
    assert (status, err) == (0, "8 of 17 rows have no prediction; column 'outside' says why.\n")
    assert out.startswith('"name","seq","mutant","y","y_low","y_high","outside"\n"fine","ACG","M1A",')
    (tmp_path / "n.csv").write_text("seq;mutant;colour;x\nACG;M1A;red;0,5\nACG;M1A;red;1,5\n")
    status, out, err = run(capsys, "predict", tmp_path / "m.sparsact", tmp_path / "n.csv", "--decimal", ",")
    assert (status, err, out.count("\n")) == (0, "", 3)
    status, _, err = run(capsys, "predict", tmp_path / "m.sparsact", tmp_path / "n.csv", "--decimal", ";")
    assert (status, "decimal ';' is none of 'auto', '.', ','" in err) == (2, True)


def test_a_test_table_is_scored_by_the_rows_that_can_be_read(new):
    rows = pa.table(TABLE).to_pylist()
    other = pa.Table.from_pylist([*rows[:40], rows[40] | {"seq": "ACN"}, *rows[41:], rows[3] | {"seq": "A"}])
    result = sa.fit_table(pa.table(TABLE), "y", **OPTIONS, test=other)
    whole = sa.fit_table(pa.table(TABLE), "y", **OPTIONS, test=pa.Table.from_pylist([*rows[:40], *rows[41:]]))
    assert (result.test.n_rows, result.test.targets[0].rmse) == (63, whole.test.targets[0].rmse)
    assert result.test.lines[1].startswith("left out of that score: 2 of 65 rows; row 41, seq: letter 'N' of 'ACN'")
    assert result.test.to_dict()["left_out"] == result.test.left_out
    few = sa.fit_table(pa.table(TABLE), "y", **OPTIONS, test=pa.Table.from_pylist([rows[0], rows[1] | {"seq": "ACN"}]))
    assert few.test.lines[0] == "no score on the table: a score needs 2 rows, and 1 can be read"
    assert few.test.to_dict()["targets"] == []
    for unread in ({"seq": "ACN"}, {"y": None}):
        none = sa.fit_table(
            pa.table(TABLE), "y", **OPTIONS, test=pa.Table.from_pylist([one | unread for one in rows[:3]])
        )
        assert none.test.lines[0] == "no score on the table: a score needs 2 rows, and 0 can be read"


def test_classes_have_no_name_where_a_row_cannot_be_read():
    data = {"seq": SEQUENCES, "kind": ["on" if text[0] in "AC" else "off" for text in SEQUENCES]}
    result = sa.fit_table(pa.table(data), "kind", **OPTIONS)
    found = sa.predict_table(result, pa.table({"seq": ["AAA", "ANA", "TTT"]})).to_pydict()
    assert found["kind"] == ["on", None, "off"]
    assert [bool(why) for why in found["outside"]] == [False, True, False]
    test = pa.table({"seq": ["AAA", "ANA", "TTT"], "kind": ["on", "on", "off"]})
    scored = sa.fit_table(pa.table(data), "kind", **OPTIONS, test=test).test
    assert (scored.n_rows, scored.accuracy.value) == (2, 1.0)


def test_a_test_row_without_a_target_that_was_learned_costs_itself():
    rows = pa.table(TABLE).to_pylist()
    other = pa.Table.from_pylist([*rows[:9], rows[9] | {"y": None}, *rows[10:]])
    result = sa.fit_table(pa.table(TABLE), "y", **OPTIONS, test=other)
    whole = sa.fit_table(pa.table(TABLE), "y", **OPTIONS, test=pa.Table.from_pylist([*rows[:9], *rows[10:]]))
    assert (result.test.n_rows, result.test.targets[0].rmse) == (63, whole.test.targets[0].rmse)
    assert result.test.left_out.startswith("1 of 64 rows; row 10, y: the value is missing")
    classes = [{"seq": row["seq"], "y": ["lo", "hi"][row["seq"][0] == "A"]} for row in rows]
    other = pa.Table.from_pylist([classes[0], classes[1] | {"y": "new"}, *classes[2:]])
    found = sa.fit_table(pa.Table.from_pylist(classes), "y", **OPTIONS, test=other).test
    assert found.n_rows == 63
    assert "1 of 64 rows; row 2, y: 'new' is not among the values" in found.lines[1]
    logs = [row | {"y": 1.0 + row["y"]} for row in rows]
    other = pa.Table.from_pylist([*logs[:-1], logs[-1] | {"y": -1.0}])
    found = sa.fit_table(pa.Table.from_pylist(logs), "y", **OPTIONS, log_target=True, test=other).test
    assert (found.n_rows, found.left_out[:40]) == (63, "1 of 64 rows; row 64, y: -1 has no logar")
