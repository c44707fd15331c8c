"""Noise sensitivity and activity of a network or stack on random points, with upper confidence bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds.learning import degree_from_noise, tail_from_noise
from sparsact.bounds.sensitivity import (
    average_sensitivity_bound,
    degree_from_sensitivity,
    sensitivity_certificate,
    tail_bound,
)
from sparsact.bounds.stacks import stack_sensitivity
from sparsact.fourier import Estimate, estimate_average_sensitivity, estimate_noise_sensitivity
from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact.validation.parameters import check_named


def upper_confidence_bound(estimate: Estimate, spread: float, confidence: float = 0.95) -> float:
    r"""Upper bound on the mean of bounded samples, which fails with probability at most ``1 - confidence``.

    .. math:: \bar q + \sqrt{\frac{2 V \ln(2/\delta)}{N}} + \frac{7\, \text{spread} \ln(2/\delta)}{3 (N - 1)},
              \qquad \delta = 1 - \text{confidence}

    Parameters
    ----------
    estimate : Estimate
        Mean of N samples, with its standard error :math:`\sqrt{V/N}`; a single number.
    spread : float
        Length of an interval in which every sample lies.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    bound : float
        Above the mean, with that confidence.

    Raises
    ------
    ValueError
        If there are fewer than two samples, or a parameter is out of range.

    Notes
    -----
    The empirical Bernstein bound [1]_. Unlike Hoeffding's (:meth:`~sparsact.fourier.Estimate.bounded_interval`) its
    width follows the samples' own variance, and unlike the normal interval it needs no large N.

    References
    ----------
    .. [1] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization", 2009, Theorem 4.

    Examples
    --------
    >>> round(upper_confidence_bound(Estimate(0.5, 0.0, 1001), spread=1.0), 4)
    0.5086
    """
    check_named(confidence=confidence, spread=spread)
    if estimate.n_samples < 2:
        raise ValueError(f"a variance needs at least 2 samples; `estimate` has {estimate.n_samples}: draw more.")
    logarithm = log(2 / (1 - confidence))
    return float(
        estimate.value
        + sqrt(2 * logarithm) * estimate.standard_error
        + 7 * spread * logarithm / (3 * (estimate.n_samples - 1))
    )


Interval = Literal["bernstein", "normal"]
_PILOT_SHARE: Final = 10


@dataclass(frozen=True)
class SufficientDegree:
    r"""A degree above which a function has Fourier weight at most ``epsilon``, and where that comes from.

    Attributes
    ----------
    degree : int
        Smallest degree that is known to suffice.
    reason : str
        Sentence that names the deciding attribute below.
    epsilon, tail : float
        The weight allowed, and an upper bound of the weight above ``degree``.
    confidence : float
        Probability that the bound holds, over the random samples; 1 where nothing was sampled.
    rho, noise_sensitivity : float, Estimate or None
        The noise measured: its correlation, and the noise sensitivity there (without an error where it is exact).
    measured : float or None
        Degree by Claim 2.1 from that noise sensitivity, or infinity. From data: by the unexplained variance.
    activity : float or None
        Degree from how strongly active units respond (:func:`~sparsact.bounds.sensitivity_certificate`); None where the
        spectrum is exact and n > 16. Of a stack: from the average sensitivity measured.
    worst_case : float or None
        Degree for every network of this s, k and W (:func:`sufficient_degree`). Of a stack: from
        :func:`stack_sensitivity`.
    theorem_8 : float or None
        Degree that Theorem 8 requires, with ``c`` for its unspecified constant.
    """

    degree: int
    reason: str
    epsilon: float
    tail: float
    confidence: float = 1.0
    rho: float | None = None
    noise_sensitivity: Estimate | None = None
    measured: float | None = None
    activity: float | None = None
    worst_case: float | None = None
    theorem_8: float | None = None


class Proved(NamedTuple):
    """What is proved of a function: bounds of its range, average sensitivity and tails, and of ``responses``.

    ``responses(n, rng)`` draws n samples; their expectation bounds the average sensitivity.
    """

    spread: float
    average: float
    tail: Callable[[int], float]
    responses: Callable[[int, np.random.Generator], Estimate]
    largest_response: float


def proved_of_network(network: SparselyActivatedNetwork, k: int) -> Proved:
    """For a network with at most k active units."""

    def responses(n_samples: int, rng: np.random.Generator) -> Estimate:
        signs = bits_to_signs(rng.integers(2, size=(n_samples, network.n), dtype=np.int8))
        found = sensitivity_certificate(network, signs)
        return Estimate(float(found.mean()), float(found.std(ddof=1) / n_samples**0.5), n_samples)

    W = network.scale().W
    worst, tail = average_sensitivity_bound(k, W), partial(tail_bound, k, W, s=network.s)
    return Proved(_value_range(network, k), worst, tail, responses, worst)


def proved_of_stack(stack: Stack, active: Sequence[int] | None) -> Proved:
    """For a stack with at most ``active`` active units in each layer."""
    bounds = stack_sensitivity(stack, active)

    def responses(n_samples: int, rng: np.random.Generator) -> Estimate:
        return estimate_average_sensitivity(stack, n_samples=n_samples, rng=rng, n_flips=stack.n)

    largest = float((bounds.changes**2).sum() / 4)
    spread, average = bounds.highest - bounds.lowest, bounds.average
    return Proved(spread, average, lambda degree: average / (degree + 1), responses, largest)


def least_degree_of(
    f: SparselyActivatedNetwork | Stack,
    epsilon: float,
    proved: Proved,
    how: tuple[float, int, Interval],
    worst_reason: str,
    worst: dict[str, float],
    *,
    rng: np.random.Generator,
) -> SufficientDegree:
    """The least of three degrees, at most n: measured twice, with half of the doubt each, and the ``worst`` cases.

    ``how`` is the confidence, the number of samples and the kind of interval.
    """
    confidence, n_samples, interval = how
    each = (1 + confidence) / 2

    def upper(estimate: Estimate, spread: float) -> float:
        if interval == "normal":
            return float(max(0.0, estimate.interval(2 * each - 1)[1]))
        return upper_confidence_bound(estimate, spread, each)

    spread = proved.spread**2 / 4

    def promised(pilot: Estimate) -> float:
        """The upper bound that all samples would give, if they were like the pilot's."""
        error = pilot.standard_error * (pilot.n_samples / n_samples) ** 0.5
        return upper(Estimate(pilot.value, error, n_samples), spread)

    rho = _best_noise(f, epsilon, promised, max(2, n_samples // _PILOT_SHARE), rng)
    noise = estimate_noise_sensitivity(f, f.n, rho, n_samples=n_samples, rng=rng)
    response = upper(proved.responses(n_samples, rng), proved.largest_response)
    most_noise, most_response = upper(noise, spread), min(proved.average, response)
    degrees = {
        "measured": degree_from_noise(most_noise, rho, epsilon),
        "activity": degree_from_sensitivity(most_response, epsilon),
        **worst,
    }
    reasons = {
        "worst_case": worst_reason,
        "activity": "the mean response of the units that are active together.",
        "measured": f"Claim 2.1 and the noise sensitivity measured at rho = {rho:g}.",
    }
    best = min(reasons, key=lambda name: degrees[name])
    if degrees[best] >= f.n:
        reason = f"there is no higher degree than n = {f.n}."
        return SufficientDegree(f.n, reason, epsilon, 0.0, 1.0, rho, noise, **degrees)
    degree = int(degrees[best])
    tail = {
        "worst_case": proved.tail(degree),
        "activity": most_response / (degree + 1),
        "measured": tail_from_noise(most_noise, rho, degree),
    }[best]
    certain = 1.0 if best == "worst_case" else confidence
    return SufficientDegree(degree, reasons[best], epsilon, tail, certain, rho, noise, **degrees)


def _best_noise(
    f: SparselyActivatedNetwork | Stack,
    epsilon: float,
    promised: Callable[[Estimate], float],
    n_samples: int,
    rng: np.random.Generator,
) -> float:
    """The rho at which few samples promise the least degree; fresh samples there owe nothing to the choice."""
    found = []
    for j in range(f.n.bit_length() + 3):
        rho = 1 - 2.0**-j
        pilot = estimate_noise_sensitivity(f, f.n, rho, n_samples=n_samples, rng=rng)
        found.append((degree_from_noise(promised(pilot), rho, epsilon), j, rho))
    return min(found)[2]


def _value_range(network: SparselyActivatedNetwork, k: int) -> float:
    """Length of an interval that holds every value of the network on the cube, when at most k units are active."""
    norms = np.asarray(abs(network.W).sum(axis=1)).ravel()
    most = network.u * np.maximum(norms - network.b, 0.0)
    ranked: NDArray[np.float64] = np.sort(most)
    return float(np.maximum(ranked[-k:], 0.0).sum() - np.minimum(ranked[:k], 0.0).sum())
