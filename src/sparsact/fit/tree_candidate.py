"""Gradient-boosted trees of a table: what a reader would try first, and members of ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.fit.explain import function_names
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample, as_numbers

MOST_ROWS = 30_000
MOST_NUMBERS = 1 << 22  # rows times columns times functions
LEAVES = (8, 16)  # of a tree: the sizes that are compared
TREES, LEARNING_RATE, LEAST_ROWS = 150, 0.1, 2


@dataclass(frozen=True)
class BoostedTrees:
    """Trees of each function of a target, fitted by least squares."""

    trees: list[Any]

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Values (m, functions)."""
        return np.stack([each.predict(X) for each in self.trees], axis=1)


def fitted_trees(
    table: Table, options: FitOptions, sample: RowSample, stages: Stages
) -> dict[str, tuple[BoostedTrees, HeldOutScores]]:
    """By leaves of a tree, boosted trees of every row, or of a sample of many, and their held-out scores."""
    target, n_functions = table.encoding.targets[0], len(function_names(table.encoding))
    X, y, folds = sample.at_most(min(MOST_ROWS, MOST_NUMBERS // (len(table.feature_names) * n_functions)))
    functions = as_numbers(target, y).reshape(len(y), -1)
    found = {}
    with stages.stage("fitting trees", len(LEAVES) * (options.folds + 1) * len(X)) as on_rows:
        for leaves in LEAVES:
            models = []
            for fold in (None, *range(options.folds)):
                rows = slice(None) if fold is None else folds != fold
                models.append(_boosted(X[rows], functions[rows], leaves, options.random_state))
                on_rows(len(X))
            scores = HeldOutScores.of(models[1:], target, X, y, folds)
            found[f"trees of {leaves} leaves"] = models[0], scores
    return found


def _boosted(X: NDArray[Any], y: NDArray[np.float64], leaves: int, seed: int) -> BoostedTrees:
    from sklearn.ensemble import HistGradientBoostingRegressor  # loads slowly

    def trees(of_function: NDArray[np.float64]) -> Any:
        return HistGradientBoostingRegressor(
            learning_rate=LEARNING_RATE,
            max_iter=TREES,
            max_leaf_nodes=leaves,
            min_samples_leaf=LEAST_ROWS,
            early_stopping=False,
            random_state=seed,
        ).fit(X, of_function)

    return BoostedTrees([trees(of_function) for of_function in y.T])
