r"""Sizes of hashed and of dense models of Lipschitz functions: the theorems of *A Theoretical View* (paper B).

The function is L-Lipschitz on :math:`[-1, 1]^d`, the points lie in a k-dimensional subspace or manifold, and the
uniform error is epsilon. d is ``ambient`` and k is ``intrinsic``.

References
----------
.. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section 4 and Appendices B-D.
"""

from __future__ import annotations

from math import log, log2, pi, sqrt

from sparsact.bounds.arithmetic import log2_quotient, or_infinity, power_of_two
from sparsact.validation.parameters import check_named


@or_infinity
def log2_table_size(
    ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0, power: float = 1.0
) -> float:
    """Base-2 logarithm of :func:`table_size`, which may exceed every float."""
    check_named(ambient=ambient, intrinsic=intrinsic, L=L, epsilon=epsilon, c=c, power=power)
    return power * intrinsic * max(0.0, log2_quotient([c, L, sqrt(ambient)], [epsilon]))


@or_infinity
def table_size(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0, power: float = 1.0) -> float:
    r"""Buckets of the hash table of Theorem 4.1: :math:`(c L \sqrt d / \epsilon)^{\text{power} \cdot k}`, at least 1.

    *Shape only*: c and the power (the O of the exponent) are unspecified. Mended: the statement prints
    :math:`L \sqrt d^{\,k} / \epsilon^k`, where the proof gives L inside the power; the introduction has a third form,
    :math:`(\sqrt{dk} / \epsilon)^k`.

    Sixteen columns, two dimensions and an error of 1/4: 4 / (1/4) = 16 cells a dimension.

    >>> table_size(ambient=16, intrinsic=2, L=1.0, epsilon=0.25)
    256.0
    """
    return power_of_two(log2_table_size(ambient, intrinsic, L, epsilon, c=c, power=power))


@or_infinity
def table_samples(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0) -> float:
    r"""Samples of the proof of Theorem 4.1: :math:`k\, V \ln V` for a cover by :math:`V = (2 c L \sqrt d/\epsilon)^k`.

    *Shape only*: the constant c (the proof's Gamma) is "large enough". They let every bucket, and every point, have
    a sample nearby.
    """
    exponent = log2_table_size(ambient, intrinsic, L, epsilon, c=2 * c)
    return power_of_two(exponent + log2(max(1.0, exponent * log(2))) + log2(intrinsic))


@or_infinity
def forward_operations(ambient: int, intrinsic: int, L: float, epsilon: float, *, c: float = 1.0) -> float:
    r"""Operations of one prediction from the table of Theorem 4.1: :math:`c\, d k \ln(L \sqrt d / \epsilon)`.

    *Shape only*: c is unspecified. The logarithm counts as at least 1.
    """
    check_named(ambient=ambient, intrinsic=intrinsic, L=L, epsilon=epsilon, c=c)
    return c * ambient * intrinsic * max(1.0, log(2) * log2_quotient([L, sqrt(ambient)], [epsilon]))


@or_infinity
def log2_dense_width(
    ambient: int, intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, bits: int = 1
) -> float:
    """Base-2 logarithm of :func:`dense_width`, which may exceed every float."""
    check_named(ambient=ambient, intrinsic=intrinsic, L=L, epsilon=epsilon, C1=C1, bits=bits)
    return intrinsic * log2_quotient([L, sqrt(ambient)], [C1, epsilon]) - log2(bits)


@or_infinity
def dense_width(ambient: int, intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, bits: int = 1) -> float:
    r"""Least width of a dense model with a random bottom layer (Theorem 4.2): :math:`(\sqrt d L / (C \epsilon))^k / b`.

    *Shape only*: the constant C (``C1`` here) is "sufficiently large". b is the number of ``bits`` of a parameter,
    which the statement leaves out. The family of the proof is mended: bumps
    :math:`\operatorname{sgn} f(v) \max(0, |f(v)| - L \|x - v\|)`, as printed those with f(v) < 0 vanish.
    """
    return power_of_two(log2_dense_width(ambient, intrinsic, L, epsilon, C1=C1, bits=bits))


