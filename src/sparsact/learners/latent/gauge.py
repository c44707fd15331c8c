"""From the parameters of a fit to the latent as it is reported: its coefficients, their covariance, and its curve."""

from __future__ import annotations

import numpy as np

from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.latent_polynomial import LatentPolynomial, PolynomialProblem
from sparsact.learners.latent.links import Sigmoid
from sparsact.learners.latent.measurement import KnownCurve


def reported(problem: PolynomialProblem, at: LatentPolynomial, means: Array) -> tuple[Array, Array, KnownCurve]:
    """Coefficients (p,) in the units of the link, their derivatives (p, 1 + p + k) by the parameters, and the curve.

    The intercept belongs to monomials with their means (p - 1,). With the identity the latent is the standardised
    target, with a logistic curve the exponent; with a spline, which has no unit of its own, it has mean 0 and variance
    1 over all points of the cube.
    """
    p, b, link = len(at.b), at.b[1:], problem.link
    size, size_by_b = problem.deviation(at.b)
    by = np.zeros((p, 1 + p + len(at.c)))
    if isinstance(link, Sigmoid):
        steepness, place = link.exponent(at.c)
        unit, start = steepness / size, -place
        by[1:, 2 : 1 + p] = unit * (np.eye(p - 1) - np.outer(b, size_by_b) / size)
        by[1:, 1 + p] = unit * b
        by[0, 2 + p] = -link.place_unit
    elif link.n_parameters:
        norm = float(np.linalg.norm(b)) or 1.0
        unit = 1 / norm
        start = unit * float(means @ b)
        by[1:, 2 : 1 + p] = unit * (np.eye(p - 1) - np.outer(b, b) / norm**2)
        by[0] = means @ by[1:]
    else:
        unit, start = 1 / at.precision, at.b[0] / at.precision
        by[:, 1 : 1 + p] = unit * np.eye(p)
        by[:, 0] = -unit * at.b / at.precision
    values = np.append(start - unit * float(means @ b), unit * b)
    by[0] -= means @ by[1:]
    level, height = at.b[0] / at.precision, size / at.precision
    return values, by, KnownCurve(link, at.c, level, height, start, unit * size)
