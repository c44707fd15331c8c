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

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.walsh_hadamard import walsh_hadamard
from sparsact.learners.cube_gp.component import Array
from sparsact.statistics.solved import Solved, conjugate_gradients, norms

LARGEST_ERROR: Final = 10.0  # square of the diagonal's relative error, up to which coefficients are solved for
MAX_STEPS: Final = 20_000
REMEDY: Final = "raise noise_variance, or leave out or merge rows of far larger weights than others"
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

    def solve(self, targets: Array, tolerance: float, *, max_steps: int = MAX_STEPS) -> Solved[Array]:
        """Solutions (k, m) for targets (k, m); residuals are relative to the norms of the targets."""
        size = norms(targets)
        if not self.solves_coefficients:
            diagonal, right = self.spectrum.sum() + self._noise, self._at_points(targets)
            found = conjugate_gradients(self._of_points, right, tolerance, max_steps, size=size, diagonal=diagonal)
            return replace(found, value=found.value[:, self.codes])
        # of a residual r here, H P^1/2 r is left of the targets, at all points and thus at some
        found = conjugate_gradients(
            self._of_coefficients,
            self._right(targets / self.noise),
            tolerance,
            max_steps,
            size=size,
            diagonal=self._diagonal,
            scale=np.sqrt(self._root.size) * self._root,
        )
        fitted = _transformed(self._root * found.value)[:, self.codes]
        return replace(found, value=(targets - fitted) / self.noise)

    def deviations(self, n_samples: int, rng: np.random.Generator, *, max_steps: int = MAX_STEPS) -> Array:
        """Draws (n_samples, 2**n) of the coefficients less their posterior mean, where coefficients are solved for."""
        right = self._right(rng.standard_normal((n_samples, len(self.codes))) / np.sqrt(self.noise))
        right += rng.standard_normal(right.shape)
        scale = 1 / np.sqrt(self._diagonal)
        found = conjugate_gradients(
            self._of_coefficients, right, _TOLERANCE, max_steps, diagonal=self._diagonal, scale=scale
        )
        return np.asarray(self._root * found.checked("conjugate gradients for draws", REMEDY))

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


def _transformed(tables: Array) -> Array:
    """The same memory, every row transformed, by one thread: systems are solved side by side."""
    walsh_hadamard(tables)
    return tables
