r"""What a region may hold: an affine function, one ReLU unit of either sign, or a constant; fitted by least squares.

A ReLU is fitted by turns: the rows where it is on give its affine function, which says anew where it is on. Each turn
is a Newton step on the squared error, which is piecewise quadratic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.sample import Array, Sample

Kind = Literal["affine", "relu"]
EIGENVALUE_FLOOR = 1e-10  # of the largest: below, a direction is one in which the rows do not vary
TURNS = 12


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
    parameters : int
        Rank of its least squares.
    n_units : int
        ReLU units that it takes: two for an affine function that takes both signs on the rows, none for zero.
    """

    kind: Kind
    sign: int
    theta: Array
    squared_error: float
    parameters: int
    n_units: int

    def __call__(self, design: Array) -> Array:
        """Values at rows of the design, (m,)."""
        values = design @ self.theta
        return values if self.kind == "affine" else self.sign * np.maximum(values, 0.0)


def constant_piece(sample: Sample, rows: NDArray[np.intp]) -> Piece:
    """The weighted mean of the targets of some rows."""
    theta = np.zeros(sample.n + 1)
    theta[-1] = np.average(sample.targets[rows], weights=sample.weights[rows])
    error = float(sample.weights[rows] @ (sample.targets[rows] - theta[-1]) ** 2)
    return Piece("affine", 1, theta, error, 1, int(theta[-1] != 0))


def affine_piece(sample: Sample, rows: NDArray[np.intp]) -> Piece:
    """The affine function of least squares on some rows; of least norm where they do not determine it."""
    design = sample.design[rows]
    theta, rank = least_squares(design, sample.targets[rows], sample.weights[rows])
    values = design @ theta
    error = float(sample.weights[rows] @ (sample.targets[rows] - values) ** 2)
    return Piece("affine", 1, theta, error, rank, len(signs_taken(values)))


def best_piece(sample: Sample, rows: NDArray[np.intp], affine: Piece) -> Piece:
    """The affine function, or the ReLU that leaves less."""
    best = affine
    for sign in (1, -1) if affine.n_units == 2 else ():
        best = min([best, *_relu_pieces(sample, rows, sign, affine)], key=lambda piece: piece.squared_error)
    return best


def _relu_pieces(sample: Sample, rows: NDArray[np.intp], sign: int, affine: Piece) -> list[Piece]:
    """ReLUs of one sign, from where the affine function and from where the targets have that sign."""
    design, targets, weights = sample.design[rows], sample.targets[rows], sample.weights[rows]
    found = []
    for start in (sign * (design @ affine.theta) > 0, sign * targets > 0):
        on = start
        for _ in range(TURNS):
            if not on.any():
                break
            theta, rank = least_squares(design[on], sign * targets[on], weights[on])
            values = design @ theta
            error = float(weights @ (targets - sign * np.maximum(values, 0.0)) ** 2)
            found.append(Piece("relu", sign, theta, error, rank, 1))
            if np.array_equal(values > 0, on):
                break
            on = values > 0
    return found


def signs_taken(values: Array) -> list[int]:
    """Signs of the values, those of rounding errors left out: one unit is needed for each."""
    floor = 1e-11 * np.abs(values).max(initial=0.0)
    return [sign for sign in (1, -1) if (sign * values > floor).any()]


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
