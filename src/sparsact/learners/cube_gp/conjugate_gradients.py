r"""Solutions of :math:`(K + D)\, \alpha = y` at some points of the cube, by products with the whole cube's kernel.

:math:`K v` is :math:`H (p \circ H v)` at the points, with the Walsh-Hadamard transform H; a step costs two transforms
for it and two for a preconditioner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsact.fourier import walsh_hadamard
from sparsact.learners.cube_gp.component import Array

Vectors = NDArray[Any]  # of float32 or float64

LARGEST_EIGENVALUES = 1_024  # that the preconditioner inverts exactly
_MOST_STEPS = 20_000


class CubeSystem:
    """The matrix K + D at some points.

    Parameters
    ----------
    spectrum : ndarray of shape (2**n,)
        Prior variances p of all coefficients.
    codes : ndarray of shape (m,)
        Numbers of the points.
    noise : ndarray of shape (m,)
        Diagonal of D.
    """

    def __init__(self, spectrum: Array, codes: NDArray[np.intp], noise: Array) -> None:
        self.spectrum = spectrum
        self.codes = codes
        self.mask, self.noise = np.zeros(spectrum.size), np.zeros(spectrum.size)
        self.mask[codes] = 1.0
        self.noise[codes] = noise
        self._precondition = self._largest_eigenvalues()

    def product(self, tables: Array) -> Array:
        """K + D times tables (k, 2**n) that are zero elsewhere."""
        result = self._through(tables, self.spectrum)
        result *= self.mask
        result += self.noise * tables
        return result

    def solve(self, targets: Array, tolerance: float) -> tuple[Array, int]:
        """Solutions (k, m) for targets (k, m) with residuals of a relative norm, and the number of steps.

        Raises
        ------
        ArithmeticError
            If rounding stops the residuals from decreasing that far.
        """
        right = np.zeros((len(targets), self.spectrum.size))
        right[:, self.codes] = targets
        x, step = conjugate_gradients(self.product, right, tolerance, _MOST_STEPS, self._precondition)
        if step < _MOST_STEPS:
            return x[:, self.codes], step
        raise ArithmeticError(
            f"conjugate gradients did not converge in {_MOST_STEPS:,} steps: the noise variance "
            f"{self.noise[self.codes].min():.3g} is too small next to the kernel's {self.spectrum.sum():.3g}; raise it."
        )

    def _through(self, tables: Array, eigenvalues: Array) -> Array:
        """H diag(eigenvalues) H times tables."""
        result = np.asarray(walsh_hadamard(tables, normalize=False))
        result *= eigenvalues
        return np.asarray(walsh_hadamard(result, normalize=False, overwrite=True))

    def _largest_eigenvalues(self) -> Callable[[Array], Array]:
        r"""Inverse of :math:`U P U^\top + D + \tau` with the largest p, by Woodbury; the others' sum is :math:`\tau`.

        Products with U, characters at the points, are transforms too, and :math:`U^\top (D + \tau)^{-1} U` at S, T is
        the transform of the diagonal at the symmetric difference of S and T.
        """
        count = min(LARGEST_EIGENVALUES, len(self.codes), self.spectrum.size)
        top = np.argpartition(self.spectrum, -count)[-count:]
        rest = self.spectrum.sum() - self.spectrum[top].sum()
        diagonal = self.mask / np.where(self.mask > 0, self.noise + rest, 1.0)
        inner = np.asarray(walsh_hadamard(diagonal, normalize=False))[top[:, None] ^ top]
        root = np.sqrt(self.spectrum[top])
        factor = cho_factor(np.eye(count) + root[:, None] * inner * root, lower=True, overwrite_a=True)

        def apply(tables: Array) -> Array:
            scaled = diagonal * tables
            parts = np.asarray(walsh_hadamard(scaled, normalize=False))[:, top] * root
            back = np.zeros_like(scaled)
            back[:, top] = cho_solve(factor, parts.T, check_finite=False).T * root
            scaled -= diagonal * np.asarray(walsh_hadamard(back, normalize=False, overwrite=True))
            return scaled

        return apply


def conjugate_gradients(
    product: Callable[[Vectors], Vectors],
    right: Vectors,
    tolerance: float,
    n_steps: int,
    precondition: Callable[[Vectors], Vectors] = lambda residual: residual,
) -> tuple[Vectors, int]:
    """Solutions (k, m) for right sides (k, m), which are overwritten, and steps; ``n_steps`` if those were too few.

    Parameters
    ----------
    product : callable
        The matrix times vectors (k, m), in a new array.
    right : ndarray of shape (k, m)
        Right sides; left as the residuals.
    tolerance : float
        Norm of the residuals over that of the right sides.
    n_steps : int
        Most steps.
    precondition : callable
        An approximate inverse times vectors.
    """
    x, residual = np.zeros_like(right), right
    enough = tolerance**2 * _dot(residual, residual)
    z = precondition(residual)
    direction, inner = z.copy(), _dot(residual, z)
    for step in range(n_steps):
        if (_dot(residual, residual) <= enough).all():
            return x, step
        image = product(direction)
        length = _ratio(inner, _dot(direction, image))
        x += length * direction
        residual -= length * image
        z = precondition(residual)
        before, inner = inner, _dot(residual, z)
        direction *= _ratio(inner, before)
        direction += z
    return x, n_steps


def _dot(one: Vectors, other: Vectors) -> Vectors:
    return np.asarray(np.einsum("kx,kx->k", one, other)[:, None])


def _ratio(numerator: Vectors, denominator: Vectors) -> Vectors:
    """Quotients, zero for a system that is solved exactly."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
