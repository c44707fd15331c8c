"""The textbook average of ``y * chi_S``: no system is solved, and it is right only under uniform inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.low_degree.solvers.solver import (
    ON_POINTS,
    Estimated,
    Penalty,
    ProblemSize,
    Solution,
    Solver,
    SolverPlan,
    possible,
)

_REASON = "the average of y chi_S over the rows estimates each coefficient when inputs are uniform."


class CorrelationSolver(Solver):
    """Averages of targets times characters."""

    name = penalty = "correlation"
    forms = ON_POINTS | {"moments"}

    def cost(self, size: ProblemSize) -> SolverPlan:
        """At most what the cheapest solver of a system needs."""
        return replace(min(possible("auto", size), key=lambda plan: plan.nbytes), solver=self, rank=None)

    def solve(self, statistic: Any, family: Family, penalty: Penalty, plan: SolverPlan, *, n_threads: int) -> Solution:
        """The polynomial of a family that fits the rows of a statistic."""
        sums = statistic.correlations(family, n_threads=n_threads).T
        intercept = sums[0] / statistic.weight * penalty.fit_intercept
        polynomial = FittedPolynomial(family, sums[1:] / (statistic.weight + penalty.alpha), intercept)
        return Solution(
            polynomial,
            self.name,
            _REASON,
            statistic.squared_error(polynomial, n_threads=n_threads),
            statistic.totals.squares_about(intercept),
            statistic.n_rows,
            statistic.weight,
            penalty,
        )

    def estimate(self, equations: NormalEquations, penalty: Penalty, plan: SolverPlan) -> Estimated:
        """Coefficients (D, T), the feature means that the intercept makes up for, the reason, effective parameters."""
        sums = equations.rhs + equations.weight * np.outer(equations.feature_mean, equations.target_mean)
        return sums / (equations.weight + penalty.alpha), np.zeros(len(sums)), _REASON, None
