"""What the user passes, as a list of partitions, and how workers read them as batches of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import dask
import dask.array
from dask.base import is_dask_collection
from numpy.typing import NDArray

from sparsact.datasets.cell_values import numbers
from sparsact.datasets.columns import Classes, Encoding
from sparsact.datasets.readers import Source, open_source
from sparsact.datasets.table_files import BATCH_ROWS, MOST_PIECES, Parts, files, piece_name, pieces
from sparsact.datasets.table_stream import encoded_table
from sparsact.passes.source import Partition, Reader
from sparsact.statistics.statistic import Batch

if TYPE_CHECKING:
    import dask.dataframe
    import pandas as pd
    from dask.delayed import Delayed

    Block: TypeAlias = NDArray[Any] | pd.DataFrame
    Collection: TypeAlias = dask.array.Array | dask.dataframe.DataFrame


class CountedReader(Reader, Protocol):
    """A reader that can tell the number of rows without reading them, where that is possible."""

    def count(self, *pieces: Any) -> int:
        """Return the number of rows."""


@dataclass(frozen=True)
class ArrayReader:
    """A block of X, one of y, and maybe one of weights."""

    def batches(self, X: Block, y: Block, sample_weight: NDArray[Any] | None = None) -> Iterator[Batch]:
        """The one batch there is."""
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows and y {len(y)}; cut both alike.")
        if sample_weight is not None and len(sample_weight) != len(X):
            raise ValueError(f"X has {len(X)} rows and sample_weight {len(sample_weight)}; cut both alike.")
        yield Batch(X, y, sample_weight)

    def count(self, X: Block, y: Block, sample_weight: NDArray[Any] | None = None) -> int:
        """Number of rows."""
        return len(y)


@dataclass(frozen=True)
class FrameReader:
    """A data frame with target columns and, optionally, a weight column."""

    targets: tuple[str, ...]
    weight: str | None

    def batches(self, frame: pd.DataFrame) -> Iterator[Batch]:
        """The one batch there is."""
        others = [*self.targets, *([] if self.weight is None else [self.weight])]
        y = frame[self.targets[0]] if len(self.targets) == 1 else frame[list(self.targets)]
        weights = None if self.weight is None else frame[self.weight].to_numpy()
        yield Batch(frame.drop(columns=others), y.to_numpy(), weights)

    def count(self, frame: pd.DataFrame) -> int:
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
            yield Batch(X, target.labelled(y) if isinstance(target, Classes) else y)

    def count(self) -> int:
        """Number of rows; the file is read only if it does not say."""
        source = self.piece or open_source(self.path)
        if source.n_rows is not None:
            return source.n_rows
        return sum(map(len, self.batches()))

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


@dataclass(frozen=True)
class Roles:
    """Which columns of a table are targets and weights, and how the others are encoded."""

    targets: tuple[str, ...]
    weight: str | None
    encoding: Encoding | None

    @classmethod
    def of(cls, target: str | Sequence[str] | None, weight: str | None, encoding: Encoding | None) -> Roles:
        """Checked."""
        if encoding is not None:
            if target is not None or weight is not None:
                raise ValueError("an encoding names the targets; leave `target` and `sample_weight` out.")
            return cls(encoding.target_names, None, encoding)
        return cls((target,) if isinstance(target, str) else tuple(target or ()), weight, None)


def partitions(data: Any, roles: Roles) -> list[Partition[CountedReader]] | Iterator[Partition[CountedReader]]:
    """The partitions of a data set; an iterator where they come from one and can be had once only.

    Raises
    ------
    ValueError
        If the parts do not fit together, or there are none.
    TypeError
        If the type of the data is not supported.
    """
    if isinstance(data, str | Path) or (
        isinstance(data, list) and data and all(isinstance(item, str | Path) for item in data)
    ):
        return _of_files([data] if isinstance(data, str | Path) else data, roles)
    if is_dask_collection(data):
        return _of_frame(data, roles)
    _refuse_roles(roles)
    if isinstance(data, tuple) and any(is_dask_collection(part) for part in data):
        return _of_arrays(data)
    if isinstance(data, Iterable) and not hasattr(data, "shape"):
        return (_of_batch(i, batch) for i, batch in enumerate(data))
    raise TypeError(
        f"`data` is a {type(data).__name__}; pass (X, y) Dask arrays, a Dask DataFrame, paths, or batches (X, y)."
    )


def _of_files(paths: Sequence[str | Path], roles: Roles) -> list[Partition[CountedReader]]:
    _need_target(roles)
    found = files(paths)
    parquet = [path for path in found if path.suffix.lower() == ".parquet" and path.is_file()]
    # If there are very many files, each is a partition; files that only workers see, or must read to count, stay whole.
    cut = [] if len(found) > MOST_PIECES else pieces([open_source(path) for path in parquet])
    by_path = {of_file[0].path: of_file for of_file in cut}
    readers = [
        FileReader(path, roles.targets, roles.weight, roles.encoding, piece)
        for path in found
        for piece in by_path.get(path, [None])
    ]
    return [
        Partition(reader.name, reader, n_rows=None if reader.piece is None else reader.piece.n_rows)
        for reader in readers
    ]


def _of_frame(frame: dask.dataframe.DataFrame, roles: Roles) -> list[Partition[CountedReader]]:
    if not hasattr(frame, "columns") or not hasattr(frame, "npartitions"):
        raise TypeError(f"a {type(frame).__name__} alone has no targets; pass (X, y).")
    _need_target(roles)
    if roles.encoding is not None:
        raise ValueError("an encoding applies to files; a data frame's columns are numbers already: leave it out.")
    for name in [*roles.targets, *([] if roles.weight is None else [roles.weight])]:
        if name not in frame.columns:
            raise ValueError(f"the data frame has no column {name!r}; its columns are {list(frame.columns)[:12]}.")
    reader = FrameReader(roles.targets, roles.weight)
    blocks = frame.to_delayed()  # type: ignore[no-untyped-call]
    return [Partition(f"partition {i}", reader, (part,)) for i, part in enumerate(blocks)]


def _of_arrays(data: tuple[Any, ...]) -> list[Partition[CountedReader]]:
    if len(data) not in (2, 3):
        raise ValueError(f"`data` is a tuple of {len(data)}; pass (X, y) or (X, y, sample_weight).")
    X, *others = (part if is_dask_collection(part) else dask.array.asarray(part) for part in data)  # type: ignore[no-untyped-call]
    if not hasattr(X, "npartitions"):
        raise TypeError(f"X is a {type(X).__name__}, which has no partitions; pass a Dask array or DataFrame.")
    rows = _rows(X)
    if getattr(X, "ndim", 2) == 2 and hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
    parts = [X, *(_cut_like(other, rows, name) for other, name in zip(others, ("y", "sample_weight"), strict=False))]
    blocks = [_delayed(part) for part in parts]
    return [
        Partition(f"partition {i}", ArrayReader(), pieces, None if isnan(n) else int(n))
        for i, (n, *pieces_) in enumerate(zip(rows, *blocks, strict=True))
        for pieces in [tuple(pieces_)]
    ]


def _rows(part: Collection) -> tuple[float, ...]:
    """Rows of each block; NaN where they are not known."""
    return tuple(map(float, part.chunks[0])) if hasattr(part, "chunks") else (float("nan"),) * part.npartitions


def _cut_like(part: Collection, rows: tuple[float, ...], name: str) -> Collection:
    """Targets or weights in blocks of the rows of X."""
    own = _rows(part)
    known = not any(map(isnan, (*own, *rows)))
    if known and sum(own) != sum(rows):
        raise ValueError(f"X has {int(sum(rows))} rows and {name} {int(sum(own))}; the numbers must be equal.")
    if hasattr(part, "chunks"):
        if known and own != rows:
            part = part.rechunk({0: tuple(map(int, rows))})
        if part.ndim == 2:
            part = part.rechunk({1: -1})
    if len(_rows(part)) != len(rows):
        raise ValueError(
            f"X has {len(rows)} blocks and {name} {len(own)}, of unknown sizes; call compute_chunk_sizes() on both, or "
            "make them from one collection."
        )
    return part


def _delayed(part: Collection) -> list[Delayed]:
    blocks = part.to_delayed()  # type: ignore[no-untyped-call]
    return list(blocks.ravel()) if hasattr(blocks, "ravel") else list(blocks)


def _of_batch(i: int, batch: object) -> Partition[CountedReader]:
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3) or not all(hasattr(b, "__len__") for b in batch):
        raise ValueError(f"batch {i} must be (X, y) or (X, y, sample_weight); it is a {type(batch).__name__}.")
    pieces = deepcopy(tuple(batch))  # it waits for others, while its maker may fill the same arrays again
    return Partition(f"batch {i}", ArrayReader(), pieces, len(batch[1]))


def _need_target(roles: Roles) -> None:
    if not roles.targets:
        raise ValueError("a table needs the name of its target column; pass target=.")


def _refuse_roles(roles: Roles) -> None:
    if roles.targets or roles.weight is not None:
        raise ValueError("`target` and `sample_weight` name columns of a table; pass arrays as (X, y, sample_weight).")
