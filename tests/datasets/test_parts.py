"""Several files are one table."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from sparsact.datasets import encoded_table, files, open_table

SIZES = (31, 7, 113)


def columns(rng, n_rows):
    bits = rng.integers(0, 2, (n_rows, 3))
    return {
        "a": bits[:, 0],
        "b": bits[:, 1],
        "c": bits[:, 2],
        "level": rng.normal(size=n_rows),
        "y": rng.normal(size=n_rows),
    }


@pytest.fixture
def parts(tmp_path):
    """Parts 9, 10 and 11 of a table, and the whole, as CSV and Parquet."""
    rng = np.random.default_rng(3)
    pieces = [pa.table(columns(rng, n_rows)) for n_rows in SIZES]
    for number, piece in zip((9, 10, 11), pieces, strict=True):
        shuffled = piece.select(piece.column_names[:: 1 if number < 11 else -1])  # columns are found by name
        pa.csv.write_csv(shuffled, tmp_path / f"part-{number}.csv")
        pa.parquet.write_table(shuffled, tmp_path / f"part-{number}.parquet")
    pa.parquet.write_table(pa.concat_tables(pieces), tmp_path / "whole.parquet")
    return tmp_path


def read(table):
    X, y = zip(*table.batches(), strict=True)
    return np.concatenate(X), np.concatenate(y)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_pattern_and_a_list_in_any_order_are_the_whole_table(parts, suffix):
    whole = open_table(parts / "whole.parquet", "y", domain="auto")
    listed = [parts / f"part-{number}.{suffix}" for number in (10, 11, 9)]
    for given in (
        str(parts / f"part-*.{suffix}"),
        listed,
        [listed[0], str(parts / f"part-[91]*1.{suffix}"), listed[2]],
    ):
        table = open_table(given, "y", domain="auto")
        assert table.n_rows == sum(SIZES)
        assert table.feature_names == whole.feature_names
        for mine, theirs in zip(read(table), read(whole), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert table.parts.name == f"part-9.{suffix} ... part-11.{suffix} (3 files)"
    predicted = np.concatenate(list(encoded_table(listed, table.encoding).points()))
    np.testing.assert_array_equal(predicted, read(table)[0])


def test_names_are_ordered_by_their_numbers_and_a_name_that_exists_is_no_pattern(tmp_path):
    for name in ("p10.csv", "p9.csv", "p[1].csv", "q.csv"):
        (tmp_path / name).write_text("a,y\n0,1\n")
    assert [path.name for path in files(str(tmp_path / "p*.csv"))] == ["p9.csv", "p10.csv", "p[1].csv"]
    assert [path.name for path in files(tmp_path / "p[1].csv")] == ["p[1].csv"]
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*z\*\.csv'; check"):
        files(str(tmp_path / "z*.csv"))
    with pytest.raises(ValueError, match=r"p9\.csv' is given twice, so its rows would count twice"):
        files([tmp_path / "p9.csv", str(tmp_path / "p*.csv")])
    with pytest.raises(ValueError, match="no table is given"):
        files([])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("a,y\n1,2\n", r"2\.csv has no column 'b', which 1\.csv has"),
        ("a,b,c,y\n1,1,1,2\n", r"1\.csv has no column 'c', which 2\.csv has"),
        ("a,b,y\n1,0,2\n1,,3\n", r"2\.csv: column 'b', row 2"),
        ("a,b,y\n1,0,2\n1,5,3\n", r"column 'b', 2\.csv: row 2: 5 is a value that is not a bit"),
        ("a,b,y\n1,0,2\n1,1,dear\n", r"2\.csv: column 'y', row 2"),
        ("a,b,y\n1,0,2\n1,1\n", r"cannot read 2\.csv as CSV: .*Expected 3 columns, got 2"),
    ],
)
def test_bad_input_is_told_with_its_file(tmp_path, second, message):
    (tmp_path / "1.csv").write_text("a,b,y\n0,1,0.5\n1,0,1\n1,0,1\n")
    (tmp_path / "2.csv").write_text(second)
    with pytest.raises(ValueError, match=message):
        open_table(str(tmp_path / "*.csv"), "y")


def test_kinds_of_values_and_of_files_must_agree(tmp_path):
    pa.parquet.write_table(pa.table({"a": ["01", "10"], "y": [1.0, 2.0]}), tmp_path / "1.parquet")
    pa.parquet.write_table(pa.table({"a": [1, 10], "y": [1.0, 2.0]}), tmp_path / "2.parquet")
    (tmp_path / "3.csv").write_text("a,y\n01,1\n10,2\n")
    with pytest.raises(ValueError, match=r"column 'a' of 2\.parquet holds numbers, but in 1\.parquet texts"):
        open_table(str(tmp_path / "*.parquet"), "y")
    with pytest.raises(ValueError, match=r"1\.parquet and 3\.csv have different formats"):
        open_table([tmp_path / "1.parquet", tmp_path / "3.csv"], "y")


def test_a_file_that_changes_while_it_is_read_is_told(parts):
    table = open_table(str(parts / "part-*.csv"), "y", batch_rows=20, domain="auto")
    batches = table.batches()
    next(batches)
    with (parts / "part-10.csv").open("a") as file:
        file.write("1,1,1,0.5,0.5\n")
    with pytest.raises(ValueError, match=r"part-10\.csv changed while it was read \(.* bytes before, .* now\)"):
        list(batches)
    os.utime(parts / "part-9.csv", ns=(1, 1))
    with pytest.raises(ValueError, match=r"part-9\.csv changed while it was read \(it was written again\)"):
        list(table.points())
    (parts / "part-9.csv").unlink()
    with pytest.raises((FileNotFoundError, ValueError), match=r"part-9\.csv"):
        list(table.points())


@pytest.mark.grid
def test_a_parquet_file_of_one_row_group_is_not_held_in_memory(tmp_path):
    """Arrow's own reading would hold all of it, and so would anything that grows with the rows."""
    rng = np.random.default_rng(1)
    n_rows = 600_000
    table = pa.table({name: rng.normal(size=n_rows) for name in "abcdefgy"})
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(table, path, row_group_size=n_rows, compression="none", use_dictionary=False)
    del table
    before, held = pa.total_allocated_bytes(), []
    for _ in open_table(path, "y", batch_rows=10_000, domain="real").batches():
        held.append(pa.total_allocated_bytes() - before)
    assert len(held) == 60
    assert max(held) < path.stat().st_size / 10
