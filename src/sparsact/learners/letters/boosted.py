"""Boosted trees on the features of letters, each fitted without a fold, on which it stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble
from sparsact.learners.lsh.trees import sklearn

MOST_ROUNDS: Final = 1_500
LEAST_ROWS: Final = 2  # of a leaf: tables of options have little noise


@dataclass(frozen=True, eq=False)
class LetterTrees:
    """The mean of several sums of trees, which are the targets of one ensemble."""

    features: tuple[Array, ...]
    trees: TreeEnsemble

    def values(self, codes: Codes) -> Array:
        """Values (m,) at rows of letters (m, n)."""
        return np.asarray(self.trees.values(columns_of(codes, self.features)).mean(axis=1))


def columns_of(codes: Codes, features: Sequence[Array]) -> Array:
    """Columns that trees split: the number of a quantity, and indicators of all letters but the last of other sites."""
    pieces = [of_site[:, : max(1, of_site.shape[1] - 1)][own] for own, of_site in zip(codes.T, features, strict=True)]
    return np.ascontiguousarray(np.concatenate(pieces, axis=1))


def fitted_boosted(
    features: Sequence[Array],
    codes: Codes,
    z: Array,
    weights: Array,
    folds: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    leaves: int,
) -> tuple[tuple[LetterTrees], Array]:
    """Trees of standardized targets without each fold, and values (m,) of each row by the trees without its own.

    Each fold keeps the number of rounds, at most 1,500, that predicts it best.
    """
    X, seed = columns_of(codes, features), int(rng.integers(2**31))
    settings = {"max_leaf_nodes": leaves, "min_samples_leaf": LEAST_ROWS}
    left_out, found = np.empty(len(z)), []
    for fold in range(int(folds.max()) + 1):
        inside, others = folds == fold, folds != fold
        held_out, rows = ((X[some], z[some], weights[some]) for some in (inside, others))
        model = sklearn(settings, MOST_ROUNDS, rows, held_out, seed)
        left_out[inside] = model.predict(X[inside])
        found.append((model.base, model.trees))
    return (LetterTrees(tuple(features), TreeEnsemble.joined(found)),), left_out
