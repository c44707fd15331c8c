"""Gradient-boosted trees of a table: what a reader would try first, and members of ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsact.datasets import Table
from sparsact.fit.explain import function_names
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.kind import MOST_ROWS, CandidateKind, FitRun, Fitted, mean_r2
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample, as_numbers
from sparsact.kernels.threads import in_threads

MOST_NUMBERS = 1 << 22  # rows times columns times functions
LEAVES = (8, 16)  # of a tree: the sizes that are compared
TREES, LEARNING_RATE, LEAST_ROWS = 150, 0.1, 2
MANY_ROWS = 5_000  # from there on, twice the trees
ROWS_FOR_TWO = range(100, 10_000)  # below, only the smaller trees are tried, beyond only the larger ones


@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees of each function of a target, by least squares: a mean of several fits, whose spread it lessens.

    ``fits`` has for each fit the trees of each function; the first counts as much as the others together.
    """

    fits: list[list[Any]]

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Values (m, functions)."""
        values = [np.stack([trees.predict(X) for trees in fit], axis=1) for fit in self.fits]
        return np.asarray((values[0] + np.mean(values[1:] or values, axis=0)) / 2)


def fitted_trees(
    table: Table, options: FitOptions, sample: RowSample, stages: Stages
) -> dict[str, tuple[BoostedTrees, HeldOutScores]]:
    """By leaves of a tree, boosted trees of a table, or of a sample of many rows, and their held-out scores.

    Half of their mean is the fit to all rows, half the fits without a fold.
    """
    target, n_functions = table.encoding.targets[0], len(function_names(table.encoding))
    X, y, folds = sample.at_most(min(MOST_ROWS, MOST_NUMBERS // (len(table.feature_names) * n_functions)))
    functions = as_numbers(target, y).reshape(len(y), -1)
    sizes = LEAVES if len(X) in ROWS_FOR_TWO else LEAVES[:1] if len(X) < ROWS_FOR_TWO.start else LEAVES[-1:]
    tasks = [(leaves, fold) for leaves in sizes for fold in (None, *range(options.folds))]

    def fitted(task: tuple[int, int | None]) -> list[Any]:
        leaves, fold = task
        rows = slice(None) if fold is None else folds != fold
        return _boosted(X[rows], functions[rows], leaves, options.random_state)

    fits: dict[int, list[list[Any]]] = {leaves: [] for leaves in sizes}
    with stages.stage("fitting trees", len(tasks) * len(X)) as on_rows:
        for (leaves, _), fit in zip(tasks, in_threads(fitted, tasks), strict=True):
            fits[leaves].append(fit)
            on_rows(len(X))
    return {
        f"trees of {leaves} leaves": (
            BoostedTrees(found),
            HeldOutScores.of([BoostedTrees([fit]) for fit in found[1:]], target, X, y, folds),
        )
        for leaves, found in fits.items()
    }


def _boosted(X: NDArray[Any], y: NDArray[np.float64], leaves: int, seed: int) -> list[Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor  # loads slowly

    trees = HistGradientBoostingRegressor(
        learning_rate=LEARNING_RATE,
        max_iter=TREES if len(X) < MANY_ROWS else 2 * TREES,
        max_leaf_nodes=leaves,
        min_samples_leaf=LEAST_ROWS,
        early_stopping=False,
        random_state=seed,
    )
    return [clone(trees).fit(X, of_function) for of_function in y.T]


class TreesCandidate(CandidateKind):
    """Boosted trees, which are never the choice."""

    kind, name = "trees", "boosted trees, for comparison"

    def fit(self, run: FitRun) -> Fitted:
        """The trees of the best size."""
        trees = fitted_trees(*run.parts)
        run.members |= trees
        return max(trees.values(), key=mean_r2)
