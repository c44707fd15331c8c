r"""A latent polynomial and its measurement by penalised maximum likelihood.

Parameters are :math:`\gamma = 1/\sigma`, the coefficients b of the latent in units of the noise (Olsen's [1]_), the
intercept :math:`b_0` among them, and the parameters c of the link. With the monomials z of a row less their means and
:math:`\eta = z^\top b` its residual is

.. math:: r = \gamma y - b_0 - \rho\, g_c(\eta / \rho), \qquad \rho^2 = 1 + \mathrm{mean}(\eta^2).

The curve g has slope about 1, so that shift and scale of the latent are fixed: a curve sees :math:`u = \eta / \rho`, of
variance about 1 where there is more signal than noise. With the identity r is linear, the penalised log-likelihood is
concave, and Newton's method finds its maximum from anywhere. With other links all second derivatives are kept, and
steps are damped where these are not positive definite or a step does not lead up; the first curve is a straight line.

The ridge penalty is a normal prior :math:`b_S \sim N(0, 1/\alpha_d)` for each size d of S. "auto" maximises the
marginal likelihood by MacKay's rule :math:`\alpha_d = (D_d - \alpha_d\, \mathrm{tr}_d\, \Sigma) / |b_d|^2` with the
covariance :math:`\Sigma` [2]_, up to :math:`\alpha_d = m` measured rows: no prior weighs more than they do. As it is in
units of the noise, the mode has the noise of restricted maximum likelihood: squares over rows less parameters. The
link's parameters, which have other units, are subtracted from the rows. A spline's roughness is learned as a penalty.

References
----------
.. [1] R. J. Olsen, "Note on the uniqueness of the maximum likelihood estimator for the Tobit model", Econometrica 1978.
.. [2] D. J. C. MacKay, "Bayesian interpolation", Neural Computation 1992.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent import newton
from sparsact.learners.latent.links import Link
from sparsact.learners.latent.monomials import CentredMonomials
from sparsact.learners.latent.newton import MAX_ITER
from sparsact.learners.latent.targets import Targets, residual_terms

LEAST_NOISE: Final = 1e-3  # standard deviation, in that of the targets
SETTLED: Final = 1e-2  # change of a penalty's logarithm, and of the parameters learned in turn with it
LEAST_PENALTY: Final = 1e-8
_MOST_AHEAD: Final = 8.0  # changes of a penalty at a time
_DIFFERENCES: Final = 5.0  # prior weight of a spline's roughness


@dataclass(frozen=True, eq=False)
class LatentPolynomial:
    r"""Parameters of greatest penalised likelihood.

    Attributes
    ----------
    precision : float
        :math:`\gamma`, one over the noise's standard deviation.
    b, c : ndarray of shape (p,), (k,)
        Coefficients of the latent in units of the noise, the intercept first, and parameters of the link.
    penalty : ndarray of shape (p + k,)
        :math:`\alpha` of each of these, 0 of the intercept.
    information : ndarray of shape (1 + p + k, 1 + p + k)
        Negative second derivatives of the penalised log-likelihood.
    spent : float
        Number of parameters of the link that the rows determine: the noise has that many degrees of freedom less.
    steps : int
        Steps that led here.
    converged : bool
        Whether Newton's method (and the penalties, where they are learned) came to rest.
    """

    precision: float
    b: Array
    c: Array
    penalty: Array
    information: Array
    spent: float = 0.0
    steps: int = 0
    converged: bool = False

    @cached_property
    def covariance(self) -> Array:
        """Covariance of all parameters: the inverse of the information."""
        return newton.inverse(self.information)

    @property
    def conditional(self) -> Array:
        """Covariance (p, p) of the latent's coefficients given the other parameters."""
        own = slice(1, 1 + len(self.b))
        return newton.inverse(self.information[own, own])


