import numpy as np
import pytest

from sparsact_papers.common.hard_families import dense_error
from sparsact_papers.data import LowerEnvelope, random_subspace
from sparsact_papers.paper_b.theorem_4_1 import WIDTHS, measure

POINTS = {"k": 2, "ambient": 5, "centres": 3, "rows": 700, "n_test": 300, "seed": 1}
SMALL = POINTS | {"n_directions": 8}


def test_finer_tables_have_more_buckets_and_less_error():
    found = measure(**SMALL)
    assert found["buckets"] == sorted(found["buckets"])
    assert found["mean_errors"][-1] < 0.5 * found["mean_errors"][0]
    assert all(mean <= sup for mean, sup in zip(found["mean_errors"], found["sup_errors"], strict=True))
    assert found["linear_rmse"] <= 1.05 * found["deviation"]
    assert found["operations"] == 5 * 8 + 8
    assert found["parameters_read"] == 5 * 8 + 8 + 1
    assert {len(found[name]) for name in ("widths", "buckets", "misses", "rmse")} == {len(WIDTHS[2])}


def test_a_result_depends_on_its_seed_alone():
    assert measure(**SMALL) == measure(**SMALL)
    assert measure(**SMALL) != measure(**(SMALL | {"seed": 2}))


def test_dense_layers_see_the_target_and_the_points_of_the_tables():
    rng = np.random.default_rng([1, 2])
    domain = random_subspace(5, 2, rng=rng)
    f = LowerEnvelope(domain.coordinates(domain.sample(3, rng=rng)), rng.uniform(0, 0.5, 3))
    Z, new = (domain.coordinates(domain.sample(m, rng=rng)) for m in (700, 300))
    found = measure(**POINTS, n_random_units=40)
    assert found["sup_error"] == dense_error(Z, f(Z), new, f(new), 40, 1)
    assert (found["operations"], found["parameters_read"]) == (5 * 40 + 40, 5 * 40 + 40 + 40 + 1)  # B, c, A, one more
    assert measure(**SMALL)["deviation"] == pytest.approx(f(new).std())


def test_a_trained_network_beats_the_best_line():
    """0.3 of the deviation is half of what the line leaves on this target."""
    found = measure(**POINTS, n_units=30)
    assert found["mean_error"] < 0.5 * measure(**SMALL)["linear_rmse"]
    assert found["mean_error"] <= found["sup_error"]


def test_a_task_names_one_model():
    with pytest.raises(ValueError, match="n_directions"):
        measure(**POINTS)
