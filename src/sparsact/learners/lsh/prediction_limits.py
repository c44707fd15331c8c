"""Limits and fallbacks of predictions: beyond the targets seen, and where every bucket is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.layout import Array

SLACK: Final = 1e-6  # of the range of targets, as float32 coefficients may need, by which a value is not yet beyond it
EPSILONS: Final = 2e-15  # of the largest target, by which sums in another order may differ


class Policy(NamedTuple):
    """Predictions in empty buckets and beyond the targets seen; see :class:`LSHRegressor`."""

    fallback: str = "coarse"
    extrapolate: str = "clip"
    min_count: int = 1


@dataclass(frozen=True)
class Ends:
    """The part of a policy that needs no sums, and so is the same in a model and in its exports.

    Attributes
    ----------
    low, high : (targets,) or None
        Limits of values; None where there are none.
    beyond : {"clip", "nan"}
        Whether values beyond the limits become these, or NaN.
    start : (targets,) or None
        What stands for level and line of a row that every bucket of the last table misses; None: these themselves.
    refuses : bool
        Whether such a row is an error.
    """

    low: Array | None = None
    high: Array | None = None
    beyond: Literal["clip", "nan"] = "clip"
    start: Array | None = None
    refuses: bool = False

    @classmethod
    def of(cls, policy: Policy, low: Array, high: Array, start: Array | None) -> Self:
        """Ends of a policy: limits by the least and largest targets held, none where low exceeds high."""
        refuses = policy.fallback == "raise"
        if policy.extrapolate == "linear" or (low > high).any():
            return cls(start=start, refuses=refuses)
        if policy.extrapolate == "clip":
            return cls(low, high, "clip", start, refuses)
        slack = SLACK * (high / 2 - low / 2) * 2 + EPSILONS * np.maximum(np.abs(low), np.abs(high))
        return cls(low - slack, high + slack, "nan", start, refuses)

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
                f"every bucket is empty for row {missed[0]}{f' and {len(missed) - 1} more' * (len(missed) > 1)}; learn "
                'similar rows, lower `min_count`, or pass fallback="coarse" or "mean".'
            )

    def limited(self, values: Array) -> Array:
        """Values (m, targets) with values beyond the limits replaced, in place; NaN stays NaN."""
        if self.low is None or self.high is None:
            return values
        if self.beyond == "clip":
            return np.clip(values, self.low, self.high, out=values)
        values[(values < self.low) | (values > self.high)] = np.nan
        return values

    def checked(self, values: Array) -> Array:
        """The values (m, targets); a ValueError if one is no float, unless these ends make NaN of some."""
        makes_nan = (self.low is not None and self.beyond == "nan") or (
            self.start is not None and np.isnan(self.start[0])
        )
        if not makes_nan and not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise ValueError(
                f"row {row} lies so far from the rows fitted that its value is beyond any float; scale it like them, "
                "or leave it out."
            )
        return values