@or_infinity
def log2_manifold_table_size(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    """Base-2 logarithm of :func:`manifold_table_size`, which may exceed every float."""
    check_named(ambient=ambient, intrinsic=intrinsic, epsilon=epsilon, c=c)
    return log2(c) + intrinsic * log2(sqrt(ambient * intrinsic) / epsilon)


@or_infinity
def manifold_table_size(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Buckets of Theorem C.1 as stated, for 1-Lipschitz functions on a manifold: :math:`c\, (\sqrt{dk} / \epsilon)^k`.

    *Shape only*: c is unspecified, and the proof ends at :func:`manifold_table_size_proof`.
    """
    return power_of_two(log2_manifold_table_size(ambient, intrinsic, epsilon, c=c))


@or_infinity
def log2_manifold_table_size_proof(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    """Base-2 logarithm of :func:`manifold_table_size_proof`, which may exceed every float."""
    check_named(ambient=ambient, intrinsic=intrinsic, epsilon=epsilon, c=c)
    return intrinsic * log2_quotient([c, ambient**2, sqrt(intrinsic)], [epsilon])


@or_infinity
def manifold_table_size_proof(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Buckets of Theorem C.1 as its proof has them: :math:`(c\, d^2 \sqrt k / \epsilon)^k`.

    *Shape only*: c is unspecified. Statement and proof disagree; measured numbers belong beside both.
    """
    return power_of_two(log2_manifold_table_size_proof(ambient, intrinsic, epsilon, c=c))


@or_infinity
def manifold_samples(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Samples of Theorem C.1: :math:`c\, k\, (\sqrt{dk} / \epsilon)^k \ln(\sqrt{dk} / \epsilon)`.

    *Shape only*: c is unspecified. The logarithm counts as at least 1.
    """
    exponent = log2_manifold_table_size(ambient, intrinsic, epsilon, c=c)
    return power_of_two(exponent + log2(intrinsic * max(1.0, log(sqrt(ambient * intrinsic) / epsilon))))


@or_infinity
def manifold_tables(ambient: int, intrinsic: int, epsilon: float, *, c: float = 1.0) -> float:
    r"""Hash tables of Lemma C.3: :math:`c\, k \ln(d / \epsilon)`.

    *Shape only*: c is unspecified. Mended: printed :math:`O(k \ln d)`, but the cover that the union bound runs over
    has :math:`(2 d \sqrt d / \epsilon)^k` members. The logarithm counts as at least 1.
    """
    check_named(ambient=ambient, intrinsic=intrinsic, epsilon=epsilon, c=c)
    return c * intrinsic * max(1.0, log(ambient / epsilon))


@or_infinity
def log2_analytic_width(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    """Base-2 logarithm of :func:`analytic_width`, which may exceed every float."""
    check_named(intrinsic=intrinsic, L=L, epsilon=epsilon, C1=C1, c=c)
    return log2(c) + intrinsic * log2_quotient([L, C1], [sqrt(intrinsic), pi, epsilon])


@or_infinity
def analytic_width(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Least width of a dense model with a random bottom layer, for analytic functions on :math:`[-1, 1]^k`.

    .. math:: w = c\, \Big(\frac{L C_1}{\sqrt k\, \pi \epsilon}\Big)^k

    *Ours, proved* for errors below epsilon, with :math:`C_1 = 1` and c = 1/b for parameters of b bits: Theorem D.1
    without its factor :math:`2^{k^2/2}` (:func:`analytic_width_paper`), by smoothing the family of Theorem 4.2.

    At k = 20, L = 1 and epsilon = .01 the factor alone is :math:`2^{200}`:

    >>> round(log2_analytic_width(20, 1.0, 0.01)), round(log2_analytic_width_paper(20, 1.0, 0.01))
    (57, 257)
    """
    return power_of_two(log2_analytic_width(intrinsic, L, epsilon, C1=C1, c=c))


@or_infinity
def analytic_samples(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Samples of Theorem D.1: :math:`w \ln w` for the width w of :func:`analytic_width`.

    *Shape only*: that samples are more than parameters by a logarithm is stated without a proof. The logarithm counts
    as at least 1.
    """
    return _samples(log2_analytic_width(intrinsic, L, epsilon, C1=C1, c=c))


@or_infinity
def log2_analytic_width_paper(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    """Base-2 logarithm of :func:`analytic_width_paper`, which may exceed every float."""
    return log2_analytic_width(intrinsic, L, epsilon, C1=C1, c=c) + intrinsic**2 / 2


@or_infinity
def analytic_width_paper(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Theorem D.1 as printed: :math:`w = c\, 2^{k^2/2} \big(L C_1 / (\sqrt k\, \pi \epsilon)\big)^k`.

    *Shape only*, and its proof fails: inequality (10) has a factor :math:`2^{k/2}` from an integral over
    :math:`[-1, 1]^k` that has been divided by the volume :math:`2^k` already. No count of functions can mend it, as
    L-Lipschitz functions with a common value have a cover of :math:`2^{O(L \sqrt k / \epsilon)^k}` members. Use
    :func:`analytic_width`.
    """
    return power_of_two(log2_analytic_width_paper(intrinsic, L, epsilon, C1=C1, c=c))


@or_infinity
def analytic_samples_paper(intrinsic: int, L: float, epsilon: float, *, C1: float = 1.0, c: float = 1.0) -> float:
    r"""Samples of Theorem D.1 as printed: :math:`w \ln w` for the width w of :func:`analytic_width_paper`.

    *Shape only*, and unproved as that is: use :func:`analytic_samples`.
    """
    return _samples(log2_analytic_width_paper(intrinsic, L, epsilon, C1=C1, c=c))


def _samples(log2_width: float) -> float:
    return power_of_two(log2_width + log2(max(1.0, log2_width * log(2))))
