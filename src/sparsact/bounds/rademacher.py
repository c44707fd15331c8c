r"""Rademacher complexity of the sparse and of the dense class on m points of norm at most R: Section 5 of the paper.

.. math:: \mathcal R_{\mathcal H}(S) = \mathbb{E}_\zeta \max_{h \in \mathcal H} \frac1m \sum_{i=1}^m \zeta_i h(x_i)

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 5.
.. [F] D. Foster and A. Rakhlin, "l_inf vector contraction for Rademacher complexity", 2019, Theorem 1.
.. [M] R. Muthukumar and J. Sulam, "Sparsity-aware generalization theory for deep neural networks", 2023.
"""

from __future__ import annotations

from math import ceil, inf, log, log2, sqrt

import numpy as np

from sparsact.bounds.covers import log_cover, log_halfspace_sets
from sparsact.bounds.learning import least_rows, realizable_samples_from_rademacher, samples_from_rademacher
from sparsact.bounds.registry import bound


@bound("dense class", "A", "proved", "Rademacher complexity, dense class, at most")
def dense_complexity_bound(s: int, W: float, B: float, R: float, m: int, *, c: float = 2.0) -> float:
    r"""Upper bound on the Rademacher complexity of all networks of s units: :math:`c\,(WR + B)\, s / \sqrt m`.

    *Proved* with c = 2: the units decouple, so that the complexity is s times that of one unit; a sign costs a factor
    2, and ReLU contracts. The paper quotes the shape with c = 1.
    """
    return c * (W * R + B) * s / sqrt(m)


@bound("Theorem 19, (15)", "A", "up to constants", "Rademacher complexity, at most")
def sparse_complexity_bound(n: int, s: int, k: int, W: float, B: float, R: float, m: int, *, c: float = 1.0) -> float:
    r"""Theorem 19 (k = 1) and equation (15): :math:`c\,(WR + B) \sqrt{s n k \ln(k m (R + B)) / m}`.

    *Up to constants*: the paper writes c = 1, and its proof has constants. Mends to the proof of Theorem 19: the union
    bound is over the :math:`O(m^n)` sets that halfspaces cut from m points (Sauer-Shelah), so ln m is what it needs;
    :math:`I_j` has a strict inequality; and :math:`\sum_j |I_j| \le m`. A logarithm below 0 counts as 0.
    :func:`sparse_complexity_bound_explicit` is a version with every constant.
    """
    argument = k * m * (R + B)
    return c * (W * R + B) * sqrt(s * n * k * (log(argument) if argument > 1 else 0.0) / m)


@bound("(15) with constants", None, "sharper", "Rademacher complexity, at most")
def sparse_complexity_bound_explicit(n: int, s: int, k: int, W: float, B: float, R: float, m: int) -> float:
    r"""Equation (15) with every constant: :math:`(WR + B)\,(1 + \sqrt{2 \ln N}) \sqrt{sk/m}`.

    *Sharper, proved*: N is the number of sets that halfspaces can cut from m points,
    :math:`N \le 2 \sum_{i=0}^n \binom{m-1}{i}` (Cover, 1965). For one set I of points, the norm of
    :math:`\sum_{i \in I} \zeta_i x_i` has mean at most :math:`R \sqrt{|I|}` and, by bounded differences, exceeds it
    like a Gaussian of variance :math:`R^2 |I|`; hence the maximum over N sets, divided by :math:`R \sqrt{|I|}`, has
    mean at most :math:`1 + \sqrt{2 \ln N}`. So have the sums of signs alone. With :math:`\sum_j |I_j| \le km` and the
    inequality of Cauchy and Schwarz, :math:`\sum_j \sqrt{|I_j|} \le \sqrt{skm}`.
    """
    return (W * R + B) * (1 + sqrt(2 * log_halfspace_sets(n, m))) * sqrt(s * k / m)


@bound("Conjecture 20", "A", "conjectured", "Rademacher complexity, at most")
def sparse_complexity_conjecture(s: int, k: int, W: float, B: float, R: float, m: int, *, c: float = 1.0) -> float:
    r"""Conjecture 20: :math:`c\,(WR + B) \sqrt{sk/m}`, without the dimension.

    *Conjectured* with c = 1, with which it is false for sparsity on the sample: from six orthogonal points on
    (:func:`sparsact.rademacher.orthogonal_network`), by up to :math:`\sqrt 2`. With logarithms of m it is proved
    (:func:`rademacher_sparse_free_of_dimension`, :func:`rademacher_sparse_root_logarithm`); with a constant alone it is
    open, for networks that are sparse at every point.
    """
    return c * (W * R + B) * sqrt(s * k / m)


