"""Noise sensitivity and activity of a network or stack on random points, with upper confidence bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.bounds.learning import degree_from_noise
from sparsact.bounds.sensitivity import average_sensitivity_bound, sensitivity_certificate
from sparsact.bounds.stacks import stack_sensitivity
from sparsact.fourier import Estimate, estimate_average_sensitivity, estimate_noise_sensitivity
from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact.validation.parameters import check_named


def upper_confidence_bound(estimate: Estimate, spread: float, confidence: float = 0.95) -> float:
    r"""Number that the mean of bounded samples exceeds with probability at most ``1 - confidence``.

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
        raise ValueError(f"a variance needs 2 samples or more; `estimate` has {estimate.n_samples}: draw more.")
    logarithm = log(2 / (1 - confidence))
    return float(
        estimate.value
        + sqrt(2 * logarithm) * estimate.standard_error
        + 7 * spread * logarithm / (3 * (estimate.n_samples - 1))
    )


Interval = Literal["bernstein", "normal"]
_PILOT_SHARE: Final = 10


@dataclass(frozen=True)
class Measured:
    """Sampled bounds of a network or stack: of its noise sensitivity at rho, and of its average sensitivity."""

    n: int
    epsilon: float
    confidence: float
    rho: float
    noise: Estimate
    most_noise: float
    most_response: float
    worst_response: float


class Proved(NamedTuple):
    """What is proved of a function: bounds of its range, of its average sensitivity, and of ``responses``.

    ``responses(n, rng)`` draws n samples; their expectation bounds the average sensitivity.
    """

    spread: float
    average: float
    responses: Callable[[int, np.random.Generator], Estimate]
    largest_response: float


def proved_of_network(network: SparselyActivatedNetwork, k: int) -> Proved:
    """For a network with at most k active units."""

    def responses(n_samples: int, rng: np.random.Generator) -> Estimate:
        signs = bits_to_signs(rng.integers(2, size=(n_samples, network.n), dtype=np.int8))
        found = sensitivity_certificate(network, signs)
        return Estimate(float(found.mean()), float(found.std(ddof=1) / n_samples**0.5), n_samples)

    worst = average_sensitivity_bound(k, network.scale().W)
    return Proved(_value_range(network, k), worst, responses, worst)


def proved_of_stack(stack: Stack, active: Sequence[int] | None) -> Proved:
    """For a stack with at most ``active`` active units in each layer."""
    bounds = stack_sensitivity(stack, active)

    def responses(n_samples: int, rng: np.random.Generator) -> Estimate:
        return estimate_average_sensitivity(stack, n_samples=n_samples, rng=rng, n_flips=stack.n)

    largest = float((bounds.changes**2).sum() / 4)
    return Proved(bounds.highest - bounds.lowest, bounds.average, responses, largest)


def measure(
    f: SparselyActivatedNetwork | Stack,
    epsilon: float,
    proved: Proved,
    how: tuple[float, int, Interval],
    rng: np.random.Generator,
) -> Measured:
    """Measure a function; ``how`` is confidence, number of samples, kind of interval. Each bound has half the doubt."""
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
    return Measured(
        f.n,
        epsilon,
        confidence,
        rho,
        noise,
        upper(noise, spread),
        min(proved.average, response),
        proved.average,
    )


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
