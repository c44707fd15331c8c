"""Targets and learners that several experiments on learning share."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.constructions import gated, random_network
from sparsact.hypercube import n_subsets, points
from sparsact.network import SparselyActivatedNetwork

GATED, SPARSE_1, SPARSE_2 = "gated, k = 1", "random, k = 1", "random, k = 2"
TARGETS: Final = (GATED, SPARSE_1, SPARSE_2)
N_ADDRESS, N_UNITS = 3, 16


def planted(target: str, n: int, seed: int) -> SparselyActivatedNetwork:
    """A network of the named kind on n inputs, the same for every learner and sample size of a seed."""
    rng = np.random.default_rng([seed, 1])
    if target == GATED:  # Appendix A: 8 linear functions of expected square 1, without zero weights
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


SPARSE, DENSE, TREES, LOW_DEGREE = "sparse class", "dense network", "boosted trees", "low degree"
RIVALS: Final = (DENSE, TREES, LOW_DEGREE)
LEARNERS: Final = (SPARSE, *RIVALS)
WIDTHS: Final = (1, 3)  # times the true number of units, for every learner that has units
ALPHAS, N_STARTS, STEPS = (1e-3, 1.0), 2, 200  # of the dense networks: penalties, starts of L-BFGS, iterations
LEAVES, TREE_ITERATIONS = (8, 31), 200
DEGREES: Final = (1, 2, 3)
MOST_MONOMIALS: Final = 1000  # and no more than rows
HELD_OUT: Final = 0.2  # of the rows


def chosen(learner: str, s: int, k: int, X: NDArray[Any], y: NDArray[np.float64], seed: int) -> Any:
    """A learner by name, with the settings that err least on a fifth of the rows held out, fitted to all rows.

    Networks, sparse and dense, choose among the same widths. The sparse class is that of the true k.
    """
    held_out = np.random.default_rng([seed, 7]).permutation(len(X)) < HELD_OUT * len(X)

    def error(candidate: Any) -> float:
        model = fitted(clone(candidate), X[~held_out], y[~held_out])
        return float(np.mean((model.predict(X[held_out]) - y[held_out]) ** 2))

    from sklearn.base import clone

    return fitted(min(_candidates(learner, s, k, X.shape, seed), key=error), X, y)


def _candidates(learner: str, s: int, k: int, shape: tuple[int, ...], seed: int) -> list[Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.neural_network import MLPRegressor

    from sparsact.learners import LowDegreeRegressorCV, SparselyActivatedRegressor

    if learner == SPARSE:
        return [
            SparselyActivatedRegressor(width * s, k, n_restarts=1, max_iter=100, random_state=seed) for width in WIDTHS
        ]
    if learner == DENSE:
        common = {"solver": "lbfgs", "max_iter": STEPS, "max_fun": 10**6}
        return [
            MLPRegressor(hidden_layer_sizes=(width * s,), alpha=alpha, random_state=N_STARTS * seed + start, **common)
            for width, alpha, start in product(WIDTHS, ALPHAS, range(N_STARTS))
        ]
    if learner == TREES:
        return [
            HistGradientBoostingRegressor(max_leaf_nodes=leaves, max_iter=TREE_ITERATIONS, random_state=seed)
            for leaves in LEAVES
        ]
    m, n = shape
    degrees = [degree for degree in DEGREES if n_subsets(n, degree) <= min(m, MOST_MONOMIALS)]
    return [LowDegreeRegressorCV(degrees=(degree,), random_state=seed) for degree in degrees]


def fitted(model: Any, X: NDArray[Any], y: NDArray[np.float64]) -> Any:
    """The model, fitted; iterations are a learner's budget, and their end is no news."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)
