"""Gradient-boosted trees of a table: what a reader would try first, and members of ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsact.datasets import Encoding
from sparsact.fit.candidate import MOST_ROWS, CandidateKind, Fit, FitParts, FitRun
from sparsact.fit.explain import function_names
from sparsact.fit.fold_sums import as_numbers
from sparsact.fit.held_out import HeldOutScores
from sparsact.kernels.threads import in_threads

MOST_NUMBERS: Final = 1 << 22  # rows times columns times functions
LEARNING_RATE, LEAST_ROWS = 0.1, 2
Sizes = Mapping[int, dict[int, int]]  # by the least number of rows, how many trees there are for numbers of leaves
SIZES: Final[Sizes] = {0: {8: 150}, 100: {8: 150, 16: 150}, 1_000: {16: 300, 63: 150}, 10_000: {31: 300}}
MANY_ROWS: Final = 1_000  # from there on, held-out rows decide how many of the trees are taken


@dataclass(frozen=True)
class BoostedTrees:
    """Boosted trees of each function of a target, by least squares: a mean of several fits, whose spread it lessens.

    ``fits`` has for each fit the trees of each function; the first ``n_trees`` are taken. The first fit counts as much
    as the others together. With ``letters`` the trees split sites by their letters, not bits.
    """

    fits: Sequence[list[Any]]
    n_trees: int
    letters: Encoding | None = None

    def predict(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Values (m, functions)."""
        last, X = self.n_trees - 1, X if self.letters is None else self.letters.codes(X)
        values = [
            np.stack([next(islice(trees.staged_predict(X), last, None)) for trees in fit], axis=1) for fit in self.fits
        ]
        return np.asarray((values[0] + np.mean(values[1:] or values, axis=0)) / 2)


def fitted_trees(parts: FitParts, of_rows: Sizes = SIZES) -> dict[str, Fit]:
    """By leaves of a tree, boosted trees of a table, or of a sample of many rows, and their held-out scores.

    Half of their mean is the fit to all rows, half the fits without a fold. A site of letters is a column a bit or, in
    tables so large that these take long, one column: scikit-learn splits by no letter that ten rows or fewer have.
    """
    table, options, sample, stages = parts
    target, n_functions = table.encoding.targets[0], len(function_names(table.encoding))
    n_numbers = len(table.feature_names) * n_functions * min(sample.n_rows, MOST_ROWS)
    letters = table.encoding if table.encoding.has_letters and n_numbers > MOST_NUMBERS else None
    n_columns = len(table.feature_names) if letters is None else len(letters.sites)
    X, y, folds = sample.at_most(min(MOST_ROWS, MOST_NUMBERS // (n_columns * n_functions)))
    columns = X if letters is None else letters.codes(X)
    categories = None if letters is None else [len(of_site) > 2 for _, of_site in letters.sites]
    functions = as_numbers(target, y).reshape(len(y), -1)
    sizes = of_rows[max(least for least in of_rows if least <= len(X))]
    tasks = [(leaves, fold) for leaves in sizes for fold in (None, *range(options.folds))]

    def fitted(task: tuple[int, int | None]) -> list[Any]:
        leaves, fold = task
        rows = slice(None) if fold is None else folds != fold
        return boosted(columns[rows], functions[rows], leaves, sizes[leaves], options.random_state, categories)

    fits: dict[int, list[list[Any]]] = {leaves: [] for leaves in sizes}
    with stages.stage("fitting trees", len(tasks) * len(X)) as on_rows:
        for (leaves, _), fit in zip(tasks, in_threads(fitted, tasks), strict=True):
            fits[leaves].append(fit)
            on_rows(len(X))
    found = {}
    for leaves, (of_all, *of_folds) in fits.items():
        n_trees = sizes[leaves] if len(X) < MANY_ROWS else _best_number(of_folds, columns, functions, folds)
        without = [BoostedTrees([fit], n_trees, letters) for fit in of_folds]
        held_out = HeldOutScores.of(without.__getitem__, target, X, y, folds)
        found[f"trees of {leaves} leaves"] = Fit(BoostedTrees([of_all, *of_folds], n_trees, letters), held_out)
    return found


def _best_number(
    of_folds: Sequence[list[Any]], X: NDArray[Any], functions: NDArray[np.float64], folds: NDArray[np.int64]
) -> int:
    """How many trees err least at the rows that each fit has not seen."""
    errors = [
        [((predicted - of_function) ** 2).sum() for predicted in trees.staged_predict(X[folds == fold])]
        for fold, fit in enumerate(of_folds)
        for trees, of_function in zip(fit, functions[folds == fold].T, strict=True)
    ]
    return 1 + int(np.sum(errors, axis=0).argmin())


def boosted(
    X: NDArray[Any],
    y: NDArray[np.float64],
    leaves: int,
    n_trees: int,
    seed: int,
    categories: Sequence[bool] | None = None,
) -> list[Any]:
    """Boosted trees of each column of y (m, functions); ``categories`` says which columns of X are no quantities."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # loads slowly

    trees = HistGradientBoostingRegressor(
        learning_rate=LEARNING_RATE,
        max_iter=n_trees,
        max_leaf_nodes=leaves,
        min_samples_leaf=LEAST_ROWS,
        early_stopping=False,
        categorical_features=categories,
        random_state=seed,
    )
    return [clone(trees).fit(X, of_function) for of_function in y.T]


@dataclass(frozen=True)
class TreesCandidate(CandidateKind):
    """Boosted trees, which are never the choice."""

    kind, name = "trees", "boosted trees, for comparison"
    sizes: Sizes = field(default_factory=lambda: SIZES)

    def fit(self, run: FitRun) -> Fit:
        """The trees of the best size."""
        trees = fitted_trees(run.parts, self.sizes)
        return replace(max(trees.values(), key=attrgetter("mean_r2")), members=trees)


CANDIDATE: Final = TreesCandidate()
