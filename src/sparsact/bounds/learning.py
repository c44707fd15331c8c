r"""Degrees and numbers of rows that suffice to learn: Claim 2.1, Lemmas 7 and 18, Theorems 8 and 17.

Logarithms are natural. Numbers that may exceed every float are ``math.inf`` when too large, and their functions have an
attribute ``log2``, the function that gives their base-2 logarithm.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Sections 2.1, 3 and 5.
.. [T] J. Tropp, "User-friendly tail bounds for sums of random matrices", 2012, Theorem 1.1.
.. [D] A. Cohen, M. Davenport, D. Leviatan, "On the stability and accuracy of least squares approximations", 2013.
.. [S] S. Shalev-Shwartz and S. Ben-David, "Understanding Machine Learning", 2014, Lemmas 26.2 and 26.9,
   Theorem 26.5.
"""

from __future__ import annotations

from collections.abc import Callable
from math import expm1, inf, log, log1p, log2, sqrt
from typing import Final

from sparsact.bounds.arithmetic import log2_of, log2_quotient, subsets_up_to
from sparsact.bounds.held_out import held_out_rows
from sparsact.bounds.registry import bound, log_bound
from sparsact.bounds.sensitivity import sufficient_degree
from sparsact.validation.parameters import checked_correlation

_MOST_ROWS: Final = 2**60


@bound("Claim 2.1", "A", "proved", "weight above the degree, at most")
def tail_from_noise(noise_sensitivity: float, rho: float, degree: int) -> float:
    r"""Upper bound on the Fourier weight above a degree, from a noise sensitivity (Claim 2.1).

    .. math:: \sum_{|T| > d} \hat f(T)^2 \le \frac{2\, \mathrm{NS}_\rho(f)}{1 - \rho^{d + 1}}

    *Proved*, for every function on the cube and 0 <= rho < 1. Printed with :math:`\rho^d`; as :math:`|T| > d`
    means :math:`|T| \ge d + 1`, the larger denominator may stand. For rho < 0 powers of even size are the largest: the
    denominator is :math:`1 - \rho^t` with t the least even number above d. Infinite at rho = 1, where nothing is
    flipped, and at rho = -1, where all signs are and no part of even degree changes.

    >>> tail_from_noise(0.25, 0.5, degree=1)
    0.6666666666666666
    """
    size = degree + 1 + ((degree + 1) % 2 if checked_correlation(rho) < 0 else 0)
    loss = -expm1(size * log(abs(rho))) if rho else 1.0  # 1 - rho**size, accurate near rho = 1
    return 2 * noise_sensitivity / loss if loss else inf


@bound("Claim 2.1", "A", "proved", "degree enough, from the noise sensitivity")
def degree_from_noise(noise_sensitivity: float, rho: float, epsilon: float) -> float:
    r"""Least degree at which Claim 2.1 bounds the weight above it by epsilon; infinite if there is none.

    *Proved*: :math:`d + 1 \ge \ln(1 - 2\, \mathrm{NS}_\rho / \epsilon) / \ln |\rho|`, which needs
    :math:`2\, \mathrm{NS}_\rho < \epsilon` (at rho = 0, equality will do) and :math:`|\rho| < 1`; for rho < 0 the next
    even number above d takes the place of d + 1.

    >>> degree_from_noise(0.25, 0.5, epsilon=0.7)
    1
    """
    share = 2 * noise_sensitivity / epsilon
    if share > 1 or abs(checked_correlation(rho)) == 1 or (share == 1 and rho):
        return inf
    degree = max(0, int(log1p(-share) / log(abs(rho))) - (2 if rho < 0 else 1)) if rho else 0
    while tail_from_noise(noise_sensitivity, rho, degree) > epsilon:  # the quotient above was rounded
        degree += 1
    return degree


@bound("Theorem 8, C", "A", "proved", "magnitude C of a function, at most")
def largest_value(n: int, k: int, W: float, B: float) -> float:
    r"""Largest magnitude of a network with at most k active units: :math:`C = k (W \sqrt n + B)`.

    *Proved* (proof of Theorem 8). The paper defines C as the supremum of h; that of :math:`|h|` is meant.
    """
    return k * (W * sqrt(n) + B)


@log_bound("Lemma 7", "A", "up to constants", "rows of the low-degree algorithm")
def low_degree_samples(n: int, degree: int, C: float, epsilon: float, delta: float, *, c: float = 1.0) -> float:
    r"""Rows, and up to a power time, of the low-degree algorithm (Lemma 7): :math:`c\, n^d C^2 \ln(1/\delta)/\epsilon`.

    *Up to constants*: c is unspecified, in the number of rows and in the error :math:`O(\epsilon)` that they reach with
    probability 1 - delta. Every function of the class must have weight at most epsilon above degree d and magnitude at
    most C (the paper prints the supremum of h; that of :math:`|h|` is meant).
    """
    return degree * log2(n) + 2 * log2_of(C) + log2_quotient([c, -log(delta)], [epsilon])


