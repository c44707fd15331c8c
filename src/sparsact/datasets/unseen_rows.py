"""Rows outside of what a model was learned from: values that never occurred together, numbers beyond their ranges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparsact.datasets.cell_values import UnreadableError
from sparsact.datasets.columns import Bit, Encoding, OneHot, Points, Real
from sparsact.datasets.sites import BitString
from sparsact.datasets.table_files import PlacedRows
from sparsact.datasets.table_summary import MOST_BITS, TableDesign
from sparsact.statistics.held_out_rows import HeldOutRows

NAMED: Final = 4  # pairs in a note
LARGEST_CUBE: Final = 24  # columns: a table can hold most of their combinations
FEWEST_POINTS: Final = 30  # for a normal approximation
LEAST_COVERAGE: Final = 0.002  # of all points: below it rows are only a sample
CHANCE: Final = 0.001  # of a note on a table that misses combinations at random


class Readable(NamedTuple):
    """X of the rows that can be read, their targets if asked for, else none, and by the place of each other why not."""

    X: Points
    y: NDArray[np.float64]
    reasons: dict[int, str]


def readable(encoding: Encoding, rows: PlacedRows, *, answers: bool = False) -> Readable:
    """What can be read of some rows; not, for instance, a letter never seen."""
    reasons: dict[int, str] = {}
    places = np.arange(len(rows))
    while True:
        try:
            return Readable(encoding.points(rows), encoding.answers(rows) if answers else np.empty(0), reasons)
        except UnreadableError:
            tried: dict[str, Callable[[], object]]
            tried = {one.name: partial(one.encode, rows.columns.column(one.name), rows.row) for one in encoding.columns}
            for one in encoding.targets if answers else ():
                tried[one.name] = partial(replace(encoding, targets=(one,)).answers, rows)
            found = {place: why for name, read in tried.items() for place, why in _unreadable(name, read).items()}
        reasons |= {int(places[place]): why for place, why in found.items()}
        kept = np.delete(np.arange(len(rows)), list(found))
        rows, places = replace(rows, columns=rows.columns.take(pa.array(kept))), places[kept]


def left_out(reasons: dict[int, str], n_all: int) -> str:
    """How many of all rows could not be read, by their places, and why not the first; empty if none."""
    return f"{len(reasons):,} of {n_all:,} rows; row {min(reasons) + 1}, {reasons[min(reasons)]}" if reasons else ""


def _unreadable(name: str, read: Callable[[], object]) -> dict[int, str]:
    try:
        read()
    except UnreadableError as error:
        return {place: f"{name}: {why}" for place, why in error.reasons.items()}
    return {}


def bits_of(encoding: Encoding, X: Points) -> NDArray[np.bool_]:
    """The features of encoded rows that are bits, as such."""
    return X[:, _is_bit(encoding)] < 0 if encoding.real else np.asarray(X).astype(bool)


def _is_bit(encoding: Encoding) -> NDArray[np.bool_]:
    return np.array([not isinstance(column, Real) for column in encoding.columns for _ in column.features])


class DesignSums:
    """Pairs of values that rows have shown together, and ranges of numbers; rows come in any order and any split."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding, self.is_bit = encoding, _is_bit(encoding)
        n, n_real = int(self.is_bit.sum()), int((~self.is_bit).sum())
        self.seen = np.full((2, 2, n, n), n > MOST_BITS)  # by values of the first bit and of the second
        self.seen[..., np.tri(n, dtype=bool)] = True  # each pair once
        start = 0
        for n_bits in (own.shape[1] for own in encoding.patterns):
            if n_bits > 1:  # at most one of them is 1
                self.seen[..., start : start + n_bits, start : start + n_bits] = True
            start += n_bits
        self.low, self.high = np.full(n_real, np.inf), np.full(n_real, -np.inf)

    def empty(self) -> DesignSums:
        """The same without rows."""
        return DesignSums(self.encoding)

    def add(self, X: Points) -> None:
        """More encoded rows."""
        if len(self.low) and len(X):
            numbers = X[:, ~self.is_bit]
            self.low, self.high = np.minimum(self.low, numbers.min(axis=0)), np.maximum(self.high, numbers.max(axis=0))
        waiting: NDArray[np.bool_] = ~np.all(self.seen, axis=(0, 1))
        wanted = np.flatnonzero(np.any(waiting | waiting.T, axis=0))
        if len(wanted):
            B = bits_of(self.encoding, X)[:, wanted].astype(np.float32)  # counts below 2**24 are exact
            both, ones = B.T @ B, B.sum(axis=0)
            first, second = ones[:, None] - both, ones - both
            counts = np.array([[len(B) - both - first - second, second], [first, both]])
            self.seen[:, :, wanted[:, None], wanted] |= counts > 0

    def merge(self, other: DesignSums) -> None:
        """Add what others have shown."""
        self.seen |= other.seen
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it."""
        return {"design.seen": self.seen, "design.low": self.low, "design.high": self.high}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Have seen what others had."""
        self.seen = arrays["design.seen"].astype(bool)
        self.low, self.high = arrays["design.low"], arrays["design.high"]

    def design(self, held_out: HeldOutRows | None = None) -> TableDesign:
        """What was seen, with held-out rows if there are any."""
        return TableDesign.of(~self.seen, self.low, self.high, held_out)


