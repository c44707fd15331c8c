"""Which solver is chosen, what each needs, and why one cannot serve."""

import re
from pathlib import Path

import numpy as np
import pytest
from grids import grid

from sparsact import LowDegreeRegressor
from sparsact.learners.low_degree.compact_sums import Cells
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.solvers import solver as choice
from sparsact.learners.low_degree.solvers.solver import solvers


def test_cells_are_not_built_where_memory_does_not_allow_them():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (1 << 14, 19)), rng.normal(size=1 << 14)
    small, large = (LowDegreeRegressor(1, max_memory=limit).fit(X, y) for limit in (2e7, None))
    assert (small.solver_, large.solver_) == ("moments", "cells")
    assert isinstance(small.accumulator_.statistics[0], DistinctPoints)
    np.testing.assert_allclose(small.coefficients_, large.coefficients_, rtol=1e-9, atol=1e-12)


def test_more_coordinates_than_a_float_has_exponents():
    """2**n cells are weighed against the other routes at any n, also where 2.0**n overflows."""
    X = np.random.default_rng(8).choice([1, -1], (57, 1100))
    model = LowDegreeRegressor(1).fit(X, X[:, 1099])
    assert model.solver_ == "kernel"


@grid(name=sorted(solvers()), form=["rows", "cells", "moments", "real"])
def test_every_solver_states_what_it_needs_or_why_it_cannot_serve(name, form):
    """Each module of the folder declares at least one, and a named one is refused by the reason that it states."""
    assert f'"{name}"' in (LowDegreeRegressor.__doc__ or "") or not solvers()[name].by_name
    assert {path.stem for path in Path(choice.__file__).parent.glob("[!_]*.py")} == {
        type(one).__module__.rpartition(".")[2] for one in solvers().values()
    } | {"solver"}
    size = choice.ProblemSize(30, 465, 1000, 2, (1, 2), form)
    offer = solvers()[name].offer(size)
    if isinstance(offer, str):
        with pytest.raises(ValueError, match=re.escape(offer)):
            choice.choose_solver(name, size, None)
    else:
        assert offer.solver is solvers()[name]
        assert choice.choose_solver(name, size, offer.nbytes) == offer
        with pytest.raises(MemoryError, match="max_memory"):
            choice.choose_solver(name, size, offer.nbytes / 1e6)


@pytest.mark.parametrize("n", [17, 18])
def test_rows_and_cells_give_the_same_bits(n):
    """Rows too few for a table beyond the cache are kept as they are; most of them take sums of several subsets."""
    rng = np.random.default_rng(n)
    X, y = rng.integers(0, 2, (9001, n)), rng.normal(size=9001)
    few, cells = (LowDegreeRegressor(2, 0.1, solver).fit(X, y) for solver in ("auto", "cells"))
    kinds = [type(model.accumulator_.statistics[0]) for model in (few, cells)]
    assert kinds == [DistinctPoints, Cells]
    assert few.solver_ == "cells"
    np.testing.assert_array_equal(few.coefficients_, cells.coefficients_)
    np.testing.assert_array_equal(few.feature_importances_, cells.feature_importances_)
