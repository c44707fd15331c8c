"""Rows as the fitting sees them: columns on one scale, a column of ones, targets of size one, weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NEGLIGIBLE_SPREAD = 1e-12  # of a column, relative to its size: the column is constant but for rounding
NARROWEST = 1e-303  # half the range of a column, relative to the targets: below, its weights overflow

EXACT = 1e-12  # of the variation of the targets: what remains of a perfect fit is rounding
ROUNDING = 1e-24  # squared, of a target of size 1


@dataclass(frozen=True, eq=False)
class TrainingSample:
    r"""Rows of positive weight, with each column mapped onto [-1, 1] and a column of ones at the end.

    The unit :math:`\sigma(\langle w, x \rangle - b)` is :math:`\sigma(\langle \theta, a \rangle)` on the row
    :math:`a = ((x - c) / r, 1)` of the design.

    Attributes
    ----------
    design : ndarray of shape (m, n + 1)
        The rows a; columns of two values hold -1 and 1 exactly.
    targets : ndarray of shape (m,)
        Targets over ``size``.
    weights : ndarray of shape (m,)
        How many rows each stands for.
    centre, radius : ndarray of shape (n,)
        Middle and half the range of each column; 0 and 1 on the cube.
    size : float
        Root mean square of the targets as given, 1 if they are all zero.
    splittable : ndarray of bool, shape (n,)
        Columns of just two values, -1 and 1 of the design: on these a gate is a linear function.
    box : ndarray of shape (2, n)
        Least and greatest value of each column of the design over the inputs that matter: the cube, or the rows.
    """

    design: Array
    targets: Array
    weights: Array
    centre: Array
    radius: Array
    size: float
    splittable: NDArray[np.bool_]
    box: Array

    @classmethod
    def of(cls, X: Array, y: Array, weights: Array, *, cube: bool) -> TrainingSample:
        """Sample of rows X (m, n), targets y (m,) and positive weights (m,); ``cube`` says that X holds signs."""
        low, high = X.min(axis=0), X.max(axis=0)
        centre, radius = np.zeros(X.shape[1]), np.ones(X.shape[1])
        half = high / 2 - low / 2
        largest = float(np.abs(y).max())
        size = largest * float(np.sqrt(np.average((y / largest) ** 2, weights=weights))) if largest else 1.0
        spread = np.maximum(NEGLIGIBLE_SPREAD / 2 * np.maximum(np.abs(low), np.abs(high)), NARROWEST * max(size, 1.0))
        constant = half <= spread if not cube else low == high
        if not cube:
            centre = np.where(constant, low, low / 2 + high / 2)
            radius = np.where(constant, 1.0, half)
        columns = np.where(constant & (not cube), 0.0, (X - centre) / radius)
        two_valued = ~constant & ((low == X) | (high == X)).all(axis=0)
        columns[:, two_valued] = np.where(X[:, two_valued] == high[two_valued], 1.0, -1.0)
        box = np.array([-radius, radius]) if cube else np.array([columns.min(axis=0), columns.max(axis=0)])
        design = np.column_stack([columns, np.ones(len(X))])
        return cls(design, y / size, weights, centre, radius, size, two_valued, box)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def n(self) -> int:
        """Number of columns of X."""
        return len(self.centre)

    @property
    def total(self) -> float:
        """Total weight: the number of rows, repetitions counted."""
        return float(self.weights.sum())

    def variation(self) -> float:
        """Weighted sum of squares of the targets about their mean."""
        return float(self.weights @ (self.targets - np.average(self.targets, weights=self.weights)) ** 2)

    def negligible(self, share: float) -> float:
        """Squared error that counts as none: this share of the variation, and no less than rounding."""
        return max(share * self.variation(), ROUNDING * self.total)

    def squared_error(self, values: Array) -> float:
        """Weighted sum of squares of what ``values`` (m,) leave of the targets."""
        return float(self.weights @ (self.targets - values) ** 2)

    def in_columns_of_x(self, theta: Array) -> tuple[Array, Array]:
        """Weights (s, n) and thresholds (s,) over X and its targets, of units ``theta`` (s, n + 1) over the design."""
        W = self.size * theta[:, :-1] / self.radius
        return W, W @ self.centre - self.size * theta[:, -1]
