"""Weights of models, and intervals, by predictions that have not seen the targets."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from sparsact.statistics.column_scales import exponents_of
from sparsact.statistics.conformal import reach
from sparsact.validation.parameters import checked_probability

Array = NDArray[np.float64]

RIDGE: Final = 60.0  # c of the weights
NEAR_ZERO: Final = 1e-9  # of the largest error


def stacking_weights(predicted: Array, y: Array, prior: Array) -> Array:
    r"""Weights of models by their out-of-fold predictions (m, k) of targets y (m,).

    They minimise, over all w that are not negative and sum to 1,

    .. math:: \frac1m \|P w - y\|^2 + \frac{c}{m}\, \min_j e_j\, \|w - w_0\|^2,

    with the mean squared errors e of the models, c = 60, and :math:`w_0` in proportion to the prior weights over
    :math:`e^2`: few rows are enough to see how good each model is, but not how their errors go together.

    References
    ----------
    .. [1] L. Breiman, "Stacked regressions", Machine Learning 24, 1996.
    """
    errors = predicted - y[:, None]
    errors = np.ldexp(errors, -exponents_of(errors.ravel()))  # squares of any numbers are then numbers
    products = errors.T @ errors / len(y)  # w' E'E w / m is the error of the mean, as the weights sum to 1
    largest = float(products.diagonal().max()) or 1.0
    sizes = np.maximum(products.diagonal() / largest, NEAR_ZERO)
    centre = prior / sizes**2
    centre /= centre.sum()
    pull = RIDGE / len(y) * float(sizes.min()) * largest
    root = np.linalg.cholesky(products / pull + np.eye(len(prior))).T
    sum_to_one = np.full((1, len(prior)), 1e3 * np.sqrt(largest / pull + 1))
    targets = np.append(np.linalg.solve(root.T, centre), sum_to_one[0, 0])
    weights = nnls(np.concatenate([root, sum_to_one]), targets)[0]
    return np.asarray(weights / weights.sum())


def intervals_about(values: Array, errors: Array, confidence: float) -> Array:
    """Intervals (m, 2) about predictions (m,) or (m, 1), all of the width that errors of rows left out require."""
    width = reach(errors, checked_probability(confidence, "`confidence`"))
    return np.asarray(values.reshape(-1, 1) + np.array([-width, width]))