@bound("Lemma 7 with constants", None, "sharper", "rows of the low-degree algorithm")
def low_degree_samples_explicit(n: int, degree: int, C: float, epsilon: float, delta: float) -> float:
    r"""Rows of Lemma 7 with every constant: :math:`m_1 = D a` to fit and :math:`m_2` to prove the error.

    .. math:: a = \min_\theta \max\Big( \frac{\ln(3D/\delta)}{\theta + (1 - \theta) \ln(1 - \theta)},\,
              \frac{3}{\delta (1 - \theta)^2} \Big), \qquad D = \sum_{j \le d} \binom nj

    *Sharper, proved* (documentation, "Sharper bounds"): for independent rows of uniform signs and any targets in
    [-C, C], also noisy ones, such that some polynomial of degree at most d is within epsilon/4 in mean square. Least
    squares on :math:`m_1` rows, clipped to [-C, C], then has :math:`\mathbb{E}(h - y)^2 \le \epsilon/2`, and
    :func:`held_out_bound` on :math:`m_2` others is at most epsilon, both with probability 1 - delta. The dimension
    enters by D, the magnitude by :math:`m_2` (:func:`held_out_rows`) alone.

    >>> low_degree_samples_explicit(10, 2, C=1.0, epsilon=0.05, delta=0.05)
    16224.0
    """
    return sum(low_degree_parts(n, degree, C, epsilon, delta))


