"""What a learner has to beat on a target: its variance, and the error of the best linear predictor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.parameters import checked_generator, checked_size
from sparsact_papers.data.domains import Domain
from sparsact_papers.data.targets import Target


@dataclass(frozen=True)
class Description:
    """Mean squared errors of two predictors that learn next to nothing, each with its standard error.

    ``variance`` is that of the best constant, ``linear_mse`` that of least squares with an intercept. A result without
    them beside it says little: some targets of paper B have a variance below the errors that it reports.
    """

    variance: float
    variance_error: float
    linear_mse: float
    linear_mse_error: float
    m: int

    def __str__(self) -> str:
        return (
            f"variance {self.variance:.3g} +- {self.variance_error:.1g}, "
            f"best linear MSE {self.linear_mse:.3g} +- {self.linear_mse_error:.1g} ({self.m} points)"
        )


def describe(target: Target, domain: Domain, *, m: int = 1 << 14, rng: np.random.Generator) -> Description:
    """Variance of a target on a domain, and the error of the best linear predictor on points it has not seen.

    Parameters
    ----------
    target : Target
    domain : Domain
        Of ``target.n`` columns.
    m : int
        Points to fit with, and fresh points to measure on: 10 for each column, at least.
    rng : numpy.random.Generator

    Returns
    -------
    description : Description

    Notes
    -----
    The fitted predictor is worse than the best by a share of about ``domain.dimension / m``, on top of the standard
    errors, which are those of a mean of m independent values.

    Examples
    --------
    The product of two coordinates has variance 1/9, and no linear part:

    >>> from sparsact_papers.data import Cube, Multilinear
    >>> found = describe(Multilinear([1, -1, -1, 1]), Cube(2), rng=np.random.default_rng(0))
    >>> abs(found.variance - 1 / 9) < 5 * found.variance_error
    True
    >>> abs(found.linear_mse - 1 / 9) < 5 * found.linear_mse_error
    True
    """
    if target.n != domain.ambient:
        raise ValueError(f"{target} has {target.n} columns, points of {domain} have {domain.ambient}: compose them.")
    m, rng = checked_size(m, "the number `m` of points", 10 * (target.n + 1)), checked_generator(rng)
    X_fit, X = domain.sample(m, rng=rng), domain.sample(m, rng=rng)
    y_fit, y = target(X_fit), target(X)
    # y less its mean, so that errors of rounding stay small beside what varies.
    centre = X_fit.mean(axis=0)
    slopes = np.linalg.lstsq(X_fit - centre, y_fit - y_fit.mean(), rcond=None)[0]
    variance, variance_error = _mean((y - y.mean()) ** 2 * (m / (m - 1)))
    linear_mse, linear_mse_error = _mean((y - y_fit.mean() - (X - centre) @ slopes) ** 2)
    return Description(variance, variance_error, linear_mse, linear_mse_error, m)


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
