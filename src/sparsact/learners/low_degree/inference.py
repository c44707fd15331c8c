r"""How sure a coefficient is: standard errors and intervals of least squares.

The covariance is :math:`\sigma^2 (G + \alpha I)^{-1} G (G + \alpha I)^{-1}`, with :math:`\sigma^2` the weighted squared
residual over the rows less the effective parameters. Weights are taken as precisions (a row of weight 2 has half the
variance); with ridge the intervals are those of the shrunken estimate, bias not counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from sparsact.learners.low_degree.solve import Solution
from sparsact.validation.parameters import checked_probability


def standard_errors(solution: Solution, places: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Standard errors (T, N) of the coefficients at places of ``[(), *subsets]``; all subsets when None.

    Raises
    ------
    ValueError
        If the fit leaves nothing to judge by: as many parameters as rows, or an estimate without a variance formula.
    """
    if places is None:
        places = np.arange(1, len(solution.polynomial.family) + 1)
    if solution.penalty.kind == "lasso":
        raise ValueError(
            "lasso coefficients have no standard errors; refit their subsets with subsets=, on other rows."
        )
    if solution.penalty.kind == "correlation":
        return _of_averages(solution, places)
    freedom = solution.residual_degrees_of_freedom
    if freedom <= 0:
        raise ValueError(
            f"{solution.n_rows:,} rows do not exceed {len(solution.polynomial.family) + 1:,} parameters, so nothing is "
            "left to estimate the noise; pass a lower degree, fewer subsets, or more rows."
        )
    variance = solution.squared_error / freedom
    unscaled = np.maximum(solution.unscaled_variances(places), 0.0)
    return np.asarray(solution.unit * np.sqrt(variance[:, None] * unscaled))


def _of_averages(solution: Solution, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Standard error of a mean of ``y chi_S``, whose square is ``y**2``."""
    polynomial = solution.polynomial
    coef = np.concatenate([polynomial.intercept[None], polynomial.coef])[places].T / solution.unit
    second_moment = solution.target_squares / solution.total_weight + (polynomial.intercept / solution.unit) ** 2
    variance = np.maximum(second_moment[:, None] - coef**2, 0.0) / solution.n_rows
    return np.asarray(solution.unit * np.sqrt(variance))


def confidence_intervals(solution: Solution, places: NDArray[np.intp] | None, confidence: float) -> NDArray[np.float64]:
    """Student-t intervals (T, N, 2) of the coefficients.

    Raises
    ------
    ValueError
        If ``confidence`` is not strictly between 0 and 1, and as :func:`standard_errors`.
    """
    checked_probability(confidence, "`confidence`")
    error = standard_errors(solution, places)
    if places is None:
        places = np.arange(1, len(solution.polynomial.family) + 1)
    polynomial = solution.polynomial
    coef = np.concatenate([polynomial.intercept[None], polynomial.coef])[places].T
    reach = t.ppf((1 + confidence) / 2, max(solution.residual_degrees_of_freedom, 1.0)) * error
    return np.stack([coef - reach, coef + reach], axis=-1)
