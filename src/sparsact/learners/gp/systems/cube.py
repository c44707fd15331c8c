r"""K + D at points of the cube, by a factor or by conjugate gradients with two transforms per step.

:math:`K = H P H^\top`, with the prior variances P and the points' rows H of the Walsh-Hadamard transform. The system of
the coefficients,

.. math:: w = P^{1/2} v, \qquad (I + P^{1/2} H^\top D^{-1} H P^{1/2})\, v = P^{1/2} H^\top D^{-1} y, \qquad
          \alpha = D^{-1} (y - H w),

is its diagonal :math:`1 + p_S\, \mathrm{tr}\, D^{-1}` where the points are the whole cube and have equal noise; divided
by it, errors are about :math:`\sqrt{d / m}` elsewhere, with d degrees of freedom. With :math:`D^{1/2} \varepsilon` in
place of y and :math:`\eta` added on the right, both normal, w is a draw of what the posterior leaves open [1]_.

Few points of a rough function, or of very unequal noise, have the system :math:`K + D` itself, near its own diagonal.
Up to 1,024 points, and up to 4,096 of a large cube, a Cholesky factor takes less time than either.

With :math:`\alpha = (K + D)^{-1} y` and the transform H of the whole cube, coefficients have

.. math:: \mathbb{E} w = p \circ H \alpha, \qquad
          \mathrm{Var}\, w_S = p_S - p_S^2 \sum_{ij} (K + D)^{-1}_{ij} \chi_S(x_i) \chi_S(x_j),

all at once by a transform of the histogram of the inverse. A draw is one of the prior plus the posterior mean of what
it leaves of the targets (Matheron's rule) [2]_, unless the system of the coefficients draws directly.

References
----------
.. [1] G. Papandreou, A. Yuille, "Gaussian sampling by local perturbations", NIPS 2010.
.. [2] J. T. Wilson et al., "Efficiently sampling functions from Gaussian process posteriors", ICML 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.learners.gp.kernel import Array, Kernel
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.system import NUMBERS_AT_ONCE, System
from sparsact.statistics.solved import Solved, conjugate_gradients, norms

DIRECT_ROWS, MOST_DIRECT_ROWS = 1_024, 4_096  # up to which a Cholesky factor is made where there is a choice
DIRECT_WORK: Final = 16_000.0  # of the second: cube of the rows over n 2**n, with about a hundred steps to a solution
LARGEST_ERROR: Final = 10.0  # square of the diagonal's relative error, up to which coefficients are solved for
MAX_STEPS: Final = 20_000
DRAW_TOLERANCE: Final = 1e-4  # of residuals, of Matheron's rule
_TOLERANCE: Final = 1e-3  # of direct draws, in the norm of the inverse diagonal
_ROWS_AT_ONCE: Final = 1 << 9  # of a matrix whose histogram is taken


class SpectralKernel(Kernel, Protocol):
    """A kernel on the cube that is diagonal in the Walsh basis."""

    @property
    def spectrum(self) -> Array:
        """Prior variances of all coefficients, (2**n,), in table order."""


@dataclass(eq=False)
class CubeSystem(System):
    """The system K + D at points of bits (m, n), n up to 20."""

    kernel: SpectralKernel

    is_direct: ClassVar[bool] = False
    tolerance: ClassVar[float] = 1e-8
    solver: ClassVar[str] = "conjugate gradients"
    remedy: ClassVar[str] = "raise noise_variance, or leave out or merge rows of far larger weights than others"

    def __post_init__(self) -> None:
        self.codes = codes_of(self.points)

    def solve(self, targets: Array, tolerance: float, *, max_steps: int = MAX_STEPS) -> Solved[Array]:
        """Inverse times targets (k, m); residuals have at most this norm relative to that of the targets."""
        size = norms(targets)
        if not self.solves_coefficients:
            diagonal, right = self.kernel.spectrum.sum() + self._tables[0], self.at_points(targets)
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
        fitted = transformed(self._root * found.value)[:, self.codes]
        return replace(found, value=(targets - fitted) / self.noise)

    def deviations(self, n_samples: int, rng: np.random.Generator, *, max_steps: int = MAX_STEPS) -> Array:
        """Draw coefficients minus their posterior means, (n_samples, 2**n), by solving for coefficients."""
        right = self._right(rng.standard_normal((n_samples, len(self))) / np.sqrt(self.noise))
        right += rng.standard_normal(right.shape)
        scale = 1 / np.sqrt(self._diagonal)
        found = conjugate_gradients(
            self._of_coefficients, right, _TOLERANCE, max_steps, diagonal=self._diagonal, scale=scale
        )
        return np.asarray(self._root * found.checked("conjugate gradients for draws", self.remedy))

    def at_points(self, numbers: Array) -> Array:
        """Tables (k, 2**n) of numbers (k, m) at the points, zero elsewhere."""
        return scattered(numbers, self.codes, self.kernel.spectrum.size)

    @cached_property
    def solves_coefficients(self) -> bool:
        """Whether the system of the coefficients is close enough to diagonal to be solved."""
        precision, diagonal = 1 / self.noise, self._diagonal
        freedom = float((1 - 1 / diagonal).sum())
        unevenness = float((precision**2).sum() / precision.sum() ** 2) - 1 / diagonal.size
        return freedom * unevenness <= LARGEST_ERROR

    @cached_property
    def _diagonal(self) -> Array:
        return np.asarray(1 + self.kernel.spectrum * (1 / self.noise).sum())

    @cached_property
    def _root(self) -> Array:
        return np.sqrt(self.kernel.spectrum)

    @cached_property
    def _tables(self) -> Array:
        """Noise and its inverse at the points, (2, 2**n)."""
        return self.at_points(np.stack([self.noise, 1 / self.noise]))

    def _right(self, numbers: Array) -> Array:
        """P^1/2 H^T times numbers (k, m) at the points."""
        tables = transformed(self.at_points(numbers))
        tables *= self._root
        return tables

    def _of_coefficients(self, tables: Array) -> Array:
        """The matrix of the coefficients' system times tables."""
        result = transformed(self._root * tables)
        result *= self._tables[1]
        result = transformed(result)
        result *= self._root
        result += tables
        return result

    def _of_points(self, tables: Array) -> Array:
        """K + D times tables that are zero elsewhere than at the points."""
        noise, precision = self._tables
        result = transformed(tables.copy())
        result *= self.kernel.spectrum
        result = transformed(result)
        result *= precision > 0
        result += noise * tables
        return result