def low_degree_parts(n: int, degree: int, C: float, epsilon: float, delta: float) -> tuple[float, float]:
    """Rows to fit and rows to hold out of :func:`low_degree_samples_explicit`."""
    D = float(subsets_up_to(n, degree))
    if inf == D:
        return inf, inf
    thetas = [i / 100 for i in range(1, 100)]
    factor = min(
        max(log(3 * D / delta) / (theta + (1 - theta) * log1p(-theta)), 3 / delta / (1 - theta) ** 2)
        for theta in thetas
    )
    return float(-(-D * factor // 1)), held_out_rows(epsilon / 2, epsilon, 4 * C * C, delta, delta / 3)


@bound("Theorem 8, degree", "A", "up to constants", "degree enough for epsilon")
def uniform_degree(n: int, s: int, k: int, W: float, B: float, epsilon: float, *, c: float = 1.0) -> float:
    r"""Degree of Theorem 8: :math:`d = c\,(k^8 W^4 \ln^4(ns) + k^6 B^4 \ln s) / \epsilon^2`.

    *Up to constants*: the constant c is unspecified. It rests on Lemmas 9 and 10;
    :func:`~sparsact.bounds.sufficient_degree` is sharper and has a constant.
    """
    return c * (float(k) ** 8 * W**4 * log(n * s) ** 4 + float(k) ** 6 * B**4 * log(s)) / epsilon / epsilon


@log_bound("Theorem 8", "A", "up to constants", "rows, uniform inputs")
def uniform_samples(
    n: int, s: int, k: int, W: float, B: float, epsilon: float, delta: float, *, c: float = 1.0, c_degree: float = 1.0
) -> float:
    r"""Rows, and run-time, of Theorem 8: :math:`c\, n^d k^2 (W \sqrt n + B)^2 \ln(1/\delta)/\epsilon`.

    *Up to constants*: c and the constant of its degree d (:func:`uniform_degree`) are unspecified.
    """
    degree = uniform_degree(n, s, k, W, B, epsilon, c=c_degree)
    return (
        (degree * log2(n) if n > 1 else 0.0)
        + 2 * log2_of(largest_value(n, k, W, B))
        + log2_quotient([c, -log(delta)], [epsilon])
    )


@log_bound("sharper Theorem 8", None, "sharper", "rows, uniform inputs, at the sharper degree")
def sparse_samples(
    n: int, k: int, W: float, B: float, epsilon: float, delta: float, *, s: int | None = None, c: float = 1.0
) -> float:
    r"""Rows of the low-degree algorithm at the sharper degree: Lemma 7 with :math:`d \le 4 k^2 W^2 / \epsilon`.

    *Sharper*: the degree is proved (:func:`~sparsact.bounds.sufficient_degree`, at most n); the constant c is that of
    Lemma 7, unspecified. It stands beside Theorem 8.
    """
    degree, C = min(n, sufficient_degree(k, W, epsilon, s)), largest_value(n, k, W, B)
    return low_degree_samples.log2(n, degree, C, epsilon, delta, c=c) if inf > C else inf


@bound("Lemma 18", "A", "proved", "rows, from a Rademacher complexity")
def samples_from_rademacher(
    complexity: Callable[[int], float], C: float, epsilon: float, delta: float, *, c: float = 4.0
) -> float:
    r"""Rows of Lemma 18: the least m with :math:`c\,(C\, \mathcal R(m) + C^2 \sqrt{\ln(1/\delta)/m}) \le \epsilon`.

    *Proved* with c = 4, for the realizable case and the loss :math:`\frac12 (\hat y - y)^2` of functions of magnitude
    at most C: the loss is 2C-Lipschitz and lies in :math:`[0, 2 C^2]`, so that symmetrisation and the contraction lemma
    (Lemmas 26.2 and 26.9 of Shalev-Shwartz and Ben-David, 2014) with the inequality of bounded differences, one-sided,
    give :math:`4 C\, \mathcal R + 2 C^2 \sqrt{\ln(1/\delta)/(2m)}`; their Theorem 26.5 is the same up to constants. The
    paper leaves c open and prints the second term without :math:`C^2`, which cannot be: scaling the functions scales
    the loss by the square.

    Parameters
    ----------
    complexity : callable
        Expected empirical Rademacher complexity of the class on m rows, or an upper bound; must not increase with m.
    C, epsilon, delta, c : float
        Largest magnitude, error, probability of failure, and the constant.

    Returns
    -------
    m : float
        Infinite if more than 2**60 rows would be needed.

    Raises
    ------
    ValueError
        If the complexity is negative or no number, or seen to increase.
    """
    return least_rows(complexity, lambda value, m: c * (C * value + C**2 * sqrt(log(1 / delta) / m)), epsilon)


@bound("Lemma 18, realizable", None, "proved", "rows, from a Rademacher complexity, realizable case")
def realizable_samples_from_rademacher(
    complexity: Callable[[int], float], C: float, epsilon: float, delta: float, *, c: float = 1e5
) -> float:
    r"""Rows of Lemma 18 where the target belongs to the class, at the rate 1/epsilon in place of its square.

    .. math:: c \Big( \ln^3(m)\, \mathcal R(m)^2 + \frac{2 C^2 \ln(1/\delta)}{m} \Big) \le \epsilon

    *Proved*: Theorem 1 of Srebro, Sridharan and Tewari (2010), quoted and not proved here; they state that their
    constant is below c = 10**5. For a loss that is H-smooth, not negative and at most b, with probability 1 - delta
    every function h of the class has

    .. math:: L(h) \le \hat L(h) + c \Big( \sqrt{\hat L(h)} \big( \sqrt H \ln^{1.5}(m)\, \mathcal R + \sqrt{b
              \ln(1/\delta)/m}\, \big) + H \ln^3(m)\, \mathcal R^2 + \frac{b \ln(1/\delta)}{m} \Big).

    The loss :math:`\frac12 (\hat y - y)^2` has H = 1 and :math:`b = 2 C^2`, and a function that fits all rows has
    :math:`\hat L = 0`. Here R is the largest empirical complexity over all samples of m points, of the absolute
    correlation: the same for a class that holds -h beside every h. Below m = 20 the logarithm counts as 3.

    References
    ----------
    .. [1] N. Srebro, K. Sridharan, A. Tewari, "Smoothness, low noise and fast rates", 2010, Theorem 1.
    """

    def error(value: float, m: int) -> float:
        return c * (max(3.0, log(m)) ** 3 * value**2 + 2 * C**2 * log(1 / delta) / m)

    return least_rows(complexity, error, epsilon)


def least_rows(complexity: Callable[[int], float], error: Callable[[float, int], float], epsilon: float) -> float:
    """Rows m at which ``error(complexity(m), m)`` is at most epsilon, and with one row less it is not."""

    def exceeds(m: int) -> bool:
        value = complexity(m)
        if not value >= 0:
            raise ValueError(f"`complexity` must be zero or positive; it is {value} at m = {m}.")
        return error(value, m) > epsilon

    low, high = 0, 1
    while exceeds(high):
        low, high = high, 2 * high
        if complexity(high) > complexity(low) * (1 + 1e-12):
            raise ValueError(
                f"`complexity` increases from {complexity(low):.4g} at m = {low} to {complexity(high):.4g} at "
                f"m = {high}; pass a bound that does not increase."
            )
        if high > _MOST_ROWS:
            return inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


@bound("Theorem 17", "A", "up to constants", "rows, any distribution")
def general_samples(
    n: int, s: int, k: int, W: float, B: float, R: float, C: float, epsilon: float, delta: float, *, c: float = 1.0
) -> float:
    r"""Rows of Theorem 17, for any distribution on points of norm at most R.

    .. math:: m = c\, \frac{C^2 (WR + B)^2\, ksn \ln(k(R + B)/\epsilon) + C^4 \ln(1/\delta)}{\epsilon^2}

    *Up to constants*: c is unspecified. The paper drops Lemma 18's factor C, the largest magnitude of a function of the
    class (:func:`largest_value` with R for the root of n); it is an argument here, and C = 1 gives the printed form.
    The logarithm counts as at least 1.
    """
    logarithm = max(1.0, log(k * (R + B) / epsilon)) if R + B > 0 else 1.0
    return c * (C**2 * (W * R + B) ** 2 * k * s * n * logarithm + C**4 * log(1 / delta)) / epsilon / epsilon
