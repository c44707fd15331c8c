"""What a fitted polynomial says: standard errors, shares of the variance, and the total effect of each column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.fourier.coefficients import SparseCoefficients
from sparsact.fourier.measure import moments
from sparsact.hypercube import WORD, sizes
from sparsact.learners.low_degree.compact_sums import Moments, distinct_points_of
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Solution
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.learners.low_degree.solvers.kernel import DualPolynomial
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic
from sparsact.learners.points import Points


def coefficients(polynomial: FittedPolynomial) -> NDArray[np.float64]:
    """Coefficients of the empty subset and the family, (D + 1, T)."""
    return np.concatenate([polynomial.intercept[None], polynomial.coef])


def standard_errors(solution: Solution, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Standard errors (T, N) of the coefficients at places of ``[(), *subsets]``."""
    if solution.penalty.kind == "lasso":
        raise ValueError(
            "lasso coefficients have no standard errors; refit their subsets with subsets=, on other rows."
        )
    polynomial, unit = solution.polynomial, solution.unit
    if solution.penalty.kind == "correlation":  # means of y chi_S, whose square is y**2
        second_moment = solution.target_squares / solution.total_weight + (polynomial.intercept / unit) ** 2
        coef = coefficients(polynomial)[places].T / unit
        variance = np.maximum(second_moment[:, None] - coef**2, 0.0) / solution.n_rows
        return np.asarray(unit * np.sqrt(variance))
    freedom = solution.residual_degrees_of_freedom
    if freedom <= 0:
        raise ValueError(
            f"{solution.n_rows:,} rows do not exceed {len(polynomial.family) + 1:,} parameters, so nothing is "
            "left to estimate the noise; pass a lower degree, fewer subsets, or more rows."
        )
    variance = solution.squared_error / freedom
    unscaled = solution.design.unscaled_variances(places, solution.penalty.alpha)
    if unscaled is None:
        raise ValueError(
            f'solver_ = "{solution.solver}" gives no covariance of the coefficients; fit the rows with solver="auto", '
            "fewer monomials than rows, and call this before saving."
        )
    return np.asarray(unit * np.sqrt(variance[:, None] * np.maximum(unscaled, 0.0)))