@bound("Conjecture 20 up to logarithms", None, "sharper", "Rademacher complexity, at most")
def rademacher_sparse_free_of_dimension(s: int, k: int, W: float, B: float, R: float, m: int) -> float:
    r"""Conjecture 20 up to logarithms of m, for every k: at most :math:`(WR + B) \sqrt{sk/m}\, \Lambda`.

    .. math:: \Lambda = \min_T &\Big(\sum_{t=1}^T 3^{1-t} \sqrt{2 \ln(2 N_t N_{t-1})} + 3^{-T} \sqrt{km/s}\Big) \\
              &\le 1 + 18.1 \sqrt{\ln 2m}\, \big(1 + \tfrac12 \log_3 \max(1, km/s)\big)

    *Sharper, proved* ("Rademacher complexity of sparsely activated networks" in the documentation), with
    :math:`N_0 = 1` and :math:`\ln N_t = \min_\tau (8 \tau^2\, 9^t - m \ln \operatorname{erf}(\tau / \sqrt 2))`: this
    many functions come within :math:`3^{-t} (WR + B)` of one unit from below (:mod:`sparsact.bounds.covers`). Only the
    sum of the numbers of active units over the m points counts, which is at most km. For k = 1 the form
    :math:`\sqrt s` up to logarithms follows from a contraction in the largest coordinate [F]_, which gives
    :math:`k \sqrt s` for larger k; [M]_ bound deep networks by the units that are active with a margin.

    At T = 0 it is k (WR + B), the largest magnitude of a network. :func:`dense_complexity_bound` holds for these
    networks, too; the chain is below both where s/k and m are large:

    >>> for s, m in ((9, 10**8), (4096, 10**6), (4096, 10**8)):
    ...     free = rademacher_sparse_free_of_dimension(s, 1, W=1.0, B=1.0, R=1.0, m=m)
    ...     print(s, m, round(free, 3), round(dense_complexity_bound(s, W=1.0, B=1.0, R=1.0, m=m), 3))
    9 100000000 0.155 0.004
    4096 1000000 2.0 16.384
    4096 100000000 1.438 1.638
    """
    return (W * R + B) * sqrt(s * k / m) * _chained(m, k * m / s, 3)


@bound("Theorem 19 without its logarithm", None, "sharper", "Rademacher complexity, at most")
def rademacher_sparse_without_logarithm(n: int, s: int, k: int, W: float, B: float, R: float, m: int) -> float:
    r"""Theorem 19 and equation (15) without a logarithm: at most :math:`4\,(WR + B) \sqrt{sk(n + 1)/m}`.

    *Sharper, proved* ("Rademacher complexity of sparsely activated networks" in the documentation): the chain of
    :func:`rademacher_sparse_free_of_dimension` with steps by 4, and with the number of cells in n + 1 dimensions,
    :math:`N_t \le (1 + 4^{t+1})^{n+1}`, where that is less. From three coordinates
    and about a thousand rows for each on it is below :func:`sparse_complexity_bound_explicit`.
    """
    return (W * R + B) * sqrt(s * k / m) * _chained(m, k * m / s, 4, n)


@bound("Conjecture 20 up to one root", None, "sharper", "Rademacher complexity, at most")
def rademacher_sparse_root_logarithm(s: int, k: int, W: float, B: float, R: float, m: int) -> float:
    r"""Conjecture 20 up to the root of a logarithm, for every k: at most :math:`400\,(WR + B) \sqrt{sk \ln(2m) / m}`.

    *Sharper, proved* ("Rademacher complexity of sparsely activated networks" in the documentation), for the networks
    of :func:`rademacher_sparse_free_of_dimension`, by shells of the pre-activation that stay within the active set, and
    by covers whose sizes add up, since the ball of weights is 2-convex. It is about the rate,
    :math:`\ln^{1/2} m` in place of :math:`\ln^{3/2} m`; its constant is not optimised, and the chain is smaller for all
    m up to 10**34. Networks that are sparse in the mean need :math:`\sqrt{\ln(s/k)}`
    (:func:`sparsact.rademacher.gathered_complexity`).
    """
    return 400 * (W * R + B) * sqrt(s * k * log(2 * m) / m)


