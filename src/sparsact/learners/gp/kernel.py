"""The protocol of covariance functions of Gaussian processes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Points = NDArray[Any]  # (m, n): bits as float64, or letters as integers


class Kernel(Protocol):
    """Covariance function with the same variance at all points."""

    @property
    def theta(self) -> Array:
        """Parameters (k,), on logarithmic scales."""

    @property
    def variance(self) -> float:
        """Prior variance of the function at any point."""

    def covariance(self, one: Points, other: Points) -> Array:
        """Covariances (m, m') between points (m, n) and (m', n)."""

    def matrix(self, points: Points) -> Array:
        """Covariances (m, m) of points, a new array in Fortran order."""
