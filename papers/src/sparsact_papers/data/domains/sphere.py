"""Spheres and the circle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_size
from sparsact_papers.data.domains.manifold import Manifold


def _off_unit_length(shape: NDArray[np.float64]) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = np.abs(np.linalg.norm(shape, axis=1) - 1)
    return distance


@dataclass(frozen=True, eq=False)
class Sphere(Manifold):
    """The unit sphere of a dimension k: the points of R^(k + 1) of length 1, in R^ambient.

    Parameters
    ----------
    dimension : int
        k: 1 for the circle, 2 for the sphere of space.
    ambient : int
        k + 1 or more.
    frame : array-like of shape (ambient, k + 1), optional
        See :class:`Manifold`.

    Notes
    -----
    Normal vectors divided by their length: exactly uniform, as the normal law has no direction.

    Examples
    --------
    >>> X = Sphere(2, 5).sample(3, rng=np.random.default_rng(0))
    >>> np.linalg.norm(X, axis=1)
    array([1., 1., 1.])
    """

    dimension: int
    ambient: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checked_size(self.dimension, "the dimension"))
        self._check_frame()

    @property
    def span(self) -> int:
        """``dimension + 1``."""
        return self.dimension + 1

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        directions = rng.normal(size=(m, self.span))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return directions

    def _distance(self, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        return _off_unit_length(shape)

    def __repr__(self) -> str:
        return f"Sphere(dimension={self.dimension}, ambient={self.ambient})"


@dataclass(frozen=True, eq=False)
class Circle(Manifold):
    """The unit circle, in R^ambient.

    Parameters
    ----------
    ambient : int
        2 or more.
    frame : array-like of shape (ambient, 2), optional
        See :class:`Manifold`.

    Examples
    --------
    >>> Circle(2).coordinates([[0, 1], [-1, 0]]) / np.pi
    array([[0.5],
           [1. ]])
    """

    ambient: int = 2

    def __post_init__(self) -> None:
        self._check_frame()

    @property
    def dimension(self) -> int:
        """1."""
        return 1

    @property
    def span(self) -> int:
        """2."""
        return 2

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The angle of points within (-pi, pi], shape (m, 1): their arc length."""
        shape = checked_columns(X, self.ambient) @ self._frame
        return np.arctan2(shape[:, 1], shape[:, 0])[:, None]

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        angles = rng.uniform(-np.pi, np.pi, size=m)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def _distance(self, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        return _off_unit_length(shape)

    def __repr__(self) -> str:
        return f"Circle(ambient={self.ambient})"
