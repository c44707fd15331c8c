"""Weighted ridge over the rationals: no rounding, and so no tolerance, up to the answer."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass
class ExactFit:
    """What a fit is, in fractions; standard errors as floats, NaN where the rows leave a choice."""

    coef: list
    intercept: Fraction
    feature_mean: list
    total: Fraction  # weighted squares of the targets about their mean, or about 0 without an intercept
    squared_error: Fraction
    parameters: Fraction
    unscaled: list
    identified: np.ndarray
    n_rows: int

    @property
    def freedom(self):
        return self.n_rows - self.parameters

    def squared_error_on(self, features, y, weights):
        """Weighted squared error on other rows, and their weight."""
        rows = zip(fractions(features), fractions(y), fractions(weights), strict=True)
        return sum(w * (t - self.intercept - dot(row, self.coef)) ** 2 for row, t, w in rows), sum(fractions(weights))


def fractions(values):
    return [fractions(value) if isinstance(value, list) else Fraction(value) for value in np.asarray(values).tolist()]


def dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def transposed(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def product(a, b):
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def reduced(rows):
    """Non-zero rows of the reduced row echelon form, and its pivot columns."""
    rows, pivots = [list(row) for row in rows], []
    for column in range(len(rows[0]) if rows else 0):
        top = len(pivots)
        found = next((i for i in range(top, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for i, row in enumerate(rows):
            if i != top and row[column]:
                factor = row[column]
                rows[i] = [x - factor * y for x, y in zip(row, rows[top], strict=True)]
        pivots.append(column)
    return rows[: len(pivots)], pivots


def solved(a, b):
    """Solution of a regular system, for right-hand sides in the columns of b."""
    rows, _ = reduced([x + y for x, y in zip(a, b, strict=True)])
    return [row[len(a) :] for row in rows]


def exact_ridge(features, y, weights, alpha, *, fit_intercept):
    """Least squares (of least norm) or ridge, of the rows of positive weight.

    The coefficients are ``B' z``, where B is a basis of the rows of the design: z solves a regular system.
    """
    kept = np.asarray(weights) > 0
    X, t, w = fractions(features[kept]), fractions(y[kept]), fractions(weights[kept])
    total, size = sum(w), features.shape[1]
    means = [dot(w, column) / total * fit_intercept for column in transposed(X)]
    mean = dot(w, t) / total * fit_intercept
    X, t = [[x - c for x, c in zip(row, means, strict=True)] for row in X], [value - mean for value in t]
    weighted = [[v * x for x in row] for v, row in zip(w, X, strict=True)]
    squares = sum(v * value**2 for v, value in zip(w, t, strict=True))
    basis, _ = reduced(X)
    gram = product(transposed(weighted), X)
    rhs = [dot(column, t) for column in transposed(weighted)]
    inner = product(product(basis, gram), transposed(basis))
    own = product(basis, transposed(basis))
    system = [[g + Fraction(alpha) * o for g, o in zip(*rows, strict=True)] for rows in zip(inner, own, strict=True)]
    smoother = transposed(basis) if not basis else product(transposed(basis), solved(system, basis))
    smoother = smoother or [[Fraction(0)] * size for _ in range(size)]  # (G + alpha)^-1 on the range of G
    coef = [dot(row, rhs) for row in smoother]
    covariance = product(product(smoother, gram), smoother)
    error = squares - 2 * dot(coef, rhs) + dot(coef, [dot(row, coef) for row in gram])
    of_mean = dot(means, [dot(row, means) for row in covariance]) + (1 / total if fit_intercept else 0)
    return ExactFit(
        coef,
        mean - dot(means, coef),
        means,
        squares,
        error,
        sum(dot(row, column) for row, column in zip(smoother, transposed(gram), strict=True)) + int(fit_intercept),
        [of_mean, *(covariance[i][i] for i in range(size))],
        identified(features[kept], fit_intercept=fit_intercept),
        int(kept.sum()),
    )


def identified(features, *, fit_intercept):
    """Where the unit vector is a combination of rows of the design ``[1, features]``; a missing intercept is known."""
    design = np.column_stack([np.ones((len(features), int(fit_intercept))), features])
    rows, pivots = reduced(fractions(design))
    found = np.zeros(design.shape[1], dtype=bool)
    for row, pivot in zip(rows, pivots, strict=True):
        found[pivot] = sum(value != 0 for value in row) == 1
    return found if fit_intercept else np.concatenate([[True], found])