@bound("Theorem 17 with constants", None, "sharper", "rows, any distribution")
def general_samples_explicit(
    n: int,
    s: int,
    k: int,
    W: float,
    B: float,
    R: float,
    epsilon: float,
    delta: float,
    *,
    C: float | None = None,
    realizable: bool = False,
) -> float:
    r"""Rows of Theorem 17 with every constant, from complexities that are proved.

    *Sharper, proved*: for any distribution on points of norm at most R and targets in [-C, C], with probability
    1 - delta over m rows, the expected loss :math:`\frac12 (\hat y - y)^2` of every network of the class is at most
    epsilon above its mean on the rows; C is the largest magnitude in the class, k (WR + B) unless given. This is
    Lemma 18 with c = 4 (:func:`samples_from_rademacher`). The complexity is the least of
    :func:`sparse_complexity_bound_explicit`, :func:`rademacher_sparse_without_logarithm`,
    :func:`rademacher_sparse_free_of_dimension` and :func:`dense_complexity_bound`, which is the least of them until s/k
    is in the thousands. Infinite beyond 2**60 rows.

    ``realizable`` is for the model of the paper: the target belongs to the class, and its networks that fit all rows
    exactly err by at most epsilon. The rows then grow as 1/epsilon, and are the least of three numbers: that of
    Lemma 18, :func:`realizable_samples_by_counting`, and :func:`realizable_samples_from_rademacher`, free of n, with
    about :math:`(WR + B)^2 (sk + k^2 \ln(1/\delta)) / \epsilon` rows up to logarithms, but a constant so large that it
    is the least only for enormous n and tiny epsilon.

    The dense class has the same rate, with :math:`s^2` for sk: that it "requires :math:`\Omega(s^2/\epsilon^2)`" rows
    (Theorem 5 of [A]_) is false as epsilon goes to 0.
    """

    def complexity(m: int) -> float:
        return min(
            sparse_complexity_bound_explicit(n, s, k, W, B, R, m),
            rademacher_sparse_without_logarithm(n, s, k, W, B, R, m),
            rademacher_sparse_free_of_dimension(s, k, W, B, R, m),
            dense_complexity_bound(s, W, B, R, m),
        )

    largest = k * (W * R + B) if C is None else C
    if largest == inf:
        return inf
    rows = samples_from_rademacher(complexity, largest, epsilon, delta)
    if not realizable:
        return rows
    fast = realizable_samples_from_rademacher(complexity, largest, epsilon, delta)
    return min(rows, fast, realizable_samples_by_counting(n, s, largest, epsilon, delta))


@bound("realizable case, by counting", None, "sharper", "rows, any distribution, realizable case")
def realizable_samples_by_counting(n: int, s: int, C: float, epsilon: float, delta: float) -> float:
    r"""Rows with which a network of s units that fits all of them errs by at most epsilon, from a count of sets.

    .. math:: \frac{2 C^2}{m} \Big( 1 + \log_2 \frac{2 N}{\delta} \Big) \le \epsilon, \qquad
              N = (s + 1) \Big( 2 \sum_{i \le n} \binom{2m - 1}{i} \Big)^s \sum_{i \le s(n + 1)} \binom{2m}{i}

    *Sharper, proved*, for any distribution and without sparsity: about :math:`C^2 s n / \epsilon` rows up to
    logarithms, where Theorem 17 has :math:`1/\epsilon^2`. The target h is a network of the class, of magnitude at most
    C, and so is the network g that equals it on all rows; the error is :math:`\frac12 \mathbb{E}(g - h)^2`.

    For fixed points the sets where g and h differ number at most N on 2m of them: s + 1 choices of the units' signs,
    the sets where each unit is active, and then the zeros of 2m affine functions of s(n + 1) parameters, each set of
    zeros fixed by at most that many of its members. Let q be the probability of that set. The median of a binomial
    variable is at least :math:`\lfloor mq \rfloor`, so with probability one half m further rows have more than
    mq - 1 points in it; the m rows have none. Swapping rows in pairs at random does that to one of the N sets with
    probability at most :math:`2^{-(mq - 1)}`. Hence :math:`mq \le 1 + \log_2(2N/\delta)`, and the error is at most
    :math:`2 C^2 q`.

    >>> realizable_samples_by_counting(10, 8, C=1.0, epsilon=0.1, delta=0.05)
    43021
    """

    def log_sets(m: int) -> float:
        zeros = log_halfspace_sets(s * (n + 1), 2 * m + 1) - log(2)
        return (log(s + 1) + s * log_halfspace_sets(n, 2 * m) + zeros) / m

    def error(sets: float, m: int) -> float:
        return 2 * C**2 * (sets / log(2) + (1 + log2(2 / delta)) / m)

    return least_rows(log_sets, error, epsilon)


def _chained(m: int, active: float, base: int, n: int | None = None) -> float:
    r"""Complexity over :math:`\sqrt{sk/m}` for the scale WR + B = 1, at most; a unit is ``active`` at km/s points.

    At step t units are rounded down to one of :math:`N_t` functions within :math:`\text{base}^{-t}`. What is left adds
    up to that times km over all units, not to its product with :math:`\sqrt m` for each.
    """
    steps = np.arange(1.0, ceil(log(m) / (2 * log(base))) + 4)
    entropy = np.concatenate([[0.0], log_cover(m, float(base) ** -steps, n)])
    sums = np.cumsum(base ** (1 - steps) * np.sqrt(2 * (log(2) + entropy[1:] + entropy[:-1])))
    return float((np.append(0.0, sums) + float(base) ** -np.append(0.0, steps) * sqrt(active)).min())
