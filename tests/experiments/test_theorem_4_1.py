import pytest
from reproduced import made_up

from sparsact.experiments import Outcome, Rows
from sparsact.experiments.paper_b.theorem_4_1 import (
    BANDS,
    EXPERIMENT,
    WIDTHS,
    judge_cost,
    judge_slope,
    judge_theory,
    measure,
)

SMALL = {"k": 2, "ambient": 5, "n_directions": 8, "centres": 3, "rows": 700, "n_test": 300, "seed": 1}


def test_finer_tables_have_more_buckets_and_less_error():
    found = measure(**SMALL)
    assert found["buckets"] == sorted(found["buckets"])
    assert found["mean_errors"][-1] < 0.5 * found["mean_errors"][0]
    assert all(mean <= sup for mean, sup in zip(found["mean_errors"], found["sup_errors"], strict=True))
    assert found["linear_rmse"] <= 1.05 * found["deviation"]
    assert found["operations"] == 5 * 8 + 8
    assert {len(found[name]) for name in ("widths", "buckets", "misses", "rmse", "dense_operations")} == {
        len(WIDTHS[2])
    }


def test_a_result_is_that_of_its_seed():
    assert measure(**SMALL) == measure(**SMALL)
    assert measure(**SMALL) != measure(**(SMALL | {"seed": 2}))


def power_laws(slopes, spread=0.0):
    return Rows(
        made_up(
            EXPERIMENT,
            SMALL | {"k": k, "seed": seed},
            {
                "buckets": [10.0, 100.0, 1000.0],
                "sup_errors": [n ** (slope + spread * (seed - 1)) for n in (10, 100, 1000)],
                "mean_errors": [0.5 * n ** (slope + spread * (seed - 1)) for n in (10, 100, 1000)],
                "dense_operations": [1.0, 2.0, 4.0 * -slope],
            },
        )
        for k, slope in slopes.items()
        for seed in range(3)
    )


@pytest.mark.parametrize("k", BANDS)
def test_slopes_are_judged_within_their_band(k):
    _, slope, half = BANDS[k]
    assert judge_slope(power_laws({k: slope}), k).outcome is Outcome.HOLDS
    assert judge_slope(power_laws({k: slope - 1.1 * half}), k).outcome is Outcome.DOES_NOT_HOLD
    assert judge_slope(power_laws({k: slope}, spread=half), k).outcome is Outcome.UNDECIDED


def test_the_rate_may_hold_for_small_dimensions_only():
    theory = {k: -1 / k for k in BANDS}
    assert judge_theory(power_laws(theory)).outcome is Outcome.HOLDS
    assert judge_theory(power_laws(theory | {3: -0.2, 4: -0.1})).outcome is Outcome.HOLDS_ONLY_IF
    assert judge_theory(power_laws(theory | {1: -0.2})).outcome is Outcome.DOES_NOT_HOLD


def test_the_cost_must_grow_in_every_curve():
    assert judge_cost(power_laws({1: -1})).outcome is Outcome.HOLDS
    assert judge_cost(power_laws({1: -0.2})).outcome is Outcome.DOES_NOT_HOLD
