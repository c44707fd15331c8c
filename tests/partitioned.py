"""Learners whose rows add up, tables for them, and the bytes of their files."""

import numpy as np

from sparsact import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
)

EXACT = {
    "rows": LowDegreeRegressor(2, 0.5),
    "cells": LowDegreeRegressor(3, solver="cells"),
    "moments": LowDegreeRegressor(2, solver="moments"),
    "kernel": LowDegreeRegressor(2, 0.1, solver="kernel"),
    "folds": LowDegreeRegressorCV(degrees=(1, 2), alphas=(0.1, 1.0), cv=4, random_state=3),
    "classes": LowDegreeClassifier(2),
}
ROUNDED = {
    "real": LowDegreeRegressor(2, 0.1, domain="real"),
    "lsh": LSHRegressor(n_tables=3, n_hashes=2, bucket_width=0.7, alpha=0.1, directions="principal", random_state=5),
    "lsh classes": LSHClassifier(
        n_tables=2, n_hashes=2, bucket_width=0.9, alpha=0.1, directions="principal", random_state=6
    ),
    "dsm": DSMRegressor(n_units=24, n_active=7, random_state=7),
    "dsm pca": DSMRegressor(n_units=16, n_active=5, bottom="pca", alpha=1e-3, random_state=8),
}


def table(estimator, m=317, n=6, seed=0):
    """X (m, n), y, and weights, some of them 0, for an estimator."""
    rng = np.random.default_rng(seed)
    on_the_cube = any(estimator is one for one in EXACT.values())
    X = rng.integers(0, 2, (m, n)) if on_the_cube else rng.normal(size=(m, n))
    X[: m // 8] = 1  # a partition of ones may be bits or signs
    y = 2.0 * X[:, 0] * X[:, 3] - X[:, 1] + rng.normal(size=m) * 10.0 ** rng.integers(-3, 4, m)
    if "Classifier" in type(estimator).__name__:
        y = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 1.0])]
    weights = rng.random(m) * rng.integers(0, 2, m)
    return X, y, weights


def saved(model, folder):
    """The bytes of the model's file."""
    path = folder / "model.sparsact"
    model.save(path)
    return path.read_bytes()
