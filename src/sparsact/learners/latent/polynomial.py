r"""A latent polynomial and its measurement by penalised maximum likelihood.

Parameters are :math:`\gamma = 1/\sigma`, the latent's coefficients b in units of the noise (Olsen's [1]_) and those of
the link, c. With the monomials z of a row and :math:`f = z^\top b / \gamma` its residual is
:math:`r = \gamma (y - g_c(f))`. With the identity it is linear, :math:`r = \gamma y - z^\top b`, the penalised
log-likelihood is concave, and Newton's method finds its maximum from anywhere. With other links second derivatives of r
are left out (Gauss-Newton).

The ridge penalty is a normal prior :math:`b_S \sim N(0, 1/\alpha_d)` for each size d of S. "auto" maximises the
marginal likelihood by MacKay's rule :math:`\alpha_d = (D_d - \alpha_d\, \mathrm{tr}_d\, \Sigma) / |b_d|^2` with the
covariance :math:`\Sigma` [2]_, up to :math:`\alpha_d = m` measured rows: no prior weighs more than they do. As it is in
units of the noise, the mode has the noise of restricted maximum likelihood: squares over rows less parameters.

References
----------
.. [1] R. J. Olsen, "Note on the uniqueness of the maximum likelihood estimator for the Tobit model", Econometrica 1978.
.. [2] D. J. C. MacKay, "Bayesian interpolation", Neural Computation 1992.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsact.learners.cube_gp.component import Array
from sparsact.learners.latent.links import Link
from sparsact.learners.latent.targets import Targets, residual_terms

LEAST_NOISE: Final = 1e-3  # standard deviation, in that of the targets
_MOST_STEPS, _STEPS_A_ROUND, _MOST_ROUNDS = 50, 5, 25
_ENOUGH, _ENOUGH_OF_A_CURVE = 1e-7, 1e-3  # expected gain of a step in log-likelihood
_LEAST_DAMPING: Final = 1e-3
_SETTLED: Final = 1e-2  # change of a penalty's logarithm
_LEAST_PENALTY: Final = 1e-8


@dataclass(frozen=True, eq=False)
class LatentPolynomial:
    r"""Parameters of greatest penalised likelihood.

    Attributes
    ----------
    precision : float
        :math:`\gamma`, one over the noise's standard deviation.
    b, c : ndarray of shape (p,), (k,)
        Coefficients of the latent in units of the noise, and parameters of the link.
    penalty : ndarray of shape (p,)
        :math:`\alpha` of each coefficient, 0 of the intercept.
    information : ndarray of shape (1 + p + k, 1 + p + k)
        Negative second derivatives of the penalised log-likelihood.
    """

    precision: float
    b: Array
    c: Array
    penalty: Array
    information: Array

    @property
    def covariance(self) -> Array:
        """Covariance of all parameters: the inverse of the information."""
        return _inverse(self.information)

    @property
    def conditional(self) -> Array:
        """Covariance (p, p) of the latent's coefficients given the other parameters."""
        own = slice(1, 1 + len(self.b))
        return _inverse(self.information[own, own])


