"""The unit that correlates best with signs, among those that are active on one set of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls

XATOL = 1e-9


class Cone:
    r"""Units of which all points of a set are on the active side and all others on the other, ties on both.

    Parameters
    ----------
    points : ndarray of shape (m, n)
    inside : ndarray of shape (m,), bool
        The set.
    W, B : float
        Most :math:`\|w\|_2` and most :math:`|b|` of a unit, positive.
    """

    def __init__(self, points: NDArray[np.float64], inside: NDArray[np.bool_], W: float, B: float) -> None:
        self.affine = np.hstack([points, -np.ones((len(points), 1))])
        self.inside = inside
        self.sides = np.where(inside[:, None], self.affine, -self.affine)
        self.W, self.B = W, B

    def largest(self, coefficients: NDArray[np.float64]) -> float:
        r"""The most of :math:`\sum_{i \in I} c_i (\langle w, x_i \rangle - b)` over the cone, for ``coefficients`` c.

        With g its gradient and A the matrix of the cone :math:`\{v : Av \ge 0\}` this is, by duality,

        .. math:: \min_{\lambda \ge 0} W \|a\|_2 + B |\beta|
            = \min_{0 < \theta < 1} \min_{\lambda \ge 0} \sqrt{W^2 \|a\|^2 / \theta + B^2 \beta^2 / (1 - \theta)},
            \qquad (a, \beta) = g + A^T \lambda,

        least squares with non-negative unknowns inside a search over one number, in which the square is convex. Every
        :math:`\lambda` gives an upper bound; the least one met is returned.
        """
        gradient = coefficients[self.inside] @ self.affine[self.inside]
        if not gradient.any():
            return 0.0
        least = np.inf

        def squared_bound(theta: float) -> float:
            nonlocal least
            axes = np.full(len(gradient), self.W / np.sqrt(theta))
            axes[-1] = self.B / np.sqrt(1 - theta)
            multipliers, norm = nnls(-axes[:, None] * self.sides.T, axes * gradient)
            remaining = gradient + self.sides.T @ multipliers
            least = min(least, self.W * float(np.linalg.norm(remaining[:-1])) + self.B * abs(float(remaining[-1])))
            return float(norm) ** 2

        minimize_scalar(squared_bound, bounds=(0, 1), method="bounded", options={"xatol": XATOL})
        return least
