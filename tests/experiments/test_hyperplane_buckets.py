"""Hyperplane LSH: patterns and cells against definitions, rules on made-up rows."""

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_b import hyperplane_claims as claims
from sparsact.experiments.paper_b.hyperplane_buckets import DIMENSION, EXPERIMENT, cells, measure, patterns

SIZES = {"n_train": 700, "n_test": 90, "seed": 4}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(1).uniform(-1, 1, (400, DIMENSION))


@pytest.mark.parametrize("offset", ["none", "uniform"])
def test_hyperplanes_are_nested(points, offset):
    (few,), (more,) = (patterns(m, 4, points, offset=offset) for m in (5, 6))
    assert np.array_equal(more % 32, few)
    assert len(np.unique(more)) > len(np.unique(few))


def test_patterns_through_the_origin_belong_to_rays(points):
    central, scaled = patterns(7, 4, points, 0.01 * points, offset="none")
    assert np.array_equal(central, scaled)
    opposite = patterns(7, 4, -points, offset="none")[0]
    assert np.array_equal(opposite, 127 - central)
    shifted, scaled = patterns(7, 4, points, 0.01 * points, offset="uniform")
    assert (shifted != scaled).any()
    assert len(np.unique(scaled)) < len(np.unique(shifted))  # near the origin few hyperplanes pass


@pytest.mark.parametrize(("m", "d"), [(1, 2), (3, 2), (5, 2), (4, 3)])
def test_cells_are_those_that_random_points_find(m, d):
    rng = np.random.default_rng([m, d])
    normals, shifts = rng.normal(size=(m, d)), rng.normal(size=m)
    X = 1e3 * rng.standard_cauchy((200_000, d)) ** 3  # near and far
    X = np.concatenate([X, rng.normal(0, 3, (200_000, d))])
    for through_origin in (True, False):
        signs = X @ normals.T + (0 if through_origin else shifts) > 0
        assert len(np.unique(signs @ 2 ** np.arange(m))) == cells(m, d, through_origin=through_origin)


def test_cells_of_the_experiment():
    """All sign patterns of up to 8 hyperplanes; of 9, all but one pattern, and through the origin its opposite."""
    assert [cells(m, 8, through_origin=True) for m in (5, 8, 9)] == [2**5, 2**8, 2**9 - 2]
    assert [cells(m, 8, through_origin=False) for m in (8, 9)] == [2**8, 2**9 - 1]


def test_measure_is_deterministic_and_consistent():
    task = {"model": "LSH", "target": "hypercube", "offset": "none", "n_units": 512, "epochs": 0, **SIZES}
    values = measure(**task)
    assert values == measure(**task)
    assert values["n_trained"] <= values["n_non_empty"] <= values["n_cells"] == 510
    assert values["flops"] == 9 * 2 * 8
    assert 0 < values["missed"] < 1
    assert values["linear_mse"] < values["variance"]
    trained = measure(**task | {"epochs": 2})
    same = ("variance", "linear_mse", "missed", "n_non_empty")
    assert all(trained[name] == values[name] for name in same)
    # 44 steps of 1e-5 / sqrt(0.1) at most: the scalars are next to their start, 0.
    raw = values["variance"]
    assert trained["mse"] == pytest.approx(raw, rel=0.1)


def test_dense_layer_beats_the_line():
    task = {"model": "dense ReLU", "target": "hypercube", "offset": "uniform", "n_units": 64, "epochs": 0}
    values = measure(**task, n_train=4000, n_test=1000, seed=0)
    assert values["mse"] < 0.9 * values["linear_mse"]
    assert values["flops"] == 64 * (2 * DIMENSION + 1 + 2)


