"""Covariances over the cube as values: sums of log-linear components, diagonal in the Walsh basis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import Subset, n_subsets
from sparsact.learners.cube_gp.component import LARGEST_CUBE, TILE, Component
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.cube import codes_of, difference_sums
from sparsact.statistics.solved import Product
from sparsact.validation.arrays import checked_reals

_ROWS_AT_ONCE: Final = 1 << 9  # of a matrix that is gathered from a table


@dataclass(frozen=True, eq=False, repr=False)
class CubeKernel:
    r"""Covariance :math:`k(x, x') = \sum_S p_S \chi_S(x) \chi_S(x')` of a function on the cube.

    The prior variances :math:`p_S \ge 0` of its Walsh coefficients are the kernel's eigenvalues, so that a product with
    the kernel matrix of the whole cube is two Walsh-Hadamard transforms. Make one by :meth:`product`,
    :meth:`by_degree` or :meth:`degree_by_site`, and add them.

    Attributes
    ----------
    components : tuple of Component
        Its terms.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = CubeKernel.product(2.0, [0.5, 0.9]) + CubeKernel.by_degree([0.0, 1.0, 0.0])
    >>> kernel([[1, 1], [-1, 1], [-1, -1]]).round(12)
    array([[ 3. ,  1. , -0.1],
           [ 1. ,  3. ,  1.8],
           [-0.1,  1.8,  3. ]])
    """

    components: tuple[Component, ...]

    @classmethod
    def product(cls, variance: float, correlations: ArrayLike) -> Self:
        r"""Product kernel :math:`v \prod_i \rho_i^{[x_i \ne x_i']}`: ARD over Hamming distance.

        Parameters
        ----------
        variance : float
            v, positive.
        correlations : array-like of shape (n,)
            :math:`\rho_i`, each between -1 and 1.
        """
        rho = checked_reals(correlations, "`correlations`")
        if rho.ndim != 1 or not rho.size or not (np.abs(rho) < 1).all() or not 0 < variance < np.inf:
            raise ValueError(
                "a product kernel needs a positive variance and for each coordinate a correlation strictly between -1 "
                f"and 1; got {variance} and {rho}."
            )
        b = np.log1p(-rho) - np.log1p(rho)
        a = np.log(variance) - np.logaddexp(0, b).sum()
        return cls((Component(len(rho), np.array([a]), b, np.empty(0)),))

    @classmethod
    def by_degree(cls, variances: ArrayLike) -> Self:
        r"""Variance components by degree: :math:`k = \sum_d v_d\, K_d(h) / \binom{n}{d}` at Hamming distance h.

        Parameters
        ----------
        variances : array-like of shape (n + 1,)
            Prior variance :math:`v_d` of the part of degree d, 0 or more; :math:`K_d` is a Krawtchouk polynomial.
        """
        v = checked_reals(variances, "`variances`")
        if v.ndim != 1 or len(v) < 2 or (v < 0).any():
            raise ValueError(f"`variances` holds n + 1 numbers, none negative, for degrees 0 to n; got {v}.")
        n = len(v) - 1
        with np.errstate(divide="ignore"):
            logs = np.log(v) - np.log([float(n_subsets(n, d, d)) for d in range(n + 1)])
        return cls((Component(n, np.maximum(logs, -1e3), np.empty(0), np.empty(0)),))

    @classmethod
    def degree_by_site(cls, degrees: ArrayLike, sites: ArrayLike, pairs: ArrayLike | None = None) -> Self:
        r"""Prior variances :math:`\log p_S = a_{|S|} + \sum_{i \in S} b_i + \sum_{i > j \in S} c_{ij}`.

        Parameters
        ----------
        degrees, sites : array-like of shape (n + 1,), (n,)
            a and b.
        pairs : array-like of shape (n, n), optional
            c; the entries below the diagonal are read.
        """
        a, b = checked_reals(degrees, "`degrees`"), checked_reals(sites, "`sites`")
        n = b.size
        c = np.zeros((n, n)) if pairs is None else checked_reals(pairs, "`pairs`")
        if a.shape != (n + 1,) or b.ndim != 1 or c.shape != (n, n):
            raise ValueError(
                f"n sites need n + 1 degrees and (n, n) pairs; got shapes {b.shape}, {a.shape}, {c.shape}."
            )
        return cls((Component(n, a, b, np.empty(0) if pairs is None else c[np.tril_indices(n, -1)]),))

    def __add__(self, other: CubeKernel) -> CubeKernel:
        if not isinstance(other, CubeKernel):
            return NotImplemented
        if self.n != other.n:
            raise ValueError(f"the kernels have {self.n} and {other.n} coordinates; they must have the same.")
        return CubeKernel(self.components + other.components)

    def is_like(self, other: CubeKernel) -> bool:
        """Whether both have components of the same kinds, so that each can have the other's ``theta``."""
        kinds = [[(c.n, c.by_degree.size, c.by_site.size, c.by_pair.size) for c in k.components] for k in (self, other)]
        return kinds[0] == kinds[1]

    @property
    def n(self) -> int:
        """Coordinates of the cube."""
        return self.components[0].n

    @property
    def theta(self) -> Array:
        """Parameters of all components, on the logarithmic scale, (k,)."""
        return np.concatenate([component.theta for component in self.components])

    def with_theta(self, theta: ArrayLike) -> Self:
        """The kernel with other parameters."""
        ends = np.cumsum([component.theta.size for component in self.components])[:-1]
        parts = np.split(np.asarray(theta, dtype=np.float64), ends)
        return replace(
            self, components=tuple(c.with_theta(part) for c, part in zip(self.components, parts, strict=True))
        )

    def times(self, number: float) -> Self:
        """Kernel of the function times a positive number, whose square may overflow."""
        return replace(self, components=tuple(component.times(number) for component in self.components))

    @property
    def has_table(self) -> bool:
        """Whether n is at most 20, so that all prior variances are computed."""
        return self.n <= LARGEST_CUBE

    @cached_property
    def spectrum(self) -> Array:
        """Prior variances of all coefficients, (2**n,), in table order; n up to 20."""
        if not self.has_table:
            raise ValueError(
                "the variances of all coefficients are 2**n numbers, made for n up to "
                f"{LARGEST_CUBE}; got n = {self.n}: name some subsets."
            )
        first, *others = (component.spectrum for component in self.components)
        return np.asarray(sum(others, first))

    @cached_property
    def table(self) -> Array:
        """Covariance of points whose numbers differ by each exclusive or, (2**n,); n up to 20."""
        return np.asarray(walsh_hadamard(self.spectrum, normalize=False))

    def variances_of(self, subsets: list[Subset]) -> Array:
        """Prior variances of the coefficients of some subsets, (N,), for any n."""
        return np.asarray(
            np.sum([np.exp(component.log_variances_of(subsets)) for component in self.components], axis=0)
        )

    @property
    def variance(self) -> float:
        """Prior variance of the function at any point."""
        return float(sum(component.variance for component in self.components))

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        """Covariance (m, m') between points X (m, n) and Y (m', n), both signs or both bits."""
        one = _bits(X, self.n)
        return self.covariance(one, one if Y is None else _bits(Y, self.n))

    def covariance(self, one: Array, other: Array) -> Array:
        """:meth:`__call__` of bits that are trusted."""
        if self.has_table:
            return np.asarray(self.table[codes_of(one)[:, None] ^ codes_of(other)])
        return np.asarray(np.sum([component.covariance(one, other) for component in self.components], axis=0))

    def matrix(self, points: Array) -> Array:
        """Covariances (m, m) of points of bits (m, n), in Fortran order."""
        tabled = CubeKernel(tuple(each for each in self.components if self._is_tabled(each, len(points))))
        matrix = np.zeros((len(points), len(points)), order="F")
        if tabled.components:
            codes = codes_of(points)
            for start in range(0, len(codes), _ROWS_AT_ONCE):
                block = slice(start, start + _ROWS_AT_ONCE)
                matrix[:, block] = tabled.table[codes[block, None] ^ codes].T  # symmetric: columns are contiguous
        for component in self.components:
            if component not in tabled.components:
                matrix += component.covariance(points, points).T
        return matrix

    def products(self, points: Array, tile: int = TILE) -> Product:
        """The covariances (m, m) of points of bits (m, n) as a function of vectors (k, m); without a table."""
        maps = [component.products(points, tile) for component in self.components]
        return lambda vectors: np.asarray(sum(each(vectors) for each in maps))

    def pullback(self, points: Array, lower: Array) -> Array:
        r"""Derivatives (k,) by ``theta`` of a function of the covariance matrix of points of bits (m, n).

        ``lower`` (m, m) holds its derivatives by the matrix, on and below the diagonal. With a table, the derivative by
        the prior variance of S is :math:`\sum_{ij} G_{ij} \chi_S(x_i) \chi_S(x_j)`. The characters depend only on the
        exclusive or of the points' numbers: a histogram of G over it and one Walsh-Hadamard transform give all
        :math:`2^n`.
        """
        tabled = [self._is_tabled(component, len(points)) for component in self.components]
        whole = by_spectrum = lower
        if not all(tabled):
            whole = lower + lower.T
            whole[np.diag_indices(len(whole))] = lower.diagonal()
        if any(tabled):
            sums = difference_sums(lower, codes_of(points), 2**self.n)
            by_spectrum = walsh_hadamard(sums, normalize=False, overwrite=True)
        return np.concatenate(
            [
                each.spectrum_pullback(by_spectrum) if by_table else each.covariance_pullback(points, whole)
                for each, by_table in zip(self.components, tabled, strict=True)
            ]
        )

    def spectrum_pullback(self, gradient: Array) -> Array:
        """Derivatives by ``theta``, given the derivatives (2**n,) by :attr:`spectrum`."""
        return np.concatenate([component.spectrum_pullback(gradient) for component in self.components])

    def derivatives(self, numbers: NDArray[np.intp]) -> Array:
        """Derivatives (N, k) of the spectrum at numbered subsets by ``theta``; n up to 20."""
        return np.concatenate([component.derivatives(numbers) for component in self.components], axis=1)

    def _is_tabled(self, component: Component, n_rows: int) -> bool:
        """Whether a table of all subsets gives a component's matrix of the rows: few rows need not pay for one."""
        return self.has_table and (component.needs_table or n_rows**2 > 2**self.n)

    def __repr__(self) -> str:
        return f"<CubeKernel on {self.n} coordinates: {' + '.join(map(_described, self.components))}>"


def _bits(X: ArrayLike, n: int) -> Array:
    points = checked_reals(X, "`X`")
    if points.ndim != 2 or points.shape[1] != n or not np.isin(points, (-1, 0, 1)).all():
        raise ValueError(f"`X` must hold points of the cube, signs or bits, of {n} columns; got shape {points.shape}.")
    if (points == 0).any() and (points == -1).any():
        raise ValueError("`X` holds 0 and -1; pass signs +1 and -1, or bits 0 and 1.")
    return (points > 0).astype(np.float64)  # which symbol is which does not matter: only differences count


def _described(component: Component) -> str:
    if component.is_product and component.by_site.size:
        return f"{component.variance:.4g} * product({', '.join(f'{rho:.3g}' for rho in component.correlations)})"
    named = {"degrees": len(component.by_degree) > 1, "sites": component.by_site.size, "pairs": component.by_pair.size}
    return " x ".join(name for name, there in named.items() if there)
