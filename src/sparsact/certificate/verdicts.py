"""What each method found, as a certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsact.certificate.inputs import Inputs
from sparsact.certificate.mixed_integer import ActivityBounds
from sparsact.certificate.sampled import Sampled
from sparsact.certificate.statement import Certificate
from sparsact.certificate.sweep import SweepCount

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork


def of_tally(
    tally: SweepCount, network: SparselyActivatedNetwork, inputs: Inputs, method: str, proof: str
) -> Certificate:
    """Of a count of every point or orbit."""
    if tally.witness is None:
        return Certificate(0, 0, None, method, proof, inputs.words, network.s, vacuous=True)
    doubt = f"at least {tally.settled:,} points within rounding error of a tie were settled by exact sums"
    if not tally.settled:
        doubt = ""
    if tally.lower < tally.upper:
        doubt = f"at least {tally.unsettled:,} points within rounding error of a tie are left in doubt"
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
    """Of a sample; what no point of the cube can pass is proved all the same, if the sample is of the cube."""
    where = f"a uniform {inputs.words.removeprefix('any ')}" if uniform else "an input from the distribution given"
    return Certificate(
        seen.max_active,
        network.s - int(network.dead_units().sum()) if uniform else network.s,
        seen.witness,
        "sampled",
        "a sample",
        where,
        network.s,
        confidence=confidence,
        n_samples=seen.n_samples,
        at_most=seen.at_most,
        exceeded=seen.exceeded,
        exceed_bound=seen.exceed_bound,
    )
