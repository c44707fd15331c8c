"""The torus of revolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_positive
from sparsact_papers.data.domains.manifold import Manifold, uniform_parameters


@dataclass(frozen=True, eq=False)
class Torus(Manifold):
    r"""A circle of radius r turned about an axis at the distance R = 1 - r from its centre, in R^ambient.

    .. math:: ((R + r \cos\theta) \cos\varphi,\ (R + r \cos\theta) \sin\varphi,\ r \sin\theta)

    Parameters
    ----------
    ambient : int
        3 or more.
    radius : float
        r, with 0 < r < 1/2: the tube does not meet itself.
    frame : array-like of shape (ambient, 3), optional
        See :class:`Manifold`.

    Notes
    -----
    Its area element is :math:`r (R + r \cos\theta)`: the outside holds more area than the inside, so the angle
    :math:`\theta` is drawn by rejection.

    Examples
    --------
    >>> Torus(3).coordinates([[1, 0, 0], [0, 0.75, 0.25]]) / np.pi
    array([[0. , 0. ],
           [0.5, 0.5]])
    """

    ambient: int = 3
    radius: float = 0.25

    def __post_init__(self) -> None:
        radius = checked_positive(self.radius, "the radius")
        if radius >= 0.5:
            raise ValueError(f"the radius of the tube must be below 1/2, lest it meet itself; got {radius}.")
        object.__setattr__(self, "radius", radius)
        self._check_frame()

    @property
    def dimension(self) -> int:
        """2."""
        return 2

    @property
    def span(self) -> int:
        """3."""
        return 3

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The angles phi and theta of points within (-pi, pi], shape (m, 2)."""
        x, y, z = (checked_columns(X, self.ambient) @ self._frame).T
        return np.stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y) - (1 - self.radius))], axis=1)

    def _from_axis(self, angles: NDArray[np.float64]) -> NDArray[np.float64]:
        """R + r cos(theta)."""
        distance: NDArray[np.float64] = 1 - self.radius + self.radius * np.cos(angles[:, 1])
        return distance

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        angles = uniform_parameters(np.full(2, -np.pi), np.full(2, np.pi), self._from_axis, 1.0, m, rng)
        (phi, theta), from_axis = angles.T, self._from_axis(angles)
        return np.stack([from_axis * np.cos(phi), from_axis * np.sin(phi), self.radius * np.sin(theta)], axis=1)

    def _distance(self, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        x, y, z = shape.T
        distance: NDArray[np.float64] = np.abs(np.hypot(np.hypot(x, y) - (1 - self.radius), z) - self.radius)
        return distance

    def __repr__(self) -> str:
        return f"Torus(ambient={self.ambient}, radius={self.radius:g})"
