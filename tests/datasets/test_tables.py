import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from sparsact.datasets import Encoding, encoded_table, open_table


def write(path, text):
    path.write_text(text)
    return path


def read(table):
    X, y = zip(*table.batches(), strict=True)
    return np.concatenate(X), np.concatenate(y)


def test_bit_strings_keep_their_leading_zeros_and_read_left_to_right(tmp_path):
    table = open_table(write(tmp_path / "t.csv", "genotype,y\n001,1\n010,2\n011,4\n100,7\n"), "y")
    X, y = read(table)
    assert table.feature_names == ("genotype[1]", "genotype[2]", "genotype[3]")
    assert X.dtype == np.uint8
    assert X.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert y.tolist() == [1, 2, 4, 7]
    assert "strings of 3 bits" in table.encoding.notes[0]


def test_columns_of_the_same_two_values_share_a_note(tmp_path):
    rows = "yes,on,no,1\nno,off,yes,2\nno,on,yes,3\nyes,off,yes,5\n"
    table = open_table(write(tmp_path / "t.csv", f"a,b,c,y\n{rows}"), "y")
    assert table.encoding.notes == (
        "a, c: bit 1 stands for yes, bit 0 for no.",
        "b: bit 1 stands for on, bit 0 for off.",
    )


@pytest.mark.parametrize(
    ("cells", "bits", "noted"),
    [
        (["0", "1", "1"], [0, 1, 1], False),
        (["1", "-1", "1"], [0, 1, 0], True),  # the sign convention: -1 is bit 1
        (["True", "false", "TRUE"], [1, 0, 1], False),
        (["yes", "no", "no"], [1, 0, 0], True),
        (["0.5", "3.25", "0.50"], [0, 1, 0], True),
        (["20", "3", "20"], [1, 0, 1], True),  # numbers go by size
        (["10", "11", "10"], [0, 1, 0], True),  # not a string of bits: no value begins with 0
        ([" 1", "0 ", "1.0"], [1, 0, 1], False),
        (["1", "1", "1"], [1, 1, 1], True),
        (["0", "0", "0"], [0, 0, 0], True),
        (["same", "same", "same"], [0, 0, 0], True),
    ],
)
def test_two_values_become_a_bit(tmp_path, cells, bits, noted):
    rows = "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))
    table = open_table(write(tmp_path / "t.csv", "a,y\n" + rows), "y")
    assert read(table)[0].tolist() == [[bit] for bit in bits]
    assert bool(table.encoding.notes) == noted


def test_categories_become_one_bit_each(tmp_path):
    table = open_table(write(tmp_path / "t.csv", "colour,y\nred,1\nblue,2\ngreen,3\nred,4\n"), "y")
    assert table.feature_names == ("colour=blue", "colour=green", "colour=red")
    assert read(table)[0].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert "one-hot" in table.encoding.notes[0]


def test_every_format_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (137, 5)).astype(np.uint8)
    y = rng.normal(size=137)
    names = [f"X[{i}]" for i in range(5)]
    text = (
        ",".join([*names, "y"])
        + "\n"
        + "".join(",".join(map(str, row)) + f",{value!r}\n" for row, value in zip(X.tolist(), y.tolist(), strict=True))
    )
    write(tmp_path / "t.csv", text)
    write(tmp_path / "t.tsv", text.replace(",", "\t"))
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write(text)
    columns = {name: pa.array(X[:, i]) for i, name in enumerate(names)}
    pa.parquet.write_table(pa.table({**columns, "y": y}), tmp_path / "t.parquet")
    signs = {name: pa.array(X[:, i].astype(bool)) for i, name in enumerate(names)}
    pa.parquet.write_table(pa.table({**signs, "y": y}), tmp_path / "bool.parquet")
    whole = pa.table({**columns, "y": y})
    pa.feather.write_feather(whole, tmp_path / "t.feather", compression="zstd", chunksize=50)
    with pa.ipc.new_stream(tmp_path / "stream.arrow", whole.schema) as stream:
        stream.write_table(whole, max_chunksize=40)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "f.npz", X=np.asfortranarray(X), y=y)
    for file in (
        "t.csv",
        "t.tsv",
        "t.csv.gz",
        "t.parquet",
        "bool.parquet",
        "t.feather",
        "stream.arrow",
        "t.npz",
        "f.npz",
    ):
        table = open_table(tmp_path / file, "y", batch_rows=29)
        assert all(len(piece) <= 29 for piece, _ in table.batches())
        X_read, y_read = read(table)
        np.testing.assert_array_equal(X_read, X, err_msg=file)
        np.testing.assert_array_equal(y_read, y, err_msg=file)
        assert (table.n_rows, table.feature_names) == (137, tuple(names))


