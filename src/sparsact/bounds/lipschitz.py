"""Sizes of hashed and of dense models of Lipschitz functions, and of the buckets of their hash tables (paper B).

The function is L-Lipschitz on :math:`[-1, 1]^d`, the points lie in a k-dimensional subspace or manifold, and the
uniform error is epsilon. d is ``ambient`` and k is ``intrinsic``. K directions with independent standard normal
coordinates cut space into buckets, at steps of ``bucket_width`` of the inner product and from random offsets
(Section 2.2 of [B]_).

References
----------
.. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section 4 and Appendices B-D.
.. [Ball] K. Ball, "Volumes of sections of cubes and related topics", 1989.
.. [D] K. Davidson and S. Szarek, "Local operator theory, random matrices and Banach spaces", 2001, Theorem II.13.
.. [Z] T. Zaslavsky, "Facing up to arrangements", 1975.

"""

from __future__ import annotations

from math import comb, e, inf, log, log2, pi, sqrt

from sparsact.bounds.arithmetic import log2_quotient, power_of_two, subsets_up_to
from sparsact.bounds.registry import bound, log_bound


@log_bound("Theorem 4.1, table", "B", "up to constants", "buckets of the table")
def table_size(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0, power: float = 1.0) -> float:
    r"""Buckets of the hash table of Theorem 4.1: :math:`(c L \sqrt d / \epsilon)^{\text{power} \cdot k}`, at least 1.

    *Up to constants*: c and the power (the O of the exponent) are unspecified. Mended: the statement prints
    :math:`L \sqrt d^{\,k} / \epsilon^k`, where the proof gives L inside the power; the introduction has a third form,
    :math:`(\sqrt{dk} / \epsilon)^k`.

    Sixteen columns, two dimensions and an error of 1/4: 4 / (1/4) = 16 cells a dimension.

    >>> table_size(ambient=16, intrinsic=2, L=1.0, epsilon=0.25)
    256.0
    """
    return power * intrinsic * max(0.0, log2_quotient([c, L, sqrt(ambient)], [epsilon]))


@bound("Theorem 4.1, samples", "B", "up to constants", "samples for the table")
def table_samples(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0) -> float:
    r"""Samples of the proof of Theorem 4.1: :math:`k\, V \ln V` for a cover by :math:`V = (2 c L \sqrt d/\epsilon)^k`.

    *Up to constants*: the constant c (the proof's Gamma) is "large enough". Every point has a sample nearby.
    """
    exponent = table_size.log2(ambient, intrinsic, L, epsilon, c=2 * c)
    return power_of_two(exponent + log2(max(1.0, exponent * log(2))) + log2(intrinsic))


@bound("Theorem 4.1, time", "B", "up to constants", "operations of a prediction")
def forward_operations(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0) -> float:
    r"""Operations of one prediction from the table of Theorem 4.1: :math:`c\, d k \ln(L \sqrt d / \epsilon)`.

    *Up to constants*: c is unspecified. The logarithm counts as at least 1.
    """
    return c * ambient * intrinsic * max(1.0, log(2) * log2_quotient([L, sqrt(ambient)], [epsilon]))


@log_bound("Theorem 4.2", "B", "proved", "parameters of a dense model, at least")
def dense_width(ambient: int, intrinsic: int, L: float, epsilon: float, *, bits: int = 1) -> float:
    r"""Fewest parameters with which a model errs below epsilon on every L-Lipschitz function (Theorem 4.2).

    .. math:: w = \frac1b \Big(\frac{\sqrt d\, L}{C \epsilon}\Big)^k, \qquad C = \min(\sqrt k, \sqrt{2 \pi e}) \le 4.14

    *Proved*, on a certain k-dimensional section of :math:`[-1, 1]^d`, for parameters of b ``bits`` and errors below
    epsilon (with epsilon itself the function 0 would do). If the bottom layer is random, w is the width. If k
    does not divide d, :math:`d / k` in :math:`\sqrt d = \sqrt k \sqrt{d / k}` stands for the geometric mean of the k
    whole numbers of sum d that are as equal as possible.

    Mended: the paper counts cubes of side :math:`2 \epsilon / L` within a section. If k divides d there are at most
    :math:`(\sqrt{d / k}\, L / \epsilon)^k` of them (Ball, 1989), so that its C would grow like :math:`\sqrt k`; balls
    lie denser. As printed, bumps with f(v) < 0 vanish; the sign stands before the maximum,
    :math:`\operatorname{sgn} f(v) \max(0, |f(v)| - L \|x - v\|)`. The proof is in the documentation, with
    :func:`analytic_width`.

    >>> dense_width(ambient=16, intrinsic=1, L=1.0, epsilon=0.25)
    16.0
    """
    size, longer = divmod(int(ambient), int(intrinsic))
    lengths = ((intrinsic - longer) * log2(size) + longer * log2(size + 1)) / 2
    balls = max(0.0, log2(intrinsic / (2 * pi * e)) / 2)
    return lengths + intrinsic * (log2_quotient([L], [epsilon]) + balls) - log2(bits)


