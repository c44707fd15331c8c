"""The gap by its definition, the choice of settings by hand, and ratios of errors paired by points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reproduced import made_up
from sklearn.base import BaseEstimator, RegressorMixin

from sparsact_papers.common import learners
from sparsact_papers.common.learners import DENSE, LEARNERS, SPARSE
from sparsact_papers.common.planted import CAPS
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.paper_a import erm_curves as experiment
from sparsact_papers.paper_a.erm_claims import log_ratios

TASK: dict[str, Any] = {"family": CAPS, "n": 6, "s": 2, "k": 1, "learner": SPARSE, "m": 150, "seed": 3}


class Constant(RegressorMixin, BaseEstimator):  # type: ignore[misc] # untyped scikit-learn
    """Predicts its parameter, and keeps the number of rows that it was fitted to."""

    def __init__(self, value: float) -> None:
        self.value = value

    def fit(self, X: Any, y: Any) -> Constant:
        self.n_rows_ = len(X)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.value)


def test_the_sparse_class_learns_a_tiny_network_as_the_noise_allows() -> None:
    found = experiment.measure(**TASK)
    assert found == experiment.measure(**TASK)
    # Least squares with the true active sets errs by noise^2 s (n + 1) / m = 0.0084 of the variance in expectation.
    assert found["share"] < 5 * 0.09 * 14 / 150
    assert found["gap"] == pytest.approx(found["share"] + found["planted_train"] - found["train"])


def test_the_candidate_that_errs_least_on_rows_held_out_is_fitted_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "_candidates", lambda *_: [Constant(value) for value in (3.0, 1.5, -1.0)])
    X = np.zeros((35, 2))
    model = learners.chosen("any", 4, 1, X, np.linspace(0.9, 1.1, 35), seed=0)
    assert (model.value, model.n_rows_) == (1.5, 35)


def test_both_kinds_of_networks_choose_among_the_same_widths() -> None:
    s, shape = 5, (300, 11)
    sparse = {one.n_units for one in learners._candidates(SPARSE, s, 2, shape, 0)}
    dense = {one.hidden_layer_sizes[0] for one in learners._candidates(DENSE, s, 2, shape, 0)}
    assert sparse == dense == {s * width for width in learners.WIDTHS}


def test_learners_see_the_same_points_in_every_task() -> None:
    for scale in Scale:
        seen: dict[tuple[Any, ...], set[str]] = {}
        for task in experiment.parameters(scale):
            key = tuple(value for name, value in task.items() if name != "learner")
            seen.setdefault(key, set()).add(str(task["learner"]))
        assert all(each == set(LEARNERS) for each in seen.values())


def test_ratios_are_means_over_cells_of_each_seed() -> None:
    def row(learner: str, m: int, seed: int, share: float) -> Any:
        return made_up(experiment.EXPERIMENT, TASK | {"learner": learner, "m": m, "seed": seed}, {"share": share})

    rows = Rows(
        [
            *(row(SPARSE, m, seed, 0.01 * 2**seed) for m in (100, 400) for seed in (0, 1)),
            *(row(DENSE, m, seed, 0.01 * (8 if m == 400 else 2)) for m in (100, 400) for seed in (0, 1)),
            row(DENSE, 100, 2, 1.0),  # a seed that the sparse class lacks
        ]
    )
    assert log_ratios(rows, "share", DENSE, "m") == pytest.approx([-2.0, -1.0])
