"""Large Parquet files in pieces: the rows of the file, in its order, each once."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact.datasets import open_table
from sparsact.datasets.readers import ParquetSource, open_source
from sparsact.datasets.table_files import MOST_PIECES, Parts, piece_name, pieces


def written(path, sizes, first=0):
    """A file with row groups of these sizes, whose column counts its rows."""
    schema = pa.schema([("row", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for size in sizes:
            writer.write_table(pa.table({"row": np.arange(first, first + size)}, schema), row_group_size=max(1, size))
            first += size
    return open_source(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 9), max_size=12), least=st.integers(1, 25))
def test_every_row_once_and_in_order(sizes, least, tmp_path):
    source = written(tmp_path / "one.parquet", sizes)
    (found,) = pieces([source], least)
    rows = [
        [value for batch in piece.batches(["row"], 4) for value in batch.column("row").to_pylist()] for piece in found
    ]
    assert list(chain(*rows)) == list(range(sum(sizes)))
    assert [len(part) for part in rows] == [piece.n_rows for piece in found]
    assert all(len(part) >= least for part in rows[:-1])
    if len(found) > 1:
        assert [part[0] for part in rows] == [piece.first_row for piece in found]
        assert max(len(part) for part in rows) < least + max(sizes)
    else:
        assert found == [source]


def test_what_is_small_or_no_parquet_file_stays_whole(tmp_path):
    (tmp_path / "a.csv").write_text("row\n" + "1\n" * 50)
    np.savez(tmp_path / "a.npz", row=np.arange(50))
    sources = [open_source(tmp_path / "a.csv"), open_source(tmp_path / "a.npz"), written(tmp_path / "a.parquet", [50])]
    assert pieces(sources, 10) == [[source] for source in sources]  # one row group cannot be cut
    assert pieces([written(tmp_path / "b.parquet", [20, 30])]) == [[open_source(tmp_path / "b.parquet")]]


def test_there_are_never_very_many(tmp_path):
    source = written(tmp_path / "long.parquet", [1] * (3 * MOST_PIECES + 7))
    (found,) = pieces([source], 1)
    assert MOST_PIECES / 2 < len(found) <= MOST_PIECES


def test_messages_tell_the_row_of_the_file(tmp_path):
    schema = pa.schema([("a", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
        for a in ([0.0, 1.0, 1.0], [1.0, 0.0, 0.0]):
            writer.write_table(pa.table({"a": a, "y": [1.0, 2.0, 3.0]}, schema))
    table = open_table(tmp_path / "t.parquet", "y")
    ((_, second),) = pieces(table.parts.sources, 2)
    assert isinstance(second, ParquetSource)
    assert piece_name(second) == "t.parquet, rows 4 to 6"
    (batch,) = Parts((second,), table.parts.stamps, [3]).batches(["a"], 10)
    assert (batch.columns.column("a").to_pylist(), batch.row, batch.overall) == ([1.0, 0.0, 0.0], 3, 0)
    with pytest.raises(ValueError, match=r"row 5: 0.5"):
        table.encoding.points(replace(batch, columns=pa.record_batch({"a": [1.0, 0.5, 0.0]})))