@dataclass(frozen=True, eq=False)
class CubePosterior(Posterior):
    """Posterior over the whole cube by any system, with tables of all coefficients and values; n up to 20."""

    spectrum: Array  # prior variances of all coefficients, (2**n,)

    def __reduce__(self) -> tuple[type[CubePosterior], tuple[System, Array, Array]]:
        """Without tables, which are computed again."""
        return CubePosterior, (self.system, self.alpha, self.spectrum)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Numbers (m,) of the rows' points."""
        return codes_of(self.system.points)

    @cached_property
    def coefficients(self) -> Array:
        """Posterior means of all coefficients, (2**n,), in table order."""
        return np.asarray(self.spectrum * transformed(scattered(self.alpha[None], self.codes, self.spectrum.size))[0])

    @cached_property
    def table(self) -> Array:
        """Means at all points, (2**n,)."""
        return np.asarray(walsh_hadamard(self.coefficients, normalize=False))

    def values(self, points: Array) -> Array:
        """Means (m',) at points of bits (m', n)."""
        return self.table[codes_of(points)]

    def variances(self, points: Array) -> Array:
        """Variances (m',) at points of bits (m', n), which may repeat."""
        codes, place = np.unique(codes_of(points), return_inverse=True)
        distinct = (codes[:, None] >> np.arange(points.shape[1]) & 1).astype(np.float64)
        return super().variances(distinct)[place.ravel()]

    @cached_property
    def coefficient_variances(self) -> Array:
        """Posterior variances of all coefficients, (2**n,), from the inverse of the covariance matrix."""
        p = self.spectrum
        sums = difference_sums(self.system.factor.lower_inverse(), self.codes, p.size)
        return np.asarray(np.maximum(p - p**2 * walsh_hadamard(sums, normalize=False), 0.0))

    def draws(self, n_samples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Draws of all coefficients in blocks (k, 2**n)."""
        for block in self._deviations(n_samples, rng):
            block += self.coefficients
            yield block

    def draws_at(self, points: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at points."""
        codes = codes_of(points)
        values = (walsh_hadamard(block, normalize=False) for block in self.draws(n_samples, rng))
        return np.concatenate([block[:, codes] for block in values])

    def _deviations(self, n_samples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Draws of the coefficients minus their mean."""
        system, spectrum = self.system, self.spectrum
        at_once = max(1, NUMBERS_AT_ONCE // spectrum.size)
        for start in range(0, n_samples, at_once):
            count = min(at_once, n_samples - start)
            if isinstance(system, CubeSystem) and system.solves_coefficients:
                yield system.deviations(count, rng)
                continue
            prior = rng.standard_normal((count, spectrum.size)) * np.sqrt(spectrum)
            noisy = np.asarray(walsh_hadamard(prior, normalize=False))[:, self.codes]
            noisy += np.sqrt(system.noise) * rng.standard_normal((count, len(system)))
            solved = system.solve(noisy, DRAW_TOLERANCE).checked(system.solver, system.remedy)
            tables = scattered(solved, self.codes, spectrum.size)
            prior -= spectrum * walsh_hadamard(tables, normalize=False, overwrite=True)
            yield prior


def factor_is_faster(n_rows: int, n: int) -> bool:
    """Whether a Cholesky factor of distinct rows takes less time than conjugate gradients on all 2**n points."""
    return n_rows <= DIRECT_ROWS or (n_rows <= MOST_DIRECT_ROWS and n_rows**3 <= DIRECT_WORK * n * 2**n)


def codes_of(bits: Array) -> NDArray[np.intp]:
    """Indices (m,) in table order of points of bits (m, n), n up to 20."""
    return np.asarray(bits @ (1 << np.arange(bits.shape[1])), dtype=np.intp)


def scattered(numbers: Array, codes: NDArray[np.intp], size: int) -> Array:
    """Scatter numbers (k, m) into tables (k, size) at the codes, zero elsewhere."""
    tables = np.zeros((len(numbers), size))
    tables[:, codes] = numbers
    return tables


def difference_sums(lower: Array, codes: NDArray[np.intp], size: int) -> Array:
    """Sum a symmetric matrix, given on and below its diagonal, over pairs of codes of equal exclusive or, (size,)."""
    sums = np.zeros(size)
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)  # columns, whose rows above are zero
        differing = codes[block, None] ^ codes[start:]
        sums += np.bincount(differing.ravel(), 2 * lower[start:, block].T.ravel(), size)
    sums[0] -= lower.trace()
    return sums


def transformed(tables: Array) -> Array:
    """Transform every row in place, by one thread, as several systems are solved at once."""
    return np.asarray(walsh_hadamard(tables, normalize=False, overwrite=True, n_threads=1))