@bound("Section 4, samples", None, "sharper", "samples of any learner, at least")
def lipschitz_samples(ambient: int, intrinsic: int, L: float, epsilon: float) -> float:
    r"""Samples with which no learner errs below epsilon on every L-Lipschitz function: :math:`(N - 1) \ln N`.

    *Sharper, proved*, with N = :func:`dense_width` for parameters of one bit: on the same section, under every
    distribution, each learner, sparse or dense, fails with probability 0.39 on some function. Section 4 states without
    a proof that the samples of sparse and dense models match; up to constants :func:`table_samples` are enough.

    >>> round(lipschitz_samples(ambient=16, intrinsic=1, L=1.0, epsilon=0.25), 1)
    41.6
    """
    log2_members = max(0.0, dense_width.log2(ambient, intrinsic, L, epsilon))
    return (power_of_two(log2_members) - 1) * log2_members * log(2)


@log_bound("Theorem C.1", "B", "up to constants", "buckets of the table, as stated")
def manifold_table_size(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Buckets of Theorem C.1 as stated, for 1-Lipschitz functions on a manifold: :math:`c\, (\sqrt{dk} / \epsilon)^k`.

    *Up to constants*: c is unspecified, and the proof ends at :func:`manifold_table_size_proof`.
    """
    return log2(c) + intrinsic * log2(sqrt(ambient * intrinsic) / epsilon)


@log_bound("Theorem C.1, proof", "B", "up to constants", "buckets of the table, as proved")
def manifold_table_size_proof(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Buckets of Theorem C.1 as its proof has them: :math:`(c\, d^2 \sqrt k / \epsilon)^k`.

    *Up to constants*: c is unspecified. Statement and proof disagree; measured numbers belong beside both.
    """
    return intrinsic * log2_quotient([c, ambient**2, sqrt(intrinsic)], [epsilon])


@bound("Theorem C.1, samples", "B", "up to constants", "samples for the table")
def manifold_samples(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Samples of Theorem C.1: :math:`c\, k\, (\sqrt{dk} / \epsilon)^k \ln(\sqrt{dk} / \epsilon)`.

    *Up to constants*: c is unspecified. The logarithm counts as at least 1.
    """
    exponent = manifold_table_size.log2(ambient, intrinsic, epsilon, c=c)
    return power_of_two(exponent + log2(intrinsic * max(1.0, log(sqrt(ambient * intrinsic) / epsilon))))


@bound("Lemma C.3", "B", "up to constants", "hash tables")
def manifold_tables(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Hash tables of Lemma C.3: :math:`c\, k \ln(d / \epsilon)`.

    *Up to constants*: c is unspecified. Mended: printed :math:`O(k \ln d)`, but the cover that the union bound runs
    over has :math:`(2 d \sqrt d / \epsilon)^k` members. The logarithm counts as at least 1.
    """
    return c * intrinsic * max(1.0, log(ambient / epsilon))


@log_bound("Theorem D.1, mended", None, "sharper", "parameters of a dense model, at least")
def analytic_width(intrinsic: int, L: float, epsilon: float, *, bits: int = 1) -> float:
    r"""Fewest parameters with which a model errs below epsilon on every analytic function on :math:`[-1, 1]^k`.

    .. math:: w = \frac1b \Big(\frac{L}{\epsilon} \max\Big(1, \sqrt{\frac{k}{2 \pi e}}\Big)\Big)^k

    *Sharper, proved*: :func:`dense_width` for d = k, with the functions of its proof smoothed. The functions are
    L-Lipschitz, of magnitude at most epsilon, and the errors at most some number below epsilon. Theorem D.1 prints
    :func:`analytic_width_paper`.

    At k = 20, L = 1 and epsilon = .01, beside a table of all Lipschitz functions with a common value, of
    :math:`2^{198}` bits:

    >>> round(analytic_width.log2(20, 1.0, 0.01)), round(analytic_width_paper.log2(20, 1.0, 0.01))
    (135, 257)
    """
    return dense_width.log2(intrinsic, intrinsic, L, epsilon, bits=bits)


@log_bound("Theorem D.1", "B", "up to constants", "width of a dense model, as printed")
def analytic_width_paper(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Theorem D.1 as printed: :math:`w = c\, 2^{k^2/2} \big(L C_1 / (\sqrt k\, \pi \epsilon)\big)^k`.

    *Up to constants*, and its proof fails: inequality (10) has a factor :math:`2^{k/2}` from an integral over
    :math:`[-1, 1]^k` that has been divided by the volume :math:`2^k` already. No count of functions can mend it, as
    L-Lipschitz functions with a common value have a cover of :math:`2^{O(L \sqrt k / \epsilon)^k}` members. Use
    :func:`analytic_width`.
    """
    return log2(c) + intrinsic**2 / 2 + intrinsic * log2_quotient([L, C1], [sqrt(intrinsic), pi, epsilon])


@bound("Theorem D.1, samples", "B", "up to constants", "samples of a dense model, as printed")
def analytic_samples_paper(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Samples of Theorem D.1 as printed: :math:`w \ln w` for the width w of :func:`analytic_width_paper`.

    *Up to constants*, and without a proof: of finitely many analytic functions one exact value may tell which it is.
    For Lipschitz functions :func:`lipschitz_samples` is proved.
    """
    log2_width = analytic_width_paper.log2(intrinsic, L, epsilon, C1=C1, c=c)
    return power_of_two(log2_width + log2(max(1.0, log2_width * log(2))))


@bound("Lemma B.1, diameter", "B", "proved", "diameter of a bucket, at most")
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


@bound("Lemma B.1, buckets", "B", "up to constants", "buckets, at most")
def bucket_count(ambient: int, intrinsic: int, bucket_width: float, *, power: float = 1.0) -> float:
    r"""Non-empty buckets of a Euclidean hash (Lemma B.1): :math:`(2 \sqrt d / \text{width})^{\text{power} \cdot k}`.

    *Up to constants*: the power (the O of the exponent) is unspecified; at least 1. :func:`bucket_count_of_cuts` is
    exact for arrangements.
    """
    return float(max(1.0, 2 * sqrt(ambient) / bucket_width) ** (power * intrinsic))


@bound("Lemma B.1, buckets", None, "sharper", "buckets, at most")
def bucket_count_of_cuts(intrinsic: int, n_directions: int, cuts: int) -> float:
    r"""Largest number of buckets if K directions are cut q = ``cuts`` times: :math:`\sum_{i \le k} \binom K i q^i`.

    *Sharper, proved*: buckets are the regions into which K families of parallel hyperplanes divide k-dimensional space,
    at most one for every choice of at most k hyperplanes that are not parallel (Zaslavsky, 1975). So the number
    grows like :math:`\text{width}^{-k}`: the O(k) in the exponent of Lemma B.1 is k.

    >>> bucket_count_of_cuts(1, 1, 3)
    4.0
    """
    if not cuts:
        return 1.0
    if subsets_up_to(n_directions, intrinsic) == inf:
        return inf
    return float(sum(comb(n_directions, i) * cuts**i for i in range(min(intrinsic, n_directions) + 1)))


@bound("Lemma C.2", "B", "proved", "probability that a bucket holds a ball, at least")
def ball_within_bucket(radius: float, bucket_width: float, intrinsic: int, n_directions: int) -> float:
    r"""Lower bound on the probability that the bucket of a point contains the whole ball around it (Lemma C.2).

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
