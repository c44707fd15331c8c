"""How a partition becomes batches of rows: of arrays, of data frames, of files. These run where the partition is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sparsact.datasets.columns import Classes, numbers
from sparsact.datasets.encoding import Encoding
from sparsact.datasets.parts import Parts
from sparsact.datasets.pieces import piece_name
from sparsact.datasets.sources import Source, open_source
from sparsact.datasets.tables import BATCH_ROWS, encoded_table

Batch = tuple[Any, Any, Any]  # rows, targets, and weights or None


class Reader(Protocol):
    """What turns the pieces of a partition into batches."""

    def batches(self, *pieces: Any) -> Iterator[Batch]:
        """Rows, targets and weights, in their order."""

    def count(self, *pieces: Any) -> int:
        """Number of rows."""


@dataclass(frozen=True)
class ArrayReader:
    """A block of X, one of y, and maybe one of weights."""

    def batches(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[Batch]:
        """The one batch there is."""
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows and y {len(y)}; cut both alike.")
        if sample_weight is not None and len(sample_weight) != len(X):
            raise ValueError(f"X has {len(X)} rows and sample_weight {len(sample_weight)}; cut both alike.")
        yield X, y, sample_weight

    def count(self, X: Any, y: Any, sample_weight: Any = None) -> int:
        """Number of rows."""
        return len(y)


@dataclass(frozen=True)
class FrameReader:
    """A data frame of which some columns are targets and one, maybe, is the weight."""

    targets: tuple[str, ...]
    weight: str | None

    def batches(self, frame: Any) -> Iterator[Batch]:
        """The one batch there is."""
        others = [*self.targets, *([] if self.weight is None else [self.weight])]
        y = frame[self.targets[0]] if len(self.targets) == 1 else frame[list(self.targets)]
        weights = None if self.weight is None else frame[self.weight].to_numpy()
        yield frame.drop(columns=others), y.to_numpy(), weights

    def count(self, frame: Any) -> int:
        """Number of rows."""
        return len(frame)


@dataclass(frozen=True)
class FileReader:
    """A file of numbers, or a piece of it, read a batch at a time; by an encoding, where one is given."""

    path: Path
    targets: tuple[str, ...]
    weight: str | None
    encoding: Encoding | None = None
    piece: Source | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path.name if self.piece is None else piece_name(self.piece)

    def batches(self) -> Iterator[Batch]:
        """Batches in the order of the file."""
        if self.encoding is None:
            yield from self._numbers()
            return
        target = self.encoding.targets[0]
        table = encoded_table(self.path, self.encoding)
        if self.piece is not None:
            table = replace(table, parts=Parts((self.piece,), table.parts.stamps, [self.piece.n_rows]))
        for X, y in table.batches():
            yield X, target.labels[y.astype(np.intp)] if isinstance(target, Classes) else y, None

    def count(self) -> int:
        """Number of rows; the file is read only if it does not say."""
        source = self.piece or open_source(self.path)
        if source.n_rows is not None:
            return source.n_rows
        return sum(len(y) for _, y, _ in self.batches())

    def _numbers(self) -> Iterator[Batch]:
        import pandas as pd  # comes with the extra `dask`

        source = self.piece or open_source(self.path)
        others = [*self.targets, *([] if self.weight is None else [self.weight])]
        missing = [name for name in others if name not in source.names]
        if missing:
            raise ValueError(f"there is no column {missing[0]!r}; the columns are {', '.join(source.names[:12])}.")
        first_row = source.first_row
        for batch in source.batches(source.names, BATCH_ROWS):
            columns = {name: numbers(batch.column(name), name, first_row) for name in source.names}
            first_row += batch.num_rows
            yield next(FrameReader(self.targets, self.weight).batches(pd.DataFrame(columns)))
