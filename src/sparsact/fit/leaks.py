"""Columns through which boosted trees predict what no other model does: they may be the target again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding
from sparsact.datasets.columns import Real
from sparsact.fit.candidates.trees import boosted
from sparsact.statistics.row_sample import RowSample

NEARLY_ALL: Final = 0.99  # of the variance: what trees predict through a leak
FAILS: Final = 0.9  # of the variance at most: what other models predict, and trees without the column
MOST_ROWS: Final = 4096
MOST_NUMBERS: Final = 1 << 20
LEAVES: Final = 16  # with the trees' other options as in comparisons
N_TREES: Final = 150
LEAST_ROWS: Final = 50
LEAK: Final = (
    "warning: boosted trees predict {target} through {name} (held-out R² {with_it:.3f}, {without:.3f} without it), as "
    "no other model does; if that is not known before the target is, leave it out with --ignore."
)


def leaks(encoding: Encoding, sample: RowSample, best: float) -> list[str]:
    """A warning of the column of numbers through which trees predict a target, by the first fold of the sample.

    ``best`` is the largest held-out R2 of other models.
    """
    X, y, folds = sample.at_most(min(MOST_ROWS, MOST_NUMBERS // len(encoding.feature_names)))
    held = folds == 0
    if best > FAILS or y.ndim > 1 or len(y) < LEAST_ROWS or not 0 < held.sum() < len(y) or not np.ptp(y[held]):
        return []

    def left(model: Any, rows: NDArray[Any]) -> float:
        return float(np.mean((model.predict(rows) - y[held]) ** 2) / y[held].var())

    def trees(columns: list[int]) -> Any:
        return boosted(X[~held][:, columns], y[~held, None], LEAVES, N_TREES, 0)[0]

    model = trees(everything := list(range(X.shape[1])))
    if (of_all := left(model, X[held])) >= 1 - NEARLY_ALL:
        return []
    losses, order = {}, np.random.default_rng(0).permutation(int(held.sum()))
    for column in (column for column in encoding.columns if isinstance(column, Real)):
        place, mixed = encoding.feature_names.index(column.name), X[held]
        mixed[:, place] = mixed[order, place]
        losses[place] = left(model, mixed)
    worst = max(losses, key=losses.__getitem__)
    others = [place for place in everything if place != worst]
    of_others = left(trees(others), X[held][:, others]) if others else 1.0
    if of_others < 1 - FAILS:
        return []
    names = {"target": encoding.target_names[0], "name": encoding.feature_names[worst]}
    return [LEAK.format(**names, with_it=1 - of_all, without=1 - of_others)]
