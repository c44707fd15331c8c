"""What parameters of estimators may be, as scikit-learn's ``_parameter_constraints`` take it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Final

from sklearn.utils._param_validation import Interval, StrOptions

AUTO: Final[Any] = StrOptions({"auto"})
COUNT: Final[Any] = Interval(Integral, 1, None, closed="left")
SIZE: Final[Any] = Interval(Integral, 0, None, closed="left")
POSITIVE: Final[Any] = Interval(Real, 0, None, closed="neither")
NONNEGATIVE: Final[Any] = Interval(Real, 0, None, closed="left")
SHARE: Final[Any] = Interval(Real, 0, 1, closed="neither")
DECAY: Final[Any] = Interval(Real, 0, 1, closed="left")
DOMAIN: Final[list[Any]] = [StrOptions({"auto", "cube", "real"})]
N_JOBS: Final[list[Any]] = [Integral, None]


def whole(least: int, most: int) -> Any:
    """Whole numbers from ``least`` to ``most``."""
    return Interval(Integral, least, most, closed="both")


def one_of(*names: str) -> Any:
    """One of some names."""
    return StrOptions(set(names))
