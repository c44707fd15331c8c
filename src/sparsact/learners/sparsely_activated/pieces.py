r"""What a region may hold: an affine function, one ReLU unit of either sign, or a constant; fitted by least squares.

A ReLU is fitted by turns: the rows where it is on give its affine function, which says anew where it is on. Each turn
is a Newton step on the squared error, which is piecewise quadratic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.sample import EXACT, Array, TrainingSample

Kind = Literal["affine", "relu"]
EIGENVALUE_FLOOR = 1e-10  # of the largest: below, a direction is one in which the rows do not vary
NOTHING = 1e-13  # a value of a function whose targets are of size 1
LEAST_FREEDOM = 0.05  # so that regions of too few rows compare too
FALL = 0.99  # a turn that leaves more than this share of the error is the last


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
        Those of its least squares, as :func:`effective_parameters` counts them.
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
    """Signs of the values, those of rounding errors left out: one unit is needed for each."""
    floor = max(1e-11 * np.abs(values).max(initial=0.0), NOTHING)
    return [sign for sign in (1, -1) if (sign * values > floor).any()]


def risk(squared_error: float, parameters: float, n_rows: float) -> float:
    """Generalised cross-validation of one region, finite always."""
    return squared_error / max(1 - parameters / n_rows, LEAST_FREEDOM) ** 2


def effective_parameters(rank: int, n_rows: float) -> float:
    r"""Parameters that a least squares of p on m rows is worth, at most m.

    In the mean over rows drawn anew, noise of variance 1 costs :math:`m p / (m - p - 1)` where the fit made p of it
    vanish. Half the sum of both is p for many rows, and tells of a region with too few, which cross-validation over
    all rows together does not see.
    """
    if n_rows <= rank + 1:
        return max(n_rows, 1.0)
    return min((rank + n_rows * rank / (n_rows - rank - 1)) / 2, n_rows)


def least_squares(design: Array, targets: Array, weights: Array) -> tuple[Array, int]:
    r"""Minimiser of :math:`\sum_i w_i (y_i - \langle \theta, a_i \rangle)^2` of least norm, and its rank.

    By the eigenvectors of the normal equations, over the columns that vary and the ones, with one step of refinement:
    ``m n**2`` multiplications, as Cholesky, and no failure where columns depend on each other.
    """
    used = np.append((design[:, :-1] != design[0, :-1]).any(axis=0), True)
    columns = design[:, used]
    weighted = weights[:, None] * columns
    values, vectors = np.linalg.eigh(columns.T @ weighted)
    kept = values > EIGENVALUE_FLOOR * values[-1]
    inverse = vectors[:, kept] / values[kept] @ vectors[:, kept].T
    solution = inverse @ (targets @ weighted)
    solution += inverse @ ((targets - columns @ solution) @ weighted)
    theta = np.zeros(design.shape[1])
    theta[used] = solution
    return theta, int(kept.sum())
