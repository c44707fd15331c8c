"""Frozen layers: what is measured against independent routes."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact_papers.experiments import Rows, Scale, measure
from sparsact_papers.paper_b import frozen_models
from sparsact_papers.paper_b.frozen_layers import EXPERIMENT
from sparsact_papers.paper_b.frozen_models import drawn_target, layer_of

SMALL = {"n_train": 300, "n_test": 200, "intercept": True}
RMSPROP = {"optimiser": "rmsprop", "epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "rho": 0.9, "epsilon": 1e-7}
RIDGE = {"optimiser": "ridge", "alpha": 1e-9}


@pytest.fixture(scope="module")
def smoke() -> Rows:
    return Rows(measure(EXPERIMENT.measure, task) for task in EXPERIMENT.tasks(Scale.SMOKE))


def test_the_same_task_gives_the_same_numbers_and_another_seed_others():
    task = {"target": "hypercube", "model": "dsm-25", "active": 8, **SMALL, **RMSPROP}
    assert frozen_models.measure(seed=1, **task) == frozen_models.measure(seed=1, **task)
    assert frozen_models.measure(seed=2, **task) != frozen_models.measure(seed=1, **task)


@pytest.mark.parametrize("target", frozen_models.TARGETS)
def test_the_closed_form_over_a_linear_layer_is_the_best_line(target):
    active = 80 if target == "projected" else 11
    one = frozen_models.measure(target=target, model="dense-linear", active=active, seed=3, **SMALL, **RIDGE)
    assert one["mse"] == pytest.approx(one["linear_mse"], rel=1e-4)


def test_the_closed_form_is_least_squares_on_the_layers_own_features():
    train, test = (np.random.default_rng([4, stream]) for stream in (frozen_models.TRAIN, frozen_models.TEST))
    X, new = train.uniform(-1, 1, (300, 8)), test.uniform(-1, 1, (200, 8))
    f, layer = drawn_target("hypercube", 4), layer_of("dsm-25", 8, 8, 4)
    rows, mean = layer.features(X), layer.features(X).mean(axis=0)
    penalty = np.sqrt(1e-6 * np.sum((rows - mean) ** 2) / 32) * np.eye(32)
    targets = np.concatenate([f(X) - f(X).mean(), np.zeros(32)])
    A = np.linalg.lstsq(np.vstack([rows - mean, penalty]), targets, rcond=None)[0]
    predicted = (layer.features(new) - mean) @ A + f(X).mean()
    found = frozen_models.measure(
        target="hypercube", model="dsm-25", active=8, seed=4, **SMALL, optimiser="ridge", alpha=1e-6
    )
    assert found["mse"] == pytest.approx(float(np.mean((predicted - f(new)) ** 2)), rel=1e-4)


def test_layers_of_one_width_and_seed_have_the_same_weights():
    layers = [layer_of(model, 8, active, 2) for model, active in (("dsm-50", 6), ("dense-relu-biased", 12))]
    layers += [layer_of("random-hash-25", 8, 3, 2), layer_of("dense-linear", 8, 12, 2)]
    for layer in layers[1:]:
        np.testing.assert_array_equal(layer.bottom.B, layers[0].bottom.B)
    assert [layer.n_active for layer in layers] == [6, 12, 3, 12]
    assert [layer.bottom.biased for layer in layers] == [False, True, False, False]


def test_costs_are_those_of_the_paper_and_of_the_whole_layer(smoke):
    for row in smoke:
        d = 64 if row["target"] == "projected" else 8
        biased = row["model"] == "dense-relu-biased"
        assert row["flops"] == (2 * d + 2 + biased) * row["active"]
        if row["model"].startswith("dsm"):  # all pre-activations, a comparison each, and the top layer
            assert row["flops_with_routing"] == 2 * d * row["width"] + row["width"] + 2 * row["active"]
        assert (row["flops_with_routing"] == row["flops"]) == row["model"].startswith("dense")