def test_decimals_are_the_numbers_that_they_spell(tmp_path):
    """DuckDB sums decimals: integers beyond 2**53 keep every digit, as in a CSV file."""
    whole = [2**60 + i for i in (3, 1, 2, 4)]
    y = [Decimal("0.10"), Decimal("-2.50"), Decimal("3.00"), Decimal("0.33")]
    table = pa.table({"a": pa.array([0, 1, 1, 0]), "y": pa.array(y, pa.decimal128(20, 2))})
    assert read(open_table(table, "y"))[1].tolist() == [0.1, -2.5, 3.0, 0.33]
    table = pa.table({"a": pa.array(map(Decimal, whole), pa.decimal128(38, 0)), "y": [1.0, 2.0, 3.0, 4.0]})
    (column,) = open_table(table, "y", domain="auto").encoding.columns
    as_text = pa.table({"a": list(map(str, whole)), "y": [1.0, 2.0, 3.0, 4.0]})
    assert (column,) == open_table(as_text, "y", domain="auto").encoding.columns


def test_several_targets_and_the_name_of_a_matrix(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(4, dtype=bool), Y=np.arange(8.0).reshape(4, 2))
    table = open_table(tmp_path / "t.npz", "Y")
    assert table.encoding.target_names == ("Y[0]", "Y[1]")
    assert read(table)[1].shape == (4, 2)


def test_columns_of_numbers_are_standardised_by_all_rows_and_kept_so(tmp_path):
    """Whatever the batches; a bit beside them is its sign, and a new table is scaled as the first."""
    a = [10.0, 20.0, 60.0, -30.0, 40.0, 1e6, 10.0]
    text = "a,b,y\n" + "".join(f"{value},{i % 2},{i}\n" for i, value in enumerate(a))
    path = write(tmp_path / "t.csv", text)
    for batch_rows in (2, 3, 100):
        table = open_table(path, "y", domain="auto", batch_rows=batch_rows)
        pieces = np.concatenate([X for X, _ in table.batches()])
        np.testing.assert_allclose(pieces[:, 1], [1, -1, 1, -1, 1, -1, 1])
        np.testing.assert_allclose(pieces[:, 0], (np.array(a) - np.mean(a)) / np.std(a), rtol=1e-12)
    again = Encoding.from_json(table.encoding.to_json())
    assert again == table.encoding
    new = encoded_table(write(tmp_path / "n.csv", "b,a\n0,20\n"), again)
    np.testing.assert_allclose(next(iter(new.points()))[0], [(20 - np.mean(a)) / np.std(a), 1])
    assert "columns of numbers, standardised by the mean and standard deviation of this table: a." in again.notes


