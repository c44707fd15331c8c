"""Exact sums of the numbers of a column: mean and deviation do not depend on how the rows are cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, ldexp, sqrt

import numpy as np
from numpy.typing import NDArray

EXACT = 2**53  # from here on a float64 does not hold every integer


@dataclass
class NumberSums:
    """Count, range, sum and sum of squares of numbers, all exact but the range."""

    count: int = 0
    low: float = inf
    high: float = -inf
    total: Fraction = Fraction(0)
    squares: Fraction = Fraction(0)

    def update(self, values: NDArray[np.float64], rest: NDArray[np.float64] | None = None) -> None:
        """Add numbers; those of integers beyond 2**53 are ``values + rest``."""
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
    from sparsact.statistics.exact_sum import ExactSum  # brings SciPy, which many users of the data sets need not load

    total = ExactSum.zeros((1,))
    total.add(a, b, np.zeros(len(a), dtype=np.uint64))
    return total.to_fractions()[0]
