"""From rows and targets to a fitted latent and its measurement, for a given link and kind of latent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Subset, subset_masks, subsets_of
from sparsact.learners.cube_gp.merged_rows import DistinctRows, distinct_points
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.laplace import Mode
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import CubePosterior
from sparsact.learners.latent.gauge import reported
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE, LatentPolynomial, PolynomialProblem
from sparsact.learners.latent.latents import LatentFit, PolynomialLatent, ProcessLatent
from sparsact.learners.latent.links import LINKS, Identity, Sigmoid
from sparsact.learners.latent.measurement import STRAIGHT, FittedMeasurement, KnownCurve
from sparsact.learners.latent.monomials import CentredMonomials
from sparsact.learners.latent.newton import MAX_ITER
from sparsact.learners.latent.process import ProcessProblem, fitted_process
from sparsact.learners.latent.targets import Targets
from sparsact.learners.on_cube import bits_of
from sparsact.learners.points import Points

_LONG: Final = 1e8  # rows times monomials, from where on a step of the search takes a tenth of a second and more
_EVERY: Final = 8  # row of these leads to where the search in all of them begins
_NO_NOISE: Final = 0.5  # part of the greatest precision, from which what is left is rounding


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Points of the cube and their targets; the link ``"log"`` takes their logarithms."""

    points: Points
    targets: Targets

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> MeasuredRows:
        """Some of the rows."""
        return MeasuredRows(self.points[rows], self.targets.take(rows))

    def of(self, link: str) -> Targets:
        """The targets that a link takes."""
        return self.targets.logarithms() if link == "log" else self.targets


class PolynomialFit(NamedTuple):
    """Parameters of greatest likelihood, the problem that they solve, and the centre and scale of its targets.

    ``subsets`` are the p - 1 monomials beside the constant, and ``means`` (p - 1,) theirs over the rows.
    """

    link: str
    subsets: list[Subset]
    problem: PolynomialProblem
    at: LatentPolynomial
    means: Array
    centre: float
    scale: float

    @property
    def line(self) -> tuple[float, float]:
        """Shift and unit of a latent that is the mean of the targets or of their logarithms; else 0 and 1."""
        return (self.centre, self.scale) if self.link in STRAIGHT else (0.0, 1.0)

    def measurement(self, known: KnownCurve, noise_deviation: float, bounds: tuple[float, float]) -> FittedMeasurement:
        """The measurement by a curve and noise of the standardized targets, in the units of the rows."""
        shift, unit = self.line
        known = KnownCurve(
            known.link,
            known.c,
            self.centre + self.scale * known.level,
            self.scale * known.height,
            shift + unit * known.shift,
            unit * known.unit,
        )
        return FittedMeasurement(self.link, known, self.scale * noise_deviation, bounds)


def polynomial_fit(
    rows: MeasuredRows, link: str, degree: int, alpha: float | None, max_iter: int = MAX_ITER
) -> PolynomialFit:
    """All products of up to ``degree`` columns: first with the identity, where the search for other curves starts.

    With many rows, the search starts at the solution for some of them.
    """
    targets = rows.of(link)
    centre, scale = targets.centre_and_scale()
    subsets = subsets_of(subset_masks(rows.points.n, degree))
    monomials, means = CentredMonomials.of(rows.points, subsets[1:], targets.weights)
    sizes = np.array([len(subset) for subset in subsets[1:]], dtype=np.intp)
    standardized = targets.standardized(centre, scale)
    curve = LINKS.get(link, Identity)()
    problem = PolynomialProblem(monomials, sizes, standardized, curve)
    if len(monomials) * len(subsets) > _LONG:
        some = rows.take(np.arange(0, len(monomials), _EVERY))
        start = polynomial_fit(some, link, degree, alpha, max_iter).at
        return PolynomialFit(link, subsets, problem, problem.fitted(start, alpha, max_iter), means, centre, scale)
    straight = replace(problem, link=Identity())
    penalty = np.append(0.0, np.full(len(sizes), 1.0 if alpha is None else alpha))
    nothing = LatentPolynomial(1.0, np.zeros(len(subsets)), np.empty(0), penalty, np.empty((0, 0)))
    at = straight.fitted(nothing, alpha, max_iter)
    if curve.n_parameters:
        c = np.zeros(curve.n_parameters)
        line = replace(at, c=c, penalty=np.append(at.penalty, np.ones_like(c)))
        if at.precision * LEAST_NOISE > _NO_NOISE:  # the straight line leaves nothing that a curve could explain
            at = replace(line, information=problem.terms(line)[2])
        else:
            at = problem.fitted(line, alpha, max_iter)
    return PolynomialFit(link, subsets, problem, at, means, centre, scale)


