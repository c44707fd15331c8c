"""Curved sets in a high-dimensional space: spheres and the Swiss roll, with uniform points on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_size
from sparsact_papers.data.domains import Domain
from sparsact_papers.data.subspaces import checked_frame, random_frame

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Manifold(Domain):
    """A shape within the unit ball of R^p, in R^ambient.

    The ball stays within the cube whatever the frame: the cube holds the unit ball. Without a frame the shape lies in
    the first p columns and the others are 0; :meth:`rotated` gives it a random one.
    """

    frame: NDArray[np.float64] | None = field(default=None, kw_only=True, repr=False)

    @property
    @abstractmethod
    def span(self) -> int:
        """Number p of directions that the shape needs, at most ``ambient``."""

    @abstractmethod
    def _shape(self, m: int, rng: np.random.Generator) -> Points:
        """Uniform points of the shape, (m, p)."""

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
        return np.asarray(self.frame)  # the constructor has set it

    def _sample(self, m: int, rng: np.random.Generator) -> Points:
        return self._shape(m, rng) @ self._frame.T


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


@dataclass(frozen=True, eq=False)
class Sphere(Manifold):
    """The unit sphere of a dimension k: the points of R^(k + 1) of length 1, in R^ambient.

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


@dataclass(frozen=True, eq=False)
class Circle(Manifold):
    """The unit circle, in R^ambient.

    Examples
    --------
    >>> Circle(2).coordinates([[0, 1], [-1, 0]]) / np.pi
    array([[0.5],
           [1. ]])
    """

    dimension: ClassVar[int] = 1
    span: ClassVar[int] = 2
    ambient: int = 2

    def __post_init__(self) -> None:
        self._check_frame()

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The angle of points within (-pi, pi], shape (m, 1): their arc length."""
        shape = checked_columns(X, self.ambient) @ self._frame
        return np.arctan2(shape[:, 1], shape[:, 0])[:, None]

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        angles = rng.uniform(-np.pi, np.pi, size=m)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)


FIRST, LAST, WIDTH = 1.5 * np.pi, 4.5 * np.pi, 21.0  # of scikit-learn's make_swiss_roll
SCALE: Final = 1 / np.hypot(LAST, WIDTH / 2)  # its farthest point has length 1
LOW, HIGH = np.array([FIRST, -WIDTH / 2]), np.array([LAST, WIDTH / 2])


@dataclass(frozen=True, eq=False)
class SwissRoll(Manifold):
    r"""A rolled-up rectangle, in R^ambient.

    .. math:: c\,(t \cos t,\ h,\ t \sin t), \qquad \tfrac32 \pi \le t \le \tfrac92 \pi, \quad |h| \le \tfrac{21}{2},

    where c scales it into the unit ball.

    Notes
    -----
    Its area element is :math:`c^2 \sqrt{1 + t^2}`, so t is drawn by rejection with that density. scikit-learn's
    ``make_swiss_roll`` draws t uniformly, which puts nearly three times as many points on a unit of area at the inner
    end as at the outer.
    """

    dimension: ClassVar[int] = 2
    span: ClassVar[int] = 3
    ambient: int = 3

    def __post_init__(self) -> None:
        self._check_frame()

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """Arc length from the inner end, and height: the flat rectangle that is rolled up, shape (m, 2).

        An isometry: distances along the roll are distances in the rectangle.
        """
        shape = checked_columns(X, self.ambient) @ self._frame / SCALE
        length = _arc_length(np.hypot(shape[:, 0], shape[:, 2])) - _arc_length(np.array(FIRST))
        return np.asarray(SCALE * np.stack([length, shape[:, 1]], axis=1))

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return _rolled(uniform_parameters(LOW, HIGH, lambda U: np.hypot(1, U[:, 0]), float(np.hypot(1, LAST)), m, rng))


def _rolled(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    t, h = parameters.T
    return np.asarray(SCALE * np.stack([t * np.cos(t), h, t * np.sin(t)], axis=1))


def _arc_length(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Length of the spiral (t cos t, t sin t) from 0."""
    return np.asarray((t * np.hypot(1, t) + np.arcsinh(t)) / 2)
