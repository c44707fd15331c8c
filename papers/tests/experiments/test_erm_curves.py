"""Errors by another route, what every learner sees, and the judges on made-up rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsact_papers.common import learners
from sparsact_papers.common.learners import DENSE, LEARNERS, SPARSE
from sparsact_papers.experiments import Row, Rows, Scale
from sparsact_papers.paper_a import erm_curves as experiment
from sparsact_papers.paper_a.erm_claims import FLOOR, growth
from sparsact_papers.paper_a.erm_curves import NOISE, RANDOM, UNIFORM

TASK: dict[str, Any] = {
    "target": RANDOM,
    "n": 6,
    "s": 2,
    "k": 1,
    "noise": 0.0,
    "distribution": UNIFORM,
    "learner": SPARSE,
    "m": 150,
    "seed": 3,
}


def made(share: float, **other: Any) -> Row:
    values = {"share": share, "error": share, "variance": 1.0, "train": other.pop("train", 0.0)}
    values["gap"] = other.pop("gap", share)
    return Row("0", "erm-curves", 1, TASK | other, values, 0.0, "", {}, {}, "")


def test_the_sparse_learner_recovers_a_tiny_network() -> None:
    found = experiment.measure(**TASK)
    assert found["error"] < 1e-3 * found["variance"]
    assert found["share"] == FLOOR


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_gap_is_the_error_on_new_labels_less_that_on_those_seen(learner: str) -> None:
    task = TASK | {"learner": learner, "noise": NOISE, "m": 60}
    found = experiment.measure(**task)
    assert found == experiment.measure(**task)
    new = found["error"] + NOISE * found["variance"]
    assert found["gap"] * found["variance"] == pytest.approx(new - found["train"])


def test_the_dense_start_kept_fits_best() -> None:
    X = np.random.default_rng(0).choice([-1.0, 1.0], size=(40, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    best = learners.fitted(DENSE, 3, 1, X, y, 7)
    one = learners._dense(3, [7, 0], alpha=0.0).fit(X, y)
    assert np.mean((best.predict(X) - y) ** 2) <= np.mean((one.predict(X) - y) ** 2)


def test_learners_are_paired_in_every_task() -> None:
    for scale in Scale:
        keys = {}
        for task in experiment.parameters(scale):
            key = tuple(value for name, value in task.items() if name != "learner")
            keys.setdefault(key, set()).add(task["learner"])
        assert all({SPARSE, DENSE} <= learners for learners in keys.values())


def test_networks_never_learned_count_as_twice_the_most_samples() -> None:
    curves, n_unknown = growth(Rows([made(0.01, s=2), made(0.5, s=4)]), SPARSE)
    assert (curves, n_unknown) == ([([2.0, 4.0], [150.0, 300.0])], 1)
