"""Numbers of bounds that leave the range of floats: infinity in place of an error, powers and logarithms of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from math import ceil, inf, log2
from typing import ParamSpec

import numpy as np

P = ParamSpec("P")


def or_infinity(bound: Callable[P, float]) -> Callable[P, float]:
    """A bound that is ``math.inf`` where it exceeds the largest float.

    Numbers of NumPy become Python's first: its integers would wrap around, its floats warn in place of an error.
    """

    @wraps(bound)
    def limited(*args: P.args, **kwargs: P.kwargs) -> float:
        given = tuple(_plain(value) for value in args)
        named = {name: _plain(value) for name, value in kwargs.items()}
        try:
            return bound(*given, **named)  # type: ignore[arg-type] # the same, as Python's numbers
        except OverflowError:
            return inf

    return limited


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


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
