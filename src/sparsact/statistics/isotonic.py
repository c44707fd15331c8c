"""Isotonic regression: the increasing function of least squared error, linear between its knots."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Array = NDArray[np.float64]

SAME: Final = 1e-15  # inputs closer than this are one, as in scikit-learn's IsotonicRegression


def isotonic_curve(x: Array, y: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Knots and values of the isotonic regression of targets y (m,) on x (m,); ``np.interp`` evaluates it.

    Targets of one input are averaged first (de Leeuw, 1977); knots within a flat piece are left out.

    >>> x, y = isotonic_curve(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 4.0, 2.0, 5.0]))
    >>> y.tolist(), np.interp([-1.0, 2.5], x, y).tolist()
    ([1.0, 3.0, 3.0, 5.0], [1.0, 4.0])
    """
    order = np.lexsort((y, x))
    x, y, weights = x[order], y[order], np.ones(len(y)) if weights is None else weights[order]
    first = np.diff(x, prepend=-np.inf) >= SAME
    place = np.cumsum(first) - 1
    total = np.bincount(place, weights)
    values: Array = isotonic_regression(np.bincount(place, weights * y) / total, weights=total).x
    bends = np.diff(values, prepend=-np.inf, append=np.inf) != 0
    kept = bends[1:] | bends[:-1]
    return x[first][kept], values[kept]