def made_up(lsh, *, relu=0.5, trained=2.0, offset=1.5, draws=8, target="polynomial", n_non_empty=30):
    """Rows with a linear error of 1: LSH's errors by number of buckets, all a little different by draw."""

    def row(model, n, seed, mse, off="none", epochs=0):
        parameters = {
            "model": model, "target": target, "offset": off, "n_units": n, "epochs": epochs, "seed": seed,
        }  # fmt: skip
        values = {"mse": mse * (1 + 0.001 * seed), "linear_mse": 1.0, "n_non_empty": n_non_empty, "n_cells": 32}
        return Row("", EXPERIMENT.name, 1, parameters, values, 1.0, "", {}, {}, "")

    found = []
    for seed in range(draws):
        found += [row("dense ReLU", 1024, seed, relu, off) for off in ("none", "uniform")]
        for n, mse in lsh.items():
            found += [row("LSH", n, seed, mse), row("LSH", n, seed, mse * offset, "uniform")]
            found.append(row("LSH", n, seed, trained, epochs=50))
    return Rows(found)


GOOD = {1024: 1.1, 2048: 0.9, 16384: 0.8}
BAD = {1024: 0.9, 2048: 1.2, 16384: 1.3}


def outcomes(rows):
    return {claim.name: claim.verdict(rows).outcome for claim in EXPERIMENT.claims}


def test_outcomes_of_good_and_bad_rows():
    good, bad = outcomes(made_up(GOOD)), outcomes(made_up(BAD, n_non_empty=33))
    assert good["wins-polynomial"] is Outcome.HOLDS_ONLY_IF
    for name in ("threshold", "improves-polynomial", "bars", "cells"):
        assert good[name] is Outcome.HOLDS, name
    for name in ("wins-polynomial", "threshold", "improves-polynomial", "bars", "cells", "training-polynomial"):
        assert bad[name] is Outcome.DOES_NOT_HOLD, name
    assert good["wins-hypercube"] is good["offsets"] is Outcome.UNDECIDED  # no rows of the other target


def test_wins_against_all_layers_and_none():
    assert claims.judge_wins(made_up(GOOD, relu=1.5), "polynomial").outcome is Outcome.HOLDS
    verdict = claims.judge_wins(made_up(GOOD), "polynomial")
    assert "linear" in verdict.condition
    assert "1.8" in verdict.measured  # 0.9 / 0.5


def test_threshold_tells_where_it_is():
    assert "first below 1 at 2048 buckets" in claims.judge_threshold(made_up(GOOD)).measured
    assert "first below 1 at 1024 buckets" in claims.judge_threshold(made_up(BAD)).measured
    assert "no median" in claims.judge_threshold(made_up({1024: 1.5, 2048: 1.1})).measured


def test_training_and_offsets():
    fine = made_up(GOOD, trained=0.9, offset=0.9)
    assert claims.judge_training(fine, "polynomial").outcome is Outcome.HOLDS
    both = Rows([*fine, *made_up(GOOD, offset=0.9, target="hypercube")])
    assert claims.judge_offsets(both).outcome is Outcome.HOLDS
    assert claims.judge_offsets(Rows([*fine, *made_up(GOOD, target="hypercube")])).outcome is Outcome.DOES_NOT_HOLD


def test_trained_rows_are_not_taken_for_closed_forms():
    rows = made_up(GOOD)
    assert {row["mse"] for row in claims.hashed(rows, n_units=2048, trained=True)} == {
        2.0 * (1 + 0.001 * seed) for seed in range(8)
    }
    assert len(claims.hashed(rows, n_units=2048)) == 8


def test_nothing_is_decided_by_nothing():
    assert set(outcomes(Rows([])).values()) == {Outcome.UNDECIDED}


def test_medians_on_both_sides_are_undecided():
    low, high = made_up(GOOD), made_up({2048: 1.0, 16384: 0.7})
    mixed = Rows([*(row for row in low if row["seed"] % 2), *(row for row in high if not row["seed"] % 2)])
    assert claims.judge_bars(mixed).outcome is Outcome.UNDECIDED


def test_forward_pass_costs():
    task = {"model": "LSH", "target": "polynomial", "n_units": 64, "epochs": 0, **SIZES}
    costs = [measure(**task, offset=offset)["flops"] for offset in ("none", "uniform")]
    assert costs == [6 * 16, 6 * 17]
