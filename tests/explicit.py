"""The road that the library never takes, and the oracle of every learner: write the matrix out, and ask NumPy."""

from itertools import combinations

import numpy as np

from sparsact.hypercube import bits_to_signs


def subsets_of_size(n, degree, min_degree=1):
    """Subsets by size, then lexicographic: the order of ``subsets_``."""
    return [S for size in range(max(1, min_degree), min(degree, n) + 1) for S in combinations(range(n), size)]


def monomials(signs, subsets):
    """Products of the columns in each subset, (m, D)."""
    columns = [np.prod(np.asarray(signs, dtype=np.float64)[:, list(S)], axis=1) for S in subsets]
    return np.stack(columns, axis=1) if columns else np.zeros((len(signs), 0))


def centred(features, y, weights=None, *, fit_intercept=True):
    """Features and targets (m, T) less their weighted means, and those means (zeros without an intercept)."""
    if not fit_intercept:
        return features, y, np.zeros(features.shape[1]), np.zeros(y.shape[1])
    share = np.ones(len(y)) / len(y) if weights is None else weights / weights.sum()
    return features - share @ features, y - share @ y, share @ features, share @ y


def least_norm(features, y, weights=None, *, alpha=0.0, fit_intercept=True):
    """Coefficients (D, T) and intercepts (T,) of weighted ridge; of least norm where the rows leave a choice."""
    F, Y, feature_mean, target_mean = centred(features, y, weights, fit_intercept=fit_intercept)
    root = np.ones((len(y), 1)) if weights is None else np.sqrt(weights)[:, None]
    D = features.shape[1] if alpha else 0
    above = np.vstack([F * root, np.sqrt(alpha) * np.eye(D, features.shape[1])])
    coef = np.linalg.lstsq(above, np.vstack([Y * root, np.zeros((D, y.shape[1]))]), rcond=1e-9)[0]
    return coef, target_mean - feature_mean @ coef


def determined(design):
    """Whether the rows determine each coefficient: whether the rank falls with its column."""
    rank = np.linalg.matrix_rank(design)
    return np.array([np.linalg.matrix_rank(np.delete(design, i, axis=1)) < rank for i in range(design.shape[1])])


def tables(rng, kind, m, n):
    """Bits (m, n) of one kind of table: the degeneracies that real tables have."""
    bits = rng.integers(0, 2, (m, n))
    if kind == "one-hot":  # the columns of a group sum to 1
        bits[:, : n - 2] = np.arange(n - 2) == rng.integers(0, n - 2, m)[:, None]
    elif kind == "constant":
        bits[:, 1] = 1
        bits[:, n - 1] = 0
    elif kind == "repeated":
        bits[:, 2] = bits[:, 0]
    elif kind == "complementary":
        bits[:, n - 1] = 1 - bits[:, 1]
    elif kind == "few points":
        bits = bits[rng.integers(0, min(m, 5), m)]
    elif kind == "skewed":
        bits = (rng.random((m, n)) < 0.1).astype(bits.dtype)
    return bits


KINDS = ["uniform", "one-hot", "constant", "repeated", "complementary", "few points", "skewed"]


def signs(bits):
    return bits_to_signs(bits)