@dataclass(frozen=True, eq=False)
class PolynomialProblem:
    """Rows of monomials (m, p) of some sizes (p,), and their targets, of about unit variance."""

    monomials: Array
    sizes: NDArray[np.intp]
    targets: Targets
    link: Link

    def terms(self, at: LatentPolynomial) -> tuple[float, Array, Array]:
        """Penalised log-likelihood, its gradient and negative second derivatives."""
        targets, total, p = self.targets, self.targets.measured, len(at.b)
        f = self.monomials @ at.b / at.precision
        curve = self.link.curve(f, at.c)
        away = targets.y - curve.value
        found = residual_terms(at.precision * away, targets.side)
        value, slope, curvature = (targets.weights * each for each in found)
        residuals, rows = self.link.prior(at.c)
        objective = (
            value.sum()
            + total * (np.log(at.precision) - 0.5 * (LEAST_NOISE * at.precision) ** 2)
            - 0.5 * (at.penalty @ at.b**2 + residuals @ residuals)
        )
        jacobian = np.column_stack(
            [away + f * curve.slope, -curve.slope[:, None] * self.monomials, -at.precision * curve.by_parameters]
        )
        gradient, hessian = slope @ jacobian, (jacobian * curvature[:, None]).T @ jacobian
        gradient[0] += total * (1 / at.precision - LEAST_NOISE**2 * at.precision)
        hessian[0, 0] += total * (1 / at.precision**2 + LEAST_NOISE**2)
        gradient[1 : 1 + p] -= at.penalty * at.b
        hessian[range(1, 1 + p), range(1, 1 + p)] += at.penalty
        gradient[1 + p :] -= residuals @ rows
        hessian[1 + p :, 1 + p :] += rows.T @ rows
        return float(objective), gradient, hessian

    def maximum(self, at: LatentPolynomial, most_steps: int = _MOST_STEPS) -> LatentPolynomial:
        """Newton's method for a given penalty, damped where a step does not lead up (Levenberg and Marquardt)."""
        value, gradient, hessian = self.terms(at)
        damping, enough = 0.0, _ENOUGH if not len(at.c) else _ENOUGH_OF_A_CURVE
        for _ in range(most_steps):
            diagonal = hessian.diagonal()
            step = cho_solve(_factor(hessian + np.diag(damping * diagonal)), gradient)
            expected = float(gradient @ step)
            if expected <= enough:
                break
            tried = self._moved(at, step)
            if tried.precision > 0 and (found := self.terms(tried))[0] >= value + 1e-3 * expected:
                at, (value, gradient, hessian) = tried, found
                damping = damping / 10 if damping > _LEAST_DAMPING else 0.0
            else:
                damping = max(4 * damping, _LEAST_DAMPING)
        return replace(at, information=hessian)

    def _moved(self, at: LatentPolynomial, step: Array) -> LatentPolynomial:
        p = len(at.b)
        return replace(at, precision=at.precision + step[0], b=at.b + step[1 : 1 + p], c=at.c + step[1 + p :])

    def fitted(self, start: LatentPolynomial, alpha: float | None) -> LatentPolynomial:
        """The maximum for a penalty of all but the intercept, or for those of greatest marginal likelihood."""
        at = start if alpha is None else replace(start, penalty=np.where(self.sizes > 0, alpha, 0.0))
        for _ in range(_MOST_ROUNDS):
            at = self.maximum(at, _STEPS_A_ROUND if alpha is None else _MOST_STEPS)
            if alpha is not None:
                return at
            updated = self._updated(at)
            ratio = (updated + _LEAST_PENALTY) / (at.penalty + _LEAST_PENALTY)
            if np.abs(np.log(ratio)).max() < _SETTLED:
                break
            at = replace(at, penalty=updated)
        return self.maximum(at)

    def _updated(self, at: LatentPolynomial) -> Array:
        """MacKay's penalties (p,)."""
        variances = at.covariance.diagonal()[1 : 1 + len(at.b)]
        penalty, largest = np.zeros_like(at.b), max(self.targets.measured, 1.0)
        for size in np.unique(self.sizes[self.sizes > 0]):
            own = self.sizes == size
            known = max(float((1 - at.penalty[own] * variances[own]).sum()), 0.0)
            # one more parameter of one standard error stands for the prior of the penalty
            penalty[own] = np.clip((known + 1) / ((at.b[own] ** 2).sum() + 1 / largest), _LEAST_PENALTY, largest)
        return penalty


def _inverse(information: Array) -> Array:
    return np.asarray(cho_solve(_factor(information), np.eye(len(information))))


def _factor(information: Array) -> tuple[Array, bool]:
    """Cholesky factor, of a matrix that is singular to rounding with a little more on its diagonal."""
    scale = np.sqrt(np.maximum(information.diagonal(), 1e-300))
    for jitter in (0.0, 1e-12, 1e-9, 1e-6):
        try:
            factor = cho_factor(information + jitter * np.diag(scale**2), lower=True)
        except np.linalg.LinAlgError:
            continue
        return factor
    return cho_factor(np.diag(scale**2 + 1e-12), lower=True)
