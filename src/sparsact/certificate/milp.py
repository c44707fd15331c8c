r"""Bounds on the largest number of active units by mixed-integer programming.

*The program.* Variables come from the reduction (integers t with :math:`v_f = c_f - 2 t_f`) and an indicator
:math:`a_j` for each unit that some point of the cube switches on and some does not. The sum of the indicators is
maximised subject to

.. math:: \sum_f r_{jf} v_f - b_j \ge \theta_j - M_j (1 - a_j), \qquad M_j = \theta_j + b_j + \sum_f |r_{jf}| c_f,

so that :math:`a_j = 0` asks nothing, and to one row :math:`\sum_{j \in C} a_j \le 1` a clique of conflicts.

*Why the bound is valid.* An allowed input, with the indicators of its active units, satisfies every row:
:math:`\theta_j` is at most the least pre-activation that is active, minus all rounding
(:mod:`sparsact.certificate.preactivations`). Tolerances of the solver only admit more points, and more points only
raise a maximum. What is trusted is HiGHS's search: that it discards no subtree that holds a point without any
violation. Objectives are whole numbers, so its dual bound may be off by almost 1 before the rounded-down bound is.

*Why the other side is.* A solution counts for what its input switches on, decided exactly; one that lives by tolerance
alone (at a tie, say) is cut off, and the program solved again.

*Conflicts.* Of a clique of pairs of units that are never active together, at most one unit is on. If :math:`\max_x
(\langle w_j + w_k, x \rangle - b_j - b_k) \le 0`, then the two are never both positive. The maximum over the cube is a
sum of magnitudes. Juntas and Index_b are proved 1-sparse by this alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread, current_thread, main_thread
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from sparsact.activity import Certificate
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.preactivations import ConstraintRows, scaled_rows
from sparsact.certificate.symmetry import Orbits, Reduction, Variables
from sparsact.certificate.witness import searched_witness
from sparsact.exact_sign import Weights, grids
from sparsact.network import SparselyActivatedNetwork

P = ParamSpec("P")
R = TypeVar("R")
Clique = NDArray[np.intp]
ADDITIONS: Final = 2**32


def conflicts(
    reduced: NDArray[np.float64], counts: NDArray[np.int64], W: Weights, b: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which pairs of units no values of the features switch on together, (s, s), symmetric; proved, not estimated.

    ``reduced`` (s, F) and ``counts`` (F,) are the reduction of ``W`` (s, n). Takes ``s * nnz(reduced)`` additions; if
    that is more than 2**32, no pair is sought.
    """
    lowest, span = grids(W, b)
    size = np.abs(reduced) @ counts
    fear = np.ldexp(8 * (W.shape[1] + 4) * np.finfo(np.float64).eps, span)
    found = np.zeros((len(b), len(b)), dtype=bool)
    if len(b) * np.count_nonzero(reduced) > ADDITIONS:
        return found
    for j, row in enumerate(reduced):
        here = np.flatnonzero(row)
        part = reduced[j + 1 :, here]
        most = size[j + 1 :] + (np.abs(part + row[here]) - np.abs(part)) @ counts[here]
        excess = most - (b[j] + b[j + 1 :])
        # Sums of two units stay on the finer grid of the two, below twice the wider span: exact when that fits 53 bits.
        fits = np.maximum(span[j], span[j + 1 :]) + 2 - np.minimum(lowest[j], lowest[j + 1 :]) <= 52
        found[j, j + 1 :] = np.where(fits, excess <= 0, excess <= -(fear[j] + fear[j + 1 :]))
    return np.asarray(found | found.T)


def clique_cover(conflict: NDArray[np.bool_]) -> list[Clique]:
    """Maximal cliques that hold every unit, by greed; their number bounds the active units."""
    order = np.argsort(-conflict.sum(axis=1), kind="stable")
    covered = np.zeros(len(conflict), dtype=bool)
    cliques = list[Clique]()
    for j in order:
        if covered[j]:
            continue
        members, common = [j], conflict[j].copy()
        while len(fitting := order[common[order]]):
            fresh = fitting[~covered[fitting]]
            member = (fresh if len(fresh) else fitting)[0]
            members.append(member)
            common &= conflict[member]
        covered[members] = True
        cliques.append(np.sort(np.array(members)))
    return cliques


OBJECTIVE_ERROR: Final = 1e-4
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
        """Whether the inputs are described by variables that are 0 or 1."""
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


