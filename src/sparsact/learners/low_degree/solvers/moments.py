"""The Gram matrix written out, from moments of symmetric differences or from real columns, and solved by Cholesky."""

from __future__ import annotations

from sparsact.hypercube import n_subsets, n_words
from sparsact.learners.low_degree.solvers.solver import ON_POINTS, ProblemSize, Solver, SolverPlan

_MAX_MONOMIALS = 12_000
_MIN_ROWS = 1 << 16


def prefers_moments(size: ProblemSize) -> bool:
    """Whether moments are the cheaper statistic: many more rows than monomials."""
    return size.n_rows >= max(4 * size.n_monomials, _MIN_ROWS) and size.n_monomials <= _MAX_MONOMIALS


class MomentSolver(Solver):
    """Ridge by popcount moments of symmetric differences, for any n."""

    name = "moments"
    forms = ON_POINTS | {"moments"}

    def cost(self, size: ProblemSize) -> SolverPlan:
        """What a fit needs."""
        d, m, span = size.n_monomials, size.n_rows, size.degree_range
        differences = min(d * (d + 1) / 2.0, float(n_subsets(size.n, 2 * span[1])) if span else float("inf"))
        ranked = span is not None and span[0] == 1  # no search for the differences, no place of every pair
        nbytes = differences * ((8.0 if ranked else 24.0) * n_words(size.n) + 40) + (28.0 if ranked else 32.0) * d * d
        reason = (
            f"n = {size.n} with {m:,} rows: the Gram matrix of {d:,} monomials from popcount moments of their "
            "differences"
        )
        return SolverPlan(self, nbytes + size.nbytes + 48.0 * min(m, 1 << 18), reason, 2)


class DenseSolver(Solver):
    """Ridge by matrix products, for real columns."""

    name = "dense"
    forms = frozenset({"real"})
    by_name = False

    def cost(self, size: ProblemSize) -> SolverPlan:
        """What a fit needs."""
        d = size.n_monomials
        return SolverPlan(self, size.nbytes + 36.0 * d * d, f"real columns: {d:,} monomials by matrix products", 0)
