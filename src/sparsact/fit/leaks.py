"""Columns through which boosted trees predict what no other model does: they may be the target again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from sparsact.datasets.columns import Encoding, Real
from sparsact.fit.candidates.trees import boosted
from sparsact.fit.scores import CandidateModel
from sparsact.statistics.row_sample import RowSample

NEARLY_ALL: Final = 0.99  # of the variance: what trees predict through a leak
FAILS: Final = 0.9  # of the variance at most: what other models predict, and trees without the column
MOST_ROWS: Final = 4096
MOST_NUMBERS: Final = 1 << 20
LEAVES: Final = 16
N_TREES: Final = 150
LEAK: Final = (
    "warning: boosted trees predict {target} through {name} (held-out R² {trees:.3f}, without it {without:.3f}) and no "
    "other model does; if {name} is not known before {target} is, leave it out with ignore={name!r}."
)


def leaks(encoding: Encoding, sample: RowSample, models: Sequence[CandidateModel]) -> list[str]:
    """A warning of the column of numbers through which trees alone, of the models compared, predict a target.

    Some column must be one of numbers. Names the one that trees need most.
    """
    scores = {model.kind: model.r2.mean for model in sorted(models, key=lambda model: model.r2.mean)}
    trees = scores.pop("trees", 0.0)
    if not trees > NEARLY_ALL or max(scores.values()) > FAILS or len(encoding.targets) > 1:
        return []
    X, y, folds = sample.at_most(min(MOST_ROWS, MOST_NUMBERS // len(encoding.feature_names)))
    held = folds == 0
    if not np.ptp(y[held]):
        return []

    def fitted(columns: list[int]) -> Any:
        return boosted(X[~held][:, columns], y[~held, None], LEAVES, N_TREES, 0)[0]

    model, order = fitted(everything := list(range(X.shape[1]))), np.random.default_rng(0).permutation(int(held.sum()))
    costs = {}
    for column in (column for column in encoding.columns if isinstance(column, Real)):
        place, mixed = encoding.feature_names.index(column.name), X[held]
        mixed[:, place] = mixed[order, place]
        costs[place] = float(np.mean((model.predict(mixed) - y[held]) ** 2))
    worst = max(costs, key=costs.__getitem__)
    if others := [place for place in everything if place != worst]:
        without = 1 - float(np.mean((fitted(others).predict(X[held][:, others]) - y[held]) ** 2) / y[held].var())
    else:
        without = 0.0
    names = {"target": encoding.target_names[0], "name": encoding.feature_names[worst]}
    return [LEAK.format(**names, trees=trees, without=without)] if without <= FAILS else []
