"""Where the rows of a pass come from, and the parts of them that workers read apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from sparsact.statistics.statistic import Batch, Resumable

B = TypeVar("B", bound=Sized)
B_co = TypeVar("B_co", bound=Sized, covariant=True)


class RowSource(Protocol[B_co]):
    """Rows in batches, which are the same in every pass."""

    def batches(self, first_row: int = 0) -> Iterator[B_co]:
        """Yield the batches from ``first_row`` on, which begins a batch."""


class Reader(Protocol):
    """Turns the pieces of a partition into batches."""

    def batches(self, *pieces: Any) -> Iterator[Batch]:
        """Yield the rows in their order."""


R = TypeVar("R", bound=Reader, covariant=True)


@dataclass(frozen=True)
class Partition(Generic[R]):
    """A part of the rows: its name in messages, how it is read and from what, its length if known, its first row."""

    name: str
    reader: R
    pieces: tuple[object, ...] = ()
    n_rows: int | None = None
    first_row: int = 0


def placed(parts: Iterable[Partition[R]], first_row: int = 0) -> list[Partition[R]]:
    """The partitions with the numbers of their first rows; an unknown length counts as 0."""
    found = []
    for part in parts:
        found.append(replace(part, first_row=first_row))
        first_row += part.n_rows or 0
    return found


S = TypeVar("S", bound=Resumable[Any])


@dataclass(frozen=True)
class Pass(Generic[B, S]):
    """One pass over the rows: its name, by which a checkpoint knows it, their source, and what sums them up.

    ``partitions`` cuts the source for workers; without it the pass is made in one process, in the order of the rows.
    """

    name: str
    source: RowSource[B]
    statistic: S
    partitions: Callable[[], Sequence[Partition[Reader]]] | None = None
