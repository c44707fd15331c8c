"""Tables in memory: frames, arrays, and arrays with a target beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets.readers import Source, as_column, distinct_names, plain_column, unread_columns


@dataclass(frozen=True)
class FrameSource(Source):
    """A table in memory, which messages call "the table"."""

    table: pa.Table = field(repr=False, kw_only=True)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in their order, the named columns only; boundaries do not depend on Arrow's chunks."""
        chosen = self.table.select(list(columns))
        for row in range(0, len(chosen), batch_rows):
            piece = chosen.slice(row, batch_rows)
            chunks = {name: [plain_column(chunk, name) for chunk in piece.column(name).chunks] for name in columns}
            yield pa.RecordBatch.from_pydict({name: pa.concat_arrays(arrays) for name, arrays in chunks.items()})


def open_frame(data: object, letter: str = "x") -> FrameSource:
    """An Arrow table, or a frame or a matrix whose columns become Arrow's; none is changed.

    The columns of a matrix are named by the letter and their numbers.
    """
    path = Path("the table")
    names = data.column_names if isinstance(data, pa.Table) else map(str, getattr(data, "columns", ()))
    distinct_names(list(names), path, "give each its own name")
    try:
        if isinstance(data, pa.Table):
            table = data
        elif isinstance(data, np.ndarray):
            table = _matrix(data, letter)
        elif type(data).__module__.partition(".")[0] == "pandas":  # whose stream has the index for a column
            table = pa.Table.from_pandas(data, preserve_index=False)
        elif hasattr(data, "__arrow_c_stream__"):
            table = pa.table(data)
        else:
            raise TypeError(
                f"`data` is a {type(data).__name__}; pass paths, a pandas or polars DataFrame, a pyarrow.Table, a "
                "NumPy matrix, or an object that exports an Arrow stream."
            )
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"a column mixes kinds of values ({error.args[-1]}); convert them to one.") from error
    if not table.num_columns:
        raise ValueError("the table has no columns; pass one or more for each row.")
    names, unread = table.column_names, unread_columns(table.schema)
    return FrameSource(path, dict.fromkeys(names), len(table), unread=unread, table=table)


def with_target(data: object, target: Any) -> tuple[pa.Table, tuple[str, ...]]:
    """The columns of data, and after them a target that is given by its values, with its names.

    A series has its own name and the columns of a frame have theirs; else ``y``, of a matrix ``y0``, ``y1`` and so on.
    """
    table = open_frame(data).table
    if hasattr(target, "to_frame"):  # a series
        target = target.to_frame(name="y" if target.name in (None, "") else str(target.name))
    if hasattr(target, "columns"):
        added = open_frame(target).table
    else:
        values = target if np.ma.isMaskedArray(target) else np.asarray(target)
        if not values.ndim:
            raise ValueError(f"`target` is {target!r}; pass names of columns, or a value for each row.")
        added = open_frame(values[:, None] if values.ndim == 1 else values, "y").table
        added = added.rename_columns(["y"]) if values.ndim == 1 else added
    if len(added) != len(table):
        fact = f"`data` has {len(table):,} rows and `target` {len(added):,} values"
        raise ValueError(f"{fact}; pass one for each row, or names of columns, as texts.")
    for name in added.column_names:
        if name in table.column_names:
            raise ValueError(f"`data` has a column {name!r}, and so is the target named; pass {name!r}, or rename one.")
        table = table.append_column(name, added[name])
    return table, tuple(added.column_names)


def _matrix(values: NDArray[Any], letter: str) -> pa.Table:
    if values.ndim != 2:
        raise ValueError(f"an array of shape {values.shape} is no table: pass a matrix, a row for each sample.")
    named = {f"{letter}{i}": column for i, column in enumerate(values.T)}
    of_objects = values.dtype == object
    return pa.table({name: pa.array(one) if of_objects else as_column(one, name) for name, one in named.items()})
