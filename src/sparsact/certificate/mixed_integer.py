"""The most active units beyond enumeration: search from below, conflicts and mixed-integer programming from above."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.conflicts import Clique, clique_cover, conflicts
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.orbits import Orbits
from sparsact.certificate.program import Program, program_of, solve
from sparsact.certificate.reduction import Reduction
from sparsact.certificate.rows import scaled_rows
from sparsact.certificate.witness import searched_witness

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork


@dataclass(eq=False)
class ActivityBounds:
    """What is known so far: ``lower`` is attained by the witness (if there is one), ``upper`` is proved.

    ``doubtful`` points met the program by tolerance alone; ``obstacle`` says why there was no going on, time apart.
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


def bounded(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    reduction: Reduction,
    *,
    time_limit: float,
    rng: np.random.Generator,
) -> ActivityBounds:
    """Bounds on the most active units, equal unless the time ran out or ties could not be told apart.

    The search for a witness and the conflicts come first; HiGHS has what they leave of the time.
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
    for form in (reduction, *_finer(network, inputs, reduction)):
        if interval.closed:
            break
        interval.obstacle, interval.proof = "", "mixed-integer programming"
        program = _program(network, inputs, form, units, cliques)
        _narrow(interval, network, inputs, form, program, always, deadline)
        if not interval.obstacle:
            break
    return interval


def _finer(network: SparselyActivatedNetwork, inputs: Inputs, reduction: Reduction) -> list[Reduction]:
    """The cube point by point, where single points of groups cannot be cut off."""
    grouped = isinstance(reduction, Orbits) and bool((reduction.counts > 1).any())
    return [Orbits(network.W, inputs, merge=False)] if grouped else []


def _program(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    form: Reduction,
    units: NDArray[np.intp],
    cliques: list[Clique],
) -> Program:
    active = scaled_rows(form.weights[units], form.counts, network.W[units], network.b[units], strict=True)
    allowed = scaled_rows(form.normals, form.counts, inputs.normals, inputs.offsets, strict=False)
    return program_of(form, active, allowed, [clique for clique in cliques if len(clique) > 1])


def _narrow(
    interval: ActivityBounds,
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    form: Reduction,
    program: Program,
    always: int,
    deadline: float,
) -> None:
    """Solve, re-check, cut off what lives by tolerance alone, and solve again, until the bounds meet."""
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
        if _is_sound(interval, network, inputs, form.point(answer.t), always + answer.claimed):
            continue
        if not program.is_binary:
            interval.obstacle = "ties within the solver's tolerance stand in the way"
            return
        program = program.without(answer.t)


def _is_sound(
    interval: ActivityBounds, network: SparselyActivatedNetwork, inputs: Inputs, point: NDArray[np.int8], claimed: int
) -> bool:
    """Whether a solution holds what it claims; what it does hold goes into the interval."""
    allowed = bool(inputs.contains(point[None])[0])
    count = int(network.n_active(point[None])[0])
    if allowed and (interval.witness is None or count > interval.lower):
        interval.lower, interval.witness = count, point
    sound = allowed and count >= claimed
    interval.doubtful += not sound
    return sound
