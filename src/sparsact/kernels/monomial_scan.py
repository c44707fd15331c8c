r"""The monomials of low degree that correlate most with a function of the rows, of all :math:`\binom{n}{\le d}`.

Scores come from small integers and saturating sums, so that they are approximate: see :func:`quantised`. They are the
same integers on every instruction set. A monomial is a prefix (its lowest coordinates) and a column (its highest one or
two); numbering both, ``prefix * n_columns + column``, orders all monomials.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, masks_of, n_subsets, n_words
from sparsact.kernels import dispatch
from sparsact.kernels.subset_ranks import subset_counts

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

GROUP, GROUPS, TILE = 4, 32, 64  # rows of a lookup, lookups of a sum in 8 bits, columns side by side
LARGEST: Final = 11  # of the integers: sums of four fit into 8 bits
STEPS: Final = 2.5  # integers of one standard deviation
MOST_ROWS: Final = 1 << 20  # of a scan: beyond, sums of 16 bits would saturate below 13 standard deviations
PAIRED: Final = 100  # coordinates up to which columns are pairs, where the degree leaves prefixes beside them
_AT_A_TIME: Final = 4e10  # products of a call, a fraction of a second: between calls, Python sees an interrupt
_LEAST_PREFIXES: Final = 64  # of a call
_KEYS_OF_REFERENCE: Final = 1 << 18


@dataclass(frozen=True)
class MonomialTable:
    """Rows of the cube as :func:`strongest_monomials` reads them; about ``n * m / 2`` bytes.

    Attributes
    ----------
    n, degree, n_rows : int
        Coordinates, largest size of a monomial, rows.
    nibbles : ndarray of shape (n, 32 * blocks), uint8
        Bits of four rows of a coordinate.
    tiles : ndarray of shape (blocks, tiles, 32, 64), uint8
        Bits of four rows of 64 columns.
    columns : ndarray of shape (n_columns, 1 or 2), int
        Coordinates of each column, by the first of them.
    """

    n: int
    degree: int
    n_rows: int
    nibbles: Bytes
    tiles: Bytes
    columns: NDArray[np.intp]

    @classmethod
    def of(cls, columns: NDArray[np.uint64], n_rows: int, degree: int) -> MonomialTable:
        """The table of packed columns (n, words); monomials have sizes 1 (2, where columns are pairs) to ``degree``."""
        n = len(columns)
        blocks = max(1, -(-n_rows // (GROUP * GROUPS)))
        nibbles = np.zeros((n, blocks * GROUPS), dtype=np.uint8)
        packed = columns.astype("<u8", copy=False).view(np.uint8)[:, : blocks * GROUPS // 2]
        nibbles[:, 0 : 2 * packed.shape[1] : 2], nibbles[:, 1 : 2 * packed.shape[1] : 2] = packed & 15, packed >> 4
        if n <= PAIRED and degree > 2:
            members = np.column_stack(np.triu_indices(n, 1))
            of_columns = nibbles[members[:, 0]] ^ nibbles[members[:, 1]]
        else:
            members, of_columns = np.arange(n)[:, None], nibbles
        n_tiles = -(-len(members) // TILE)
        tiles = np.zeros((blocks, n_tiles, GROUPS, TILE), dtype=np.uint8)
        for tile in range(n_tiles):
            some = of_columns[tile * TILE : (tile + 1) * TILE]
            tiles[:, tile, :, : len(some)] = some.reshape(len(some), blocks, GROUPS).transpose(1, 2, 0)
        return cls(n, degree, n_rows, nibbles, tiles, members)

    @property
    def n_prefixes(self) -> int:
        """Number of prefixes: of subsets that leave room above them."""
        width = self.columns.shape[1]
        return n_subsets(max(0, self.n - width), self.degree - width)

    def masks(self, numbers: Integers) -> Masks:
        """Subsets (N, words) of the numbers of monomials (N,)."""
        prefix, column = np.divmod(numbers, max(1, len(self.columns)))
        masks = masks_of(self.columns[column], self.n) if len(numbers) else np.zeros((0, n_words(self.n)), np.uint64)
        for member, there in _members(prefix, self._counts):
            at = np.flatnonzero(there)
            masks[at, member[at] // 64] |= np.uint64(1) << (member[at] % 64).astype(np.uint64)
        return masks

    @property
    def _counts(self) -> Integers:
        return subset_counts(self.n, self.degree - self.columns.shape[1])

    @property
    def _starts(self) -> Integers:
        return np.searchsorted(self.columns[:, 0], np.arange(self.n + 1)).astype(np.int64)


def quantised(values: NDArray[np.float64]) -> NDArray[np.int8]:
    """Values (m,) as integers of at most 11 in size, 2.5 of them to a standard deviation about 0.

    Rounding adds the share ``1 / (12 * 2.5**2)`` to the variance of a sum of signs. Clipping and the 8 bits of a sum of
    128 rows make strong monomials look weaker than they are: compute correlations again for monomials that are found.
    """
    scale = float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
    return np.clip(np.rint(values * (STEPS / scale if scale else 0.0)), -LARGEST, LARGEST).astype(np.int8)


def strongest_monomials(
    table: MonomialTable, q: NDArray[np.int8], keep: int, least: int = 1, *, n_threads: int = 1, step: int | None = None
) -> tuple[Masks, Integers]:
    """The monomials with the largest scores: about ``|sum_i q_i chi_S(x_i)|``.

    With AVX2 one lookup of 32 bytes takes 128 products (results/benchmarks.jsonl, benchmark sparse_fourier).

    Parameters
    ----------
    table : MonomialTable
        The rows.
    q : ndarray of shape (m,), int8
        At most 31 in size; see :func:`quantised`.
    keep : int
        Largest number of monomials returned; of equal scores, the lowest numbers.
    least : int
        The least score.
    n_threads : int
        Threads. The result does not depend on it.
    step : int, optional
        Prefixes in each call of the kernel.

    Returns
    -------
    masks : ndarray of shape (N, words), uint64
        Subsets, strongest first.
    scores : ndarray of shape (N,), int64
        Sums of 128 rows saturate at -128 and 127, and sums of these at 32,767.
    """
    tables, best, found = _sums_of_four(q, len(table.tiles)), np.zeros((keep, 2), dtype=np.int64), 0
    starts, counts = table._starts, table._counts
    step = step or max(_LEAST_PREFIXES, int(_AT_A_TIME / (max(1, len(table.columns)) * max(1, table.n_rows))))
    for begin in range(0, table.n_prefixes, step):
        found = dispatch.chosen.scan_monomials(
            table.tiles,
            table.nibbles,
            tables,
            starts,
            counts,
            len(table.columns),
            begin,
            min(begin + step, table.n_prefixes),
            min(max(1, least), 2**15 - 1),
            best,
            found,
            n_threads,
        )
    kept = best[:found]
    kept = kept[np.lexsort((kept[:, 0], -kept[:, 1]))]
    return table.masks(kept[:, 0]), kept[:, 1]


def _sums_of_four(q: NDArray[np.int8], blocks: int) -> NDArray[np.int8]:
    """For each four rows the 16 sums of their integers with signs, at most 127 in size: (32 * blocks, 16)."""
    padded = np.zeros((blocks * GROUPS, GROUP), dtype=np.int16)
    padded.ravel()[: len(q)] = q
    signs = 1 - 2 * (np.arange(16)[:, None] >> np.arange(GROUP) & 1)
    return np.clip(padded @ signs.T.astype(np.int16), -127, 127).astype(np.int8)


@dispatch.kernel
def _scan_monomials(
    tiles: Bytes,
    nibbles: Bytes,
    table: NDArray[np.int8],
    starts: Integers,
    counts: Integers,
    n_columns: int,
    begin: int,
    end: int,
    least: int,
    best: Integers,
    found: int,
    n_threads: int,
) -> int:
    """The best of ``best[:found]`` and of the prefixes from ``begin`` to ``end`` replace these; returns how many."""
    columns = tiles.transpose(0, 2, 1, 3).reshape(len(table), -1)[:, :n_columns]  # (groups, columns)
    step = max(1, _KEYS_OF_REFERENCE // max(1, n_columns))
    for first in range(begin, end, step):
        numbers = np.arange(first, min(first + step, end))
        bits, start = np.zeros((len(numbers), nibbles.shape[1]), dtype=np.uint8), np.zeros(len(numbers), dtype=np.int64)
        for member, there in _members(numbers, counts):
            bits[there] ^= nibbles[member[there]]
            start = np.maximum(start, np.where(there, starts[member + 1], 0))
        total = np.zeros((len(numbers), n_columns), dtype=np.int32)
        for block in range(len(tiles)):
            sums = np.zeros(total.shape, dtype=np.int16)
            for g in range(block * GROUPS, (block + 1) * GROUPS):
                sums = np.clip(sums + table[g][bits[:, g, None] ^ columns[g]], -128, 127)
            total = np.clip(total + sums, -(2**15), 2**15 - 1)
        scores = np.minimum(np.abs(total), 2**15 - 1)
        prefix, column = np.nonzero((scores >= least) & (np.arange(n_columns) >= start[:, None]))
        new = np.column_stack([numbers[prefix] * n_columns + column, scores[prefix, column]])
        both = np.concatenate([best[:found], new])
        both = both[np.lexsort((both[:, 0], -both[:, 1]))][: len(best)]
        found = len(both)
        best[:found] = both
    return found


def _members(numbers: Integers, counts: Integers) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Yield the members of the subsets with these ranks, the highest first: (N,), and where there is one."""
    left = numbers.copy()
    for room in range(counts.shape[1] - 1, 0, -1):
        there = left > 0
        member = np.searchsorted(counts[:, room], left, side="right") - 1
        left = np.where(there, left - counts[member, room], 0)
        yield np.where(there, member, 0), there
