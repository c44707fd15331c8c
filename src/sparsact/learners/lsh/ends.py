"""Limits and fallbacks of predictions: beyond the targets seen, and where every bucket is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.layout import Array


class Policy(NamedTuple):
    """What to predict where the model knows little; see :class:`LSHRegressor`."""

    fallback: str = "coarse"
    extrapolate: str = "clip"
    min_count: int = 1


@dataclass(frozen=True)
class Ends:
    """The part of a policy that needs no sums, and so is the same in a model and in its exports.

    Attributes
    ----------
    low, high : (targets,) or None
        Limits that values are clipped to; None where there are none.
    start : (targets,) or None
        What stands for level and line of a row that every bucket of the last table misses; None: these themselves.
    refuses : bool
        Whether such a row is an error.
    """

    low: Array | None = None
    high: Array | None = None
    start: Array | None = None
    refuses: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(part.nbytes for part in (self.low, self.high, self.start) if part is not None)

    @property
    def of_one(self) -> tuple[float, float]:
        """Limits of one target; infinities where there are none."""
        return (-np.inf, np.inf) if self.low is None or self.high is None else (float(self.low[0]), float(self.high[0]))

    def check_known(self, missed: NDArray[np.intp]) -> None:
        """Raise for rows (k,) that every bucket misses, if that is an error."""
        if self.refuses and len(missed):
            raise ValueError(
                f"row {int(missed[0])} and {len(missed) - 1} others fall into empty buckets; learn rows like them, "
                'lower `min_count`, or pass fallback="coarse" or "mean".'
            )

    def limited(self, values: Array) -> Array:
        """Values (m, targets) within the limits, changed in place; NaN stays NaN."""
        if self.low is None or self.high is None:
            return values
        return np.clip(values, self.low, self.high, out=values)

    def checked(self, values: Array) -> Array:
        """The values (m, targets); a ValueError if one is no float, unless these ends make NaN of some."""
        makes_nan = self.start is not None and np.isnan(self.start[0])
        if not makes_nan and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise ValueError(
                f"row {row} lies so far from the rows fitted that its value is beyond any float; scale it like them, "
                "or leave it out."
            )
        return values