def variance_shares(
    solution: Solution, p: NDArray[np.float64] | None, by: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Shares (T, r) of the variance under a product measure by degree or column, and their standard errors.

    With estimated coefficients :math:`\hat c \sim N(c, C)` of the measure's basis and a diagonal matrix A of zeros and
    ones, :math:`\hat c^\top A \hat c - \operatorname{tr} AC` estimates :math:`c^\top A c` without bias, with variance
    :math:`4\, c^\top ACA c + 2 \operatorname{tr} ACAC`. A share s is the ratio of two of these, and its error that of
    :math:`A - s I` over the variance.
    """
    family, design, freedom = solution.polynomial.family, solution.design, solution.residual_degrees_of_freedom
    if not isinstance(design, NormalEquations) or solution.penalty.kind != "ridge" or freedom <= 0:
        raise ValueError(
            f'shares need a covariance of the coefficients, which solver_="{solution.solver}" or a file lacks: fit '
            'more rows than monomials with solver="auto", or use Spectrum.of(model, measure=...).weight_by_degree().'
        )
    if not (known := design.identified[1:]).all():
        raise ValueError(
            f"the rows do not determine {int((~known).sum()):,} of {len(family):,} coefficients, as of "
            f"{family.subsets[int(known.argmin())]}; fit more rows, a lower degree, or fewer subsets."
        )
    mean, deviation = moments(p, family.n)
    rows, masks, factors = SparseCoefficients(family.n, family.masks, np.ones(len(family))).expansion(mean, deviation)
    varying = masks.any(axis=1)
    masks, places = np.unique(masks[varying], axis=0, return_inverse=True)
    change = csr_array((factors[varying], (places.ravel(), rows[varying])), shape=(len(masks), len(family)))
    columns, degrees = np.arange(family.n), np.arange(1, int(sizes(masks).max(initial=1)) + 1)
    held = masks[:, columns // WORD] >> (columns % WORD).astype(np.uint64) & np.uint64(1)
    members = held if by == "column" else sizes(masks)[:, None] == degrees
    groups = np.column_stack([members, np.ones(len(masks))])  # last, all
    covariance = change @ (change @ design.factor(solution.penalty.alpha).unscaled_covariance).T  # per unit of noise
    traces, products = covariance.diagonal() @ groups, groups.T @ covariance**2 @ groups
    found, coefficients_of = [], (change @ (solution.polynomial.coef / solution.unit)).T
    for coef, noise in zip(coefficients_of, solution.squared_error / freedom, strict=True):
        *parts, variance = coef**2 @ groups - noise * traces
        variance = variance if variance > 0 else np.nan
        shares, weighted = np.array(parts) / variance, groups * coef[:, None]
        about = np.column_stack([np.eye(len(shares)), -shares])
        trace = noise**2 * np.einsum("ri,ij,rj->r", about, products, about)
        spread = noise * np.einsum("ri,ij,rj->r", about, weighted.T @ covariance @ weighted, about) - trace
        of_noise = 2 * (noise * about @ traces) ** 2 / freedom  # as the noise is estimated
        found.append((shares, np.sqrt(4 * np.maximum(spread, 0) + 2 * trace + of_noise) / variance))
    values, errors = zip(*found, strict=True)
    return np.stack(values), np.stack(errors)


def contrast_errors(solution: Solution, signs: NDArray[np.float64], weights: csr_array) -> NDArray[np.float64] | None:
    """Posterior deviations (k, T) of contrasts (k, m) of values at signs (m, n); None where they are not known."""
    freedom, penalty = solution.residual_degrees_of_freedom, solution.penalty
    if penalty.kind != "ridge" or freedom <= 0:
        return None
    unscaled = solution.design.contrast_variances(signs, weights, solution.polynomial.family.masks, penalty.alpha)
    if unscaled is None:
        return None
    return np.asarray(solution.unit * np.sqrt(np.outer(np.maximum(unscaled, 0.0), solution.squared_error / freedom)))


def total_effects(
    polynomial: FittedPolynomial, statistic: LowDegreeStatistic, *, n_threads: int = 1
) -> NDArray[np.float64]:
    r"""Total effect of each column over the variance of the polynomial, the mean over targets, (n,).

    With :math:`f(x) = x_i h_i(x) + r_i(x)`, where neither :math:`h_i` nor :math:`r_i` depends on column i, and
    :math:`x_i'` drawn independently from column i, of mean :math:`\mu_i` and variance :math:`\sigma_i^2`,

    .. math:: \tfrac12\, \mathbb{E}(f(x) - f(x_i', x_{-i}))^2
              = \tfrac12\, \mathbb{E}\, (x_i - \mu_i)^2 h_i(x)^2 + \tfrac12\, \sigma_i^2\, \mathbb{E}\, h_i(x)^2.

    For signs this is :math:`\mathbb{E}\,(1 - \mu_i x_i) h_i(x)^2`; over uniform points the influence of column i.

    Parameters
    ----------
    polynomial : FittedPolynomial
        f.
    statistic : LowDegreeStatistic
        The rows that give the distribution: points where it holds them, else sums of products of monomials.
    n_threads : int, default=1
        Threads of the kernels.

    Raises
    ------
    ValueError
        If the statistic keeps no points, and its monomials lack a part of one that the polynomial uses.

    References
    ----------
    .. [1] M. J. W. Jansen, "Analysis of variance designs for model output", Computer Physics Communications, 1999.
    """
    if isinstance(statistic, Moments | CentredMoments):
        effects, variance = _effects_by_sums(polynomial, statistic, n_threads)
    else:
        effects, variance = _effects_at(polynomial, distinct_points_of(statistic), n_threads)
    shares = np.divide(effects, variance, out=np.zeros_like(effects), where=variance > 0)
    return np.asarray(np.maximum(shares, 0.0).mean(axis=1))


def _effects_at(
    polynomial: FittedPolynomial, rows: DistinctPoints, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Total effects (n, T) and variances (T,) at weighted points; about ``degree`` evaluations of the polynomial."""
    rows.deduplicate()
    points, share = rows.points, rows.weights.to_float() / rows.weight
    values = polynomial.values(points, n_threads=n_threads)
    effects = np.empty((points.n, values.shape[1]))
    for i in range(points.n):
        sign = 1.0 - 2.0 * ((rows.codes[:, i // WORD] >> np.uint64(i % WORD)) & np.uint64(1))
        part = _derivative(polynomial, i, points, values, n_threads)
        effects[i] = (share * (1 - (share @ sign) * sign)) @ part**2
    return effects, share @ (values - share @ values) ** 2


def _derivative(
    polynomial: FittedPolynomial, i: int, points: Points, values: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]:
    """:math:`h_i` at the points, (m, T), up to the sign: from its monomials or, if they are too many, by flips."""
    if isinstance(polynomial, DualPolynomial) and polynomial.has_many_monomials:
        columns = points.columns.copy()
        columns[i] ^= Points.from_codes(np.ones((points.n_rows, 1), dtype=np.uint64), 1).columns[0]
        return (values - polynomial.values(Points(columns, points.n_rows), n_threads=n_threads)) / 2
    masks, bit = polynomial.family.masks, np.uint64(1) << np.uint64(i % WORD)
    having = np.flatnonzero(masks[:, i // WORD] & bit)
    rest = masks[having]
    rest[:, i // WORD] ^= bit
    part = FittedPolynomial(Family(points.n, rest, None), polynomial.coef[having], np.zeros(values.shape[1]))
    return part.values(points, n_threads=n_threads)


def _effects_by_sums(
    polynomial: FittedPolynomial, statistic: Moments | CentredMoments, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Total effects (n, T) and variances (T,) from means and products of monomials, as quadratic forms."""
    equations = statistic.normal_equations(statistic.family, fit_intercept=True, n_threads=n_threads)
    place = {subset: k for k, subset in enumerate([(), *statistic.family.subsets])}
    mean, gram = np.concatenate([[1.0], equations.feature_mean]), equations.gram

    def variance(places: NDArray[np.intp], coef: NDArray[np.float64]) -> NDArray[np.float64]:
        there = places > 0  # the empty subset is constant
        places, coef = places[there] - 1, coef[there]
        return np.asarray(np.einsum("dt,dt->t", coef, gram[np.ix_(places, places)] @ coef) / equations.weight)

    used = [(S, c) for S, c in zip(polynomial.family.subsets, polynomial.coef, strict=True) if c.any()]
    effects = np.zeros((statistic.n, len(polynomial.intercept)))
    try:
        for i in range(statistic.n):
            having = [(S, c) for S, c in used if i in S]
            if not having:
                continue
            coef, own = np.array([c for _, c in having]), place[(i,)]
            whole = np.array([place[S] for S, _ in having])
            rest = np.array([place[tuple(j for j in S if j != i)] for S, _ in having])
            both, about = np.concatenate([whole, rest]), np.concatenate([coef, -mean[own] * coef])
            centred = variance(both, about) + (mean[both] @ about) ** 2
            spread = gram[own - 1, own - 1] / equations.weight
            effects[i] = (centred + spread * (variance(rest, coef) + (mean[rest] @ coef) ** 2)) / 2
    except KeyError as error:
        raise ValueError(
            f"the rows are gone, and no sums of {error.args[0]} were kept; fit with min_degree=1 and without subsets."
        ) from None
    places = np.array([place[S] for S, _ in used], dtype=np.intp)
    return effects, variance(places, np.array([c for _, c in used]).reshape(len(used), -1))
