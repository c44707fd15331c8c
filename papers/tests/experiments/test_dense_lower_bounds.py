import numpy as np
import pytest

from sparsact_papers.common.hard_families import dense_error, largest_on_grid, needed_width, pair
from sparsact_papers.data.analytic import CosineSeries


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