@dataclass(frozen=True, eq=False)
class PolynomialProblem:
    """Monomials (m, p - 1) less their means, their sizes, and the targets of the rows, of about unit variance."""

    monomials: CentredMonomials
    sizes: NDArray[np.intp]
    targets: Targets
    link: Link

    @cached_property
    def _products(self) -> Array:
        """Mean products (p - 1, p - 1) of the monomials over the rows."""
        weights = self.targets.weights
        return np.asarray(self.monomials.products(weights) / weights.sum())

    def deviation(self, b: Array) -> tuple[float, Array]:
        r""":math:`\rho`, and its derivatives (p - 1,) by the coefficients but the intercept."""
        by = self._products @ b[1:]
        size = float(np.sqrt(1 + by @ b[1:]))
        return size, by / size

    def terms(self, at: LatentPolynomial) -> tuple[float, Array, Array]:
        """Penalised log-likelihood, its gradient and negative second derivatives."""
        targets, p = self.targets, len(at.b)
        total = max(targets.measured - at.spent, 1.0)
        size, by_b = self.deviation(at.b)
        u = self.monomials.values(at.b[1:]) / size
        curve = self.link.curve(u, at.c)
        found = residual_terms(at.precision * targets.y - at.b[0] - size * curve.value, targets.side)
        value, slope, curvature = (targets.weights * each for each in found)
        parameters = np.concatenate([at.b, at.c])
        objective = (
            value.sum()
            + total * (np.log(at.precision) - 0.5 * (LEAST_NOISE * at.precision) ** 2)
            - 0.5 * at.penalty @ parameters**2
        )
        # Derivatives of -r by gamma, b_0, c and rho, the direction of the latent held, and of these by all parameters.
        # rho * g(eta / rho) is homogeneous, so that direction and rho have no second derivatives in common.
        few = np.column_stack([-targets.y, np.ones_like(u), size * curve.by_parameters, curve.value])
        to_few = np.zeros((few.shape[1], 1 + p + len(at.c)))
        to_few[[0, 1], [0, 1]] = 1.0
        to_few[2:-1, 1 + p :] = np.eye(len(at.c))
        to_few[-1, 2 : 1 + p] = by_b
        # A monomial's direction is the rest, z - u rho'; only its products with others are needed.
        steep, own = slope * curve.slope, slice(2, 1 + p)
        mixed = curvature[:, None] * curve.slope[:, None] * few
        mixed[:, 2:-1] += slope[:, None] * curve.slope_by_parameters
        square = (few * curvature[:, None]).T @ few
        square[2:-1, 2:-1] += size * self.link.curvature(u, at.c, slope)
        with_size = slope @ curve.by_parameters
        square[2:-1, -1] += with_size
        square[-1, 2:-1] += with_size
        gradient = -(slope @ few) @ to_few
        gradient[own] -= self.monomials.sums(steep) - (u @ steep) * by_b
        hessian = to_few.T @ square @ to_few
        across = (self.monomials.sums(mixed) - np.outer(by_b, u @ mixed)) @ to_few
        hessian[own] += across
        hessian[:, own] += across.T
        each = curvature * curve.slope**2 + slope * curve.bend / size
        products, turned = self.monomials.products(each), each @ u**2
        if len(at.c):  # else rho cancels
            bent = slope @ (curve.value - u * curve.slope) / size
            products += bent * self._products
            turned -= bent
        with_u = np.outer(by_b, self.monomials.sums(each * u) - turned / 2 * by_b)
        products -= with_u
        products -= with_u.T
        hessian[own, own] += products
        gradient[0] += total * (1 / at.precision - LEAST_NOISE**2 * at.precision)
        hessian[0, 0] += total * (1 / at.precision**2 + LEAST_NOISE**2)
        gradient[1:] -= at.penalty * parameters
        hessian[range(1, len(hessian)), range(1, len(hessian))] += at.penalty
        return float(objective), gradient, hessian

    def maximum(self, at: LatentPolynomial, max_iter: int = MAX_ITER) -> LatentPolynomial:
        """Newton's method for a given penalty."""

        def placed(parameters: Array) -> LatentPolynomial:
            b, c = np.split(parameters[1:], [len(at.b)])
            return replace(at, precision=float(parameters[0]), b=b, c=c)

        found = newton.maximum(
            lambda parameters: self.terms(placed(parameters)),
            lambda parameters: bool(parameters[0] > 0),
            np.concatenate([[at.precision], at.b, at.c]),
            max_iter,
        )
        best = placed(found.value.parameters)
        steps = at.steps + found.steps
        return replace(best, information=found.value.information, steps=steps, converged=found.converged)

    def fitted(self, start: LatentPolynomial, alpha: float | None, max_iter: int = MAX_ITER) -> LatentPolynomial:
        """The maximum for a penalty of all but the intercept, or for the penalties of greatest marginal likelihood."""
        groups, most = self._groups(alpha), max(self.targets.measured, 1.0)
        at, before = start, (start.penalty, np.full_like(start.penalty, np.nan))  # no change was seen yet
        for _ in range(max_iter):
            at = self.maximum(at, max_iter)
            updated = self._updated(at, groups)
            spent = 0.0  # of the link; where the posterior is wider than the prior, none
            if len(at.c):
                spent = max(float((1 - at.penalty * at.covariance.diagonal()[1:])[len(at.b) :].sum()), 0.0)
            place = np.log(at.penalty + LEAST_PENALTY)
            change = np.log(updated + LEAST_PENALTY) - place
            if max(np.abs(change).max(), abs(spent - at.spent)) < SETTLED:
                return at
            # The rule closes a fixed share of the distance at a time, often a fifth: by two changes one sees the rest.
            moved, slower = place - before[0], before[1] - change
            shares = np.divide(moved, slower, out=np.ones_like(moved), where=moved * slower > 0)
            ahead = np.exp(place + shares.clip(1, _MOST_AHEAD) * change).clip(LEAST_PENALTY, most)
            before = place, change
            at = replace(at, penalty=np.where(updated == at.penalty, updated, ahead), spent=spent)
        return replace(self.maximum(at, max_iter), converged=False)

    def _groups(self, alpha: float | None) -> list[NDArray[np.bool_]]:
        """Parameters (p + k,) that share a penalty that is learned."""
        k = self.link.n_parameters
        sizes = np.concatenate([[0], self.sizes, np.full(k, -1)])
        learned = [] if alpha is not None else np.unique(self.sizes).tolist()
        return [sizes == size for size in learned + [-1] * self.link.learns_penalty]

    def _updated(self, at: LatentPolynomial, groups: list[NDArray[np.bool_]]) -> Array:
        """MacKay's penalties (p + k,)."""
        parameters, penalty = np.concatenate([at.b, at.c]), at.penalty.copy()
        largest = max(self.targets.measured, 1.0)
        variances = at.covariance.diagonal()[1:] if groups else parameters
        for own in groups:
            known = max(float((1 - penalty[own] * variances[own]).sum()), 0.0)
            # One more parameter of one standard error stands for the prior of a ridge penalty. Few rows say little of a
            # roughness: five differences of their usual deviation stand for its prior.
            more, squares = (1.0, 1 / largest) if own[: len(at.b)].any() else (_DIFFERENCES, _DIFFERENCES)
            found = (known + more) / ((parameters[own] ** 2).sum() + squares)
            penalty[own] = np.clip(found, LEAST_PENALTY, largest)
        return penalty
