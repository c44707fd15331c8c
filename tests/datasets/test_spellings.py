"""Tables as people and spreadsheets write them: each is read right, or refused in one line that says what to do."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sparsact as sa
from sparsact.datasets import Encoding, open_table

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


REFUSED = {
    "decimal comma": (
        [f'"{y:.3f}"'.replace(".", ",") for y in Y],
        "target 'y' holds '[0-9],[0-9]{3}', which is not a f",
    ),
    "thousands": (
        [f'"{1000 * y + 1000:,.1f}"' for y in Y],
        "write numbers with a decimal point, without separators and units",
    ),
    "Fortran": ([f"{y:.3E}".replace("E", "D") for y in Y], r"target 'y' holds '[0-9.]+D\+00', which is not a finite n"),
    "per cent": ([f"{y:.2f} %" for y in Y], "which is not a finite number, as other values are or seem to be"),
    "below a limit, first": (["<0.5", *Y[1:]], "target 'y' holds '<0.5', which is not a finite number"),
    "below a limit, later": ([*Y[1:], "<0.5"], "column 'y', row 40: '<0.5' is not a finite number"),
    "no value, first": (["n.d.", *Y[1:]], "target 'y' holds 'n.d.', which is not a finite number"),
    "a gap": (["", *Y[1:]], "column 'y', row 1: the value is missing"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_targets_that_are_no_numbers_as_they_are_written(tmp_path, kind):
    cells, message = REFUSED[kind]
    path = tmp_path / "t.csv"
    path.write_text(text(cells))
    with pytest.raises(ValueError, match=message):
        open_table(path, "y")


def test_few_such_targets_are_no_classes_in_silence_but_may_be_called_so(tmp_path):
    cells = RNG.choice(['"1,5"', '"2,5"', '"3,0"'], M)
    path = tmp_path / "t.csv"
    path.write_text(text(cells))
    with pytest.raises(ValueError, match="'1,5', which is not a finite number"):
        open_table(path, "y")
    assert open_table(path, "y", task="classification").encoding.targets[0].values == ("1,5", "2,5", "3,0")


@pytest.mark.parametrize("decimal", [".", ","])
def test_semicolons_are_named(tmp_path, decimal):
    path = tmp_path / "t.csv"
    path.write_text(text([f"{y:.3f}".replace(".", decimal) for y in Y], comma=";"))
    with pytest.raises(ValueError, match=r"separate (them|columns) by commas, or by tabs in a file named \.tsv"):
        open_table(path, "y")


def test_sixteen_bit_text_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN.encode("utf-16"))
    with pytest.raises(ValueError, match=r"t\.csv is UTF-16 text; save it as UTF-8"):
        open_table(path, "y")


def test_categories_that_differ_in_case_only_are_noted():
    words = RNG.choice(["no", "No", "yes"], M)
    (note,) = [note for note in open_table(pa.table({"a": words, "y": Y}), "y").encoding.notes if "warning" in note]
    assert note == "warning: 'No' and 'no' are two categories of a; spell them alike if they are one."


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
    with pytest.raises(ValueError, match=r"column 'z', row 1: the value is missing|every row lacks .*: z \(40\)"):
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
    assert any("20 of 40 rows" in note and "fitted one at a time" in note for note in both.encoding.notes)
    assert [
        sa.fit_table(data, "y", ignore=["z"], **options).n_rows,
        sa.fit_table(data, "z", ignore=["y"], **options).n_rows,
    ] == [40, 20]
