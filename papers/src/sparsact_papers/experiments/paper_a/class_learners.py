"""What learns a planted network: the sparse class, the dense class of as many units, a wider network, a polynomial."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARSE, DENSE, WIDE, LOW_DEGREE = "sparse, s units", "dense, s units", "dense, 64 units", "polynomial"
LEARNERS = (SPARSE, DENSE, LOW_DEGREE, WIDE)
N_RESTARTS, MAX_ITER = 3, 100  # of the sparse search; the dense one begins as often
WIDTH, ALPHAS, FOLDS, STEPS = 64, (0.01, 0.3, 10.0), 3, 300


def fitted(learner: str, s: int, k: int, X: NDArray[Any], y: NDArray[np.float64], seed: int) -> Any:
    """A learner by name, fitted. Whatever is chosen is chosen from the samples alone."""
    from sklearn.model_selection import GridSearchCV

    from sparsact.learners import LowDegreeRegressorCV, SparselyActivatedRegressor

    if learner == SPARSE:
        return SparselyActivatedRegressor(s, k, n_restarts=N_RESTARTS, max_iter=MAX_ITER, random_state=seed).fit(X, y)
    if learner == LOW_DEGREE:
        return LowDegreeRegressorCV(degrees=(1, 2, 3, 4), random_state=seed).fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="lbfgs failed to converge")  # iterations are the learner's budget
        if learner == WIDE:
            choice = GridSearchCV(_dense(WIDTH, seed), {"alpha": ALPHAS}, cv=FOLDS, scoring="neg_mean_squared_error")
            return choice.fit(X, y)
        starts = [_dense(s, [seed, i], alpha=0.0).fit(X, y) for i in range(1 + N_RESTARTS)]
        return min(starts, key=lambda model: float(np.mean((model.predict(X) - y) ** 2)))


def _dense(width: int, seed: int | list[int], alpha: float = ALPHAS[0]) -> Any:
    from sklearn.neural_network import MLPRegressor

    start = int(np.random.default_rng(seed).integers(2**31))
    return MLPRegressor(
        hidden_layer_sizes=(width,), solver="lbfgs", alpha=alpha, max_iter=STEPS, max_fun=10**6, random_state=start
    )
