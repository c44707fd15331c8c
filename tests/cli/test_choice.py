import numpy as np
import pytest

from sparsact.datasets import open_table
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.choose import degrees_to_try
from sparsact.fit.folds import fit_folds, merged
from sparsact.fit.options import FitOptions
from sparsact.learners import LowDegreeRegressor


@pytest.mark.parametrize(
    ("n", "n_rows", "degrees"),
    [(13, 8192, (1, 2, 3, 4)), (20, 100_000, (1, 2, 3)), (100, 10**6, (1, 2)), (500, 10**6, (1,)), (2, 50, (1, 2))],
)
def test_automatic_degrees_stop_where_they_cost_too_much(n, n_rows, degrees):
    assert degrees_to_try(FitOptions(("y",)), n, n_rows) == degrees


def test_a_degree_asked_for_is_compared_with_the_lower_ones():
    options = FitOptions(("y",), degree=3, alpha=1)
    assert degrees_to_try(options, 12, 10**6) == (1, 2, 3)
    assert degrees_to_try(options, 40, 10**6) == (1, 3)  # 10,700 monomials: only the linear model


def test_folds_are_disjoint_and_their_union_is_one_fit(tmp_path):
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (203, 5)), rng.normal(size=203)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    table = open_table(tmp_path / "t.npz", "y", batch_rows=31)
    models, sample = fit_folds(LowDegreeRegressor(degree=2), table, 4, 1, lambda count: None, Checkpoint(), "learning")
    assert sorted(model.n_samples_seen_ for model in models) == [50, 51, 51, 51]
    np.testing.assert_array_equal(merged(models).coef_, LowDegreeRegressor(degree=2).fit(X, y).coef_)
    assert len(sample.rows()[2]) == 203
