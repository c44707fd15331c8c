"""Checks that every router makes of its hyperparameters, when it is made."""

from __future__ import annotations

from math import isfinite
from numbers import Real
from typing import Any

from sparsact.checks import checked_size

LARGEST_SEED = 2**63 - 1


def sizes(router: Any, *names: str, least: int = 1, optional: bool = False) -> None:
    """Hyperparameters that are integers, ``least`` or more; None too where they are ``optional``."""
    for name in names:
        value = getattr(router, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"`{name}` of {type(router).__name__} must be an integer; got {value!r}.")
        object.__setattr__(router, name, checked_size(value, f"`{name}` of {type(router).__name__}", least))


def seed(router: Any) -> None:
    """The seed of a hash: an integer below 2**63."""
    sizes(router, "seed", least=0)
    if router.seed > LARGEST_SEED:
        raise ValueError(f"`seed` of {type(router).__name__} must be below 2**63; got {router.seed}.")


def numbers(router: Any, *names: str, positive: bool = False, optional: bool = False) -> None:
    """Hyperparameters that are finite, and not negative; above 0 where they must be ``positive``."""
    for name in names:
        value = getattr(router, name)
        if value is None and optional:
            continue
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"`{name}` of {type(router).__name__} must be a number; got {value!r}.")
        if not isfinite(value) or value < 0 or (positive and value == 0):
            need = "positive" if positive else "0 or more"
            raise ValueError(f"`{name}` of {type(router).__name__} must be finite and {need}; got {value!r}.")
        object.__setattr__(router, name, float(value))


def flag(router: Any, name: str) -> None:
    """A hyperparameter that is True or False."""
    if not isinstance(getattr(router, name), bool):
        raise TypeError(f"`{name}` of {type(router).__name__} must be True or False; got {getattr(router, name)!r}.")