def test_encodings_written_before_columns_had_scales_are_read(tmp_path):
    old = '{"columns": [{"kind": "real", "name": "a"}], "targets": [{"kind": "real", "name": "y"}], "notes": []}'
    table = encoded_table(write(tmp_path / "t.csv", "a\n2.5\n-3\n"), Encoding.from_json(old))
    assert next(iter(table.points())).tolist() == [[2.5], [-3.0]]


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_numbers_of_any_size_have_a_deviation(tmp_path, size):
    a = size * np.array([1.0, 2.0, 4.0, -3.0])
    np.savez(tmp_path / "t.npz", a=a, y=np.arange(4.0))
    table = open_table(tmp_path / "t.npz", "y", domain="auto")
    np.testing.assert_allclose(next(iter(table.batches()))[0][:, 0], [0, 1 / 6.5**0.5, 3 / 6.5**0.5, -4 / 6.5**0.5])


def test_real_columns_are_used_as_they_are_when_told(tmp_path):
    table = open_table(write(tmp_path / "t.csv", "a,b,y\n0,0.5,1\n1,2.5,2\n1,-3,4\n"), "y", domain="real")
    assert read(table)[0].tolist() == [[1, 0.5], [-1, 2.5], [-1, -3]]  # beside real numbers a bit is its sign


def test_text_and_boolean_targets_are_classes(tmp_path):
    path = write(tmp_path / "t.csv", "a,y,z\n0,cat,True\n1,dog,False\n1,cat,True\n")
    table = open_table(path, "y", ["a"])
    assert table.encoding.targets[0].values == ("cat", "dog")
    assert read(table)[1].tolist() == [0, 1, 0]
    assert open_table(path, "z", ["a"]).encoding.targets[0].values == ("0", "1")


def test_integers_are_classes_only_when_asked(tmp_path):
    path = write(tmp_path / "t.csv", "a,y\n0,10\n1,9\n1,9\n")
    assert read(open_table(path, "y"))[1].tolist() == [10, 9, 9]
    table = open_table(path, "y", task="classification")
    assert table.encoding.targets[0].values == ("9", "10")
    assert read(table)[1].tolist() == [1, 0, 0]


