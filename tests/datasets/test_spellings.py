"""Tables as people and spreadsheets write them: each is read right, or refused in one line that says what to do."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import sparsact as sa
from sparsact.datasets import Encoding, encoded_table, open_table
from sparsact.datasets.chosen_rows import complete_rows
from sparsact.datasets.dialect import Dialect
from sparsact.datasets.readers import open_source
from sparsact.datasets.table_files import Parts
from sparsact.datasets.table_stream import TableSurvey

pytestmark = pytest.mark.usefixtures("few_rivals")
M = 40
RNG = np.random.default_rng(11)
A = RNG.integers(0, 2, M)
Y = 1 + A + RNG.normal(size=M).round(3) / 10


def text(y, *, comma=",", a=A, name="y"):
    return f"a{comma}b{comma}{name}\n" + "".join(
        f"{i}{comma}{j}{comma}{k}\n" for i, j, k in zip(a, 1 - A % 3, y, strict=True)
    )


PLAIN = text(Y)
READ = {
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "sixteen bits": PLAIN.encode("utf-16"),
    "semicolons": PLAIN.replace(",", ";").encode(),
    "bars": PLAIN.replace(",", "|").encode(),
    "a spreadsheet in Germany": text([f"{y:.6f}".replace(".", ",") for y in Y], comma=";").encode("utf-8-sig"),
    "decimal comma": text([f'"{y:.6f}"'.replace(".", ",") for y in Y]).encode(),
    "exponents of Fortran": text([f"{y:.12E}".replace("E", "D") for y in Y]).encode(),
    "spaces at every end": PLAIN.replace(",", " ,").replace("\n", "  \n").encode(),
    "cases": text(Y, a=np.where(A, np.resize(["yes", "Yes", "YES "], M), np.resize(["NO", "no"], M))).encode(),
    "line ends of Windows": PLAIN.replace("\n", "\r\n").encode(),
    "quotes": text([f'"{y}"' for y in Y]).encode(),
    "exponents": text([f"{y:.12E}" for y in Y]).encode(),
    "spaces": text([f" {y} " for y in Y]).encode(),
    "words": text(Y, a=np.where(A, "TRUE", "FALSE")).encode(),
}


@pytest.mark.parametrize("kind", READ)
def test_spellings_that_are_read(tmp_path, kind):
    path = tmp_path / "t.csv"
    path.write_bytes(READ[kind])
    table = open_table(path, "y")
    X, y = next(iter(table.batches()))
    np.testing.assert_array_equal(X[:, 0], A)
    np.testing.assert_allclose(y, Y, rtol=1e-12)


def test_a_line_break_in_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(PLAIN.replace("a,b", '"gene\nA",b', 1))
    assert open_table(path, "y").feature_names[0] == "gene\nA"


COMMAS = {  # a comma in numbers: cells, what separates columns, the number of the first cell, and the note
    "thousands and decimals": (['"1,037.5"', '"12,037"'], ",", 1037.5, "'1,037.5' is read as a thousands separator"),
    "thousands alone": (['"1,037"', '"2,250"'], ",", 1037, "'1,037' is read as a thousands separator"),
    "spaces between thousands": (["1 037,25", "2 250"], ";", 1037.25, "'1 037,25' is read as a decimal comma"),
    "points between thousands": (["1.037,25", "2.250"], ";", 1037.25, "'1.037,25' is read as a decimal comma"),
    "three decimals": (["1,037", "2,250"], ";", 1.037, "'1,037' is read as a decimal comma"),
    "less than 1": (['"0,037"', '"2,250"'], ",", 0.037, "'0,037' is read as a decimal comma"),
    "limits": (["<2,5", "3,25"], ";", 2.5, "'<2,5' is read as a decimal comma"),
}


@pytest.mark.parametrize("kind", COMMAS)
def test_a_comma_in_numbers_is_noted(tmp_path, kind):
    cells, comma, first, note = COMMAS[kind]
    path = tmp_path / "t.csv"
    path.write_text(f"a{comma}b{comma}y\n" + "".join(comma.join(["0", "1", y]) + "\n" for y in cells))
    source = open_source(path)
    assert note in source.note
    assert next(iter(open_table(path, "y", domain="real").batches()))[1][0] == first


def test_commas_beside_decimal_points_are_left_alone_and_options_overrule(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,y\n0,"1,5",2.345\n1,"2,5",1.5\n')
    assert open_source(path).note == ""
    assert next(open_source(path).batches(["b", "y"], 9)).to_pydict() == {"b": ["1,5", "2,5"], "y": ["2.345", "1.5"]}
    comma = open_source(path, Dialect(decimal=","))
    assert next(comma.batches(["b", "y"], 9)).to_pydict() == {"b": ["1.5", "2.5"], "y": ["2345", "1.5"]}
    assert open_source(path, Dialect(separator=";")).names == ("a,b,y",)
    for wrong in ({"separator": ""}, {"separator": ",,"}, {"separator": "\n"}, {"decimal": ";"}):
        with pytest.raises(ValueError, match=r"is none|must be"):
            Dialect(**wrong)


def test_windows_letters_and_a_spelled_tab_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe\tfarbe\ty\n1\tgrün\t2,5\n".encode("cp1252"))
    found = open_source(path, Dialect(separator=r"\t"))
    assert next(found.batches(["größe", "farbe", "y"], 9)).to_pylist() == [{"größe": "1", "farbe": "grün", "y": "2.5"}]
    assert found.note.startswith("t.csv: not UTF-8, so it is read as Windows-1252")
    assert "'2,5'" in found.note
    path.write_bytes(b"a,y\n" + "0,grün\n".encode() * 10_000)  # the head ends within a letter, or not
    assert open_source(path).note == ""


@pytest.mark.parametrize("mark", [" ", "\t", "|"])
def test_the_separator_that_is_there_is_named(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"a{mark}b{mark}y\n0{mark}1{mark}2\n")
    with pytest.raises(ValueError, match="name the separator") as error:
        sa.fit_table(tmp_path / "t.csv", "y", separator=";")
    assert f"separator={mark!r}" in str(error.value)


def test_marks_of_a_frame_name_the_option_that_drops_them():
    with pytest.raises(ValueError, match=r"'n\.d\.'.*drop_missing=True"):
        sa.fit_table(pa.table({"a": [0, 1] * 9, "y": ["n.d.", *map(str, range(17))]}), "y")


@pytest.mark.parametrize("option", ["weights", "sigma", "variance", "groups", "split"])
def test_a_row_column_that_lacks_a_value_names_the_option_that_drops_it(option):
    rows = pa.table({"a": [0, 1] * 9, "w": [None, *["1"] * 17], "y": range(18)})
    with pytest.raises(ValueError, match=r"'w', row 1: .*drop_missing=True"):
        sa.fit_table(rows, "y", **{option: "w"})


def test_numbers_name_columns_of_frames():
    frame = pa.table({"7": [0, 1] * 10, "b": [0, 0, 1, 1] * 5, "y": [0.0, 1.0] * 10})
    result = sa.fit_table(frame, "y", columns=[7], degree=1)
    assert list(result.encoding.source_columns) == ["7"]


def test_effects_of_bits_start_from_the_wild_type_and_say_so():
    bits = np.random.default_rng(0).integers(0, 2, (60, 3))
    columns = {name: bits[:, i] for i, name in enumerate("abc")} | {"y": bits[:, 0] + 0.5 * bits[:, 1]}
    found = str(sa.fit_table(pa.table(columns), "y", degree=1, wild_type="1"))
    assert "relative to the wild type" in found
    columns["c"] = np.array(["red", "green", "blue"])[np.arange(60) % 3]
    found = str(sa.fit_table(pa.table(columns), "y", degree=1))
    assert "the most frequent value: what" in found
    assert "letter" not in found


@pytest.mark.parametrize("gap", ["-", "n.d.", "#DIV/0!", "NA", "", " ", "NaN", "?", " - ", "n.a."])
@pytest.mark.parametrize("row", [0, 7])
def test_marks_of_missing_values(tmp_path, gap, row):
    """Among numbers they are missing; where they are categories, '-' and '?' are not."""
    path, cells = tmp_path / "t.csv", list(map(str, Y))
    cells[row] = gap
    path.write_text(text(cells))
    with pytest.raises(ValueError, match="drop_missing=True"):
        open_table(path, "y")
    parts, note = complete_rows(Parts.open(path), ["a", "y"])
    assert "1 of 40 rows, which lack y (1)." in note
    rows = pa.Table.from_batches([batch.columns for batch in parts.batches(["a", "y"], 1000)]).to_pydict()
    assert rows["y"] == [cell for i, cell in enumerate(cells) if i != row]
    path.write_text(text(Y, a=np.where(np.arange(M) == row, gap, A)))
    assert "which lack a (1)." in complete_rows(Parts.open(path), ["a", "y"])[1]
    path.write_text(text(Y, a=np.where(A, "+", "-")))
    assert complete_rows(Parts.open(path), ["a", "y"])[1] == ""
    assert open_table(path, "y").encoding.columns[0].values in (("+", "-"), ("-", "+"))


@pytest.mark.parametrize("batch_rows", [3, 1000])
def test_limits_of_a_target_are_numbers_with_a_note(tmp_path, batch_rows):
    path, cells = tmp_path / "t.csv", list(map(str, Y))
    cells[3], cells[4], cells[9], cells[30] = "<0.5", "< 0.25", ">1e3", "0.125"
    path.write_text(text(cells))
    table = open_table(path, "y", batch_rows=batch_rows)
    y = np.concatenate([y for _, y in table.batches()])
    assert y[[3, 4, 9, 30]].tolist() == [0.5, 0.25, 1000, 0.125]
    (note,) = [note for note in table.encoding.notes if "limit" in note]
    assert note.startswith("y: 3 values such as '<0.5' are read as their limit; censor='0.5,1000' makes")
    survey = TableSurvey.of(Parts.open(path), "y", None, batch_rows)
    for batch in survey.batches():
        other = TableSurvey.of(Parts.open(path), "y", None, batch_rows)
        other.restore(*survey.state())
        survey = other
        survey.add(batch)
    assert survey.encoding() == table.encoding


@pytest.mark.parametrize("cells", [["<5", ">5"], ["<5", "5-10", ">10"], [">10", "<5", "no"]])
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_limits_may_be_classes(cells, batch_rows):
    table = open_table(pa.table({"a": A, "y": np.resize(cells, M)}), "y", batch_rows=batch_rows)
    assert table.encoding.targets[0].values == tuple(sorted(cells))
    assert not any("limit" in note for note in table.encoding.notes)


def test_limits_alone_are_numbers_where_a_regression_is_named():
    table = open_table(pa.table({"a": A, "y": np.resize(["<5", ">6"], M)}), "y", task="regression")
    assert np.concatenate([y for _, y in table.batches()]).tolist() == np.resize([5, 6], M).tolist()


@pytest.mark.grid
def test_line_breaks_in_cells_across_blocks(tmp_path):
    """Arrow reads blocks of 4 MB; a line break in a cell near the end of one is none between rows."""
    path = tmp_path / "t.csv"
    path.write_text("a,y,remark\n" + "".join(f'{i % 2},{i},"x\ny{i}"\n' for i in range(400_000)))
    batches = list(open_source(path).batches(["y"], 1 << 20))
    assert len(batches) > 1
    assert pa.Table.from_batches(batches)["y"].to_pylist() == list(map(str, range(400_000)))


def test_files_by_their_names(tmp_path):
    pa.parquet.write_table(pa.table({"a": A, "y": Y}), tmp_path / "t.pq")
    assert open_table(tmp_path / "t.pq", "y").n_rows == M
    for name in ("t.xlsx", "t.xls", "t.ods"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(ValueError, match=rf"is a spreadsheet; .* pandas\.read_excel\('{name}'\)"):
            open_table(tmp_path / name, "y")


REFUSED = {
    "per cent": ([f"{y:.2f} %" for y in Y], "which is not a finite number, unlike the other values"),
    "a gap": (
        ["", *Y[1:]],
        "column 'y', row 1: the value is missing; fill it in, or leave such rows out with drop_m",
    ),
    "infinite": ([*Y[1:], "inf"], "column 'y', row 40: 'inf' is not a finite number; correct the row"),
    "a dash": ([*Y[1:], "-"], "row 40: '-' is not a finite number; if it means a missing value, drop_missing=True"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_targets_that_are_no_numbers_as_they_are_written(tmp_path, kind):
    cells, message = REFUSED[kind]
    path = tmp_path / "t.csv"
    path.write_text(text(cells))
    with pytest.raises(ValueError, match=message):
        open_table(path, "y")


def test_few_such_targets_are_no_classes_in_silence_but_may_be_called_so(tmp_path):
    cells = RNG.choice(["1 %", "2 %", "3 %"], M)
    path = tmp_path / "t.csv"
    path.write_text(text(cells))
    with pytest.raises(ValueError, match="'1 %', which is not a finite number"):
        open_table(path, "y")
    assert open_table(path, "y", task="classification").encoding.targets[0].values == ("1 %", "2 %", "3 %")


def test_categories_that_differ_in_case_only_are_noted_unless_they_are_yes_and_no():
    words = RNG.choice(["Aa", "AA", "aa"], M)  # of alleles
    (note,) = [note for note in open_table(pa.table({"a": words, "y": Y}), "y").encoding.notes if "warning" in note]
    assert note == "warning: 'AA' and 'Aa' are two categories of a; spell them alike if they are one."
    encoding = open_table(pa.table({"a": np.resize(["no", "No", "YES"], M), "y": Y}), "y").encoding
    assert encoding.columns[0].values == ("no", "yes")
    (X,) = encoded_table(pa.table({"a": ["Yes", "NO"]}), encoding).points()
    assert X.tolist() == [[1], [0]]


LABELS = {
    "booleans": (A > 0, "bool"),
    "nullable booleans": (pd.array(A > 0, dtype="boolean"), "bool"),
    "integers": (5 + A, "int64"),
    "small integers": ((5 + A).astype(np.int8), "int8"),
    "numbers": (0.5 + A, "float64"),
    "texts": (np.where(A, "on", "off"), "str"),
    "digits as texts": (np.where(A, "5", "0"), "str"),
    "true and false as texts": (np.where(A, "TRUE", "false"), "str"),
    "categories of texts": (pd.Categorical(np.where(A, "on", "off")), "str"),
    "categories of integers": (pd.Categorical(5 + A), "int64"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_classes_are_predicted_as_the_column_has_them(tmp_path, kind):
    labels, dtype = LABELS[kind]
    data = pd.DataFrame({"a": A, "b": 1 - A[::-1], "y": labels})
    result = sa.fit_table(data, "y", task="classification", degree=1, explain=False)
    found = result.predict(data)
    assert found.dtype.kind == "U" if dtype == "str" else found.dtype == dtype
    assert found.tolist() == data["y"].tolist()
    result.save(tmp_path / "m.sparsact")
    again = sa.predict_table(sa.load(tmp_path / "m.sparsact"), data)["y"]
    assert again.to_pylist() == data["y"].tolist()
    assert Encoding.from_json(result.encoding.to_json()) == result.encoding


@pytest.mark.parametrize("dtype", ["object", "complex128", "<U3", "nonsense"])
def test_other_types_of_classes_are_refused_in_a_file(dtype):
    encoding = open_table(pa.table({"a": A, "y": A > 0}), "y").encoding
    with pytest.raises(ValueError, match="classes of type"):
        Encoding.from_json(encoding.to_json().replace('"bool"', f'"{dtype}"'))


@pytest.mark.parametrize("drop_missing", [True, False])
def test_a_column_of_none_is_named(drop_missing):
    data = pd.DataFrame({"a": A, "z": None, "y": Y})
    with pytest.raises(ValueError, match=r"column 'z', row 1: the value is missing|every row has a missing .*z \(40\)"):
        sa.fit_table(data, "y", model="low-degree", drop_missing=drop_missing)
    result = sa.fit_table(data, "y", model="lsh", explain=False)  # which takes what is missing
    assert result.encoding.source_columns == ["a"]
    assert "left out, since they are the same in every row: z." in result.encoding.notes


def test_differences_of_the_largest_numbers_do_not_overflow():
    x = np.where(np.arange(M) < 3, -1.7e308, 1.7e308 * (0.5 + A / 4))
    X = next(iter(open_table(pa.table({"x": x, "y": Y}), "y", domain="auto").batches()))[0][:, 0]
    small = x / 2.0**600
    np.testing.assert_allclose(X, (small - small.mean()) / small.std(), rtol=1e-13)


def test_rows_that_one_target_lacks_are_noted_with_the_remedy():
    data = pd.DataFrame({"a": A, "b": 1 - A[::-1], "y": Y, "z": np.where(np.arange(M) % 2, 2 * Y, np.nan)})
    options = {"model": "low-degree", "degree": 1, "drop_missing": True, "explain": False}
    both = sa.fit_table(data, ["y", "z"], **options)
    assert both.n_rows == 20
    assert any("20 of 40 rows" in note and "one at a time" in note for note in both.encoding.notes)
    assert [
        sa.fit_table(data, "y", ignore=["z"], **options).n_rows,
        sa.fit_table(data, "z", ignore=["y"], **options).n_rows,
    ] == [40, 20]


@pytest.mark.parametrize("options", [{"decimal": ","}, {"separator": ";"}])
def test_how_text_is_read_says_nothing_of_other_tables(tmp_path, options):
    frame = pa.table({"a": ["0,5", "1,5"] * 9, "y": [1.0, 2.0] * 9})
    pa.parquet.write_table(frame, tmp_path / "t.parquet")
    (name,) = options
    for data, place in ((frame, "the table"), (frame.to_pandas(), "the table"), (tmp_path / "t.parquet", "t.parquet")):
        with pytest.raises(ValueError, match=f"^{name} applies to text files, and {place} is not one; leave it"):
            sa.fit_table(data, "y", **options)
