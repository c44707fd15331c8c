"""Buckets of a line: models against each other, rules on made-up rows."""

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.bucket_scalars import bucket_lines
from sparsact.experiments.paper_b.one_dimension import EXPERIMENT, measure

SIZES = {"n_train": 3000, "n_test": 500, "seed": 2}


def test_bucket_lines_are_least_squares():
    rng = np.random.default_rng(0)
    bucket, x, y = rng.integers(3, size=41), rng.uniform(size=41), rng.normal(size=41)
    bucket[0] = 4  # alone there
    heights, slopes = bucket_lines(bucket, x, y, 6)
    for j in range(3):
        expected = np.polynomial.Polynomial.fit(x[bucket == j], y[bucket == j], 1).convert().coef
        np.testing.assert_allclose([heights[j], slopes[j]], expected)
    assert (heights[4], slopes[4]) == (y[0], 0)
    assert (heights[5], slopes[5]) == (0, 0)


def test_models_of_a_draw_share_target_and_points():
    tasks = [("constants", 16, 0), ("constants", 16, 3), ("lines", 16, 0), ("dense ReLU", 16, 0)]
    constants, trained, lines, dense = (
        measure(model=model, n_units=n, epochs=epochs, **SIZES) for model, n, epochs in tasks
    )
    for other in (trained, lines, dense):
        assert (other["variance"], other["linear_mse"]) == (constants["variance"], constants["linear_mse"])
    assert lines["mse"] < 0.1 * constants["mse"]
    assert constants["mse"] < 0.1 * constants["variance"] < trained["mse"]  # 282 steps go nowhere
    assert dense["mse"] < constants["linear_mse"]
    assert constants == measure(model="constants", n_units=16, epochs=0, **SIZES)


def test_a_line_is_learned_by_no_dense_layer_worse_than_by_the_best_line():
    two = measure(model="dense ReLU", n_units=2, epochs=0, **SIZES)
    many = measure(model="dense ReLU", n_units=64, epochs=0, **SIZES)
    assert many["mse"] < 1e-2 * min(two["mse"], two["linear_mse"])


def made_up(closed, trained, *, lines=16.0, dense=1.0, sizes=(8, 16, 32)):
    """Rows of four seeds whose errors fall by the given factors, trained ones from size to size."""

    def row(model, n, seed, mse, epochs=0):
        parameters = {"model": model, "n_units": n, "epochs": epochs, "seed": seed}
        values = {"mse": mse * (1 + seed), "variance": 1.0, "linear_mse": 0.9}
        return Row("", EXPERIMENT.name, 2, parameters, values, 1.0, "", {}, {}, "")

    found = []
    for seed in range(4):
        found.append(row("dense ReLU", 1, seed, dense))
        for i, n in enumerate(sizes):
            found += [row("constants", n, seed, 0.1 / closed**i), row("constants", n, seed, trained[i], epochs=9)]
            found += [row("lines", n, seed, 0.01 / lines**i), row("dense ReLU", n, seed, dense / 2**i)]
    return Rows(found)


def outcomes(rows):
    return {claim.name: claim.verdict(rows).outcome for claim in EXPERIMENT.claims}


def test_outcomes_of_good_and_bad_rows():
    good = outcomes(made_up(4.0, (0.1, 0.025, 0.00625)))
    assert set(good.values()) == {Outcome.HOLDS}
    bad = outcomes(made_up(2.0, (1.0, 1.0, 1.0), lines=4.0, dense=0.01))
    assert set(bad.values()) == {Outcome.DOES_NOT_HOLD}
    assert set(outcomes(Rows([])).values()) == {Outcome.UNDECIDED}


def test_training_that_reaches_some_means_holds_only_there():
    claim = next(claim for claim in EXPERIMENT.claims if claim.name == "fourfold-trained")
    verdict = claim.verdict(made_up(4.0, (0.1, 0.026, 0.5)))
    assert verdict.outcome is Outcome.HOLDS_ONLY_IF
    assert "16 buckets" in verdict.condition
    assert claim.verdict(made_up(4.0, (0.1, 0.9, 0.5))).outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize("sizes", [(8,), ()])
def test_one_size_decides_no_fall(sizes):
    found = outcomes(made_up(4.0, (0.1,), sizes=sizes))
    assert found["fourfold"] is found["sixteenfold"] is found["fourfold-trained"] is Outcome.UNDECIDED
