import numpy as np
import pytest
from reproduced import made_up

from sparsact.datasets.targets.analytic import CosineSeries
from sparsact.experiments import Outcome, Rows
from sparsact.experiments.hard_families import dense_error, largest_on_grid, needed_width, pair
from sparsact.experiments.paper_b.dense_lower_bounds import EXPERIMENT, judge_counting, judge_pairs, judge_width


@pytest.mark.parametrize("shape", [(5,), (3, 3), (2, 2, 2)])
def test_the_grid_meets_the_series_at_its_points(shape):
    amplitudes = np.random.default_rng(len(shape)).normal(size=shape)
    f, steps = CosineSeries(amplitudes), 8 * shape[0]
    axes = np.meshgrid(*[2 * np.arange(steps) / steps] * len(shape), indexing="ij")
    values = f(np.stack(axes, axis=-1).reshape(-1, len(shape)))
    assert largest_on_grid(amplitudes) == pytest.approx(np.abs(values).max())


@pytest.mark.parametrize(("k", "n_waves"), [(1, 5), (2, 3)])
def test_the_distance_of_a_pair_is_that_of_its_members(k, n_waves):
    found = pair(k, n_waves, seed=4)
    assert found["parseval_gap"] < 1e-12
    assert found["rms"] <= found["sup"] <= found["sup_at_most"]
    assert found == pair(k, n_waves, seed=4)
    assert len({pair(k, n_waves, seed)["rms"] for seed in range(6)}) > 1


def test_more_units_fit_a_kink_exactly():
    """A function that two of the units make is found: |z| within the span of a wide random layer on a line."""
    rng = np.random.default_rng(0)
    Z, new = rng.uniform(-1, 1, (900, 1)), rng.uniform(-1, 1, (300, 1))
    errors = [dense_error(Z, np.abs(Z[:, 0]), new, np.abs(new[:, 0]), width, 1) for width in (4, 400)]
    assert errors[1] < 0.02 < errors[0]


def test_the_needed_width_is_the_first_that_meets_the_goal():
    found = needed_width(1, 0.4, 8, seed=2)
    assert found["needed"] == found["widths"][-1]
    assert all(error > 0.2 for error in found["sup_errors"][:-1])
    assert found["sup_errors"][-1] <= 0.2
    assert found["bucket_sup_error"] <= 0.2
    assert found["largest"] <= 0.4
    assert found == needed_width(1, 0.4, 8, seed=2)


def widths(slope):
    return Rows(
        made_up(
            EXPERIMENT,
            {"part": "width", "k": 1, "epsilon": epsilon, "ambient": 8, "n_waves": None, "seed": seed},
            {"needed": (3 + seed) * epsilon**-slope, "n_cones": 1 / epsilon, "buckets": 5, "hash_operations": 32},
        )
        for seed in range(3)
        for epsilon in (0.5, 0.1, 0.02)
    )


def pairs(*ratios):
    return Rows(
        made_up(
            EXPERIMENT,
            {"part": "pair", "k": k, "epsilon": None, "ambient": None, "n_waves": 1, "seed": 0},
            {"differing": 0.5, "sup": ratio, "sup_at_most": ratio, "printed": 1.0},
        )
        for k, ratio in ratios
    )


def test_judges_see_both_sides():
    assert judge_width(widths(1.1)).outcome is Outcome.HOLDS
    assert judge_width(widths(0.3)).outcome is Outcome.DOES_NOT_HOLD
    assert judge_counting(widths(1.0)).outcome is Outcome.HOLDS
    assert judge_pairs(pairs((2, 1.5), (5, 0.6), (4, 1.2))).outcome is Outcome.HOLDS_ONLY_IF
    assert judge_pairs(pairs((2, 1.5), (5, 1.6))).outcome is Outcome.HOLDS
    assert judge_pairs(pairs((2, 0.5), (5, 0.6))).outcome is Outcome.DOES_NOT_HOLD
