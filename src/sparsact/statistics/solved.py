"""The answer of an iterative solver, which says whether it converged; and conjugate gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

Vectors = NDArray[Any]  # of float32 or float64
Product = Callable[[Vectors], Vectors]
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Solved(Generic[Value]):
    """What an iterative solver found, and how well.

    Attributes
    ----------
    value : Value
        The solution, or the best that was met.
    steps : int
        Steps that were taken.
    residual : float
        What is left to solve, in the measure that the solver states.
    tolerance : float
        The residual that was to be reached.
    converged : bool
        Whether the solver has ended, rather than run out of steps.

    Examples
    --------
    >>> Solved(2.5, 7, 1e-9, 1e-6, True).checked("Newton's method", "raise max_steps")
    2.5
    """

    value: Value
    steps: int
    residual: float
    tolerance: float
    converged: bool

    def checked(self, solver: str, remedy: str) -> Value:
        """The value; with a ConvergenceWarning that names solver, residual, steps and remedy if it did not converge."""
        if not self.converged:
            warnings.warn(
                f"{solver} left a residual of {self.residual:.2g}, where {self.tolerance:.2g} was to be reached, after "
                f"{self.steps:,} steps; {remedy}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self.value


def conjugate_gradients(
    product: Product,
    right: Vectors,
    tolerance: float,
    max_steps: int,
    *,
    size: Vectors | None = None,
    diagonal: Vectors | float = 1.0,
    scale: Vectors | float = 1.0,
    inverse: Product | None = None,
) -> Solved[Vectors]:
    """Solutions (k, m) for right sides (k, m), which are overwritten.

    The residual is the largest norm of a residual times ``scale`` over its ``size``.

    Parameters
    ----------
    product : callable
        The matrix times vectors (k, m), in a new array.
    right : ndarray of shape (k, m)
        Right sides; left as the residuals.
    tolerance : float
        Residual at which to stop.
    max_steps : int
        Most steps, each of a product.
    size : ndarray of shape (k, 1), optional
        Norms that residuals are compared with; by default the norms of the right sides times ``scale``.
    diagonal : ndarray of shape (m,) or (k, m), or float, default=1.0
        The preconditioner: approximately the diagonal of the matrix.
    scale : ndarray of shape (m,), or float, default=1.0
        What residuals are measured in.
    inverse : callable, optional
        A better preconditioner than the diagonal: approximately the inverse of the matrix, times vectors (k, m).
    """
    size = norms(scale * right) if size is None else size
    x, direction = np.zeros_like(right), np.zeros_like(right)
    inner = np.zeros((len(right), 1), right.dtype)
    for step in range(max_steps + 1):
        residual = float(_ratio(norms(scale * right), size).max(initial=0.0))
        if residual <= tolerance or step == max_steps:
            break
        z = right / diagonal if inverse is None else inverse(right)
        before, inner = inner, _dot(right, z)
        direction *= _ratio(inner, before)
        direction += z
        image = product(direction)
        length = _ratio(inner, _dot(direction, image))
        x += length * direction
        image *= length
        right -= image
    return Solved(x, step, residual, tolerance, residual <= tolerance)


def norms(vectors: Vectors) -> Vectors:
    """Norms (k, 1) of vectors (k, m)."""
    return np.asarray(np.sqrt(_dot(vectors, vectors)))


def _dot(one: Vectors, other: Vectors) -> Vectors:
    return np.asarray(np.einsum("kx,kx->k", one, other)[:, None])


def _ratio(numerator: Vectors, denominator: Vectors) -> Vectors:
    """Quotients, zero where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
