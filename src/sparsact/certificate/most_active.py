"""The largest number of active units over a set of inputs: the choice of a method, and its certificate."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import numpy as np

from sparsact import kernels
from sparsact.activity import Certificate
from sparsact.certificate.inputs import Inputs, InputsLike
from sparsact.certificate.milp import bounded
from sparsact.certificate.sampling import Distribution, certificate_of_sample, sample
from sparsact.certificate.sweep import MOST_INPUTS, enumerated, sweep
from sparsact.certificate.symmetry import Characters, Orbits, Reduction
from sparsact.kernels.dispatch import threads
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.parameters import (
    checked_generator,
    checked_limit,
    checked_option,
    checked_probability,
    checked_size,
)

MOST_STATES: Final = 2**26
COMPARISONS: Final = {"native": 2**34, "reference": 2**31}  # of the enumeration kernel, a few seconds
MULTIPLICATIONS: Final = 2**33  # of a sweep, a few seconds


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
    if inputs.lift is None:
        reduction: Reduction = Orbits(network.W, inputs, merge=method != "enumeration")
    else:
        reduction = Characters(network.W, inputs.lift)
    if method == "auto":
        method = _cheapest(network, inputs, reduction)
    if method == "orbits" and inputs.lift is not None:
        method = "enumeration"  # a lift has no orbits of its own
    if method == "milp":
        found = bounded(network, inputs, reduction, time_limit=time_limit, rng=rng)
        return found.certificate(network.s, inputs.words)
    if method == "enumeration":
        width = network.n if inputs.lift is None else inputs.lift.m
        if width > MOST_INPUTS:
            raise ValueError(
                f"enumeration takes up to {MOST_INPUTS} coordinates; there are {width}: use method='orbits', if many "
                "coordinates are interchangeable, or method='milp'."
            )
        proof = f"enumeration of all {2**width:,} points" + " y" * (inputs.lift is not None)
        if inputs.is_cube:
            tally = enumerated(network, inputs, n_threads=n_threads)
            return tally.certificate(network.s, inputs.words, method, proof)
    else:
        proof = f"enumeration of {reduction.n_states:,} orbits of points that the units cannot distinguish"
    if reduction.n_states > MOST_STATES:
        raise ValueError(
            f"orbits are counted up to {MOST_STATES:,}; there are {reduction.n_states:,}, because few coordinates are "
            "interchangeable: use method='milp'."
        )
    return sweep(network, inputs, reduction).certificate(network.s, inputs.words, method, proof)


def _cheapest(network: SparselyActivatedNetwork, inputs: Inputs, reduction: Reduction) -> str:
    """Orbits or points, whichever is less work, if it is a matter of seconds."""
    work = reduction.n_states * (network.s + 1) * (len(reduction.counts) + 8)
    comparisons = 2**network.n * network.s
    if inputs.is_cube and network.n <= MOST_INPUTS and comparisons <= min(COMPARISONS[kernels.backend()], 4 * work):
        return "enumeration"
    if reduction.n_states <= MOST_STATES and work <= MULTIPLICATIONS:
        return "orbits"
    return "milp"


METHODS: Final = ("auto", "enumeration", "orbits", "milp", "sampled")


def certify(
    network: SparselyActivatedNetwork,
    method: str = "auto",
    *,
    inputs: InputsLike = None,
    time_limit: float = 60.0,
    max_active: int | None = None,
    n_samples: int = 10_000,
    confidence: float = 0.99,
    distribution: Distribution = None,
    rng: np.random.Generator | None = None,
    n_threads: int | None = None,
) -> Certificate:
    r"""Find the maximum number of active units over all inputs: the k of a k-sparse network ([A]_, Definition 1).

    .. math:: \max_{x \in \text{inputs}} |\{ j : \langle w_j, x \rangle - b_j > 0 \}|

    Parameters
    ----------
    network : SparselyActivatedNetwork
        n inputs, s units.
    method : {"auto", "enumeration", "orbits", "milp", "sampled"}
        - ``"enumeration"``: every point, n (or m, for a lift) up to 26;
        - ``"orbits"``: every orbit under permutations and sign changes that no unit notices, whatever n;
        - ``"milp"``: local search from below, mixed-integer programming (HiGHS) from above; an interval when the time
          runs out;
        - ``"sampled"``: no proof, but a bound on how often more than ``max_active`` units are active;
        - ``"auto"``: the cheaper of the first two where one is a matter of seconds, else ``"milp"``.
    inputs : None, scipy.optimize.LinearConstraint or a list of them, or Lift
        Which inputs are allowed: every point of the cube, points that meet the constraints (decided exactly for the
        numbers stored), or the image of a lift. The networks of Section 4 of [A]_ are 1-sparse over their lifts only.
    time_limit : float
        Seconds for ``"milp"``.
    max_active : int, optional
        The k of ``"sampled"``; by default the most that the sample shows.
    n_samples, confidence, distribution
        For ``"sampled"``: ``distribution`` is a function of ``(n_samples, rng)`` that returns inputs (n_samples, n), an
        array of independent inputs (m, n), or None for the uniform distribution over the inputs. Real inputs are legal.
    rng : numpy.random.Generator, optional
        Draws the sample, and steers the local search of ``"milp"`` (which no proof rests on; seed 0 by default).
    n_threads : int, optional
        Threads of the enumeration kernel, see :func:`sparsact.kernels.dispatch.threads`.

    Returns
    -------
    certificate : Certificate

    Raises
    ------
    ValueError
        If an argument is out of range, or there are too many points or orbits for the method.

    Notes
    -----
    A tie is off, as Definition 1 says, and what is on is decided exactly for the float64 numbers stored: by comparison
    for units whose sums do not round (integers, halves) or take few values (tenths), for all others by a bound on the
    error, and by exact sums within it. Points too many to settle leave an interval, and ``doubt`` says so.

    Cost: ``s * 2**n`` comparisons; ``s * F`` multiplications an orbit with F groups; ``"milp"`` may need its time.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 1, Remark 11.

    Examples
    --------
    >>> from sparsact.network import SparselyActivatedNetwork
    >>> opposite = SparselyActivatedNetwork([1.0, -1.0], [[1, 1], [-1, -1]], [0.0, 0.0])
    >>> certificate = certify(opposite)
    >>> certificate.max_active, certificate.exact, certificate.distribution
    (1, True, (2, 2))
    """
    start = time.perf_counter()
    checked_option(method, "`method`", METHODS)
    if not isinstance(network, SparselyActivatedNetwork):
        raise TypeError(
            f"certify takes a SparselyActivatedNetwork; got {type(network).__name__}: of a learner pass its "
            "`network_`, and use sparsact.certificate.certify_stack for a Stack."
        )
    allowed = Inputs.of(inputs, network.n)
    if method == "sampled":
        certificate = _sampled(network, allowed, distribution, n_samples, max_active, confidence, rng)
    elif max_active is not None or distribution is not None:
        name = "distribution" if max_active is None else "max_active"
        raise ValueError(
            f"`{name}` is for method='sampled'; got method={method!r}: the others find the most themselves."
        )
    else:
        checked_limit(time_limit, "`time_limit`")
        search = np.random.default_rng(0) if rng is None else checked_generator(rng)
        certificate = proved(network, allowed, method, time_limit=time_limit, rng=search, n_threads=threads(n_threads))
    return replace(certificate, seconds=time.perf_counter() - start)


def _sampled(
    network: SparselyActivatedNetwork,
    inputs: Inputs,
    distribution: Distribution,
    n_samples: int,
    max_active: int | None,
    confidence: float,
    rng: np.random.Generator | None,
) -> Certificate:
    confidence, n_samples = checked_probability(confidence, "`confidence`"), checked_size(n_samples, "`n_samples`")
    if distribution is not None and (inputs.lift is not None or len(inputs.offsets)):
        raise ValueError("pass `inputs` or a `distribution`, not both: a distribution says which inputs there are.")
    at_most = None if max_active is None else checked_size(max_active, "`max_active`", 0, network.s)
    X = sample(inputs, distribution, n_samples, rng)
    if distribution is None:  # from the cube: a bound over all its points is proved as well
        where, upper = f"a uniform {inputs.words.removeprefix('any ')}", network.s - int(network.dead_units().sum())
    else:
        where, upper = "an input from the distribution given", network.s
    return certificate_of_sample(X, network.n_active(X), network.s, upper, where, at_most, confidence)
