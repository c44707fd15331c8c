r"""More monomials than rows: the same least squares through an N x N matrix.

The Gram matrix between points of the monomials of degree a..d depends only on the Hamming distance h:
:math:`K(h) = \sum_{j=a}^{d} \mathcal{K}_j(h; n)`, a sum of Krawtchouk polynomials
:math:`\mathcal{K}_j(h; n) = \sum_i (-1)^i \binom{h}{i}\binom{n-h}{j-i}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.bounds.unexplained import krawtchouk
from sparsact.hypercube import Masks
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.low_degree.coefficient_precision import Design
from sparsact.learners.low_degree.compact_sums import distinct_points_of
from sparsact.learners.low_degree.distinct_points import DistinctPoints, correlations
from sparsact.learners.low_degree.factor import Factor
from sparsact.learners.low_degree.identification import PRIMES, reduced_echelon, residues
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Penalty, Solution
from sparsact.learners.low_degree.real_columns import monomials
from sparsact.learners.low_degree.solvers.solver import (
    LowDegreeStatistic,
    ProblemSize,
    Solver,
    SolverPlan,
    ending,
    judged,
)
from sparsact.learners.points import Points, unpack
from sparsact.statistics.exact_sum import ExactSum

_VALUES_AT_ONCE: Final = 1 << 22
_MAX_WALK: Final = 1 << 16  # monomials; beyond, values are computed without coefficients
_MONOMIALS_AT_ONCE: Final = 1 << 12


class KernelSolver(Solver):
    """Ridge by an N x N system over the N distinct points."""

    name = "kernel"

    def cost(self, size: ProblemSize) -> SolverPlan | str:
        """What a fit needs, or why the kernel cannot serve it."""
        d, m = size.n_monomials, size.n_rows
        if size.degree_range is None or size.explicit_gram:
            return (
                'solver="kernel" serves least squares on all subsets of the sizes; pass solver="auto" for a list of '
                "subsets or the lasso."
            )
        reason = f"{d:,} monomials exceed the {m:,} rows: the kernel over Hamming distances is the smaller system"
        return SolverPlan(self, 28.0 * m * m + size.nbytes, reason, 0 if d > m else None, explicit_gram=False)

    def solve(
        self, statistic: LowDegreeStatistic, family: Family, penalty: Penalty, plan: SolverPlan, *, n_threads: int
    ) -> Solution:
        """The polynomial of a family that fits the rows of a statistic."""
        points = distinct_points_of(self.on_points(statistic))
        polynomial, design, factor = solve_dual(points, family, penalty)
        mean = points.totals.sums.to_float() / points.weight if penalty.fit_intercept else np.zeros(points.n_targets)
        reason = plan.reason + ending(factor)
        return judged(points, polynomial, self, reason, penalty, mean, design, n_threads=n_threads)


def krawtchouk_sums(n: int, degree: int, min_degree: int) -> list[int]:
    """Kernel value at every Hamming distance 0..n, exactly."""
    return list(krawtchouk(n, degree)[min_degree:].sum(axis=0).tolist())


class DualPolynomial(FittedPolynomial):
    """A polynomial as a combination of kernel functions at N points; its coefficients are found when first needed.

    Attributes
    ----------
    points : Points
        The N points.
    weights : ndarray of shape (N, T)
        ``coef[S] = sum_i weights[i] * chi_S(x_i)``: the coefficients in the primal.
    kernel : ndarray of shape (n + 1,)
        Kernel value at each Hamming distance.
    """

    def __init__(
        self,
        family: Family,
        points: Points,
        weights: NDArray[np.float64],
        kernel: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> None:
        self.family, self.intercept = family, intercept
        self.points, self.weights, self.kernel = points, weights, kernel

    @cached_property
    def coef(self) -> NDArray[np.float64]:  # type: ignore[override] # found when it is first read
        """Coefficients (D, T), by exact sums."""
        weights = ExactSum.of(np.ascontiguousarray(self.weights.T))
        order = np.lexsort(self.family.masks.T)
        coef = np.empty((len(self.family), self.weights.shape[1]))
        coef[order] = correlations(self.points, weights, self.family.masks[order]).to_float().T
        return coef

    @property
    def has_many_monomials(self) -> bool:
        """Whether values are computed without the coefficients, which are too many."""
        return len(self.family) > _MAX_WALK

    def undo_scaling(self, unit: float, origin: NDArray[np.float64]) -> DualPolynomial:
        """Polynomial of the targets themselves, if this was fitted to targets / unit - origin (T,)."""
        intercept = (self.intercept + origin) * unit
        twin = DualPolynomial(self.family, self.points, self.weights * unit, self.kernel, intercept)
        if "coef" in vars(self):
            twin.coef = self.coef * unit
        return twin

    def _sums(self, points: Points, n_threads: int) -> NDArray[np.float64]:
        """Values without the intercept; of many monomials by ``m * N`` distances, one matrix product."""
        if not self.has_many_monomials:
            return super()._sums(points, n_threads)
        here, there = unpack(self.points).astype(np.float32), unpack(points)
        values = np.empty((len(there), self.weights.shape[1]))
        step = max(1, _VALUES_AT_ONCE // max(1, len(here)))
        for start in range(0, len(there), step):
            rows = slice(start, start + step)
            values[rows] = between(there[rows].astype(np.float32), here, self.kernel) @ self.weights
        return values


class DualSystem(NamedTuple):
    """``S K S + alpha`` of :func:`solve_dual`: its factor, and how many of its effective parameters are none."""

    kernel: NDArray[np.float64]
    factor: Factor
    filled: float
    root: NDArray[np.float64]
    share: NDArray[np.float64]
    row_mean: NDArray[np.float64]

    @classmethod
    def of(
        cls, points: Points, weights: NDArray[np.float64], family: Family, alpha: float, *, fit_intercept: bool
    ) -> DualSystem:
        """The system of distinct points with weights, (N,)."""
        sums = _kernel_sums(family)
        kernel = np.array([float(value) for value in sums])
        signs = unpack(points).astype(np.float32)
        gram = between(signs, signs, kernel)
        root, share = np.sqrt(weights), weights / weights.sum()
        row_mean, filled = gram @ share, 0.0
        if fit_intercept:
            gram += share @ row_mean - row_mean[:, None] - row_mean
        gram *= np.outer(root, root)
        if fit_intercept:
            # The centred matrix sends `root` to 0, and the right-hand side is orthogonal to it: fill the hole.
            hole = max(kernel[0], 1.0) * weights.sum() / len(gram)
            gram += hole * np.outer(root, root) / weights.sum()
            filled = hole / (hole + alpha)
        factor = Factor(gram, alpha, lambda: kernel_rank(points, sums, fit_intercept=fit_intercept))
        return cls(kernel, factor, filled, root, share, row_mean)


@dataclass(eq=False)
class KernelDesign(Design):
    """What the N points, of these weights, say of the coefficients; files of earlier versions hold no weights."""

    points: Points
    family: Family
    fit_intercept: bool
    weights: NDArray[np.float64] | None
    systems: dict[float, DualSystem] = field(default_factory=dict)

    def dual(self, alpha: float) -> DualSystem | None:
        """The dual system, where the weights are known; that of the last penalty is kept."""
        if self.weights is None:
            return None
        if alpha not in self.systems:
            self.systems = {
                alpha: DualSystem.of(self.points, self.weights, self.family, alpha, fit_intercept=self.fit_intercept)
            }
        return self.systems[alpha]

    def effective_parameters(self, alpha: float) -> float:
        """Effective parameters, the intercept not counted."""
        system = self.dual(alpha)
        return float(len(self.family)) if system is None else system.factor.effective_parameters - system.filled

    def contrast_variances(
        self, signs: NDArray[np.float64], weights: csr_array, masks: Masks, alpha: float
    ) -> NDArray[np.float64] | None:
        """Posterior variances (k,) of contrasts per unit of residual variance, by the dual system."""
        system = self.dual(alpha) if alpha else None
        if system is None:
            return None
        kernel = np.array([float(value) for value in _kernel_sums(self.family)])
        here, there = signs.astype(np.float32), unpack(self.points).astype(np.float32)
        cross = weights @ between(here, there, kernel)
        if self.fit_intercept:
            cross -= (cross @ system.share)[:, None]
        cross *= system.root
        prior = ((weights @ between(here, here, kernel)) * weights.toarray()).sum(axis=1)
        explained = np.einsum("km,mk->k", cross, system.factor.solve(cross.T))
        return np.asarray(np.maximum(prior - explained, 0.0) / alpha)

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the points determine each coefficient of ``[(), *family]``, (D + 1,), exactly.

        With the design A of all coefficients, v random and ``A A' a = A v``, ``v - A' a`` is a random null vector of A,
        here modulo a prime: zero at the coefficients that the points determine, at any other with a chance of one in
        the prime; ``4 N D`` multiplications a prime.
        """
        signs, found = unpack(self.points).astype(np.float64), np.ones(len(self.family) + 1, dtype=bool)
        rng = np.random.default_rng(0)
        for prime in PRIMES:
            vector = rng.integers(0, prime, len(found)).astype(np.float64)
            vector[0] *= self.fit_intercept
            images = np.full(len(signs), vector[0])
            for places, features in _monomials_in_blocks(signs, self.family):
                images = residues(images + features @ vector[places], prime)
            combination = self._solved(images, prime)
            found[0] &= residues(combination.sum(keepdims=True), prime)[0] == vector[0] or not self.fit_intercept
            for places, features in _monomials_in_blocks(signs, self.family):
                found[places] &= residues(combination @ features, prime) == vector[places]
        return found

    def _solved(self, images: NDArray[np.float64], prime: int) -> NDArray[np.float64]:
        """Solution a of ``A A' a = images`` modulo a prime, (N,)."""
        gram = _residues_between(self.points, _kernel_sums(self.family), prime, int(self.fit_intercept))
        pivots, rows = reduced_echelon(np.concatenate([gram, images[:, None]], axis=1), prime)
        solution = np.zeros(len(images))
        kept = pivots < len(images)
        solution[pivots[kept]] = rows[kept, -1]
        return solution


