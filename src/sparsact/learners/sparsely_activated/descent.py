r"""Descent from any units to a k-sparse network, and its thinning to fewer units.

With :math:`u_j = \pm 1`, units :math:`\theta_j` and rows a of the design, the penalised risk is

.. math:: \frac{1}{2} \sum_i p_i \Big(\sum_j u_j\, \sigma(\langle \theta_j, a_i \rangle) - y_i\Big)^2
          + \frac{\mu}{2} \sum_i p_i \sum_{j \notin \mathrm{top}_k(i)} \sigma(\langle \theta_j, a_i \rangle)^2

with shares :math:`p_i` of the weight that sum to one. It is piecewise quadratic. On a piece where rows switch on one
unit each, its Hessian consists of the blocks :math:`D_j` of single units; so L-BFGS moves
:math:`D_j^{1/2} \theta_j`, and ends there within a few iterations, whatever the columns' correlations.

A unit is worth what the risk rises by when it goes and the other outputs are scaled to fit again:
:math:`c_j^2 / (G^{-1})_{jj}`, with G the Gram matrix of the outputs and c their coefficients of least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.optimize import OptimizeResult, minimize

from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits, NormLimits, excess_of, separated
from sparsact.statistics.solved import Solved

Floats = NDArray[Any]  # float32 while a network is sought, float64 at the end
PENALTIES: Final = (3.0, 30.0, 300.0, 3000.0)
RIDGE: Final = 1e-3  # of all rows' second moments, added to the moments of the rows that switch a unit on
GRAM_RIDGE: Final = 1e-9
LEAST_FACTOR: Final = 0.05  # of a unit that is kept
MOST_WORK: Final = 1e10  # multiplications of the blocks' factors
MARGIN_PENALTIES: Final = (0.1, 0.01)  # one after another
MARGIN_COST: Final = 1.003  # rise of the risk that margins may cost: what units that leak gain is a fit to noise
MEMORY: Final = 20  # corrections of L-BFGS
OUT_OF_STEPS: Final = 1  # status of a descent by SciPy
WINDOW, LEAST_FALL = 10, 1e-5  # iterations, and the share by which the risk must fall within them, or the descent ends
HARMLESS, NEGLIGIBLE = 1.001, 1e-14  # rise of the risk, and share of the targets' mean square, that thresholds may cost


@dataclass(frozen=True, eq=False)
class PenalisedRisk:
    """The penalised risk of units on some rows.

    Attributes
    ----------
    design, targets, shares : ndarray of shape (m, n + 1), (m,), (m,)
        The rows, and their shares of the weight.
    max_active : int
        k.
    limits : NormLimits
        Units are shrunk into these.
    """

    design: Floats
    targets: Floats
    shares: Floats
    max_active: int
    limits: NormLimits

    @classmethod
    def of(
        cls, sample: TrainingSample, max_active: int, limits: NormLimits, dtype: DTypeLike = np.float64
    ) -> PenalisedRisk:
        """The risk on the rows of a sample."""
        design, targets, shares = (
            each.astype(dtype, copy=False) for each in (sample.design, sample.targets, sample.weights / sample.total)
        )
        return cls(design, targets, shares, max_active, limits)

    @np.errstate(invalid="ignore")  # OpenBLAS multiplies padding of any content, and drops it
    def __call__(self, units: GateUnits, penalty: float, shifts: Floats | None = None) -> tuple[float, Floats]:
        """The value, and the gradient (s, n + 1) along the units as they are before they are shrunk."""
        factors, along = self.limits.shrinkage(units.theta)
        theta = (factors[:, None] * units.theta).astype(self.design.dtype, copy=False)
        signs = units.signs.astype(self.design.dtype)
        linear = self.design @ theta.T
        outputs = np.maximum(linear, 0)
        on = outputs > 0
        errors = outputs @ signs - self.targets
        residuals = self.shares * errors
        slopes = on * residuals[:, None]
        slopes *= signs
        value = float(residuals @ errors)
        if penalty:
            rows, excess = self._excess(linear, shifts)
            weighted = excess * (self.design.dtype.type(penalty) * self.shares[rows])[:, None]
            slopes[rows] += weighted
            value += float(np.vdot(weighted, excess))
        gradient = (slopes.T @ self.design).astype(np.float64)
        if self.limits.bind:
            gradient = factors[:, None] * gradient + (gradient * units.theta).sum(axis=1)[:, None] * along
        return value / 2, gradient

    def _excess(self, linear: Floats, shifts: Floats | None) -> tuple[Any, Floats]:
        r"""Rows, and what a unit's :math:`\sigma(z)` is there unless it is among the k largest, else zero.

        With shifts (m, s) it is :math:`\sigma(z + \text{shift})` on all rows.
        """
        if shifts is None:
            crowded = np.flatnonzero(np.count_nonzero(linear > 0, axis=1) > self.max_active)
            return crowded, excess_of(np.maximum(linear[crowded], 0), self.max_active)
        return slice(None), np.maximum(linear + shifts, 0)

    def shifts(self, units: GateUnits, margins: Array) -> Floats:
        """The margin of each unit (m, s) where it is to be off; minus infinity where it is among the k largest."""
        outputs = np.maximum(self.design @ units.theta.T, 0)
        kept = (outputs > 0) & (excess_of(outputs, self.max_active) == 0)
        return np.where(kept, -np.inf, margins)

    def minimised(
        self,
        units: GateUnits,
        penalty: float,
        max_iter: int,
        free: NDArray[np.bool_] | None = None,
        shifts: Floats | None = None,
    ) -> Solved[GateUnits]:
        """Units near the given ones that minimise the risk; only ``free`` weights change. The residual is the gradient.

        ``max_iter`` is the budget of one of many descents of a search that compares where they end: it may run out.
        """
        steps = self._steps(units, penalty, free, shifts)
        moved = np.ones_like(units.theta) if free is None else free

        def at(flat: Floats) -> GateUnits:
            shift = (moved * flat.reshape(units.theta.shape))[:, None, :] @ steps
            return GateUnits(units.signs, units.theta + shift[:, 0])

        def objective(flat: Floats) -> tuple[float, Floats]:
            value, gradient = self(at(flat), penalty, shifts)
            return value, (moved * (gradient[:, None, :] @ steps.transpose(0, 2, 1))[:, 0]).ravel()

        exact = self.design.dtype == np.float64
        gtol = 1e-12 if exact else 1e-7
        values = [np.inf]

        def settled(intermediate_result: OptimizeResult) -> None:
            values.append(intermediate_result.fun)
            if len(values) > WINDOW and values[-1] > (1 - LEAST_FALL) * values[-WINDOW]:
                raise StopIteration

        found = minimize(
            objective,
            np.zeros(units.theta.size),
            jac=True,
            method="L-BFGS-B",
            callback=settled,
            options={
                "maxiter": max_iter,
                "maxfun": 2 * max_iter,
                "maxcor": MEMORY,
                "ftol": 1e-15 if exact else 1e-8,
                "gtol": gtol,
            },
        )
        units = at(found.x)
        units = GateUnits(units.signs, self.limits.shrunk(units.theta))
        return Solved(units, int(found.nit), float(np.abs(found.jac).max()), gtol, found.status != OUT_OF_STEPS)

    def _steps(self, units: GateUnits, penalty: float, free: NDArray[np.bool_] | None, shifts: Floats | None) -> Floats:
        """Inverse square roots (s, n + 1, n + 1) of the Hessian's blocks; one identity if these are too large."""
        n_columns = self.design.shape[1]
        if len(units) * n_columns**3 > MOST_WORK:
            return np.eye(n_columns)[None]
        design = self.design.astype(np.float64)
        linear = design @ units.theta.T
        weights = (linear > 0) * self.shares[:, None]
        if penalty:
            rows, excess = self._excess(linear, shifts)
            weights[rows] += (excess > 0) * (penalty * self.shares[rows])[:, None]
        everywhere = design.T @ (self.shares[:, None] * design)
        everywhere += np.eye(n_columns) * (1e-6 * np.trace(everywhere) / n_columns)
        blocks = np.empty((len(units), n_columns, n_columns))
        for block, weight in zip(blocks, weights.T, strict=True):
            rows = np.flatnonzero(weight)
            near = design[rows]
            block[:] = near.T @ (weight[rows, None] * near)
        blocks += RIDGE * everywhere
        if free is not None:
            blocks *= free[:, :, None] & free[:, None, :]
            blocks += np.eye(n_columns) * ~free[:, :, None]
        return np.asarray(np.linalg.inv(np.linalg.cholesky(blocks)))

    def in_class(
        self, units: GateUnits, sample: TrainingSample, max_iter: int, free: NDArray[np.bool_] | None = None
    ) -> tuple[GateUnits, int]:
        """A k-sparse network near the units, and the iterations.

        Without a penalty, and thresholds raised if that costs next to nothing; else with rising penalties before.
        """
        found = self.minimised(units, 0.0, max_iter, free)
        plain, iterations = found.value, found.steps
        sparse = separated(plain, sample, self.max_active)
        if self(sparse, 0.0)[0] > HARMLESS * self(plain, 0.0)[0] + NEGLIGIBLE:
            for penalty in PENALTIES:
                found = self.minimised(units, penalty, max(1, max_iter // len(PENALTIES)), free)
                units, iterations = found.value, iterations + found.steps
            penalised = separated(units, sample, self.max_active)
            sparse = min(sparse, penalised, key=lambda each: self(each, 0.0)[0])
        if free is None:
            sparse, more = self._apart(sparse, sample, max(1, max_iter // 4))
            iterations += more
        return sparse, iterations

    def _apart(self, units: GateUnits, sample: TrainingSample, max_iter: int) -> tuple[GateUnits, int]:
        """Units about as good on the rows, and lower where they are off, and the iterations.

        Weights that the rows of a unit leave open, as for gates, are chosen such that it is off at other
        rows by its mean output. So it stays off at new rows. The last penalty, on the excess alone, moves the rest.
        """
        outputs = np.maximum(self.design @ units.theta.T, 0)
        margins = (self.shares @ outputs) / np.maximum(self.shares @ (outputs > 0), 1e-30)
        apart, iterations = units, 0
        for penalty in (*MARGIN_PENALTIES, PENALTIES[-1]):
            shifts = self.shifts(apart, margins) if penalty in MARGIN_PENALTIES else None
            found = self.minimised(apart, penalty, max_iter, None, shifts)
            apart, iterations = found.value, iterations + found.steps
        apart = separated(apart, sample, self.max_active)
        good = self(apart, 0.0)[0] <= MARGIN_COST * self(units, 0.0)[0] + NEGLIGIBLE
        return apart if good else units, iterations

    def without(self, units: GateUnits, n_removed: int) -> GateUnits:
        """Remove the units that count least, one by one, and return the others, their outputs scaled to fit again."""
        outputs = np.maximum(self.design @ units.theta.T.astype(self.design.dtype), 0)
        weighted = outputs * self.shares[:, None]
        gram = (outputs.T @ weighted).astype(np.float64)
        gram[np.diag_indices_from(gram)] += GRAM_RIDGE * max(np.trace(gram), 1e-30) / len(gram)
        inverse = np.linalg.inv(gram)
        coefficients = inverse @ (self.targets @ weighted)
        kept = list(range(len(units)))
        for _ in range(n_removed):
            costs = coefficients[kept] ** 2 / inverse[kept, kept]
            gone = kept.pop(int(np.argmin(costs)))
            column = inverse[:, gone] / inverse[gone, gone]
            coefficients = coefficients - column * coefficients[gone]
            inverse = inverse - np.outer(column, inverse[gone])
        factors = np.maximum(coefficients * units.signs, LEAST_FACTOR)[kept]
        return GateUnits(units.signs[kept], units.theta[kept] * factors[:, None])
