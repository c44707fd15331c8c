"""Powers and logarithms of two, of numbers that leave the range of floats."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, inf, log2, log10
from typing import Final

from sparsact.hypercube import n_subsets

_FLOAT_BITS: Final = 1024  # 2**1024 exceeds every float
_PRINTED_BITS: Final = 128  # of numbers that are written out: 39 digits


def power_of_two(exponent: float) -> float:
    """``2**exponent``, or ``math.inf`` beyond the largest float."""
    return 2.0**exponent if exponent < 1024 else inf


def log2_of(value: float) -> float:
    """Base-2 logarithm, minus infinity at 0."""
    return log2(value) if value > 0 else -inf


def log2_quotient(above: Sequence[float], below: Sequence[float]) -> float:
    """Base-2 logarithm of a quotient of products of positive numbers, which may itself leave the range of floats."""
    return sum(map(log2, above)) - sum(map(log2, below))


def subsets_up_to(n: int, degree: int) -> float:
    """Number of subsets of n coordinates of size up to ``degree``; infinite, without counting, beyond every float."""
    size = min(degree, n // 2)  # there are at least (n / size)**size of them
    if size > _FLOAT_BITS or (size and size * (log2(n) - log2(size)) > _FLOAT_BITS):
        return inf
    return n_subsets(n, degree)


def spelled(number: float) -> str:
    """A number as Python writes it; a whole number of many digits as a power of two or in scientific notation.

    >>> spelled(2**20_000), spelled(3**500), spelled(1024)
    ('2**20000', '3.636e+238', '1024')
    """
    if not isinstance(number, int) or number.bit_length() <= _PRINTED_BITS:
        return repr(number)
    exponent = number.bit_length() - 1
    if number == 1 << exponent:
        return f"2**{exponent}"
    tens = int(exponent * log10(2))
    digits = number // 10 ** (tens - 3)  # four or five of them, exact
    return f"{float(digits) / 1000:.3f}e+{tens}" if digits < 10_000 else f"{float(digits) / 10_000:.3f}e+{tens + 1}"


def least_degree(sensitivity: float | Fraction, epsilon: float) -> int:
    """Smallest d >= 0 with ``sensitivity / (d + 1) <= epsilon``, exact for the numbers given."""
    return max(0, ceil(Fraction(sensitivity) / Fraction(epsilon)) - 1)
