"""Frozen layers: what is measured against independent routes, and each rule on rows made up for each outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows, Scale, measure
from sparsact.experiments.paper_b import frozen_models
from sparsact.experiments.paper_b.frozen_claims import PRINTED
from sparsact.experiments.paper_b.frozen_layers import EXPERIMENT
from sparsact.experiments.paper_b.frozen_models import drawn_target, layer_of
from sparsact.reports.paper_b.frozen_layers import CHARTS, errors, table

CLAIMS = {claim.name: claim for claim in EXPERIMENT.claims}
SMALL = {"n_train": 300, "n_test": 200, "intercept": True}
RMSPROP = {"optimiser": "rmsprop", "epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "rho": 0.9, "epsilon": 1e-7}
RIDGE = {"optimiser": "ridge", "alpha": 1e-9}


@pytest.fixture(scope="module")
def smoke() -> Rows:
    return Rows(measure(EXPERIMENT.measure, task) for task in EXPERIMENT.tasks(Scale.SMOKE))


def made_up(seeds: int = 5, **errors: float) -> list[Row]:
    """Rows of n = 8 at every width of Table 1 and of the closed form, whose errors are the given shares of the line."""
    rows = []
    for target in ("polynomial", "hypercube", "projected"):
        for model, of in frozen_models.MODELS.items():
            for active in (512, 1024, 2048, 4096):
                for optimiser in ("rmsprop", "ridge"):
                    for seed in range(seeds):
                        share = errors.get(model.replace("-", "_"), 1.0) * (1 - 1e-5 * active) * (1 + 1e-4 * seed)
                        parameters = {"target": target, "model": model, "active": active, "optimiser": optimiser}
                        values = {"mse": share, "linear_mse": 1.0, "variance": 1.4, "width": round(active / of.share)}
                        values |= {"flops": 18 * active, "flops_with_routing": 18 * active / of.share}
                        rows.append(Row("", "", 1, parameters | {"seed": seed}, values, 0.0, "", {}, {}, ""))
    return rows


def changed(row: Row, **values: float) -> Row:
    return replace(row, values={**row.values, **values})


PAPER = {"dsm_50": 0.5, "dsm_25": 0.2, "dense_relu": 0.6, "dense_relu_biased": 0.55}
PAPER |= {"random_hash_50": 1.01, "random_hash_25": 1.03, "random_hash_relu_50": 0.7}


def outcomes(**errors: float) -> dict[str, Outcome]:
    return {name: claim.verdict(Rows(made_up(**errors))).outcome for name, claim in CLAIMS.items()}


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


def test_every_claim_and_chart_takes_smoke_rows_and_none(smoke):
    for rows in (smoke, Rows([])):
        for claim in EXPERIMENT.claims:
            assert claim.verdict(rows).measured
        for chart in CHARTS:
            frame = chart.frame(rows)
            lengths = {len(column) for column in frame.values()}
            assert len(lengths) == 1
            if lengths != {0}:
                assert chart.plot(frame).axes
    assert len(CLAIMS) == len(EXPERIMENT.claims)


def test_all_hold_on_rows_as_the_paper_says():
    found = outcomes(**PAPER)
    fails = {name for name, outcome in found.items() if outcome is not Outcome.HOLDS}
    # DSM 50 % (.5) is not ReLU of its width (.6) here; the costs never are the same.
    numbers = {
        f"{target}-{name}" for target in ("polynomial", "hypercube") for name in ("table-numbers", "half-is-relu")
    }
    assert fails == numbers | {"table-flops"}
    assert found["table-flops"] is Outcome.HOLDS_ONLY_IF


def test_none_hold_on_the_contrary():
    found = outcomes(dense_linear=1.2, dsm_50=1.5, dsm_25=1.7, dense_relu=1.1, random_hash_50=0.9, random_hash_25=0.9)
    held = {name for name, outcome in found.items() if outcome is not Outcome.DOES_NOT_HOLD}
    # Every error here falls with the active units, but DSM 25 % is above DSM 50 %.
    assert held == {"table-flops"}


def test_against_one_kind_of_dense_layer_only_the_condition_names_it():
    rows = Rows(made_up(**(PAPER | {"dense_relu": 0.1, "dense_relu_biased": 0.1})))
    verdict = CLAIMS["polynomial-beats-dense"].verdict(rows)
    assert verdict.outcome is Outcome.HOLDS_ONLY_IF
    assert verdict.condition == "the frozen dense layer is linear"
    assert CLAIMS["hypercube-solved"].verdict(rows).outcome is Outcome.HOLDS_ONLY_IF


def test_one_seed_refutes_what_is_said_of_every_seed():
    mixed = Rows(
        changed(row, mse=1.3) if row["model"] == "dsm-50" and not row["seed"] else row for row in made_up(**PAPER)
    )
    assert CLAIMS["polynomial-order"].verdict(mixed).outcome is Outcome.DOES_NOT_HOLD
    assert CLAIMS["polynomial-dsm-50"].verdict(mixed).outcome is Outcome.DOES_NOT_HOLD


def test_the_printed_table_is_met_by_its_own_numbers():
    rows = [
        changed(row, mse=PRINTED[row["model"]][row["active"]])
        for row in made_up()
        if row["model"] in PRINTED and row["active"] in PRINTED["dsm-50"]
    ]
    assert CLAIMS["hypercube-table-numbers"].verdict(Rows(rows)).outcome is Outcome.HOLDS
    frame = table(Rows(rows), target="hypercube")
    cells = dict(zip(zip(frame["series"], frame["active"], strict=True), frame["mse"], strict=True))
    assert cells["printed: DSM 25 %", 4096] == pytest.approx(cells["DSM 25 %", 4096])
    assert set(frame["repetitions"]) == {1, 5}


def test_the_frame_holds_shares_of_the_variance():
    frame = errors(Rows(made_up(**PAPER)), target="polynomial", optimiser="rmsprop", models=("dsm-25",))
    shares = dict(zip(zip(frame["series"], frame["active"], strict=True), frame["share"], strict=True))
    assert shares["DSM 25 %", 1024] == pytest.approx(0.2 * (1 - 0.01024) * 1.0002 / 1.4)
    assert shares["best linear function", 512] == pytest.approx(1 / 1.4)
