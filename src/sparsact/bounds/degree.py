r"""The degree that is enough: measured where that can be done, beside the worst cases of the theory.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Claim 2.1 and Theorem 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsact.bounds.learning import degree_from_noise, uniform_degree
from sparsact.bounds.measured import Interval, SufficientDegree, least_degree_of, proved_of_network, proved_of_stack
from sparsact.bounds.sensitivity import degree_from_sensitivity, sensitivity_certificate, sufficient_degree
from sparsact.bounds.unexplained import UnexplainedVariance, unexplained_variance
from sparsact.fourier import Estimate, Spectrum
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact.validation.parameters import check_named, checked_generator, checked_number, checked_option, checked_size

LARGEST_CERTIFICATE: Final = 16  # inputs of a network whose activity is summed over all points
LARGEST_TABLE: Final = 24
_PREACTIVATIONS: Final = 2**29  # s * 2**n that a table may take: some seconds
_LISTED: Final = 2**18  # coefficients of units that may be listed


def degree_for(
    thing: object,
    epsilon: float,
    *,
    k: int | Sequence[int] | None = None,
    confidence: float = 0.95,
    n_samples: int = 10_000,
    interval: Interval = "bernstein",
    noise_variance: float = 0.0,
    c: float = 1.0,
    rng: np.random.Generator | None = None,
) -> SufficientDegree:
    r"""Degree d that is enough for :math:`\sum_{|T| > d} \hat f(T)^2 \le \epsilon`.

    Parameters
    ----------
    thing : SparselyActivatedNetwork, Stack, pair (X, y), or anything that :meth:`Spectrum.of` takes
        A network or a stack: its spectrum where that is exact in seconds (n <= 24, or units that read few inputs each);
        else its noise sensitivity is measured. Rows X (m, n) of signs, drawn uniformly, with targets y (m,): the
        variance that no polynomial of degree d explains is estimated; exact for a spectrum, values or a fitted learner.
    epsilon : float
        Squared error allowed, in the units of the function squared.
    k : int, or a sequence of them for a stack, optional
        Most units of the network, or of each layer, active at any input, as ``certify()`` proves; by default all.
    confidence : float
        Confidence of bounds measured on random samples.
    n_samples : int
        Pairs of points for the final noise sensitivity of a network, and points for its activity; a tenth as many at
        each rho tried before.
    interval : {"bernstein", "normal"}
        How a network's measurements are bounded: rigorously, by :func:`upper_confidence_bound` and the range of the
        network's values, or by the normal approximation, much tighter where that range is far from typical values.
    noise_variance : float
        For rows: known variance of the noise in y, which no polynomial explains. What is not known counts as part of
        the function, so that the degree errs upwards.
    c : float
        The unspecified constant of Theorem 8.
    rng : numpy.random.Generator, optional
        Needed where something is sampled: a network without an exact spectrum, and rows.

    Returns
    -------
    SufficientDegree

    Raises
    ------
    ValueError
        If rows cannot show any degree to be enough: they are not uniform, too few, or too noisy. Says which.

    Notes
    -----
    A network's degree is the least of three, each a proof with the confidence stated: *measured* (Claim 2.1 at the rho
    that a pilot found best), *activity*, and *worst_case*. Where two are sampled, each has half of the doubt.

    Examples
    --------
    Majority of three bits: three quarters of its weight have degree 1, the rest degree 3.

    >>> degree_for([1, 1, 1, -1, 1, -1, -1, -1], epsilon=0.3).degree
    1
    >>> degree_for([1, 1, 1, -1, 1, -1, -1, -1], epsilon=0.2).degree
    3
    """
    check_named(epsilon=epsilon, confidence=confidence, c=c, n_samples=n_samples)
    checked_option(interval, "`interval`", get_args(Interval))
    if isinstance(thing, SparselyActivatedNetwork):
        if not thing.s:
            return SufficientDegree(0, "a network without units is 0 everywhere.", epsilon, 0.0)
        active = thing.s if k is None else checked_size(k, "`k` of a network", maximum=thing.s)
        worst = _worst_cases(thing, epsilon, active, c)
        if has_exact_spectrum(thing):
            return _of_spectrum(Spectrum.of(thing), epsilon, activity=_activity(thing, epsilon), **worst)
        proved, how = proved_of_network(thing, active), (confidence, n_samples, interval)
        reason = f"no network of this scale with s = {thing.s} and k = {active} needs more."
        return least_degree_of(thing, epsilon, proved, how, reason, worst, rng=_needed(rng, "a large network"))
    if isinstance(thing, Stack):
        if isinstance(k, int | np.integer):
            raise ValueError(f"`k` of a stack has a number for each layer; got {k}: pass k=stack.certify().upper.")
        proved = proved_of_stack(thing, k)
        worst = {"worst_case": degree_from_sensitivity(proved.average, epsilon)}
        if thing.n <= LARGEST_TABLE and sum(thing.n_units) * 2**thing.n <= _PREACTIVATIONS:
            return _of_spectrum(Spectrum.of(thing), epsilon, **worst)
        how, reason = (confidence, n_samples, interval), "the bound of the average sensitivity of stacks."
        return least_degree_of(thing, epsilon, proved, how, reason, worst, rng=_needed(rng, "a large stack"))
    if isinstance(thing, tuple) and len(thing) == 2:
        return _of_rows(*thing, epsilon, confidence, noise_variance, _needed(rng, "rows"))
    return _of_spectrum(Spectrum.of(thing), epsilon)


def _needed(rng: np.random.Generator | None, what: str) -> np.random.Generator:
    if rng is None:
        raise ValueError(f"{what}: the degree is found by sampling; pass `rng`, as in rng=np.random.default_rng(0).")
    return checked_generator(rng)


def _of_spectrum(
    spectrum: Spectrum,
    epsilon: float,
    *,
    activity: float | None = None,
    worst_case: float | None = None,
    theorem_8: float | None = None,
) -> SufficientDegree:
    degree = next(d for d in range(spectrum.n + 1) if spectrum.tail(d) <= epsilon)
    noises = [1 - 2.0 ** (-j / 2) for j in range(2 * (spectrum.n.bit_length() + 4))]
    measured, rho = min((degree_from_noise(spectrum.noise_sensitivity(rho), rho, epsilon), rho) for rho in noises)
    return SufficientDegree(
        degree,
        "the spectrum is known: this is the lowest degree that leaves at most epsilon."
        if degree
        else "the mean alone leaves no more than epsilon.",
        epsilon,
        spectrum.tail(degree),
        rho=rho,
        noise_sensitivity=Estimate(spectrum.noise_sensitivity(rho), 0.0, 2**spectrum.n),
        measured=measured,
        activity=activity,
        worst_case=worst_case,
        theorem_8=theorem_8,
    )


def has_exact_spectrum(network: SparselyActivatedNetwork) -> bool:
    """Whether the exact spectrum takes seconds: as a table, or as a list of units that read few inputs each."""
    read = np.bincount(sp.coo_array(network.W).row, minlength=network.s)
    listed = float(np.exp2(np.minimum(read, 64.0)).sum())
    return listed <= _LISTED or (network.n <= LARGEST_TABLE and network.s * 2.0**network.n <= _PREACTIVATIONS)


def _activity(network: SparselyActivatedNetwork, epsilon: float) -> float | None:
    if network.n > LARGEST_CERTIFICATE:
        return None
    return degree_from_sensitivity(float(sensitivity_certificate(network, points(network.n)).mean()), epsilon)


def _worst_cases(network: SparselyActivatedNetwork, epsilon: float, k: int, c: float) -> dict[str, float]:
    W, B = network.scale()
    return {
        "worst_case": sufficient_degree(k, W, epsilon, network.s),
        "theorem_8": uniform_degree(network.n, network.s, k, W, B, epsilon, c=c),
    }


def _of_rows(
    X: ArrayLike, y: ArrayLike, epsilon: float, confidence: float, noise_variance: float, rng: np.random.Generator
) -> SufficientDegree:
    from statistics import NormalDist

    checked_number(noise_variance, "`noise_variance`")
    found = unexplained_variance(X, y, rng=rng)
    if not found.uniform:
        raise ValueError(
            f"`X` must hold uniform rows; means of its columns and of pairs have norm {found.bias:.3g}, "
            f"{found.bias_score:.0f} standard deviations from uniform: choose the degree by cross-validation."
        )
    deviations = NormalDist().inv_cdf(1 - (1 - confidence) / len(found.values))  # all degrees at once
    upper = found.values - noise_variance + deviations * found.standard_errors
    enough = np.flatnonzero(upper <= epsilon)
    if not len(enough):
        raise ValueError(_refusal(found, upper, epsilon, deviations, noise_variance))
    degree = int(enough[0])
    return SufficientDegree(
        degree,
        f"of the variance {found.values[0]:.4g} of {found.n_rows:,} uniform rows, degree {degree} leaves "
        f"{found.values[degree]:.4g} with a standard error of {found.standard_errors[degree]:.2g}, noise included.",
        epsilon,
        max(0.0, float(upper[degree])),
        confidence,
        measured=degree,
    )


def _refusal(
    found: UnexplainedVariance, upper: NDArray[np.float64], epsilon: float, deviations: float, noise_variance: float
) -> str:
    best = int(upper.argmin())
    left, error = found.values[best] - noise_variance, found.standard_errors[best]
    told = (
        f"{found.n_rows:,} rows show no degree to leave at most {epsilon:g} of the variance {found.values[0]:.4g}: "
        f"degree {best} leaves {left:.4g} with a standard error of {error:.2g}"
    )
    if left - deviations * error > epsilon:
        return (
            f"{told}, so that noise or higher degrees hold more than that; pass a larger epsilon, or noise_variance "
            "if it is known."
        )
    return f"{told}, which is too uncertain; pass more rows or a larger epsilon."