def _kernel_sums(family: Family) -> list[int]:
    assert family.degree_range is not None  # noqa: S101 - the solver refuses lists
    return krawtchouk_sums(family.n, *family.degree_range[::-1])


def _monomials_in_blocks(
    signs: NDArray[np.float64], family: Family
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Places in ``[(), *family]``, and the monomials there, (N, block)."""
    for start in range(0, len(family), _MONOMIALS_AT_ONCE):
        places = np.arange(start, min(start + _MONOMIALS_AT_ONCE, len(family)))
        yield places + 1, monomials(signs, family.part(places))


def _residues_between(points: Points, kernel: list[int], prime: int, added: int) -> NDArray[np.float64]:
    signs = unpack(points).astype(np.float32)
    return between(signs, signs, np.array([(value + added) % prime for value in kernel], dtype=np.float64))


def between(a: NDArray[np.float32], b: NDArray[np.float32], kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kernel values (len(a), len(b)) between signs: the distance ``(n - <a, b>) / 2`` is exact in float32."""
    with blas_threads(a.size * len(b)):
        distance = ((a.shape[1] - a @ b.T) / 2).astype(np.int32)
    return np.asarray(np.take(kernel, distance))


def kernel_rank(points: Points, kernel: list[int], *, fit_intercept: bool) -> int:
    """Rank of the monomials over distinct points, with a column of ones if there is an intercept."""
    return max(
        len(reduced_echelon(_residues_between(points, kernel, prime, int(fit_intercept)), prime)[0]) for prime in PRIMES
    )


def solve_dual(rows: DistinctPoints, family: Family, penalty: Penalty) -> tuple[DualPolynomial, KernelDesign, Factor]:
    """Least squares of least norm (ridge for alpha > 0) over distinct points, by a dual of N weights.

    With S the square roots of the weights, K the kernel centred by their mean, solves ``(S K S + alpha) z = S y`` and
    returns ``S z``, centred. ``N**2 n + N**3 / 3`` multiplications and ``24 N**2`` bytes.
    """
    rows.deduplicate()
    kept = np.flatnonzero(rows.weights.to_float() > 0)
    weights = rows.weights.take(kept).to_float()
    targets = rows.sums.take(kept).to_float().T / weights[:, None]
    points = Points.from_codes(np.ascontiguousarray(rows.codes[kept]), rows.n)
    system = DualSystem.of(points, weights, family, penalty.alpha, fit_intercept=penalty.fit_intercept)
    design = KernelDesign(points, family, penalty.fit_intercept, weights, {penalty.alpha: system})
    root, share = system.root, system.share
    intercept = share @ targets if penalty.fit_intercept else np.zeros(rows.n_targets)
    weights = root[:, None] * system.factor.solve(root[:, None] * (targets - intercept))
    if penalty.fit_intercept:
        intercept = intercept - system.row_mean @ weights + (share @ system.row_mean) * weights.sum(axis=0)
        weights = weights - np.outer(share, weights.sum(axis=0))
    return DualPolynomial(family, points, weights, system.kernel, intercept), design, system.factor
