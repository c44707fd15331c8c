"""By which method, where a person leaves the choice, and the proof in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsact import kernels
from sparsact.certificate.characters import Characters
from sparsact.certificate.enumeration import MOST_INPUTS, enumerated
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.mixed_integer import bounded
from sparsact.certificate.orbits import Orbits
from sparsact.certificate.reduction import Reduction
from sparsact.certificate.statement import Certificate
from sparsact.certificate.sweep import sweep
from sparsact.certificate.verdicts import of_interval, of_tally

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork

MOST_STATES = 2**26
COMPARISONS = {"native": 2**34, "reference": 2**31}  # of the enumeration kernel, a few seconds
MULTIPLICATIONS = 2**33  # of a sweep, some ten seconds


def proved(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    method: str,
    *,
    time_limit: float,
    rng: np.random.Generator,
    n_threads: int,
) -> Certificate:
    """The certificate of a method other than ``"sampled"``."""
    reduction = _reduction(network, inputs, merge=method != "enumeration")
    if method == "auto":
        method = _cheapest(network, inputs, reduction)
    if method == "orbits" and inputs.lift is not None:
        method = "enumeration"  # a lift has no orbits of its own
    if method == "milp":
        return of_interval(bounded(network, inputs, reduction, time_limit=time_limit, rng=rng), network, inputs)
    if method == "enumeration":
        width = network.n if inputs.lift is None else inputs.lift.m
        if width > MOST_INPUTS:
            raise ValueError(
                f"enumeration takes up to {MOST_INPUTS} coordinates; there are {width}: use method='orbits', if many "
                "coordinates are alike, or method='milp'."
            )
        proof = f"enumeration of all {2**width:,} points" + " y" * (inputs.lift is not None)
        if inputs.is_cube:
            return of_tally(enumerated(network, inputs, n_threads=n_threads), network, inputs, method, proof)
    else:
        proof = f"enumeration of {reduction.n_states:,} orbits of points that the units cannot tell apart"
    if reduction.n_states > MOST_STATES:
        raise ValueError(
            f"orbits are counted up to {MOST_STATES:,}; there are {reduction.n_states:,}, for too few coordinates are "
            "alike: use method='milp'."
        )
    return of_tally(sweep(network, inputs, reduction), network, inputs, method, proof)


def _reduction(network: SparselyActivatedNetwork, inputs: Inputs, *, merge: bool) -> Reduction:
    return Orbits(network.W, inputs, merge=merge) if inputs.lift is None else Characters(network.W, inputs.lift)


def _cheapest(network: SparselyActivatedNetwork, inputs: Inputs, reduction: Reduction) -> str:
    """Orbits or points, whichever is less work, if it is a matter of seconds."""
    work = reduction.n_states * (network.s + 1) * (len(reduction.counts) + 8)
    comparisons = 2**network.n * network.s
    if inputs.is_cube and network.n <= MOST_INPUTS and comparisons <= min(COMPARISONS[kernels.backend()], 4 * work):
        return "enumeration"
    if reduction.n_states <= MOST_STATES and work <= MULTIPLICATIONS:
        return "orbits"
    return "milp"
