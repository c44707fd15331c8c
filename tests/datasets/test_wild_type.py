"""The wild type of a table: its names, the mutations that it makes of letters, and values that are 0."""

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from grids import grid

import sparsact as sa
from sparsact.datasets import Encoding
from sparsact.datasets.cell_values import two_values
from sparsact.datasets.table_files import Parts
from sparsact.datasets.wild_type import wild_types

GRID = ["".join(one) for one in product("ACG", "KL", "T", "ACD")]
WILD = "CLTA"


def table(order=slice(None)):
    """Sequences, their names, and a column of two values; the row of the wild type is named native."""
    names = ["native" if text == WILD else f"v{i}" for i, text in enumerate(GRID)]
    columns = {"name": names, "seq": GRID, "b": ["xy"[i % 2] for i in range(len(GRID))]}
    return pa.table({key: value[order] for key, value in columns.items()} | {"y": range(len(GRID[order]))})


@pytest.mark.parametrize("given", [WILD, WILD.lower(), "native", str(GRID.index(WILD) + 1)])
def test_every_name_of_a_wild_type_makes_the_same_mutations(given):
    encoding = sa.fit_table(table(), "y", ignore="b", degree=1, wild_type=given).encoding
    assert encoding.feature_names == ("C1A", "C1G", "L2K", "A4C", "A4D")
    assert [name for name, _ in encoding.sites] == ["C1", "L2", "A4"]
    assert encoding.reference == ("C", "L", "A")
    bits = encoding.columns[0].encode(pa.array(GRID), 0)
    expected = [
        [text[place] == new for place, new in ((0, "A"), (0, "G"), (1, "K"), (3, "C"), (3, "D"))] for text in GRID
    ]
    np.testing.assert_array_equal(bits, expected)
    np.testing.assert_array_equal(encoding.bits(encoding.codes(bits)), bits)
    assert ["".join(row) for row in encoding.letters(bits)] == [text[:2] + text[3] for text in GRID]
    assert Encoding.from_json(encoding.to_json()) == encoding


def test_the_most_frequent_letters_are_counted_place_by_place():
    texts = [*GRID, "AKTD", "CKTD", "GKTD"]
    values = ["y"] * 10 + ["x"] * (len(texts) - 10)
    parts = Parts.open(pa.table({"seq": texts, "b": values, "m": ["A1C"] * len(texts)}))
    assert wild_types(parts, ["seq", "b", "m"], "most-frequent") == {"seq": "AKTD", "b": "x"}


def test_the_row_of_a_wild_type_says_which_values_are_0():
    row = GRID.index(WILD)
    for wild_type in ("native", str(row + 1)):
        encoding = sa.fit_table(table(), "y", columns=["seq", "b"], degree=1, wild_type=wild_type).encoding
        assert encoding.columns[1].values == (("x", "y"), ("y", "x"))[row % 2]
    switches = pa.table({"a": [0, 1] * 8, "b": [0, 0, 1, 1] * 4, "y": range(16)})
    found = sa.fit_table(switches, "y", degree=1, wild_type="2")
    assert [column.values for column in found.encoding.columns] == [("1", "0"), ("0", "1")]
    assert {term.subset for term in found.targets[0].terms} == {("a=1→0",), ("b=0→1",)}


def test_a_number_is_that_of_a_row_in_any_file(tmp_path):
    """Cells of a CSV file are texts, and columns of switches hold ``1``; in a column of codes, digits are a name."""
    switches = pa.table({"a": [1, 1, 0, 0], "b": [0, 1, 0, 1], "dose": [0.5, 3, 2, 12], "y": range(4)})
    codes = pa.table({"code": ["0110", "1001", "12", "3"], "y": range(4)})
    for number in ("1", "2", "3"):
        for name, columns, given_table in (("s.csv", ["a", "b"], switches), ("c.csv", ["code"], codes)):
            pa.csv.write_csv(given_table, tmp_path / name)
            found = [wild_types(Parts.open(one), columns, number) for one in (given_table, tmp_path / name)]
            row = 3 if (name, number) == ("c.csv", "3") else int(number) - 1
            assert found[0] == found[1] == {one: str(given_table[one][row].as_py()) for one in columns}
    assert wild_types(Parts.open(codes), ["code"], "1001") == {"code": "1001"}
    assert wild_types(Parts.open(codes), ["code"], "0000") == {"code": "0000"}


@pytest.mark.parametrize(
    ("given", "message"),
    [("19", "no row of that number; rows count from 1"), ("0", "no row of that number"), ("CLT", "has 3 letters")],
)
def test_wild_types_that_are_none(given, message):
    with pytest.raises(ValueError, match=message):
        sa.fit_table(table(), "y", degree=1, ignore="b", wild_type=given)


def test_lists_of_mutations_name_their_wild_type_themselves():
    lists = pa.table({"name": ["a", "b"] * 20, "m": ["M1A", "WT", "M1D:K2A", "K2D"] * 10, "y": range(40)})
    assert sa.fit_table(lists, "y", ignore="name", degree=1, wild_type="2").encoding.reference == ("M", "K")
    with pytest.raises(ValueError, match="M1A is a mutant; name a row without mutations"):
        sa.fit_table(lists, "y", ignore="name", degree=1, wild_type="1")


PAIRS = ("wt mut", "WT KO", "REF ALT", "- +", "control treated", "none x", "no yes", "off on", "FALSE TRUE", "0 1")


@grid(pair=PAIRS, swapped=(False, True))
def test_what_others_are_compared_with_is_0(pair, swapped):
    first, second = pair.split()
    assert two_values((second, first) if swapped else (first, second)) == (first, second)
