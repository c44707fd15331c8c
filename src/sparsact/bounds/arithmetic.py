"""Powers and logarithms of two, of numbers that leave the range of floats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, inf, log2


def power_of_two(exponent: float) -> float:
    """``2**exponent``, or ``math.inf`` beyond the largest float."""
    return 2.0**exponent if exponent < 1024 else inf


def log2_of(value: float) -> float:
    """Base-2 logarithm, minus infinity at 0."""
    return log2(value) if value > 0 else -inf


def log2_quotient(above: Sequence[float], below: Sequence[float]) -> float:
    """Base-2 logarithm of a quotient of products of positive numbers, which may itself leave the range of floats."""
    return sum(map(log2, above)) - sum(map(log2, below))


def least_degree(sensitivity: float | Fraction, epsilon: float) -> int:
    """Smallest d >= 0 with ``sensitivity / (d + 1) <= epsilon``, exact for the numbers given."""
    return max(0, ceil(Fraction(sensitivity) / Fraction(epsilon)) - 1)
