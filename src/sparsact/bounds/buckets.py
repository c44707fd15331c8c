r"""Sizes of the buckets of a Euclidean hash: how wide, how many, and how often a point lies well within its own.

K directions with independent standard normal coordinates cut space into buckets, at steps of ``bucket_width`` of the
inner product and from random offsets (Section 2.2 of [B]_).

References
----------
.. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Appendices B.1 and C.
.. [D] K. Davidson and S. Szarek, "Local operator theory, random matrices and Banach spaces", 2001, Theorem II.13.
.. [Z] T. Zaslavsky, "Facing up to arrangements", 1975.
"""

from __future__ import annotations

from math import comb, inf, log, sqrt

from sparsact.bounds.registry import bound


@bound("Lemma B.1, diameter", "B", "proved", "diameter of a bucket, at most", width="bucket_width")
def bucket_diameter(bucket_width: float, intrinsic: int, n_directions: int, confidence: float = 0.9) -> float:
    r"""Largest diameter of a bucket of a Euclidean hash within a k-dimensional subspace (Lemma B.1, first part).

    .. math:: \frac{\text{width}\, \sqrt K}{\sqrt K - \sqrt k - t}, \qquad t = \sqrt{2 \ln(1/(1 - \text{confidence}))}

    *Proved*, with the constants that the paper leaves open; infinite where the denominator is not positive. Mended:
    two points of a bucket differ by at most the width along each of the K directions, hence by
    :math:`\text{width} \sqrt K` (printed :math:`\sqrt k`) in the Euclidean norm of the K projections, and the least
    singular value of K Gaussian directions within the subspace is at least :math:`\sqrt K - \sqrt k - t` with that
    confidence (Davidson and Szarek, 2001). The confidence is over the draw of the directions, for all buckets at once.

    >>> round(bucket_diameter(1.0, intrinsic=2, n_directions=32), 2)
    2.7
    """
    least = sqrt(n_directions) - sqrt(intrinsic) - sqrt(2 * log(1 / (1 - confidence)))
    return bucket_width * sqrt(n_directions) / least if least > 0 else inf


@bound("Lemma B.1, buckets", "B", "up to constants", "buckets, at most", width="bucket_width")
def bucket_count(ambient: int, intrinsic: int, bucket_width: float, *, power: float = 1.0) -> float:
    r"""Non-empty buckets of a Euclidean hash (Lemma B.1): :math:`(2 \sqrt d / \text{width})^{\text{power} \cdot k}`.

    *Up to constants*: the power (the O of the exponent) is unspecified; at least 1. :func:`bucket_count_of_cuts` is
    exact for arrangements.
    """
    return float(max(1.0, 2 * sqrt(ambient) / bucket_width) ** (power * intrinsic))


@bound("Lemma B.1, buckets", None, "sharper", "buckets, at most")
def bucket_count_of_cuts(intrinsic: int, n_directions: int, cuts: int) -> float:
    r"""Most buckets when each of K directions is cut q = ``cuts`` times: :math:`\sum_{i \le k} \binom K i q^i`.

    *Sharper, proved*: buckets are the regions into which K families of parallel hyperplanes divide k-dimensional space,
    at most one for every choice of at most k hyperplanes that are not parallel (Zaslavsky, 1975). So the number
    grows like :math:`\text{width}^{-k}`: the O(k) in the exponent of Lemma B.1 is k.

    >>> bucket_count_of_cuts(1, 1, 3)
    4.0
    """
    return float(sum(comb(n_directions, i) * cuts**i for i in range(min(intrinsic, n_directions) + 1)))


@bound("Lemma C.2", "B", "proved", "probability that a bucket holds a ball, at least", width="bucket_width")
def ball_within_bucket(radius: float, bucket_width: float, intrinsic: int, n_directions: int) -> float:
    r"""Probability that the bucket of a point holds the whole ball about it (Lemma C.2), at least.

    .. math:: \max\Big(0,\, 1 - \frac{2 r \sqrt k}{\text{width}}\Big)^K

    *Proved*, with constants: the ball has ``radius`` r and k dimensions. Its image under one direction a, projected
    into them, is an interval of length :math:`2 r \|a\|`, which a random offset leaves uncut with probability
    :math:`\max(0, 1 - 2 r \|a\| / \text{width})`. That is convex in :math:`\|a\|`, whose mean is at most
    :math:`\sqrt k`; the K directions are independent.

    Mended: the proof takes neighbouring hyperplanes to be ``bucket_width`` apart, but normal directions have length
    about :math:`\sqrt d`: they are :math:`\text{width} / \sqrt d` apart. With O(d) directions a d-dimensional ball of
    radius :math:`O(\text{width} / d)` is cut almost surely as d grows; :math:`O(\text{width} / d^{3/2})` is small
    enough. For k-dimensional balls, which are what Lemma C.3 needs, :math:`O(\text{width} / (d \sqrt k))` is.

    >>> ball_within_bucket(0.01, 1.0, intrinsic=4, n_directions=2)
    0.9216
    """
    return float(max(0.0, 1 - 2 * radius * sqrt(intrinsic) / bucket_width) ** n_directions)
