"""Tables in memory: frames of pandas and polars, and Arrow tables, as streams of record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparsact.datasets.sources import distinct_names, plain_column


@dataclass(frozen=True)
class FrameSource:
    """An Arrow table in memory."""

    table: pa.Table = field(repr=False)
    path: Path = Path("the table")  # what messages call it
    first_row: int = 0

    @classmethod
    def open(cls, data: Any) -> FrameSource:
        """A table, or a frame whose columns become Arrow's; neither is changed."""
        names = list(map(str, getattr(data, "columns", ()))) if not isinstance(data, pa.Table) else data.column_names
        distinct_names(names, cls.path, "give each its own name")
        try:
            if isinstance(data, pa.Table):
                return cls(data)
            if type(data).__module__.partition(".")[0] == "pandas":  # whose stream has the index for a column
                return cls(pa.Table.from_pandas(data, preserve_index=False))
            if hasattr(data, "__arrow_c_stream__"):
                return cls(pa.table(data))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"a column has values of several kinds ({error}); convert them to one.") from error
        raise TypeError(
            f"`data` is a {type(data).__name__}; pass paths, a pandas or polars DataFrame, or a pyarrow.Table."
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Columns."""
        return tuple(self.table.column_names)

    @property
    def n_rows(self) -> int:
        """All of them."""
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in their order, the named columns only; boundaries do not depend on Arrow's chunks."""
        chosen = self.table.select(list(columns))
        for row in range(0, self.n_rows, batch_rows):
            piece = chosen.slice(row, batch_rows)
            chunks = {name: [plain_column(chunk, name) for chunk in piece.column(name).chunks] for name in columns}
            yield pa.RecordBatch.from_pydict({name: pa.concat_arrays(arrays) for name, arrays in chunks.items()})
