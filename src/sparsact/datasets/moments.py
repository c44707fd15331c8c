"""Mean and deviation of a stream of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np
from numpy.typing import NDArray


@dataclass
class RunningMoments:
    """Mean and standard deviation of numbers that come in pieces [1]_.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance", 1983, eq. 2.1.
    """

    count: int = 0
    unit: float = 1.0  # size of the first numbers, in which the rest is kept: squares stay floats
    centre: float = 0.0
    squares: float = 0.0  # summed, about the centre

    def update(self, values: NDArray[np.float64]) -> None:
        """Add a piece."""
        if not len(values):
            return
        if self.count == 0:
            self.unit = float(np.abs(values).max()) or 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = values / self.unit
            mean, count = float(scaled.mean()), self.count + len(values)
            apart = mean - self.centre
            self.squares += float(((scaled - mean) ** 2).sum()) + apart * apart * self.count * len(values) / count
            self.centre += apart * len(values) / count
            self.count = count

    @property
    def floats(self) -> tuple[float, float, float]:
        """All but the count: the unit, the centre, and the squares about it."""
        return self.unit, self.centre, self.squares

    @property
    def mean(self) -> float:
        """Mean; 0 where it is beyond the floats."""
        mean = self.centre * self.unit
        return mean if isfinite(mean) else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation; 1 where it is 0 or beyond the floats."""
        deviation = self.unit * sqrt(self.squares / max(self.count, 1))
        return deviation if isfinite(deviation) and deviation > 0 else 1.0