def bit_values(encoding: Encoding) -> list[tuple[str, str]]:
    """Meaning of the values 0 and 1, for each feature that is a bit."""
    named = []
    for column in encoding.columns:
        if isinstance(column, Bit):
            named.append((f"{column.name}={column.values[0]}", f"{column.name}={column.values[-1]}"))
        elif isinstance(column, OneHot):
            named += [(f"{column.name}≠{value}", f"{column.name}={value}") for value in column.values]
        elif isinstance(column, BitString):
            named += [(f"{feature}=0", f"{feature}=1") for feature in column.features]
        elif not isinstance(column, Real):  # features of letters have the letter in their names
            named += [(f"not {feature}", feature) for feature in column.features]
    return named


def unseen_pairs(encoding: Encoding, design: TableDesign) -> list[str]:
    """Values that never occurred together, two by two."""
    if design.unseen is None:
        return []
    values = bit_values(encoding)
    return [f"{values[i][a]} with {values[j][b]}" for i, j, a, b in np.argwhere(design.unseen.transpose(2, 3, 0, 1))]


def outside(encoding: Encoding, design: TableDesign, X: Points) -> list[str]:
    """For each encoded row, why it lies outside of the rows that were learned from; empty if it does not.

    The first number beyond its range, or the first pair of values that never occurred together, and how many more.
    """
    found = [""] * len(X)
    counts = np.zeros(len(X), dtype=np.intp)
    if design.unseen is not None:
        B, values = bits_of(encoding, X), bit_values(encoding)
        hits = np.zeros(B.shape)  # unseen pairs whose second bit it is
        having = (~B, B)
        for a, b in np.ndindex(2, 2):
            hits += (having[a].astype(np.float32) @ design.unseen[a, b].astype(np.float32)) * having[b]
        counts = hits.sum(axis=1).astype(np.intp)
        rows = np.flatnonzero(counts)
        second = (hits[rows] > 0).argmax(axis=1)
        own = B[rows, second].astype(np.intp)
        pairs = design.unseen[B[rows].astype(np.intp), own[:, None], np.arange(B.shape[1]), second[:, None]]
        for row, i, j in zip(rows.tolist(), pairs.argmax(axis=1).tolist(), second.tolist(), strict=True):
            found[row] = f"{values[i][int(B[row, i])]} with {values[j][int(B[row, j])]}"
    if design.low:
        numbers = X[:, ~_is_bit(encoding)]
        beyond = (numbers < design.low) | (numbers > design.high)
        columns = [column for column in encoding.columns if isinstance(column, Real)]
        for row in np.flatnonzero(beyond.any(axis=1)).tolist():
            column = columns[place := int(beyond[row].argmax())]
            end = design.low[place] if numbers[row, place] < design.low[place] else design.high[place]
            value, end = (column.centre + column.scale * number for number in (numbers[row, place], end))
            found[row] = f"{column.name}={value:g} {'below' if value < end else 'above'} {end:g}"
        counts += beyond.sum(axis=1)
    return [f"{one} and {n - 1} more" if n > 1 else one for one, n in zip(found, counts.tolist(), strict=True)]


def design_notes(encoding: Encoding, design: TableDesign, X: Points | None) -> list[str]:
    """Sentences about what the rows leave open; of combinations that are missing only where all rows are given."""
    found = []
    if pairs := unseen_pairs(encoding, design):
        more = f" and {len(pairs) - NAMED:,} more pairs" if len(pairs) > NAMED else ""
        found.append(f"values that never occur together: {'; '.join(pairs[:NAMED])}{more}.")
    if X is not None and all(isinstance(column, Bit | BitString) for column in encoding.columns):
        found += _missing(bits_of(encoding, X), bit_values(encoding))
    return found


def _missing(bits: NDArray[np.bool_], values: list[tuple[str, str]]) -> list[str]:
    r"""Whether points of the cube that no row has are missing at random, by each column and pair.

    For m points drawn at random out of N, a sum of signs :math:`\sum \chi_S` has variance :math:`m (N - m) / (N - 1)`.
    """
    n = bits.shape[1]
    if n > LARGEST_CUBE:
        return []
    present = np.unique(np.packbits(bits, axis=1), axis=0, return_index=True)[1]
    m, size = len(present), 2**n
    if min(m, size - m) < FEWEST_POINTS or m < LEAST_COVERAGE * size:
        return []
    signs = 1.0 - 2.0 * bits[present]
    sums = signs.T @ signs
    sums[np.diag_indices(n)] = signs.sum(axis=0)
    sums = np.triu(sums) / np.sqrt(m * (size - m) / (size - 1))
    i, j = divmod(int(np.abs(sums).argmax()), n)
    if abs(sums[i, j]) < NormalDist().inv_cdf(1 - CHANCE / (n * (n + 1))):
        return []
    even = bits[present, i] == (bits[present, j] if i != j else False)
    shares = (float(part.sum()) / (size / 2) for part in (even, ~even))
    names = values[i] if i == j else (f"{values[i][1]} and {values[j][1]} both or neither", "one of them")
    named = ", of the combinations with ".join(f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True))
    return [f"combinations are not missing at random: of the combinations with {named} are in the table."]
