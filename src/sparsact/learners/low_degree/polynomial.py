"""What a low-degree learner returns: a real polynomial on the cube, several targets at once."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.learners.low_degree.correlations import correlations
from sparsact.learners.low_degree.dual import Dual
from sparsact.learners.low_degree.family import Family
from sparsact.learners.points import Points
from sparsact.statistics.exact_sum import ExactSum

_MAX_TABLE_N = 20
_MAX_TABLE = 1 << 22
_MAX_WALK = 1 << 16  # monomials; beyond, a dual answers without its coefficients


class FittedPolynomial:
    """``intercept_t + sum_S coef[S, t] * chi_S(x)``.

    Attributes
    ----------
    family : Family
        The subsets, D of them.
    intercept : ndarray of shape (T,)
        Coefficients of the empty subset.
    dual : Dual or None
        The same polynomial through kernel functions, when it was fitted so.
    """

    def __init__(
        self,
        family: Family,
        coef: NDArray[np.float64] | None,
        intercept: NDArray[np.float64],
        dual: Dual | None = None,
    ) -> None:
        self.family = family
        self.intercept = intercept
        self.dual = dual
        if coef is not None:
            self.coef = coef

    @cached_property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients (D, T); from a dual, computed exactly when first asked for."""
        assert self.dual is not None  # noqa: S101 - the constructor stored coef otherwise
        weights = ExactSum.of(np.ascontiguousarray(self.dual.weights.T))
        order = np.lexsort(self.family.masks.T)
        coef = np.empty((len(self.family), len(self.intercept)))
        coef[order] = correlations(self.dual.points, weights, self.family.masks[order]).to_float().T
        return coef

    def plus(self, constants: NDArray[np.float64]) -> FittedPolynomial:
        """The polynomial plus a constant for each target, (T,)."""
        return FittedPolynomial(self.family, self.__dict__.get("coef"), self.intercept + constants, self.dual)

    def times(self, factor: float) -> FittedPolynomial:
        """The polynomial times a number."""
        dual = None if self.dual is None else replace(self.dual, weights=self.dual.weights * factor)
        coef = self.coef * factor if "coef" in self.__dict__ else None  # of a dual they cost much: never found twice
        return FittedPolynomial(self.family, coef, self.intercept * factor, dual)

    def values(self, points: Points, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Values (m, T) at packed points: by a table, a walk over the monomials, or the dual if there are very many.

        The choice does not depend on the points: by table and by walk a row has the same bits in every batch.
        """
        if self._tabulated:
            return np.asarray(self.table[points.codes()[:, 0].astype(np.intp)])
        if self.dual is not None and len(self.family) > _MAX_WALK:
            return self.dual.values(points) + self.intercept
        walk = kernels.evaluate_packed(points.columns, points.n_rows, *self._walk, n_threads=n_threads)
        return np.asarray(walk + self.intercept)

    @property
    def _tabulated(self) -> bool:
        """Whether one transform costs less than about a thousand walks, and the table is small."""
        n, n_targets = self.family.n, len(self.intercept)
        return n <= _MAX_TABLE_N and 2**n <= 4096 * len(self.family) and n_targets * 2**n <= _MAX_TABLE

    def values_at_reals(self, X: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Values (m, T) of the multilinear polynomial at real rows (m, n)."""
        return kernels.evaluate(np.ascontiguousarray(X), *self._walk, n_threads=n_threads) + self.intercept

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Values (2**n, T) at every point of the cube, by one transform a target."""
        table = np.zeros((len(self.intercept), 2**self.family.n))
        table[:, self.family.masks[:, 0].astype(np.intp)] = self.coef.T
        table[:, 0] += self.intercept
        kernels.walsh_hadamard(table)
        return np.ascontiguousarray(table.T)

    @cached_property
    def _walk(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Masks and coefficients in the order in which neighbours share the most coordinates."""
        order = np.lexsort(self.family.masks.T)
        return np.ascontiguousarray(self.family.masks[order]), np.ascontiguousarray(self.coef[order])
