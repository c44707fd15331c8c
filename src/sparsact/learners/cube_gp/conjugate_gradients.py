r"""Solutions of :math:`(K + D)\, \alpha = y` at points of the cube, by conjugate gradients of two transforms a step.

:math:`K = H P H^\top`, with the prior variances P and the points' rows H of the Walsh-Hadamard transform. The system of
the coefficients,

.. math:: w = P^{1/2} v, \qquad (I + P^{1/2} H^\top D^{-1} H P^{1/2})\, v = P^{1/2} H^\top D^{-1} y, \qquad
          \alpha = D^{-1} (y - H w),

is its diagonal :math:`1 + p_S\, \mathrm{tr}\, D^{-1}` where the points are the whole cube and have equal noise; divided
by it, errors are about :math:`\sqrt{d / m}` elsewhere, with d degrees of freedom. With :math:`D^{1/2} \varepsilon` in
place of y and :math:`\eta` added on the right, both normal, w is a draw of what the posterior leaves open [1]_.

Few points of a rough function, or of very unequal noise, have the system :math:`K + D` itself, near its own diagonal.

References
----------
.. [1] G. Papandreou, A. Yuille, "Gaussian sampling by local perturbations", NIPS 2010.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.walsh_hadamard import walsh_hadamard
from sparsact.learners.cube_gp.component import Array

Vectors = NDArray[Any]  # of float32 or float64
Product = Callable[[Vectors], Vectors]

LARGEST_ERROR: Final = 10.0  # square of the diagonal's relative error, up to which coefficients are solved for
_MOST_STEPS: Final = 20_000
_TOLERANCE: Final = 1e-3  # of draws, in the norm of the inverse diagonal


class CubeSystem:
    """The matrix K + D at some points.

    Parameters
    ----------
    spectrum : ndarray of shape (2**n,)
        Prior variances P of all coefficients.
    codes : ndarray of shape (m,)
        Numbers of the points.
    noise : ndarray of shape (m,)
        Diagonal of D.
    """

    def __init__(self, spectrum: Array, codes: NDArray[np.intp], noise: Array) -> None:
        self.spectrum, self.codes, self.noise = spectrum, codes, noise
        precision = 1 / noise
        total = precision.sum()
        self._root, self._diagonal = np.sqrt(spectrum), 1 + spectrum * total
        freedom = float((1 - 1 / self._diagonal).sum())
        unevenness = float((precision**2).sum() / total**2) - 1 / spectrum.size
        self.solves_coefficients = freedom * unevenness <= LARGEST_ERROR
        self._noise, self._precision = self._at_points(np.stack([noise, precision]))

    def solve(self, targets: Array, tolerance: float) -> tuple[Array, int]:
        """Solutions (k, m) for targets (k, m) with residuals of a relative norm, and the number of steps.

        Raises
        ------
        ArithmeticError
            If rounding stops the residuals from decreasing that far.
        """
        enough = tolerance**2 * squares(targets)
        if not self.solves_coefficients:
            diagonal = self.spectrum.sum() + self._noise
            solved, steps = self._solved(self._of_points, self._at_points(targets), diagonal, 1.0, enough)
            return solved[:, self.codes], steps
        # of a residual r here, H P^1/2 r is left of the targets, at all points and thus at some
        scale = np.sqrt(self._root.size) * self._root
        right = self._right(targets / self.noise)
        v, steps = self._solved(self._of_coefficients, right, self._diagonal, scale, enough)
        fitted = _transformed(self._root * v)[:, self.codes]
        return (targets - fitted) / self.noise, steps

    def deviations(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, 2**n) of the coefficients less their posterior mean, where coefficients are solved for."""
        right = self._right(rng.standard_normal((n_samples, len(self.codes))) / np.sqrt(self.noise))
        right += rng.standard_normal(right.shape)
        scale = 1 / np.sqrt(self._diagonal)
        enough = _TOLERANCE**2 * squares(right * scale)
        v, _ = self._solved(self._of_coefficients, right, self._diagonal, scale, enough)
        return np.asarray(self._root * v)

    def _at_points(self, numbers: Array) -> Array:
        """Tables (k, 2**n) of numbers (k, m) at the points, zero elsewhere."""
        tables = np.zeros((len(numbers), self.spectrum.size))
        tables[:, self.codes] = numbers
        return tables

    def _right(self, numbers: Array) -> Array:
        """P^1/2 H^T times numbers (k, m) at the points."""
        tables = _transformed(self._at_points(numbers))
        tables *= self._root
        return tables

    def _of_coefficients(self, tables: Array) -> Array:
        """The matrix of the coefficients' system times tables."""
        result = _transformed(self._root * tables)
        result *= self._precision
        result = _transformed(result)
        result *= self._root
        result += tables
        return result

    def _of_points(self, tables: Array) -> Array:
        """K + D times tables that are zero elsewhere than at the points."""
        result = _transformed(tables.copy())
        result *= self.spectrum
        result = _transformed(result)
        result *= self._precision > 0
        result += self._noise * tables
        return result

    def _solved(
        self, product: Product, right: Array, diagonal: Array, scale: Array | float, enough: Array
    ) -> tuple[Array, int]:
        """Solutions and the number of steps, or the reason why there are none; see :func:`conjugate_gradients`."""
        x, steps = conjugate_gradients(product, right, enough, _MOST_STEPS, diagonal=diagonal, scale=scale)
        if steps < _MOST_STEPS:
            return x, steps
        raise ArithmeticError(
            f"conjugate gradients did not converge in {_MOST_STEPS:,} steps: the noise variance "
            f"{self.noise.min():.3g} is too small next to the kernel's {self.spectrum.sum():.3g}; raise it."
        )


