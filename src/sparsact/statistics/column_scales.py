"""Units of columns and targets of any size, in which squares neither overflow nor vanish."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDING: Final = 1e-12  # of the largest entry of a column: what a constant's deviation may be
SMALLEST: Final = 1e-305  # spread that still counts as one: its inverse must be a float


def exponents_of(values: Array) -> NDArray[np.int32]:
    """For each column the e that brings its largest value to between 1 and 2 by ``ldexp(values, -e)``, exactly."""
    return np.asarray(np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]) - 1  # 2.0**e is then a float too


def root_mean_square(values: Array, weights: Array) -> Array:
    """Root mean square of each column, without overflow; SMALLEST or less counts as 0."""
    largest = np.abs(values).max(axis=0)
    largest = np.where(largest > SMALLEST, largest, np.inf)
    root: Array = np.sqrt((weights / weights.sum()) @ (values / largest) ** 2)
    return root * np.where(np.isfinite(largest), largest, 0.0)


def deviations(X: Array, weights: Array) -> Array:
    """Standard deviation of each column (d,); 0 for a column that is constant up to rounding."""
    found = root_mean_square(X - (weights / weights.sum()) @ X, weights)
    return np.asarray(np.where(found > ROUNDING * np.abs(X).max(axis=0, initial=0.0), found, 0.0))


def standard_units(X: Array, weights: Array) -> Array:
    """What gives each column (d,) standard deviation 1; 0 for a column that is constant up to rounding."""
    found = deviations(X, weights)
    units: Array = np.where(found > 0, 1.0 / np.where(found > 0, found, 1.0), 0.0)
    return units
