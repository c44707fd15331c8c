import numpy as np
import pytest
from commands import run

from sparsact.datasets import open_table
from sparsact.datasets.columns import Real
from sparsact.datasets.unseen_rows import DesignSums
from sparsact.fit.candidates.low_degree import degrees_to_try
from sparsact.fit.fold_sums import FoldSums
from sparsact.fit.held_out import out_of_fold_values
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import Selected
from sparsact.learners import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.statistics.folds import deal
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch


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
    """Models equal one fit of their rows to the bit, and held-out values one fit of the other folds' rows."""
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (203, 5)), rng.normal(size=203)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    table = open_table(tmp_path / "t.npz", "y", batch_rows=31)
    search, sample = LowDegreeRegressorCV(cv=4, random_state=1), RowSample(500, 4, 1)
    sums = FoldSums(Real("y"), search, sample, sample.empty(), DesignSums(table.encoding))
    first = 0
    for batch in table.batches():
        sums.add(Batch(*batch, first_row=first))
        first += len(batch[0])
    assert [each.n_rows for each in sums.search.accumulator_.statistics] == [50, 51, 51, 51]
    models = sums.models(Selected(2, 0.3, ()), "cube")
    np.testing.assert_array_equal(models.whole.coefficients_, LowDegreeRegressor(2, 0.3).fit(X, y).coefficients_)
    found, _, folds = sums.sample.rows()
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(folds, deal(0, 203, 4, 1))
    values = out_of_fold_values(models.without, found, folds)
    for fold in range(4):
        other = LowDegreeRegressor(2, 0.3).fit(X[folds != fold], y[folds != fold])
        np.testing.assert_array_equal(values[folds == fold, 0], other.predict(X[folds == fold]))


def test_a_sample_does_not_depend_on_batches_or_on_who_reads_them():
    """Each row is drawn as often as any other: of 400 rows 100, so that 100 seeds draw one 25 times, in 25 +- 25."""
    X, y, drawn = np.arange(400)[:, None], np.arange(400.0), np.zeros(400)
    for seed in range(100):
        whole, one, two = (RowSample(100, 3, seed) for _ in range(3))
        whole.add(Batch(X, y))
        for start, stop, part in ((0, 37, one), (37, 260, one), (260, 391, two), (391, 400, two)):
            part.add(Batch(X[start:stop], y[start:stop], first_row=start))
        one.merge(two)
        for mine, theirs in zip(one.rows(), whole.rows(), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        drawn[whole.rows()[0][:, 0]] += 1
        assert len(whole.rows()[0]) == 100
        assert set(whole.smallest(40)) <= set(range(100))
    assert 0 < drawn.min() <= drawn.max() < 50  # 5.8 standard deviations: a false alarm once in 10^5 runs


def test_too_large_a_degree_is_one_line_that_names_the_nearest(capsys, tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "wide.npz", X=rng.integers(0, 2, (40, 700)), y=rng.normal(size=40))
    status, _, err = run(capsys, "fit", tmp_path / "wide.npz", "--target", "y", "--degree", "9", "--alpha", "1")
    assert status == 2
    assert err.startswith("sparsact: error: degree 9 of 700 columns has ")
    assert err.endswith("choose degree 2 or less.\n")
