"""What parameters a bound may be given, one rule a name, and what becomes of numbers too large for a float.

The same letter means the same thing in every function of :mod:`sparsact.bounds`. Paper B's dimensions d and k are
``ambient`` and ``intrinsic`` here, because k is the sparsity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import wraps
from math import ceil, inf, isfinite, log2
from typing import Any, ParamSpec

import numpy as np

P = ParamSpec("P")

_WHOLE = {
    "n": (1, "coordinates"),
    "s": (1, "units"),
    "k": (1, "active units"),
    "m": (1, "rows"),
    "n_samples": (2, "samples, of which a variance is taken"),
    "length": (1, "bits of a parity, or entries of a secret"),
    "degree": (0, "a degree"),
    "ambient": (1, "the dimension of the space"),
    "intrinsic": (1, "the dimension of the data"),
    "n_directions": (1, "directions of a hash"),
    "cuts": (0, "cuts along a direction"),
    "bits": (1, "bits of a parameter"),
    "p": (0, "variables of a junta"),
    "p_modulus": (2, "a modulus"),
    "q_modulus": (2, "a modulus"),
}
_NOT_NEGATIVE = ("W", "B", "R", "C", "noise_sensitivity", "average_sensitivity", "second_moment", "spread")
_OPEN_PROBABILITIES = ("delta", "confidence")


def check(**parameters: float) -> None:
    """Refuse parameters that mean nothing: ``check(n=n, s=s, k=k)``.

    Raises
    ------
    ValueError
        If a count is not a whole number or too small, a scale is negative, an error or a constant is not positive, a
        probability is none, k exceeds s, or ``intrinsic`` exceeds ``ambient``.
    """
    for name, value in parameters.items():
        fault = _fault(name, value)
        if fault:
            raise ValueError(f"`{name}` must be {fault}; got {value!r}.")
    for part, whole in (("k", "s"), ("intrinsic", "ambient")):
        if part in parameters and whole in parameters and parameters[part] > parameters[whole]:
            raise ValueError(
                f"`{part}` must not exceed `{whole}`; got {part} = {parameters[part]}, {whole} = {parameters[whole]}."
            )


def _fault(name: str, value: Any) -> str | None:
    """What the value ought to be, unless it is."""
    if name in _WHOLE:
        least, what = _WHOLE[name]
        whole = isinstance(value, int | np.integer) and value >= least
        return None if whole else f"a whole number from {least} ({what})"
    if not isinstance(value, int | float | np.integer | np.floating | Fraction):
        return "a real number"
    if not isfinite(value):
        return "finite"
    if name in _NOT_NEGATIVE:
        return None if value >= 0 else "zero or positive"
    if name in _OPEN_PROBABILITIES:
        return None if 0 < value < 1 else "above 0 and below 1"
    if name in ("probability", "tau"):
        return None if 0 < value <= 1 else "above 0 and at most 1"
    if name == "rho":
        return None if -1 <= value <= 1 else "in [-1, 1], as (1 - rho) / 2 is a probability"
    return None if value > 0 else "positive"


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
    """Least d >= 0 with ``sensitivity / (d + 1) <= epsilon``, exact for the numbers given."""
    return max(0, ceil(Fraction(sensitivity) / Fraction(epsilon)) - 1)
