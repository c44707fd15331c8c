"""Sums over rows, the same however rows are cut into batches: of numbers, exact, and digests of sets of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, ldexp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.statistics.exact_sum import ExactSum
from sparsact.statistics.hashing import mixed


@dataclass
class NumberSums:
    """Count, range, sum and sum of squares of numbers, all exact but the range."""

    count: int = 0
    low: float = inf
    high: float = -inf
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    def update(self, values: NDArray[np.float64], rest: NDArray[np.float64] | None = None) -> None:
        """Add numbers; integers beyond 2**53 are given as ``values + rest``."""
        if not len(values):
            return
        self.count += len(values)
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.total += _exact_sum(values)
        self.squares += _exact_sum(values, values)
        if rest is not None:
            self.total += _exact_sum(rest)
            self.squares += 2 * _exact_sum(values, rest) + _exact_sum(rest, rest)

    def add(self, number: Fraction, count: int) -> None:
        """Add one number `count` times."""
        self.count += count
        self.low, self.high = min(self.low, float(number)), max(self.high, float(number))
        self.total += count * number
        self.squares += count * number * number

    @property
    def mean(self) -> float:
        """Mean."""
        return float(self.total / max(self.count, 1))

    @property
    def deviation(self) -> float:
        """Standard deviation; 1 where it is 0."""
        variance = self.squares / max(self.count, 1) - (self.total / max(self.count, 1)) ** 2
        if not variance:
            return 1.0
        half = (variance.numerator.bit_length() - variance.denominator.bit_length()) // 2
        return ldexp(sqrt(variance / Fraction(4) ** half), half) or 1.0

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are integers, as far as sums can show."""
        return self.total.denominator == self.squares.denominator == 1

    @property
    def is_row_number(self) -> bool:
        """Whether the numbers are 0, 1, ..., m - 1 or 1, 2, ..., m in some order, as far as sums can show."""
        m, first = self.count, int(self.low) if self.low in (0, 1) else 0
        last = first + m - 1
        return (
            (m > 2 and self.low in (0, 1) and self.high == last)
            and self.total == Fraction(m * (first + last), 2)
            and self.squares == Fraction(last * (last + 1) * (2 * last + 1), 6)
        )

    def state(self) -> list[str]:
        """All that was summed, as texts."""
        return [str(self.count), float.hex(self.low), float.hex(self.high), str(self.total), str(self.squares)]

    @classmethod
    def restored(cls, state: list[str]) -> NumberSums:
        """Inverse of :meth:`state`."""
        count, low, high, total, squares = state
        return cls(int(count), float.fromhex(low), float.fromhex(high), Fraction(total), Fraction(squares))


def _exact_sum(a: NDArray[np.float64], b: NDArray[np.float64] | None = None) -> Fraction:
    """Sum of a batch of numbers, or of products."""
    total = ExactSum.zeros((1,))
    total.add(a, b, np.zeros(len(a), dtype=np.uint64))
    return total.to_fractions()[0]


MODULUS: Final = 1 << 64
MOST_ROWS: Final = 1 << 21  # of a batch: sums of halves of that many numbers are exact in float64
_ENTRIES: Final = 1 << 20  # of a block of bits
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class RowNumbers:
    """Random numbers of consecutive rows, (m,) uint64, and their halves as float64, (2, m)."""

    numbers: NDArray[np.uint64]
    halves: NDArray[np.float64]

    @classmethod
    def of(cls, first_row: int, m: int) -> RowNumbers:
        """Numbers of rows ``first_row`` to ``first_row + m - 1`` of the table."""
        numbers = mixed(np.arange(first_row, first_row + m, dtype=np.uint64))
        return cls(numbers, np.stack([numbers & _LOW, numbers >> _HALF]).astype(np.float64))

    def some(self, rows: NDArray[np.bool_]) -> RowNumbers:
        """Numbers of the selected rows."""
        return RowNumbers(self.numbers[rows], self.halves[:, rows])

    def of_groups(self, group: NDArray[np.intp], n_groups: int) -> list[int]:
        """Digest of each group of rows, where row i is in ``group[i]``."""
        return joined(self.halves_of_groups(group, n_groups))

    def halves_of_groups(self, group: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
        """Halves of the digest of each group, (2, n_groups), whose sums are digests of joined groups."""
        return np.stack([np.bincount(group, weights=half, minlength=n_groups) for half in self.halves])

    def of_bits(self, bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Digest of the rows that have each bit, (n,), from bits (m, n)."""
        sums = np.zeros((2, bits.shape[1]))
        step = max(1, _ENTRIES // bits.shape[1])
        for row in range(0, len(bits), step):
            sums += self.halves[:, row : row + step] @ bits[row : row + step].astype(np.float64)
        low, high = sums.astype(np.uint64)
        return np.asarray(low + (high << _HALF))

    def of_values(self, keys: NDArray[np.uint64]) -> int:
        """Digest of a column of values, each given by a key."""
        with np.errstate(over="ignore"):
            return int((self.numbers * mixed(keys)).sum())


def joined(halves: NDArray[np.float64]) -> list[int]:
    """Digests from their halves (2, n)."""
    return [(int(low) + (int(high) << 32)) % MODULUS for low, high in halves.T.tolist()]


def number_keys(values: NDArray[np.float64], rest: NDArray[np.float64] | None = None) -> NDArray[np.uint64]:
    """A key for each number ``values + rest``; equal numbers have equal keys."""
    keys = (values + 0.0).view(np.uint64)  # -0 becomes 0
    return keys if rest is None else keys + rest.astype(np.int64).view(np.uint64)