def _interruptible(call: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Result of a call of compiled code during which Ctrl-C ends this function; HiGHS itself ignores signals."""
    if current_thread() is not main_thread():
        return call(*args, **options)
    answer: Future[R] = Future()

    def run() -> None:
        try:
            answer.set_result(call(*args, **options))
        except BaseException as error:  # raised again by the caller
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    while True:  # a wait without a limit cannot be interrupted on Windows
        with suppress(TimeoutError):
            return answer.result(timeout=0.1)


@dataclass(eq=False)
class ActivityBounds:
    """Bounds so far: ``lower`` is attained by the witness (if there is one), ``upper`` is proved.

    ``doubtful`` points met the program by tolerance alone; ``obstacle`` is the reason to stop other than time.
    """

    lower: int
    upper: int
    witness: NDArray[np.int8] | None
    proof: str = "pairs of units that are never active together"
    empty: bool = False
    doubtful: int = 0
    obstacle: str = ""

    @property
    def closed(self) -> bool:
        """Whether nothing is left to find."""
        return self.empty or (self.witness is not None and self.lower == self.upper)

    def certificate(self, n_units: int, inputs: str) -> Certificate:
        """What the bounds prove."""
        doubt = ""
        if not self.closed:
            doubt = self.obstacle or "the time limit came first"
        elif self.doubtful:
            doubt = f"{self.doubtful:,} points within the solver's tolerance were settled by exact sums"
        return Certificate(
            self.lower, self.upper, self.witness, "milp", self.proof, inputs, n_units, doubt=doubt, vacuous=self.empty
        )


def bounded(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    reduction: Reduction,
    *,
    time_limit: float,
    rng: np.random.Generator,
) -> ActivityBounds:
    """Bounds on the most active units, equal unless the time ran out or ties could not be separated.

    The search for a witness and the conflicts come first; HiGHS gets the rest of the time.
    """
    deadline = time.monotonic() + time_limit
    constant = network.constant_units()
    units = np.flatnonzero(~(constant | network.dead_units()))
    always = int(constant.sum())
    lower, witness = searched_witness(network, inputs, rng=rng)
    pairs = conflicts(reduction.weights[units], reduction.counts, network.W[units], network.b[units])
    cliques = clique_cover(pairs)
    interval = ActivityBounds(lower, always + len(cliques), witness)
    if not len(reduction.counts):  # no unit and no constraint looks at the input: one point is like another
        interval.upper, interval.empty = lower, witness is None
    grouped = isinstance(reduction, Orbits) and bool((reduction.counts > 1).any())
    for finer in (False, True)[: 1 + grouped]:
        if interval.closed:
            break
        # Point by point where single points of groups cannot be cut off.
        form = Orbits(network.W, inputs, merge=False) if finer else reduction
        interval.obstacle, interval.proof = "", "mixed-integer programming"
        active = scaled_rows(form.weights[units], form.counts, network.W[units], network.b[units], strict=True)
        allowed = scaled_rows(form.normals, form.counts, inputs.normals, inputs.offsets, strict=False)
        program = program_of(form, active, allowed, [clique for clique in cliques if len(clique) > 1])
        _narrow(interval, network, inputs, form, program, always, deadline)
        if not interval.obstacle:
            break
    return interval


def _narrow(
    interval: ActivityBounds,
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    form: Reduction,
    program: Program,
    always: int,
    deadline: float,
) -> None:
    """Solve, re-check, cut off points that only the tolerance admits, and solve again, until the bounds meet."""
    while not interval.closed and (left := deadline - time.monotonic()) > 0:
        known = interval.witness is not None
        more = program.with_at_least(interval.lower + 1 - always) if known else program
        answer = solve(more, left)
        if answer.infeasible:  # no point has more than the witness, or there is no point
            interval.upper, interval.empty = interval.lower, not known
            return
        interval.upper = min(interval.upper, max(interval.lower, always + answer.bound))
        if answer.t is None:
            interval.obstacle = "the solver failed" * answer.failed
            return
        point = form.point(answer.t)
        allowed, count = bool(inputs.contains(point[None])[0]), int(network.n_active(point[None])[0])
        if allowed and (interval.witness is None or count > interval.lower):
            interval.lower, interval.witness = count, point
        if allowed and count >= always + answer.claimed:
            continue
        interval.doubtful += 1
        if not program.is_binary:
            interval.obstacle = "ties within the solver's tolerance stand in the way"
            return
        program = program.without(answer.t)