def test_the_encoding_survives_json_and_reads_a_new_table_alike(tmp_path):
    learned = write(
        tmp_path / "t.csv", "g,c,s,k,y\n01,red,yes,1,0.5\n10,blue,yes,1,2\n11,green,no,1,3\n11,red,no,1,4\n"
    )
    encoding = open_table(learned, "y").encoding
    assert Encoding.from_json(encoding.to_json()) == encoding
    new = write(tmp_path / "new.csv", "k,s,g,c\n0,no,11,blue\n")  # other order, no target, a constant that was left out
    (X,) = encoded_table(new, encoding).points()
    assert X.tolist() == [[1, 1, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("01,red,maybe", "column 's', row 1: 'maybe' is not among the values .*'no', 'yes'"),
        ("01,pink,yes", "column 'c', row 1: 'pink' is not among"),
        ("011,red,yes", "column 'g', row 1: '011' is not a string of 2 bits"),
        ("01,,yes", "column 'c', row 1: the value is missing"),
    ],
)
def test_a_new_table_with_an_unknown_value_is_refused(tmp_path, cells, message):
    learned = write(tmp_path / "t.csv", "g,c,s,y\n01,red,yes,0.5\n10,blue,yes,2\n11,green,no,3\n11,red,no,4\n")
    new = write(tmp_path / "new.csv", f"g,c,s\n{cells}\n")
    with pytest.raises(ValueError, match=message):
        list(encoded_table(new, open_table(learned, "y").encoding).points())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,y\n0,1,1\n1,0.37,2\n0,0,3\n",
            "column 'b', row 2: 0.37 is a value that is not a bit.*ignore='b'.*domain=",
        ),
        ("a,y\n0,1\n1,2\n2,3\n", "column 'a', row 3: 2 is a value that is not a bit"),
        ("a,y\n-1,1\n1,2\n0,3\n", "column 'a', row 3: 0 is a value that is not a bit"),
        ("a,y\n0,1\n,2\n", "column 'a', row 2: the value is missing"),
        ("a,y\n0,1\n1,NaN\n", "column 'y', row 2: the value is missing"),
        ("a,y\n0,1\n1,inf\n", "column 'y', row 2: 'inf' is not a finite number"),
        ("a,y\n0,1\n1,two\n", "column 'y', row 2: 'two' is not a finite number"),
        ("a,y\n0,5\n1,5\n", "target 'y' is constant \\(5 in every row\\)"),
        ("a,y\n0,u\n1,u\n", "target 'y' is constant \\(u in every row\\)"),
        ("a,y\n", "no rows"),
        ("a,z\n0,1\n", "no target 'y' in the table"),
        ("y\n0\n", "no column is left"),
        ("a,a,y\n0,0,1\n", "two columns named 'a'"),
        ("0,0,1.5\n0,1,2.5\n", "has numbers in its first row instead of names"),
        ("a,y\n0,1,5\n", "Expected 2 columns, got 3"),
        ("", "cannot read t.csv as CSV"),
    ],
)
def test_bad_tables_are_refused_with_the_place_and_the_remedy(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        open_table(write(tmp_path / "t.csv", text), "y")


def test_rows_are_counted_through_batches(tmp_path):
    rows = "0,1\n1,2\n" * 50 + ",3\n"
    with pytest.raises(ValueError, match="column 'a', row 101: the value is missing"):
        open_table(write(tmp_path / "t.csv", "a,y\n" + rows), "y", batch_rows=7)


def test_many_texts_are_refused_and_every_such_column_is_named(tmp_path):
    rows = "".join(f"n{i % 65},{i},{i % 2},{i}\n" for i in range(130))
    path = write(tmp_path / "t.csv", "name,count,a,y\n" + rows)
    with pytest.raises(ValueError, match=r"column 'name' holds more than 64 .*ignore='name'\. \(The same .*'count'"):
        open_table(path, "y")
    assert open_table(path, "y", ignore=["name", "count"]).feature_names == ("a",)


def test_a_missing_column_suggests_the_nearest(tmp_path):
    path = write(tmp_path / "t.csv", "alpha,beta,brightness\n0,1,2\n1,1,3\n")
    with pytest.raises(ValueError, match="no target 'brigtness' in the table; did you mean 'brightness'"):
        open_table(path, "brigtness")
    with pytest.raises(ValueError, match="no column 'gamma' in the table; "):
        open_table(path, "brightness", ignore=["gamma"])


def test_files_that_are_not_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match="no table"):
        open_table(tmp_path / "none.csv", "y")
    write(tmp_path / "t.doc", "x")
    with pytest.raises(ValueError, match=r"its name must end in \.csv"):
        open_table(tmp_path / "t.doc", "y")
    for name in ("t.parquet", "t.npz", "t.feather", "t.arrow"):
        write(tmp_path / name, "not one")
        with pytest.raises(ValueError, match=f"cannot read {name}"):
            open_table(tmp_path / name, "y")
    np.savez(tmp_path / "uneven.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    with pytest.raises(ValueError, match="same number of rows, found X 3, y 4"):
        open_table(tmp_path / "uneven.npz", "y")


def test_pandas_categories_in_parquet_are_texts(tmp_path):
    column = pa.array(["low", "high", "low"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"a": column, "y": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet")
    assert read(open_table(tmp_path / "t.parquet", "y"))[0].tolist() == [[1], [0], [1]]


def test_dates_are_refused(tmp_path):
    pa.parquet.write_table(
        pa.table({"a": pa.array([1, 2], pa.timestamp("s")), "y": [1.0, 2.0]}), tmp_path / "t.parquet"
    )
    with pytest.raises(ValueError, match="column 'a' holds timestamp"):
        open_table(tmp_path / "t.parquet", "y")


def test_another_separator_is_seen(tmp_path):
    path = tmp_path / "semicolons.csv"
    path.write_text("a;b;y\n1;0;2\n0;1;3\n1;1;3;4\n")  # rows that do not agree
    with pytest.raises(ValueError, match="its only column is 'a;b;y': name the separator, such as separator="):
        open_table(path, "y")
