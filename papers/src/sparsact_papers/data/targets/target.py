"""What every target offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_positive

BLOCK = 1 << 19  # float64 numbers of a temporary array: 4 MB, about a level-2 cache


class Target(ABC):
    """A function of the rows of an array: ``target(X)`` is ``y``, with a bound on how steep it is."""

    if TYPE_CHECKING:  # a subclass has a field or a property of this name

        @property
        def n(self) -> int:
            """Number of columns."""

    @abstractmethod
    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of rows that have been checked."""

    @abstractmethod
    def _steepness(self, radius: float) -> float:
        """Lipschitz bound for a radius that has been checked."""

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values at points.

        Parameters
        ----------
        X : array-like of shape (m, n)

        Returns
        -------
        y : ndarray of shape (m,), float64

        Raises
        ------
        ValueError
            If ``X`` has another shape or holds what is no finite number.
        """
        return self._values(checked_columns(X, self.n))

    @property
    def lipschitz(self) -> float:
        """A bound L with ``|f(x) - f(x')| <= L * norm(x - x')`` (2-norm) for all x, x' in [-1, 1]^n."""
        return self._steepness(1.0)

    def lipschitz_within(self, radius: float) -> float:
        """The same bound for x, x' in [-radius, radius]^n, which :func:`composed` needs: rotations leave the cube."""
        return self._steepness(checked_positive(radius, "`radius`"))


def row_blocks(m: int, row_size: int) -> Iterator[slice]:
    """Slices of ``range(m)`` so short that ``row_size`` numbers a row fill :data:`BLOCK` at most, if one row does."""
    step = max(1, BLOCK // max(1, row_size))
    return (slice(start, start + step) for start in range(0, m, step))
