"""What every domain offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_generator, checked_size

TOLERANCE = 1e-9


class Domain(ABC):
    """A set within [-1, 1]^ambient, with the uniform distribution on it."""

    if TYPE_CHECKING:  # a subclass has fields or properties of these names

        @property
        def dimension(self) -> int:
            """Dimension of the set itself."""

        @property
        def ambient(self) -> int:
            """Number of columns of its points."""

    @abstractmethod
    def _sample(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Uniform points, shape (m, ambient)."""

    @abstractmethod
    def _contains(self, X: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
        """Whether rows that have been checked are points of the set."""

    def sample(self, m: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Independent uniform points.

        Parameters
        ----------
        m : int
            Number of points, 0 or more.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        X : ndarray of shape (m, ambient), float64
        """
        return self._sample(checked_size(m, "the number `m` of points", 0), checked_generator(rng))

    def contains(self, X: ArrayLike, *, tolerance: float = TOLERANCE) -> NDArray[np.bool_]:
        """Whether each row is a point of the set, up to a distance of about ``tolerance``.

        Parameters
        ----------
        X : array-like of shape (m, ambient)
        tolerance : float

        Returns
        -------
        inside : ndarray of shape (m,), bool
        """
        return self._contains(checked_columns(X, self.ambient), float(tolerance))


def in_cube(X: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    """Whether each row lies within [-1, 1]^n, up to a tolerance."""
    inside: NDArray[np.bool_] = np.abs(X).max(axis=1) <= 1 + tolerance
    return inside
