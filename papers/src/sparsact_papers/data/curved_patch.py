"""A curved patch: a k-manifold of bounded distortion, as Theorem C.1 requires."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_positive, checked_size
from sparsact_papers.data.manifolds import Manifold, uniform_parameters


@dataclass(frozen=True, eq=False)
class CurvedPatch(Manifold):
    r"""The cube [-1, 1]^k, waved in further directions.

    .. math:: F(z) = c\,\bigl(z_1, \dots, z_k,\ \tfrac{a}{\omega} \sin \omega z_1, \dots, \tfrac{a}{\omega}
        \sin \omega z_q\bigr), \qquad z \in [-1, 1]^k, \quad q = \min(k, \mathrm{ambient} - k),

    where c scales it into the unit ball.

    The ambient dimension is k + 1 or more; from 2 k on, all k coordinates are waved. The slope a is the steepest;
    the frequency omega makes omega / (2 pi) waves in a unit of z.

    Notes
    -----
    *Distortion.* :math:`J^T J / c^2` is diagonal with the entries :math:`1 + a^2 \cos^2 \omega z_j` for j up to q, and
    1 beyond. So the condition number of the Jacobian is at most :math:`\sqrt{1 + a^2}` everywhere
    (:attr:`condition_number`), and every curvature of a coordinate line is at most :math:`a \omega / c`.

    *Uniform with respect to volume*, whose element is :math:`c^k \prod_{j \le q} \sqrt{1 + a^2 \cos^2 \omega z_j}`.
    It is a product, so each coordinate is drawn by a rejection of its own, which keeps at least the share
    :math:`1 / \sqrt{1 + a^2}` of its proposals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> patch = CurvedPatch(4, 64, slope=1.0).rotated(rng=rng)
    >>> X = patch.sample(5, rng=rng)
    >>> np.linalg.norm(X, axis=1).max() <= 1, np.abs(patch.coordinates(X)).max() <= 1
    (np.True_, np.True_)
    """

    dimension: int
    ambient: int
    slope: float = 1.0
    frequency: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", checked_size(self.dimension, "the dimension"))
        object.__setattr__(self, "slope", checked_positive(self.slope, "the slope"))
        object.__setattr__(self, "frequency", checked_positive(self.frequency, "the frequency"))
        if checked_size(self.ambient, "the ambient dimension") <= self.dimension:
            raise ValueError(
                f"a curved patch of dimension {self.dimension} needs an ambient dimension of {self.dimension + 1} or "
                f"more; got {self.ambient}."
            )
        self._check_frame()

    @property
    def span(self) -> int:
        """K + q."""
        return self.dimension + self._n_waves

    @property
    def condition_number(self) -> float:
        """Bound on the condition number of the Jacobian, over the whole patch."""
        return 1.0 if self.dimension == 1 else hypot(1, self.slope)

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The z of points, shape (m, dimension)."""
        shape = checked_columns(X, self.ambient) @ self._frame
        return shape[:, : self.dimension] / self._scale

    @property
    def _n_waves(self) -> int:
        return min(self.dimension, self.ambient - self.dimension)

    @property
    def _scale(self) -> float:
        return 1 / sqrt(self.dimension + self._n_waves * (self.slope / self.frequency) ** 2)

    def _waved(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        waves = self.slope / self.frequency * np.sin(self.frequency * Z[:, : self._n_waves])
        return self._scale * np.hstack([Z, waves])

    def _shape(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        Z = rng.uniform(-1, 1, size=(m, self.dimension))
        ends, largest = np.ones(1), hypot(1, self.slope)
        for j in range(self._n_waves):
            Z[:, j] = uniform_parameters(-ends, ends, self._stretch, largest, m, rng)[:, 0]
        return self._waved(Z)

    def _stretch(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Length of a unit step of one waved coordinate (m, 1), over c."""
        return np.asarray(np.hypot(1, self.slope * np.cos(self.frequency * z[:, 0])))
