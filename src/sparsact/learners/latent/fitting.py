"""From rows and targets to a fitted latent and its measurement, for a given link and kind of latent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Subset, characters, subset_masks, subsets_of
from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.posterior import CubePosterior, Posterior
from sparsact.learners.cube_gp.rows import DistinctRows, distinct_points
from sparsact.learners.latent.latents import Latent, PolynomialLatent, ProcessLatent
from sparsact.learners.latent.links import LINKS, Identity
from sparsact.learners.latent.measurement import FittedMeasurement
from sparsact.learners.latent.polynomial import LatentPolynomial, PolynomialProblem
from sparsact.learners.latent.process import Mode, ProcessProblem, fitted_process
from sparsact.learners.latent.targets import Targets


class Fitted(NamedTuple):
    """A latent and its measurement."""

    latent: Latent
    measurement: FittedMeasurement

    def log_densities(self, bits: Array, targets: Targets) -> Array:
        """Log density of each target (m,), or log probability that it is at its bound."""
        return self.measurement.log_densities(*self.latent.moments(bits), targets)


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Points of bits (m, n) and their targets, of which logarithms are taken for the link ``"log"``."""

    bits: Array
    targets: Targets

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> MeasuredRows:
        """Some of the rows."""
        return MeasuredRows(self.bits[rows], self.targets.take(rows))

    def of(self, link: str) -> Targets:
        """The targets that a link takes."""
        return self.targets.logarithms() if link == "log" else self.targets


class PolynomialFit(NamedTuple):
    """Parameters of greatest likelihood and what they are of: monomials less their means where a curve has no shift."""

    subsets: list[Subset]
    problem: PolynomialProblem
    at: LatentPolynomial
    measurement: FittedMeasurement
    means: Array


def polynomial_fit(rows: MeasuredRows, link: str, degree: int, alpha: float | None) -> PolynomialFit:
    """All products of up to ``degree`` columns: first with the identity, from where other curves are searched."""
    targets = rows.of(link)
    centre = float(np.average(targets.y, weights=targets.weights))
    scale = float(np.sqrt(np.average((targets.y - centre) ** 2, weights=targets.weights))) or 1.0
    subsets = subsets_of(subset_masks(rows.bits.shape[1], degree))
    monomials = characters(1 - 2 * rows.bits, subsets)
    sizes, means = np.array([len(subset) for subset in subsets]), np.zeros(len(subsets))
    problem = PolynomialProblem(monomials, sizes, targets.standardized(centre, scale), Identity())
    nothing = LatentPolynomial(1.0, np.zeros(len(sizes)), np.empty(0), np.where(sizes > 0, 1.0, 0.0), np.empty((0, 0)))
    at = problem.fitted(nothing, alpha)
    measurement = FittedMeasurement(link, at.c, at.precision, centre, scale, centre, scale, targets.bounds)
    if measurement.curve_link != "identity":
        curve = LINKS[link]()
        shift, factor, c = curve.start(float(problem.targets.y.min()), float(problem.targets.y.max()))
        kept = (sizes > 0) | curve.has_intercept
        b = factor * (at.b - shift * at.precision * (sizes == 0))
        if not curve.has_intercept:
            means = np.average(monomials, axis=0, weights=targets.weights)
        problem = PolynomialProblem((monomials - means)[:, kept], sizes[kept], problem.targets, curve)
        at = problem.fitted(replace(at, b=b[kept], c=c, penalty=at.penalty[kept] / factor**2), alpha)
        measurement = replace(measurement, c=at.c, precision=at.precision, shift=0.0, unit=1.0)
    return PolynomialFit(subsets, problem, at, measurement, means)


def fitted_polynomial(rows: MeasuredRows, link: str, degree: int, alpha: float | None) -> Fitted:
    """A latent polynomial of all products of up to ``degree`` columns."""
    subsets, problem, at, measurement, means = polynomial_fit(rows, link, degree, alpha)
    values, variances, given = _coefficients(at, measurement.unit)
    if problem.link.has_intercept:
        values[0] += measurement.shift
        return Fitted(PolynomialLatent(subsets, values, variances, given), measurement)
    # the curve leaves shift and scale of the latent open: mean 0 and variance 1 over all points
    size = float(np.linalg.norm(values)) or 1.0
    direction, means = values / size, means[1:]
    across = (np.eye(len(values)) - np.outer(direction, direction)) / size
    variances = np.einsum("pq,qr,pr->p", across, _covariance(at, 1.0), across)
    centred = np.vstack([-means, np.eye(len(values))]) / size  # f is of the centred monomials
    measurement = replace(measurement, shift=float(means @ direction), unit=1 / size)
    values, variances = np.append(0.0, direction), np.append(0.0, variances)
    return Fitted(PolynomialLatent(subsets, values, variances, centred @ given @ centred.T), measurement)


def _coefficients(at: LatentPolynomial, unit: float) -> tuple[Array, Array, Array]:
    """Coefficients in a unit, their variances, and their covariance given the measurement."""
    return unit / at.precision * at.b, _covariance(at, unit).diagonal(), (unit / at.precision) ** 2 * at.conditional


def _covariance(at: LatentPolynomial, unit: float) -> Array:
    """Covariance of the coefficients over the precision, in a unit; both are uncertain."""
    own = at.covariance[: 1 + len(at.b), : 1 + len(at.b)]
    by_all = unit / at.precision * np.column_stack([-at.b / at.precision, np.eye(len(at.b))])
    return np.asarray(by_all @ own @ by_all.T)


def fitted_gp(rows: MeasuredRows, link: str, degree: int, kernel: str, rng: np.random.Generator) -> Fitted:
    """A latent Gaussian process, with the curve that belongs to a polynomial of some degree."""
    _, problem, at, measurement, _ = polynomial_fit(rows, link, degree, None)
    points, place = distinct_points(rows.bits)
    nothing = np.zeros(len(points))
    varying = problem.sizes > 0
    offset = float(at.b[~varying].sum()) / at.precision
    distinct = DistinctRows(points, nothing, nothing + 1, nothing, nothing + 1, nothing)
    whole = ProcessProblem(distinct, place, problem.targets, problem.link, at.c, offset)
    unit = float(np.hypot(np.linalg.norm(at.b[varying]), 1.0))
    mode, posterior = fitted_process(whole, Mode(at.precision, nothing, nothing), unit, kernel, rng)
    shift, unit = measurement.shift + measurement.unit * offset, measurement.unit
    if not problem.link.has_intercept:
        mean, size = _over_all_points(posterior.best, mode)
        shift, unit = -mean / size, 1 / size
        measurement = replace(measurement, shift=shift, unit=unit)
    measurement = replace(measurement, precision=mode.precision)
    return Fitted(ProcessLatent(posterior, shift, unit / mode.precision), measurement)


def _over_all_points(posterior: Posterior, at: Mode) -> tuple[float, float]:
    """Mean and deviation of a latent over all points, or over those of the rows where there is no table."""
    if isinstance(posterior, CubePosterior):
        mean, deviation = posterior.coefficients[0], np.linalg.norm(posterior.coefficients[1:])
    else:
        mean, deviation = at.eta.mean(), at.eta.std()
    return float(mean / at.precision), float(deviation / at.precision) or 1.0