def fitted_polynomial(
    rows: MeasuredRows, link: str, degree: int, alpha: float | None, max_iter: int = MAX_ITER
) -> LatentFit[FittedMeasurement]:
    """A latent polynomial of all products of up to ``degree`` columns."""
    fit = polynomial_fit(rows, link, degree, alpha, max_iter)
    values, by_parameters, known = reported(fit.problem, fit.at, fit.means)
    covariance = fit.at.covariance
    by_latent = by_parameters[:, 1 : 1 + len(fit.at.b)]
    latent = PolynomialLatent(
        fit.subsets,
        values,
        by_parameters @ covariance @ by_parameters.T,
        by_latent @ fit.at.conditional @ by_latent.T,
        *fit.line,
    )
    measurement = fit.measurement(known, 1 / fit.at.precision, rows.targets.bounds)
    freedom = max(fit.problem.targets.measured - len(fit.problem.sizes) - fit.at.spent, 1.0)
    return LatentFit(latent, measurement, fit.at.converged, fit.at.steps, freedom)


def fitted_gp(
    rows: MeasuredRows, link: str, degree: int, rng: np.random.Generator, max_iter: int
) -> LatentFit[FittedMeasurement]:
    """A latent Gaussian process, with the curve that belongs to a polynomial of some degree."""
    fit = polynomial_fit(rows, link, degree, None, max_iter)
    at, problem = fit.at, fit.problem
    points, place = distinct_points(bits_of(rows.points))
    nothing = np.zeros(len(points))
    distinct = DistinctRows(points, nothing, nothing + 1, nothing, nothing + 1, nothing)
    height = problem.deviation(at.b)[0] / at.precision
    level = float(at.b[0]) / at.precision
    curve = KnownCurve(problem.link, at.c, level, height, 0.0, height)  # of slope about 1
    whole = ProcessProblem(distinct, place, problem.targets, curve)
    unit = float(np.hypot(np.linalg.norm(at.b[1:]), 1.0))
    solved, posterior = fitted_process(whole, Mode(at.precision, nothing, nothing), unit, rng, max_iter)
    mode = solved.value
    if isinstance(problem.link, Sigmoid):
        steepness, place_of = problem.link.exponent(at.c)
        shift, unit = -place_of, steepness / height
    elif problem.link.n_parameters:
        mean, size = _over_all_points(posterior.best, mode)
        shift, unit = -mean / size, 1 / size
    else:
        shift, unit = level, 1.0
    known = replace(curve, shift=shift, unit=unit * height)
    measurement = fit.measurement(known, 1 / mode.precision, rows.targets.bounds)
    line_shift, line_unit = fit.line
    shift, unit = line_shift + line_unit * shift, line_unit * (unit / mode.precision)
    latent = ProcessLatent(replace(posterior, shift=shift, unit=unit))
    return LatentFit(latent, measurement, at.converged and solved.converged, at.steps)


def _over_all_points(posterior: Posterior, at: Mode) -> tuple[float, float]:
    """Mean and deviation of a latent over all points, or over the points of the rows where there is no table."""
    if isinstance(posterior, CubePosterior):
        mean, deviation = posterior.coefficients[0], np.linalg.norm(posterior.coefficients[1:])
    else:
        mean, deviation = at.eta.mean(), at.eta.std()
    return float(mean / at.precision), float(deviation / at.precision) or 1.0