def conjugate_gradients(
    product: Product,
    right: Vectors,
    enough: Vectors,
    n_steps: int,
    *,
    diagonal: Vectors | float = 1.0,
    scale: Vectors | float = 1.0,
    inverse: Product | None = None,
) -> tuple[Vectors, int]:
    """Solutions (k, m) for right sides (k, m), which are overwritten, and steps; ``n_steps`` if those were too few.

    Parameters
    ----------
    product : callable
        The matrix times vectors (k, m), in a new array.
    right : ndarray of shape (k, m)
        Right sides; left as the residuals.
    enough : ndarray of shape (k, 1)
        Squared norms of the residuals times ``scale`` at which to stop.
    n_steps : int
        Most steps.
    diagonal : ndarray of shape (m,) or (k, m), or float, default=1.0
        The preconditioner: approximately the diagonal of the matrix.
    scale : ndarray of shape (m,), or float, default=1.0
        What residuals are measured in.
    inverse : callable, optional
        A better preconditioner than the diagonal: approximately the inverse of the matrix, times vectors (k, m).
    """
    x, direction = np.zeros_like(right), np.zeros_like(right)
    inner = np.zeros((len(right), 1), right.dtype)
    for step in range(n_steps):
        if (squares(scale * right) <= enough).all():
            return x, step
        z = right / diagonal if inverse is None else inverse(right)
        before, inner = inner, _dot(right, z)
        direction *= _ratio(inner, before)
        direction += z
        image = product(direction)
        length = _ratio(inner, _dot(direction, image))
        x += length * direction
        image *= length
        right -= image
    return x, n_steps


def squares(vectors: Vectors) -> Vectors:
    """Squared norms (k, 1) of vectors (k, m)."""
    return _dot(vectors, vectors)


def _transformed(tables: Array) -> Array:
    """The same memory, every row transformed, by one thread: systems are solved side by side."""
    walsh_hadamard(tables)
    return tables


def _dot(one: Vectors, other: Vectors) -> Vectors:
    return np.asarray(np.einsum("kx,kx->k", one, other)[:, None])


def _ratio(numerator: Vectors, denominator: Vectors) -> Vectors:
    """Quotients, zero where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
