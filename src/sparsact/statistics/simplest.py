"""The rule by which models are chosen by their held-out errors: the simplest that is as good as the best."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray


def simplest(errors: NDArray[np.float64], rounding: float) -> int:
    r"""The first of some models, the simplest first, whose mean error is within a standard error of the least.

    The standard error is that of the paired difference to the model of least error over the k folds,
    :math:`s / \sqrt k` with the deviation s of the differences. Differences up to ``rounding`` are none, so that the
    last bits of errors decide nothing.

    Parameters
    ----------
    errors : ndarray of shape (models, folds)
        Held-out errors on the same folds, at least two.
    rounding : float
        Errors that differ by no more are equal.

    Examples
    --------
    The second is better in each of three folds, the third by no more than chance:

    >>> simplest(np.array([[1.0, 1.2, 1.1], [0.5, 0.6, 0.6], [0.7, 0.3, 0.65]]), rounding=1e-12)
    1
    """
    means = errors.mean(axis=1)
    least = errors[np.flatnonzero(means <= means.min() + rounding)[0]]
    beyond = errors - least
    standard_error = beyond.std(axis=1, ddof=1) / sqrt(errors.shape[1])
    return int(np.flatnonzero(beyond.mean(axis=1) <= standard_error + rounding)[0])
