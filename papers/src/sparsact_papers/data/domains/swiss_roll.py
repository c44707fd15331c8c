"""The swiss roll."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact_papers.data.domains.manifold import Manifold, uniform_parameters

FIRST, LAST, WIDTH = 1.5 * np.pi, 4.5 * np.pi, 21.0  # of scikit-learn's make_swiss_roll
SCALE = 1 / np.hypot(LAST, WIDTH / 2)  # its farthest point has length 1
LOW, HIGH = np.array([FIRST, -WIDTH / 2]), np.array([LAST, WIDTH / 2])


@dataclass(frozen=True, eq=False)
class SwissRoll(Manifold):
    r"""A rolled-up rectangle, in R^ambient.

    .. math:: c\,(t \cos t,\ h,\ t \sin t), \qquad \tfrac32 \pi \le t \le \tfrac92 \pi, \quad |h| \le \tfrac{21}{2},

    where c scales it into the unit ball.

    Parameters
    ----------
    ambient : int
        3 or more.
    frame : array-like of shape (ambient, 3), optional
        See :class:`Manifold`.

    Notes
    -----
    Its area element is :math:`c^2 \sqrt{1 + t^2}`, so t is drawn by rejection with that density. scikit-learn's
    ``make_swiss_roll`` draws t uniformly, which puts nearly three times as many points on a unit of area at the inner
    end as at the outer.

    Examples
    --------
    >>> X = SwissRoll(3).sample(1000, rng=np.random.default_rng(0))
    >>> bool(np.linalg.norm(X, axis=1).max() <= 1)
    True
    """

    ambient: int = 3

    def __post_init__(self) -> None:
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
        """Arc length from the inner end, and height: the flat rectangle that is rolled up, shape (m, 2).

        An isometry: distances along the roll are distances in the rectangle.
        """
        shape = checked_columns(X, self.ambient) @ self._frame / SCALE
        length = _arc_length(np.hypot(shape[:, 0], shape[:, 2])) - _arc_length(np.array(FIRST))
        flat: NDArray[np.float64] = SCALE * np.stack([length, shape[:, 1]], axis=1)
        return flat

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return _rolled(uniform_parameters(LOW, HIGH, lambda U: np.hypot(1, U[:, 0]), float(np.hypot(1, LAST)), m, rng))

    def _distance(self, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        radii = np.hypot(shape[:, 0], shape[:, 2]) / SCALE
        nearest = np.clip(np.stack([radii, shape[:, 1] / SCALE], axis=1), LOW, HIGH)
        distance: NDArray[np.float64] = np.linalg.norm(shape - _rolled(nearest), axis=1)
        return distance

    def __repr__(self) -> str:
        return f"SwissRoll(ambient={self.ambient})"


def _rolled(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    t, h = parameters.T
    rolled: NDArray[np.float64] = SCALE * np.stack([t * np.cos(t), h, t * np.sin(t)], axis=1)
    return rolled


def _arc_length(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Length of the spiral (t cos t, t sin t) from 0."""
    length: NDArray[np.float64] = (t * np.hypot(1, t) + np.arcsinh(t)) / 2
    return length
