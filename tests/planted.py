"""Planted 1-sparse functions by their plain definitions, to be found again from rows."""

from __future__ import annotations

import numpy as np


def index(b):
    """Index_b on n = b + 2**b signs: the address bits choose a data sign, -1 mapped to 0."""

    def function(X):
        address = (X[:, :b] < 0) @ (1 << np.arange(b))
        return (1 + X[np.arange(len(X)), b + address]) / 2

    return function, b + 2**b


def gated(b, q, seed):
    """relu(<w_x, y>) with a random unit vector w_x for each address x."""
    weights = np.random.default_rng(seed).normal(size=(2**b, q))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)

    def function(X):
        address = (X[:, :b] < 0) @ (1 << np.arange(b))
        return np.maximum((X[:, b:] * weights[address]).sum(axis=1), 0)

    return function, b + q


def caps(n):
    """2n disjoint caps of the sphere of radius sqrt(n), with signs by turns: no gates, real inputs."""
    directions, signs = np.vstack([np.eye(n), -np.eye(n)]), 1.0 - 2.0 * (np.arange(2 * n) % 2)
    return lambda X: np.maximum(X @ directions.T - np.sqrt(n / 2), 0) @ signs


def signs(m, n, seed):
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(m, n))


def sphere(m, n, seed):
    X = np.random.default_rng(seed).normal(size=(m, n))
    return X * np.sqrt(n) / np.linalg.norm(X, axis=1, keepdims=True)


def relative_error(model, function, X):
    """Mean squared error at X over the variance there."""
    truth = function(X)
    return np.mean((model.predict(X) - truth) ** 2) / np.var(truth)
