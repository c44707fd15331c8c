r"""Traits that several targets share, such as energies of folding and of binding, by penalised maximum likelihood.

With the polynomials :math:`f_0, \dots, f_K` of the traits, energies in units of kT, target t is

.. math:: y_t = C_t + A_t\, g_t(f) + \sigma_t \varepsilon, \qquad
          g = \frac{1}{1 + e^{f_0}} \text{ (two-state)}, \quad \frac{1}{1 + e^{f_k} (1 + e^{f_0})} \text{ (three-state)}

[1]_: the fractions of molecules that are folded, and that are folded and bound. Each three-state target has a binding
energy :math:`f_k` of its own. Parameters are the coefficients and, of each target, :math:`\gamma = 1/\sigma`,
:math:`\gamma C` and :math:`\gamma A > 0`, so that a residual is :math:`r = \gamma y - \gamma C - \gamma A\, g(f)`.

Coefficients of each trait and size are normal a priori, with MacKay's precisions of
:mod:`sparsact.learners.latent.latent_polynomial`. These are, as there, in units of the noise: of :math:`\gamma A b / 4`,
what a coefficient b adds to a curve of greatest slope 1/4, for the first target that measures the trait. Without this
a small precision and a low curve would be much the same as a large one and a high curve. The rest of the prior is what
a single sigmoid has, too: deviation 3 of an energy at the mean of the rows, and :math:`\log(A / 4) \sim N(0, 1)` for
targets of variance 1. The noise of each target is that of restricted maximum likelihood: squares over the rows less the
parameters that they determine, a shared trait's in parts.

References
----------
.. [1] A. J. Faure et al., "Mapping the energetic and allosteric landscapes of protein binding domains", Nature 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent import newton
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE
from sparsact.learners.latent.links import Sigmoid
from sparsact.learners.latent.measurement import STRAIGHT
from sparsact.learners.latent.targets import Targets, residual_terms
from sparsact.statistics.solved import Solved

THERMODYNAMIC: Final = ("two-state", "three-state")
SHARING: Final = ("identity", "log", "sigmoid", *THERMODYNAMIC)  # links that may measure a shared trait
_STEEPEST: Final = 4.0  # one over the greatest slope of a fraction by its exponent
_SETTLED: Final = 1e-2  # change of a penalty's logarithm, and of a number of parameters
_LEAST_PENALTY: Final = 1e-8


def traits_of(links: tuple[str, ...]) -> list[list[int]]:
    """The traits that each link measures: the first one and, for three states, a binding energy of its own."""
    found: list[list[int]] = []
    for link in links:
        found.append([0, 1 + sum(len(traits) - 1 for traits in found)] if link == "three-state" else [0])
    return found


class Fractions(NamedTuple):
    """Values (m,) of a link, and their first (m, j) and second derivatives (m, j, j) by its traits."""

    value: Array
    slope: Array
    bend: Array


def fractions(link: str, f: Array) -> Fractions:
    """A link at traits (m, j), without level and height."""
    if link in STRAIGHT:
        return Fractions(f[:, 0], np.ones_like(f), np.zeros((*f.shape, 1)))
    sign = -1.0 if link == "sigmoid" else 1.0
    exponent, by, bend = sign * f[:, -1], np.full_like(f, sign), np.zeros((*f.shape, f.shape[1]))
    if link == "three-state":
        exponent = exponent + np.logaddexp(0.0, f[:, 0])
        by[:, 0] = expit(f[:, 0])
        bend[:, 0, 0] = by[:, 0] * expit(-f[:, 0])
    value = expit(-exponent)
    density = (value * expit(exponent))[:, None]
    both = (1 - 2 * value)[:, None, None] * by[:, :, None] * by[:, None, :]
    return Fractions(value, -density * by, density[:, :, None] * (both - bend))


class SharedTarget(NamedTuple):
    """One target: its link, the traits that it measures, the rows that have it, and standardised targets there."""

    link: str
    traits: list[int]
    rows: NDArray[np.intp]
    targets: Targets


@dataclass(frozen=True, eq=False)
class TraitParameters:
    r"""Coefficients (K, p) of traits, the intercept first, and :math:`\gamma, \gamma C, \gamma A` of targets (T, 3).

    ``penalty`` (K, p) are prior precisions, ``spent`` (T,) parameters that each target determines.
    """

    b: Array
    measurements: Array
    penalty: Array
    spent: Array

    def row(self) -> Array:
        """All parameters (q,) in a row."""
        return np.concatenate([self.b.ravel(), self.measurements.ravel()])

    def placed(self, row: Array) -> TraitParameters:
        """The same with other parameters (q,)."""
        b, measurements = np.split(row, [self.b.size])
        return replace(self, b=b.reshape(self.b.shape), measurements=measurements.reshape(self.measurements.shape))


@dataclass(frozen=True, eq=False)
class TraitProblem:
    """Monomials (m, p), a constant and others less their means, the sizes (p,) of these, and the targets."""

    monomials: Array
    sizes: NDArray[np.intp]
    targets: list[SharedTarget]

    def start(self, alpha: float | None) -> TraitParameters:
        """Constant traits, at which every curve is steep."""
        n_traits = 1 + max(max(target.traits) for target in self.targets)
        penalty = np.full((n_traits, len(self.sizes)), 1.0 if alpha is None else alpha)
        penalty[:, 0] = Sigmoid.place_unit**-2
        at_0 = [fractions(target.link, np.zeros((1, len(target.traits)))).value[0] for target in self.targets]
        measurements = np.array([[1.0, -_STEEPEST * value, _STEEPEST] for value in at_0])
        return TraitParameters(np.zeros_like(penalty), measurements, penalty, np.zeros(len(self.targets)))

    def of_target(self, at: TraitParameters, t: int) -> newton.Terms:
        """Log-likelihood of a target's rows, its gradient and negative second derivatives by all parameters."""
        link, traits, rows, targets = self.targets[t]
        precision, level, height = at.measurements[t]
        monomials, (K, p) = self.monomials[rows], at.b.shape
        value, slope, bend = fractions(link, monomials @ at.b[traits].T)
        found = residual_terms(precision * targets.y - level - height * value, targets.side)
        likelihood, force, curvature = (targets.weights * each for each in found)
        # Derivatives of -r by gamma, level, height and the traits; the constant 1 or the monomials lead on from there.
        first = np.column_stack([-targets.y, np.ones_like(value), value, height * slope])
        local = curvature[:, None, None] * first[:, :, None] * first[:, None, :]
        local[:, 2, 3:] += force[:, None] * slope
        local[:, 3:, 2] += force[:, None] * slope
        local[:, 3:, 3:] += (force * height)[:, None, None] * bend
        own, ones = K * p + 3 * t, np.ones((len(rows), 1))
        designs = [ones] * 3 + [monomials] * len(traits)
        places = [slice(own + i, own + i + 1) for i in range(3)] + [slice(k * p, (k + 1) * p) for k in traits]
        q = K * p + at.measurements.size
        gradient, hessian = np.zeros(q), np.zeros((q, q))
        for a, place in enumerate(places):
            gradient[place] = -designs[a].T @ (force * first[:, a])
            for b in range(a + 1):
                hessian[place, places[b]] = designs[a].T @ (local[:, a, b, None] * designs[b])
                hessian[places[b], place] = hessian[place, places[b]].T
        total = max(targets.measured - at.spent[t], 1.0)
        gradient[own] += total * (1 / precision - LEAST_NOISE**2 * precision)
        hessian[own, own] += total * (1 / precision**2 + LEAST_NOISE**2)
        return likelihood.sum() + total * (np.log(precision) - 0.5 * (LEAST_NOISE * precision) ** 2), gradient, hessian

    def prior(self, at: TraitParameters) -> newton.Terms:
        """Log prior density of coefficients and heights, its gradient and negative second derivatives."""
        n, p = at.b.shape[0] * at.b.shape[1], at.b.shape[1]
        value, gradient, hessian = 0.0, np.zeros(len(at.row())), np.zeros((len(at.row()),) * 2)
        for t, (precision, _, height) in enumerate(at.measurements):  # u is standard normal
            u, both = np.log(height / precision / _STEEPEST), [n + 3 * t, n + 3 * t + 2]
            value -= 0.5 * u**2
            gradient[both] = u / precision, -u / height
            hessian[np.ix_(both, both)] = [
                [(1 + u) / precision**2, -1 / (precision * height)],
                [-1 / (precision * height), (1 - u) / height**2],
            ]
        for k, home in enumerate(self.homes):
            own, h, height, b = k * p + np.arange(p), n + 3 * home + 2, at.measurements[home, 2], at.b[k]
            precisions = at.penalty[k] * np.append(1.0, np.full(p - 1, (height / _STEEPEST) ** 2))
            force = precisions * b
            ridge = force[1:] @ b[1:]
            value -= 0.5 * force @ b
            gradient[own] = -force
            gradient[h] -= ridge / height
            hessian[own, own] = precisions
            hessian[h, h] += ridge / height**2
            hessian[own[1:], h] = hessian[h, own[1:]] = 2 * force[1:] / height
        return value, gradient, hessian

    @property
    def homes(self) -> list[int]:
        """The first target that measures each trait, whose noise is the unit of its penalty."""
        measured = [target.traits for target in self.targets]
        return [next(t for t, traits in enumerate(measured) if k in traits) for k in range(1 + max(map(max, measured)))]

    def terms(self, at: TraitParameters) -> newton.Terms | None:
        """Penalised log-likelihood, its gradient and negative second derivatives; None where gamma or A is not > 0."""
        if not (at.measurements[:, ::2] > 0).all():
            return None
        parts = [self.prior(at), *(self.of_target(at, t) for t in range(len(self.targets)))]
        value, gradient, hessian = zip(*parts, strict=True)
        return float(sum(value)), np.sum(gradient, axis=0), np.sum(hessian, axis=0)

    def fitted(self, alpha: float | None, max_iter: int) -> tuple[Solved[TraitParameters], Array]:
        """The maximum with penalties that are given or of greatest marginal likelihood, and the information there."""
        at, steps = self.start(alpha), 0
        for _ in range(max_iter):
            found = newton.maximum(lambda row, at=at: self.terms(at.placed(row)), at.row(), max_iter)
            at, steps = at.placed(found.at), steps + found.steps
            covariance = newton.inverse(found.information)
            heights, variances = self._in_noise(at, covariance)
            penalty = at.penalty if alpha is not None else self._updated(at, heights, variances)
            spent = self._spent(at, heights, covariance)
            change = float(max(np.abs(np.log(penalty / at.penalty)).max(), np.abs(spent - at.spent).max()))
            if change < _SETTLED:
                break
            at = replace(at, penalty=penalty, spent=spent)
        return Solved(at, steps, change, _SETTLED, found.converged and change < _SETTLED), found.information

    def _in_noise(self, at: TraitParameters, covariance: Array) -> tuple[Array, Array]:
        """Heights (K, 1) over 4 at home, and variances (K, p) of coefficients times these."""
        places = at.b.size + 3 * np.array(self.homes) + 2
        heights = at.measurements[self.homes, 2, None]
        own = covariance.diagonal()[: at.b.size].reshape(at.b.shape)
        across = covariance[places, : at.b.size].reshape(len(places), *at.b.shape)[range(len(places)), range(len(places))]
        found = heights**2 * own + 2 * heights * at.b * across + at.b**2 * covariance[places, places, None]
        return heights / _STEEPEST, found / _STEEPEST**2

    def _updated(self, at: TraitParameters, heights: Array, variances: Array) -> Array:
        """MacKay's penalties (K, p), with one more coefficient of one standard error as their prior."""
        penalty, b = at.penalty.copy(), heights * at.b
        for (k, home), size in product(enumerate(self.homes), np.unique(self.sizes[1:])):
            own, largest = self.sizes == size, max(self.targets[home].targets.measured, 1.0)
            known = max(float((1 - penalty[k, own] * variances[k, own]).sum()), 0.0)
            penalty[k, own] = np.clip((known + 1) / ((b[k, own] ** 2).sum() + 1 / largest), _LEAST_PENALTY, largest)
        return penalty

    def determined(self, at: TraitParameters, covariance: Array) -> Array:
        """Number (T,) of parameters that the rows of each target determine, its noise not counted."""
        found = []
        for t, target in enumerate(self.targets):
            shares = np.einsum("ij,ji->i", self.of_target(at, t)[2], covariance)
            shares[at.b.size :: 3] = 0.0  # noise deviations
            found.append(np.clip(shares.sum(), 0.0, target.targets.measured - 1))
        return np.array(found)

    def _spent(self, at: TraitParameters, heights: Array, covariance: Array) -> Array:
        """These numbers, less what penalties in units of a target's noise account for already."""
        ridges = (at.penalty * (heights * at.b) ** 2)[:, 1:].sum(axis=1)
        return self.determined(at, covariance) - np.bincount(self.homes, ridges, len(self.targets))
