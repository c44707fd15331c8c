"""Members of an ensemble combined: by isotonic regressions, and by weights that are not negative."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls
from sklearn.isotonic import IsotonicRegression

from sparsact.learners.letters.kernel import Array

DRAWS = 10  # of rows, with replacement: their mean is smoother than one isotonic regression
RIDGE = 0.02  # towards equal weights, as a share of the rows


def isotonic(scores: Array, y: Array, weights: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Knots and values of a mean of isotonic regressions of y on scores, each of rows drawn with replacement.

    Between knots the mean is linear, and constant beyond the ends: ``np.interp`` evaluates it.
    """
    curves = []
    for _ in range(DRAWS):
        rows = rng.integers(0, len(y), len(y))
        curve = IsotonicRegression(out_of_bounds="clip").fit(scores[rows], y[rows], sample_weight=weights[rows])
        curves.append((curve.X_thresholds_, curve.y_thresholds_))
    knots = np.unique(np.concatenate([x for x, _ in curves]))
    return knots, np.mean([np.interp(knots, x, values) for x, values in curves], axis=0)


def stacking_weights(predicted: Array, y: Array, weights: Array) -> Array:
    """Weights (k,), none negative, of columns (m, k) of predictions: least squares, with a ridge towards equal ones."""
    m, k = predicted.shape
    centre = np.average(y, weights=weights)
    scale = np.sqrt(np.average((y - centre) ** 2, weights=weights)) or 1.0
    root = np.sqrt(weights / weights.mean())[:, None]
    ridge = np.sqrt(RIDGE * m)
    matrix = np.vstack([root * (predicted - centre) / scale, ridge * np.eye(k)])
    found, _ = nnls(matrix, np.concatenate([root[:, 0] * (y - centre) / scale, np.full(k, ridge / k)]))
    return np.asarray(found)
