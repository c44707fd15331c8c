"""Checks of parameters: counts, numbers, probabilities, names of methods, and the parameters that formulas share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import inf, isfinite
from numbers import Real
from operator import index
from sys import float_info
from typing import Any, Final, SupportsIndex, TypeVar

import numpy as np

Option = TypeVar("Option")
MAX_SEED: Final = 2**63 - 1

# What a formula's count means, and its smallest value. The same letter means the same in every function of
# sparsact.bounds. Paper B's dimensions d and k are `ambient` and `intrinsic` here, because k is the sparsity.
_COUNTS: Final = {
    "n": (1, "coordinates"),
    "s": (1, "units"),
    "k": (1, "active units"),
    "m": (1, "rows"),
    "n_samples": (2, "samples, to estimate a variance"),
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
_NONNEGATIVE: Final = ("W", "B", "R", "C", "noise_sensitivity", "average_sensitivity", "second_moment", "spread")


def checked_size(value: object, what: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return an integer of any type as an int; raise outside ``minimum`` to ``maximum``."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{what} must be an integer; got {value!r}.")
    number = index(value)
    if number < minimum and maximum is None:
        raise ValueError(f"{what} must be {minimum} or more; got {number}.")
    if maximum is not None and not minimum <= number <= maximum:
        raise ValueError(f"{what} must lie between {minimum} and {maximum}; got {number}.")
    return number


def _checked_number(value: object, what: str, fits: Callable[[float], bool], need: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not fits(float(value)):
        raise ValueError(f"{what} must {need}; got {value!r}.")
    return float(value)


def checked_number(value: object, what: str, below: float = inf) -> float:
    """Return a number from 0 to below a limit as a float."""
    return _checked_number(value, what, lambda x: 0 <= x < below, f"be a number in [0, {below:g})")


def checked_limit(value: object, what: str) -> float:
    """Return seconds, 0 or more, as a float; infinity means no limit."""
    return _checked_number(value, what, lambda x: x >= 0, "be 0 or more seconds, or inf for no limit")


def checked_positive(value: object, what: str) -> float:
    """Return a finite number above 0 as a float."""
    return _checked_number(value, what, lambda x: 0 < x < inf, "be a finite number above 0")


def checked_probability(value: object, what: str) -> float:
    """Return a number strictly between 0 and 1: a confidence, or the probability of a failure."""
    return _checked_number(value, what, lambda x: 0 < x < 1, "lie strictly between 0 and 1")


def checked_share(value: object, what: str, reason: str = "") -> float:
    """Return a number above 0 and at most 1; ``reason`` says why it must be."""
    return _checked_number(value, what, lambda x: 0 < x <= 1, f"lie in (0, 1]{reason}")


def checked_correlation(rho: object) -> float:
    """Return ``rho`` in [-1, 1]: a coordinate is flipped with probability (1 - rho) / 2."""
    return _checked_number(rho, "`rho`", lambda x: -1 <= x <= 1, "lie in [-1, 1], as (1 - rho) / 2 is a probability")


def checked_option(value: object, what: str, options: Iterable[Option]) -> Option:
    """Return ``value`` if it is one of the options; else raise a ValueError."""
    options = tuple(options)
    for option in options:
        if value == option:
            return option
    raise ValueError(f"{what} must be one of {', '.join(map(str, options))}; got {value!r}.")


def checked_generator(rng: object) -> np.random.Generator:
    """Return ``rng`` if it is a generator; raise for a seed or None, as a generator is made once and passed on."""
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"`rng` must be a numpy.random.Generator; got {rng!r}: pass numpy.random.default_rng(seed).")
    return rng


def check_named(**parameters: Any) -> None:
    """Raise if a parameter of a formula is out of range; each name has one rule: ``check_named(n=n, s=s, k=k)``.

    A ValueError is raised if a count is not a whole number or too small, a scale is negative, an error or a constant is
    not positive, a probability is none, k exceeds s, or ``intrinsic`` exceeds ``ambient``.
    """
    for name, value in parameters.items():
        if isinstance(value, int) and value.bit_length() >= float_info.max_exp:
            raise ValueError(f"`{name}` exceeds every float; choose at most 1e308.")
        need = _need(name, value)
        if need:
            raise ValueError(f"`{name}` must be {need}; got {value!r}.")
    for part, whole in (("k", "s"), ("intrinsic", "ambient")):
        if part in parameters and whole in parameters and parameters[part] > parameters[whole]:
            raise ValueError(
                f"`{part}` must not exceed `{whole}`; got {part} = {parameters[part]}, {whole} = {parameters[whole]}."
            )


def _need(name: str, value: object) -> str | None:
    """Return what the value must be; None if it is valid."""
    if name in _COUNTS:
        minimum, what = _COUNTS[name]
        fits = isinstance(value, int | np.integer) and value >= minimum
        return None if fits else f"a whole number from {minimum} ({what})"
    if not isinstance(value, int | float | np.integer | np.floating | Fraction):
        return "a real number"
    if not isfinite(value):
        return "finite"
    if name in _NONNEGATIVE:
        return None if value >= 0 else "zero or positive"
    if name in ("delta", "confidence"):
        return None if 0 < value < 1 else "above 0 and below 1"
    if name in ("probability", "tau"):
        return None if 0 < value <= 1 else "above 0 and at most 1"
    if name == "rho":
        return None if -1 <= value <= 1 else "in [-1, 1], as (1 - rho) / 2 is a probability"
    return None if value > 0 else "positive"


def check_sizes(
    record: object, *names: str, minimum: int = 1, maximum: int | None = None, optional: bool = False
) -> None:
    """Check that fields of a frozen record are integers in that range, or None if ``optional``."""
    for name in names:
        if not (optional and getattr(record, name) is None):
            size = checked_size(getattr(record, name), _field(record, name), minimum, maximum)
            object.__setattr__(record, name, size)


def check_random_state(record: object) -> None:
    """Check that ``random_state`` of a router is an integer from 0 to below 2**63."""
    check_sizes(record, "random_state", minimum=0, maximum=MAX_SEED)


def check_numbers(record: object, *names: str, positive: bool = False, optional: bool = False) -> None:
    """Check that fields of a frozen record are finite and 0 or more, or above 0 if ``positive``."""
    for name in names:
        value = getattr(record, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"{_field(record, name)} must be a number; got {value!r}.")
        if not isfinite(value) or value < 0 or (positive and value == 0):
            need = "positive" if positive else "0 or more"
            raise ValueError(f"{_field(record, name)} must be finite and {need}; got {value!r}.")
        object.__setattr__(record, name, float(value))


def check_bool(record: object, name: str) -> None:
    """Check that a field of a record is True or False."""
    if not isinstance(getattr(record, name), bool):
        raise TypeError(f"{_field(record, name)} must be True or False; got {getattr(record, name)!r}.")


def _field(record: object, name: str) -> str:
    return f"`{name}` of {type(record).__name__}"
