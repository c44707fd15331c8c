"""Targets and learners that several experiments on learning share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sparsact.constructions import gated, random_network
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact_papers.intervals import CONFIDENCE, Interval

GATED, SPARSE_1, SPARSE_2 = "gated, k = 1", "random, k = 1", "random, k = 2"
TARGETS = (GATED, SPARSE_1, SPARSE_2)
N_ADDRESS, N_UNITS = 3, 16


def planted(target: str, n: int, seed: int) -> SparselyActivatedNetwork:
    """A network of the named kind on n inputs, the same for every learner and sample size of a seed."""
    rng = np.random.default_rng([seed, 1])
    if target == GATED:  # Appendix A: 8 linear functions of expected square 1, no weight of which is 0
        q = n - N_ADDRESS
        return gated(rng.normal(size=(2**N_ADDRESS, q)) / np.sqrt(q), N_ADDRESS)
    if target in (SPARSE_1, SPARSE_2):
        return random_network(n, N_UNITS, 1 if target == SPARSE_1 else 2, rng=rng)
    raise ValueError(f"the targets are {', '.join(TARGETS)}; got {target!r}.")


def drawn(n: int, m: int, seed: int) -> NDArray[np.int64]:
    """Places in table order of m uniform points of the cube, with repetition: a larger sample begins alike."""
    return np.random.default_rng([seed, 2]).integers(2**n, size=m)


def squared_error(model: Any, values: NDArray[np.float64]) -> float:
    """Exact mean squared error of a fitted model over the cube, against a table of values."""
    cube = points(int(np.log2(len(values))))
    return float(np.mean((model.predict(cube) - values) ** 2))


def share_of(successes: ArrayLike) -> Interval:
    """Share of successes among independent repetitions, with the exact (Clopper-Pearson) 95 % interval.

    >>> print(share_of([True] * 9 + [False]))
    0.9 [0.555, 0.997]
    """
    found = np.asarray(successes, dtype=bool)
    if not len(found):
        raise ValueError("a share needs at least one repetition; there is none.")
    share = stats.binomtest(int(found.sum()), len(found))
    limits = share.proportion_ci(CONFIDENCE)
    return Interval(float(found.mean()), float(limits.low), float(limits.high), len(found), "95 % interval of a share")


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
