r"""Models for the leaves of a tree: affine, one ReLU unit, or constant, and the sample that they are fitted to.

A ReLU is fitted in turn: the rows where it is on give its affine function, which says again where it is on. Each turn
is a Newton step on the squared error, which is piecewise quadratic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

Array = NDArray[np.float64]
NEGLIGIBLE_SPREAD: Final = 1e-12  # of a column, relative to its size: the column is constant up to rounding
NARROWEST: Final = 1e-303  # half the range of a column, relative to the targets: below, its weights overflow

EXACT: Final = 1e-12  # of the variation of the targets: what remains of a perfect fit is rounding
ROUNDING: Final = 1e-24  # squared, of a target of size 1
Kind = Literal["affine", "relu"]
WELL_CONDITIONED: Final = 1e-7  # reciprocal condition above which Cholesky serves
EIGENVALUE_FLOOR: Final = 1e-10  # of the largest: below, a direction is one in which the rows do not vary
NOTHING: Final = 1e-13  # a value of a function whose targets have size 1
LEAST_FREEDOM: Final = 0.05  # so that regions of too few rows compare too
FALL: Final = 0.99  # a turn that leaves more than this share of the error is the last


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
        """Weighted sum of squares of the targets minus ``values`` (m,)."""
        return float(self.weights @ (self.targets - values) ** 2)

    def in_columns_of_x(self, theta: Array) -> tuple[Array, Array]:
        """Weights (s, n) and thresholds (s,) over X and its targets, of units ``theta`` (s, n + 1) over the design."""
        W = self.size * theta[:, :-1] / self.radius
        return W, W @ self.centre - self.size * theta[:, -1]


@dataclass(frozen=True, eq=False)
class Piece:
    r"""A function of one region: :math:`\langle \theta, a \rangle`, or :math:`\pm\sigma(\langle \theta, a \rangle)`.

    Attributes
    ----------
    kind : {"affine", "relu"}
        Which of the two.
    sign : int
        In front of a ReLU; 1 for an affine function.
    theta : ndarray of shape (n + 1,)
        Over the design; zero at columns that do not vary in the region.
    squared_error : float
        Weighted sum of squares that it leaves.
    parameters : float
        Parameters of its least squares, as :func:`effective_parameters` counts them.
    n_units : int
        ReLU units that it takes: two for an affine function that takes both signs on the rows, none for zero.
    """

    kind: Kind
    sign: int
    theta: Array
    squared_error: float
    parameters: float
    n_units: int

    def __call__(self, design: Array) -> Array:
        """Values at rows of the design, (m,)."""
        values = design @ self.theta
        return values if self.kind == "affine" else self.sign * np.maximum(values, 0.0)


def constant_piece(sample: TrainingSample, rows: NDArray[np.intp]) -> Piece:
    """The weighted mean of the targets of some rows."""
    theta = np.zeros(sample.n + 1)
    theta[-1] = np.average(sample.targets[rows], weights=sample.weights[rows])
    error = float(sample.weights[rows] @ (sample.targets[rows] - theta[-1]) ** 2)
    return Piece("affine", 1, theta, error, 1, len(signs_taken(theta[-1:])))


def affine_piece(sample: TrainingSample, rows: NDArray[np.intp]) -> Piece:
    """The affine function of least squares on some rows; of least norm where they do not determine it."""
    return affine_piece_of(sample.design[rows], sample.targets[rows], sample.weights[rows])


def affine_piece_of(design: Array, targets: Array, weights: Array) -> Piece:
    """The same, of rows given as arrays (r, n + 1), (r,) and (r,)."""
    theta, rank = least_squares(design, targets, weights)
    values = design @ theta
    parameters = effective_parameters(rank, float(weights.sum()))
    error = float(weights @ (targets - values) ** 2)
    return Piece("affine", 1, theta, error, parameters, len(signs_taken(values)))


def best_piece(sample: TrainingSample, rows: NDArray[np.intp], affine: Piece) -> Piece:
    """The affine function, or the ReLU that promises less error for new rows."""
    pieces = [affine]
    if affine.n_units == 2 and affine.parameters < len(rows):
        design, targets, weights = sample.design[rows], sample.targets[rows], sample.weights[rows]
        for sign in (1, -1):
            for start in (sign * (design @ affine.theta) > 0, sign * targets > 0):
                pieces += relu_pieces(design, targets, weights, sign, start)
    total, enough = float(sample.weights[rows].sum()), sample.negligible(EXACT)
    return min(pieces, key=lambda piece: risk(max(piece.squared_error, enough), piece.parameters, total))


def relu_pieces(design: Array, targets: Array, weights: Array, sign: int, on: NDArray[np.bool_]) -> Iterator[Piece]:
    """ReLUs of one sign that come of one another, turn by turn, while the error falls."""
    last = np.inf
    while on.any():
        theta, rank = least_squares(design[on], sign * targets[on], weights[on])
        values = design @ theta
        error = float(weights @ (targets - sign * np.maximum(values, 0.0)) ** 2)
        yield Piece("relu", sign, theta, error, effective_parameters(rank, float(weights[on].sum())), 1)
        if error >= FALL * last:
            break
        on, last = values > 0, error


def signs_taken(values: Array) -> list[int]:
    """Signs of the values that exceed rounding errors: one unit is needed for each sign."""
    floor = max(1e-11 * np.abs(values).max(initial=0.0), NOTHING)
    return [sign for sign in (1, -1) if (sign * values > floor).any()]


def risk(squared_error: float, parameters: float, n_rows: float) -> float:
    """Generalised cross-validation of one region, finite always."""
    return squared_error / max(1 - parameters / n_rows, LEAST_FREEDOM) ** 2


def effective_parameters(rank: int, n_rows: float) -> float:
    r"""Parameters that a least squares of p on m rows is worth, at most m.

    In the mean over new rows, noise of variance 1 costs :math:`m p / (m - p - 1)` where the fit made p of it
    vanish. Half the sum of both is p for many rows, and describes a region with too few, which cross-validation over
    all rows together does not see.
    """
    if n_rows <= rank + 1:
        return max(n_rows, 1.0)
    return min((rank + n_rows * rank / (n_rows - rank - 1)) / 2, n_rows)


def least_squares(design: Array, targets: Array, weights: Array) -> tuple[Array, int]:
    r"""Minimiser of :math:`\sum_i w_i (y_i - \langle \theta, a_i \rangle)^2` of least norm, and its rank.

    By the normal equations over the columns that vary and the ones, with one step of refinement: ``m n**2``
    multiplications. Cholesky solves them, or eigenvectors where columns depend on each other.
    """
    used = np.append((design[:, :-1] != design[0, :-1]).any(axis=0), True)
    columns = design[:, used]
    weighted = weights[:, None] * columns
    solve, rank = _solver_of(columns.T @ weighted)
    solution = solve(targets @ weighted)
    solution += solve((targets - columns @ solution) @ weighted)
    theta = np.zeros(design.shape[1])
    theta[used] = solution
    return theta, rank


def _solver_of(gram: Array) -> tuple[Callable[[Array], Array], int]:
    """Map from right-hand sides to solutions of least norm, and the rank."""
    factor, failed = dpotrf(gram)
    if not failed and dpocon(factor, np.abs(gram).sum(axis=0).max())[0] > WELL_CONDITIONED:
        return lambda right: dpotrs(factor, right)[0], len(gram)
    values, vectors = np.linalg.eigh(gram)
    kept = values > EIGENVALUE_FLOOR * values[-1]
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    return lambda right: inverse @ right, int(kept.sum())
