r"""The most active units as a mixed-integer program for HiGHS, and what its answer proves.

Variables are those of the reduction (integers t with :math:`v_f = c_f - 2 t_f`) and an indicator :math:`a_j` for each
unit that some point of the cube switches on and some does not. The sum of the indicators is maximised subject to

.. math:: \sum_f r_{jf} v_f - b_j \ge \theta_j - M_j (1 - a_j), \qquad M_j = \theta_j + b_j + \sum_f |r_{jf}| c_f,

so that :math:`a_j = 0` asks nothing, and to one row :math:`\sum_{j \in C} a_j \le 1` a clique of conflicts.

*Why the bound is valid.* An allowed input, with the indicators of its active units, satisfies every row:
:math:`\theta_j` is at most the least pre-activation that is active, less all rounding
(:mod:`sparsact.certificate.rows`). Tolerances of the solver only admit more points, and more points only raise a
maximum. What is trusted is HiGHS's search: that it discards no subtree that holds a point without any violation.
Objectives are whole numbers, so its dual bound may be off by almost 1 before the rounded-down bound is.

*Why the other side is.* A solution counts for what its input switches on, decided exactly; one that lives by tolerance
alone (at a tie, say) is cut off, and the program solved again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread, current_thread, main_thread
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from sparsact.certificate.conflicts import Clique
from sparsact.certificate.reduction import Reduction, Variables
from sparsact.certificate.rows import ConstraintRows

OBJECTIVE_ERROR = 1e-4
INFEASIBLE, FAILED = 2, 4  # of the statuses of scipy.optimize.milp


@dataclass(frozen=True, eq=False)
class Program:
    """Rows ``matrix @ z <= right`` on z = (variables of the reduction, indicators)."""

    variables: Variables
    n_indicators: int
    matrix: Any  # csr_array
    right: NDArray[np.float64]

    @property
    def is_binary(self) -> bool:
        """Whether the inputs are told by variables that are 0 or 1."""
        return bool((self.variables.most[self.variables.integral] == 1).all())

    def with_at_least(self, count: int) -> Program:
        """The program for points with at least ``count`` indicators."""
        size = len(self.variables.most)
        return self._with_row(np.concatenate([np.zeros(size), -np.ones(self.n_indicators)]), -count)

    def without(self, t: NDArray[np.float64]) -> Program:
        """The program without one point of its 0/1 variables."""
        is_set = (np.rint(t) == 1) & self.variables.integral
        row = np.zeros(len(t) + self.n_indicators)
        row[: len(t)] = np.where(is_set, 1.0, np.where(self.variables.integral, -1.0, 0.0))
        return self._with_row(row, float(is_set.sum() - 1))

    def _with_row(self, row: NDArray[np.float64], right: float) -> Program:
        stacked = sp.csr_array(sp.vstack([self.matrix, sp.csr_array(row[None])]))
        return replace(self, matrix=stacked, right=np.append(self.right, right))


@dataclass(frozen=True, eq=False)
class Answer:
    """A bound on the indicators, or proof that no point is left; a solution and what it claims, if there is one."""

    bound: int
    infeasible: bool
    failed: bool
    t: NDArray[np.float64] | None
    claimed: int


def program_of(reduction: Reduction, units: ConstraintRows, sides: ConstraintRows, cliques: list[Clique]) -> Program:
    """The program for the given undecided units (whose rows come with the reduction's features)."""
    variables, counts = reduction.variables(), reduction.counts
    k, size = len(units.b), len(variables.most)
    least = np.abs(units.weights) @ counts + units.b + units.error  # -least bounds the pre-activation from below
    big = np.maximum(units.threshold + least, 0.0)
    # weights @ (counts - 2 t) - b >= threshold - big (1 - a), with the variables on the left
    active = sp.hstack([_on_variables(2 * units.weights, variables), sp.diags_array(big, shape=(k, k))])
    right = units.weights @ counts - units.b - units.threshold + big
    allowed = sp.hstack([_on_variables(2 * sides.weights, variables), sp.csr_array((len(sides.b), k))])
    within = sides.weights @ counts - sides.b - sides.threshold
    structure = sp.hstack([variables.rows, sp.csr_array((variables.rows.shape[0], k))])
    together = sp.lil_array((len(cliques), size + k))
    for row, clique in enumerate(cliques):
        together[row, size + clique] = 1.0
    matrix = sp.csr_array(sp.vstack([active, allowed, structure, together]))
    return Program(variables, k, matrix, np.concatenate([right, within, variables.right, np.ones(len(cliques))]))


def _on_variables(weights: NDArray[np.float64], variables: Variables) -> Any:
    F, size = weights.shape[1], len(variables.most)
    place = sp.csr_array((np.ones(F), (np.arange(F), variables.of_feature)), shape=(F, size))
    return sp.csr_array(weights) @ place


def solve(program: Program, time_limit: float) -> Answer:
    """Ask HiGHS for the most indicators, at most ``time_limit`` seconds."""
    k, size = program.n_indicators, len(program.variables.most)
    start = time.monotonic()
    for presolve in (True, False):
        left = max(0.0, time_limit - (time.monotonic() - start))
        result = _interruptible(
            milp,
            np.concatenate([np.zeros(size), -np.ones(k)]),
            integrality=np.concatenate([program.variables.integral.astype(int), np.ones(k, dtype=int)]),
            bounds=Bounds(np.zeros(size + k), np.concatenate([program.variables.most, np.ones(k)])),
            constraints=LinearConstraint(program.matrix, -np.inf, program.right),
            options={"time_limit": left, "mip_rel_gap": 0.0, "presolve": presolve},
        )
        if result.status != FAILED:  # seen after presolve, where a tie is all that makes a program infeasible
            break
    dual = result.get("mip_dual_bound")
    bound = k if dual is None or not np.isfinite(dual) else min(k, int(np.floor(-dual + OBJECTIVE_ERROR)))
    if result.x is None:
        return Answer(bound, result.status == INFEASIBLE, result.status == FAILED, None, 0)
    return Answer(bound, False, False, result.x[:size], int(np.rint(result.x[size:]).sum()))


def _interruptible(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Result of a call of compiled code during which Ctrl-C ends this function.

    HiGHS looks at no signal. It runs in a thread of its own, which an interrupt leaves behind until its time limit.
    """
    if current_thread() is not main_thread():
        return call(*args, **options)
    answer: Future[Any] = Future()

    def run() -> None:
        try:
            answer.set_result(call(*args, **options))
        except BaseException as error:  # raised again by the caller
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    while True:  # a wait without a limit cannot be interrupted on Windows
        with suppress(TimeoutError):
            return answer.result(timeout=0.1)
