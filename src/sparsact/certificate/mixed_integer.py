"""The most active units beyond enumeration: search from below, mixed-integer programming from above."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.conflicts import clique_cover, conflicts
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.program import Program, program_of, solve
from sparsact.certificate.reduction import Reduction
from sparsact.certificate.rows import scaled_rows
from sparsact.certificate.witness import searched_witness
from sparsact.exact_sign import grids

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork


@dataclass(eq=False)
class Interval:
    """What is known so far: ``lower`` is attained by the witness (if any), ``upper`` proved."""

    lower: int
    upper: int
    witness: NDArray[np.int8] | None
    empty: bool = False
    doubtful: int = 0
    out_of_time: bool = False


def bounded(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    reduction: Reduction,
    *,
    time_limit: float,
    rng: np.random.Generator,
) -> Interval:
    """Bounds on the most active units, equal unless the time ran out or ties could not be told apart.

    The time limit is HiGHS's; the search for a witness and the conflicts come before it.
    """
    deadline = time.monotonic() + time_limit
    constant = network.constant_units()
    undecided = np.flatnonzero(~(constant | network.dead_units()))
    always = int(constant.sum())
    grid = tuple(part[undecided] for part in grids(network.W, network.b))
    weights, b = reduction.weights[undecided], network.b[undecided]
    lower, witness = searched_witness(network, inputs, rng=rng)
    cliques = clique_cover(conflicts(weights, reduction.counts, b, (grid[0], grid[1])))
    interval = Interval(lower, always + len(cliques), witness)
    if witness is not None and interval.upper == lower:
        return interval
    units = scaled_rows(weights, reduction.counts, b, (grid[0], grid[1]))
    sides = scaled_rows(reduction.normals, reduction.counts, inputs.offsets, grids(inputs.normals, inputs.offsets))
    program = program_of(reduction, units, sides, [clique for clique in cliques if len(clique) > 1])
    _narrow(interval, network, inputs, reduction, program, always, deadline)
    return interval


def _narrow(
    interval: Interval,
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    reduction: Reduction,
    program: Program,
    always: int,
    deadline: float,
) -> None:
    """Solve, re-check, cut off what lives by tolerance alone, and solve again, until the bounds meet."""
    size = len(program.variables.most)
    beyond = np.concatenate([np.zeros(size), -np.ones(program.n_indicators)])
    while interval.witness is None or interval.lower < interval.upper:
        left = deadline - time.monotonic()
        if left <= 0:
            interval.out_of_time = True
            return
        known = interval.witness is not None  # then only more active units are of interest
        asked = program.with_row(beyond, -(interval.lower + 1 - always)) if known else program
        answer = solve(asked, left)
        if answer.infeasible:
            interval.upper = interval.lower
            interval.empty = not known
            return
        interval.upper = min(interval.upper, max(interval.lower, always + int(answer.bound)))
        if answer.t is None:
            interval.out_of_time = True
            return
        point = reduction.point(answer.t)
        allowed = bool(inputs.contains(point[None])[0])
        count = int(network.n_active(point[None])[0])
        if allowed and (count > interval.lower or not known):
            interval.lower, interval.witness = count, point
        if allowed and count >= always + answer.claimed:
            interval.out_of_time = not answer.finished and interval.lower < interval.upper
            if interval.out_of_time:
                return
            continue
        interval.doubtful += 1
        bits = np.flatnonzero(program.variables.integral)
        if (program.variables.most[bits] != 1).any():
            return  # one state among many of a group: no single row cuts it off
        program = _without(program, answer.t, bits)


def _without(program: Program, t: NDArray[np.float64], bits: NDArray[np.intp]) -> Program:
    """The program without one point of its 0/1 variables; what the point switches on is known by then."""
    set_bits = np.rint(t[bits]) == 1
    row = np.zeros(len(t) + program.n_indicators)
    row[bits] = np.where(set_bits, 1.0, -1.0)
    return program.with_row(row, float(set_bits.sum() - 1))
