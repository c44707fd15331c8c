"""What the rows determine, and which monomials are the same on them: against ranks of the matrix written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from explicit import determined, monomials, subsets_of_size, tables
from grids import few_of
from numpy.testing import assert_array_equal

from sparsact import LowDegreeRegressor, LowDegreeRegressorCV, load
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.solver import MomentSolver, solvers


def agree(design, i):
    """Columns that are plus or minus column i."""
    products = design * design[:, [i]]
    return [j for j in range(design.shape[1]) if j != i and np.ptp(products[:, j]) == 0]


def fitted(solver, *args, **parameters):
    if solver == "real":
        return LowDegreeRegressor(domain="real", **parameters).fit(*args)
    return LowDegreeRegressor(solver=solver, **parameters).fit(*args)


SOLVERS = ["cells", "rows", "moments", "kernel", "lasso", "correlation", "real", "conjugate gradients"]
CASES = [*product(["uniform", "one-hot", "constant", "complementary", "few points"], SOLVERS)]
DEAR = [(kind, SOLVERS[-1]) for kind in ("one-hot", "constant", "few points")]


@pytest.mark.parametrize(("kind", "solver"), few_of(CASES, [case for case in CASES if case not in DEAR]))
@pytest.mark.parametrize(("alpha", "fit_intercept"), [(0.0, True), (0.7, False)])
def test_determined_coefficients_and_aliases(monkeypatch, kind, solver, alpha, fit_intercept):
    rng = np.random.default_rng([7, len(kind)])
    X, y, weights = tables(rng, kind, 41, 5), rng.normal(size=41), rng.integers(0, 4, 41) * 10.0 ** rng.normal(size=41)
    if solver == "conjugate gradients":
        monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=3))
    if solver == "moments":
        monkeypatch.setitem(solvers(), "moments", MomentSolver(min_rows=0, rows_a_monomial=0))
    name = {"rows": "moments", "conjugate gradients": "cells"}.get(solver, solver)
    model = fitted(name, 1 - 2 * X, y, weights, degree=2, alpha=alpha, fit_intercept=fit_intercept)
    everything = [(), *subsets_of_size(5, 2)]
    design = monomials(1 - 2 * X[weights > 0], everything)
    expected = determined(design[:, 0 if fit_intercept else 1 :])
    assert_array_equal(model.identified(everything)[0 if fit_intercept else 1 :], expected)
    assert_array_equal(model.identified(), expected[-15:])
    for i, subset in enumerate(everything):
        assert model.aliases(subset) == [everything[j] for j in agree(design, i)]
    if solver not in ("kernel", "lasso", "correlation"):
        intervals = model.confidence_intervals()
        assert_array_equal(np.isnan(intervals), np.repeat(~expected[-15:, None], 2, axis=1))
        assert_array_equal(np.isnan(model.standard_errors()), ~expected[-15:])


@pytest.mark.parametrize("solver", ["moments", "kernel", "lasso", "real", "correlation"])
def test_a_saved_model_says_so_too(tmp_path, solver):
    """The kernel keeps its rows; other files keep what was determined, and aliases with the statistic."""
    rng = np.random.default_rng(8)
    X, y = tables(rng, "repeated", 31, 6), rng.normal(size=(31, 2))
    model = fitted(solver, 1 - 2 * X, y, degree=2, alpha=0.1)
    model.save(tmp_path / "short")
    model.save(tmp_path / "whole", statistic=True)
    short, whole = load(tmp_path / "short"), load(tmp_path / "whole")
    assert_array_equal(whole.identified(), model.identified())
    assert whole.aliases((2,)) == model.aliases((2,)) == [(0,)]
    if solver == "kernel":
        assert short.aliases((2,)) == [(0,)]
    else:
        with pytest.raises(ValueError, match="statistic=True"):
            short.aliases((2,))
    if solver == "correlation":
        with pytest.raises(ValueError, match="statistic=True"):
            short.identified()
    else:
        assert_array_equal(short.identified(), model.identified())


def test_cross_validated_models_say_so():
    rng = np.random.default_rng(9)
    X, y = tables(rng, "complementary", 47, 4), rng.normal(size=47)
    model = LowDegreeRegressorCV([1]).fit(X, y)
    assert_array_equal(model.identified(), [True, False, True, False])
    assert model.aliases([3]) == [(1,)]
    with pytest.raises(ValueError, match="not among"):
        model.aliases((0, 1))


@pytest.mark.parametrize("least", [1e-3, 1e-9, 1e-15])
def test_weights_do_not_decide(least):
    """Two columns that differ in one row, of any positive weight, are both determined."""
    rng = np.random.default_rng(10)
    X = rng.integers(0, 2, (37, 4))
    X[:, 2] = X[:, 0]
    X[5, 2] = 1 - X[5, 0]
    weights = np.ones(37)
    weights[5] = least
    for solver in ("cells", "moments"):
        model = LowDegreeRegressor(1, 1.0, solver).fit(X, rng.normal(size=37), weights)
        assert model.identified().all()
        assert model.aliases((2,)) == []
        weights[5] = 0
        model = LowDegreeRegressor(1, 1.0, solver).fit(X, rng.normal(size=37), weights)
        assert_array_equal(model.identified(), [False, True, False, True])
        weights[5] = least


def test_very_many_monomials():
    """By the kernel: 3 rows of 40 columns determine the columns that nothing else repeats, here none."""
    rng = np.random.default_rng(11)
    X = rng.integers(0, 2, (3, 40))
    model = LowDegreeRegressor(3).fit(X, [1.0, 2.0, 4.0])
    assert model.solver_ == "kernel"
    assert not model.identified().any()
    alone = LowDegreeRegressor(1).fit(np.array([[0, 1, 1], [1, 1, 1]]), [1.0, 2.0])
    assert_array_equal(alone.identified([(), (0,), (1,)]), [False, True, False])
