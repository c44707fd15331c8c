"""Certificates of a count, of bounds and of a sample."""

from __future__ import annotations

from typing import Any

from sparsact.activity import Certificate
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.milp import ActivityBounds
from sparsact.certificate.sampling import Sampled
from sparsact.certificate.sweep import SweepCount
from sparsact.network import SparselyActivatedNetwork


def of_tally(
    tally: SweepCount, network: SparselyActivatedNetwork, inputs: Inputs, method: str, proof: str
) -> Certificate:
    """Of a count of every point or orbit."""
    if tally.witness is None:
        return Certificate(0, 0, None, method, proof, inputs.words, network.s, vacuous=True)
    doubt = ""
    if tally.lower < tally.upper:
        doubt = f"at least {tally.unsettled:,} points within rounding error of a tie are left in doubt"
    elif tally.settled:
        doubt = f"at least {tally.settled:,} points within rounding error of a tie were settled by exact sums"
    return Certificate(
        tally.lower,
        tally.upper,
        tally.witness,
        method,
        proof,
        inputs.words,
        network.s,
        doubt=doubt,
        distribution=None if tally.histogram is None else tuple(tally.histogram[: tally.lower + 1].tolist()),
    )


def of_interval(interval: ActivityBounds, network: SparselyActivatedNetwork, inputs: Inputs) -> Certificate:
    """Of bounds from below and above."""
    ties = f"{interval.doubtful:,} points within the solver's tolerance were settled by exact sums"
    doubt = ties * bool(interval.doubtful)
    if not interval.closed:
        doubt = interval.obstacle or "the time limit came first"
    return Certificate(
        interval.lower,
        interval.upper,
        interval.witness,
        "milp",
        interval.proof,
        inputs.words,
        network.s,
        doubt=doubt,
        vacuous=interval.empty,
    )


def of_sample(
    seen: Sampled, network: SparselyActivatedNetwork, inputs: Inputs, confidence: float, *, uniform: bool
) -> Certificate:
    """Certificate from a sample; if the sample comes from the cube, bounds over all its points are proved as well."""
    where = f"a uniform {inputs.words.removeprefix('any ')}" if uniform else "an input from the distribution given"
    upper = network.s - int(network.dead_units().sum()) if uniform else network.s
    fixed: dict[str, Any] = {
        "method": "sampled",
        "proof": "a sample",
        "inputs": where,
        "n_units": network.s,
        "confidence": confidence,
    }
    return Certificate(upper=upper, **fixed, **vars(seen))
