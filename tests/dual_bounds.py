"""An independent proof that a unit is the best one of its cone: weak duality, with multipliers from scipy's nnls."""

import numpy as np
from scipy.optimize import nnls


def assert_best_on(X, inside, coefficients, W, B, unit, value):
    r"""``unit`` = (w, b) has ``value`` = sum of c_i (<w, x_i> - b) over the points inside, and none has more.

    Every :math:`\lambda \ge 0` bounds the maximum by :math:`W \|a\| + B |\beta|`, where (a, beta) = g + A^T lambda, g
    is the gradient and A v >= 0 is the cone. At the optimum A^T lambda balances g, up to multiples of w and b where
    these are as large as they may be.
    """
    radius = np.abs(X).max()
    X, W, unit = X / radius, W * radius, np.append(unit[:-1] * radius, unit[-1])
    affine = np.hstack([X, -np.ones((len(X), 1))])
    sides = np.where(inside[:, None], affine, -affine)
    w, b = unit[:-1], unit[-1]
    size = W + B
    assert (sides @ unit >= -1e-11 * size).all()
    assert np.linalg.norm(w) <= W * (1 + 1e-12)
    assert abs(b) <= B * (1 + 1e-12)
    gradient = (coefficients * inside) @ affine
    accuracy = 1e-11 * size * np.abs(coefficients).sum()
    assert abs(gradient @ unit - value) <= accuracy
    tight = sides[sides @ unit <= 1e-8 * size]
    at_limit_w = w / W if np.linalg.norm(w) > W * (1 - 1e-9) else 0 * w
    at_limit_b = np.sign(b) if abs(b) > B * (1 - 1e-9) else 0.0
    columns = np.vstack([tight, np.append(-at_limit_w, 0), np.append(0 * w, -at_limit_b)])
    lengths = np.maximum(np.linalg.norm(columns, axis=1, keepdims=True), 1e-300)
    multipliers = nnls((columns / lengths).T, -gradient)[0][: len(tight)] / lengths[: len(tight), 0]
    remaining = gradient + multipliers @ tight
    assert W * np.linalg.norm(remaining[:-1]) + B * abs(remaining[-1]) - value <= accuracy
