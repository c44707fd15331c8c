"""Curved sets: a shape in few dimensions, put into many by an orthonormal frame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.arrays import checked_frame
from sparsact.validation.parameters import checked_size
from sparsact_papers.data.domains.domain import Domain, in_cube
from sparsact_papers.data.frames import random_frame

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Manifold(Domain):
    """A shape within the unit ball of R^p, in R^ambient.

    The ball stays within the cube whatever the frame: the cube holds the unit ball. Without a frame the shape lies in
    the first p columns and the others are 0; :meth:`rotated` gives it a random one.
    """

    frame: NDArray[np.float64] | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def span(self) -> int:
        """Number p of directions that the shape needs, at most ``ambient``."""

    @abstractmethod
    def _shape(self, m: int, rng: np.random.Generator) -> Points:
        """Uniform points of the shape, (m, p)."""

    @abstractmethod
    def _distance(self, shape: Points) -> NDArray[np.float64]:
        """About how far each row (p columns) is from the shape."""

    def rotated(self, *, rng: np.random.Generator) -> Self:
        """The same shape in a uniformly random orthonormal frame of R^ambient."""
        return replace(self, frame=random_frame(self.ambient, self.span, rng=rng))

    def _check_frame(self) -> None:
        if checked_size(self.ambient, "the ambient dimension") < self.span:
            kind = type(self).__name__
            raise ValueError(f"{kind} needs an ambient dimension of {self.span} or more; got {self.ambient}.")
        first = np.eye(self.ambient, self.span)
        frame = first if self.frame is None else checked_frame(self.frame, "`frame`")
        if frame.shape != (self.ambient, self.span):
            raise ValueError(f"`frame` must have shape {(self.ambient, self.span)}; got {frame.shape}.")
        object.__setattr__(self, "frame", frame)

    @property
    def _frame(self) -> NDArray[np.float64]:
        assert self.frame is not None  # noqa: S101  # set by the constructor; for the type checker
        return self.frame

    def _sample(self, m: int, rng: np.random.Generator) -> Points:
        return self._shape(m, rng) @ self._frame.T

    def _contains(self, X: Points, tolerance: float) -> NDArray[np.bool_]:
        shape = X @ self._frame
        off = np.linalg.norm(X - shape @ self._frame.T, axis=1)
        near: NDArray[np.bool_] = np.maximum(off, self._distance(shape)) <= tolerance
        return in_cube(X, tolerance) & near


def uniform_parameters(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    volume_element: Callable[[Points], NDArray[np.float64]],
    largest: float,
    m: int,
    rng: np.random.Generator,
) -> Points:
    r"""Parameters u of a chart, (m, k), for which the chart's points are uniform with respect to its volume.

    The volume element :math:`\sqrt{\det(J^T J)}` is the density wanted in u. So uniform u within ``low`` and ``high``
    are kept with probability ``volume_element(u) / largest``: rejection, exact, for ``largest`` no less than any.
    """
    found, n_found = [np.empty((0, len(low)))], 0
    while n_found < m:
        U = rng.uniform(low, high, size=(2 * (m - n_found) + 16, len(low)))
        found.append(U[rng.uniform(0, largest, size=len(U)) < volume_element(U)])
        n_found += len(found[-1])
    return np.concatenate(found)[:m]
