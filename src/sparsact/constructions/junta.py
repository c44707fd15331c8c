"""Networks of juntas, of parities (on the quadratic lift), of the indexing function, and of the heaviest tail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from operator import index
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sparsact.constructions.rounding import bump_network
from sparsact.hypercube import masks_of, points
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_subset, checked_table
from sparsact.validation.parameters import checked_positive, checked_size


def junta(table: ArrayLike, variables: Sequence[int], n: int) -> SparselyActivatedNetwork:
    r"""The function of the coordinates ``variables`` with the values ``table``, on n inputs.

    .. math:: f(x) = \sum_{\alpha \in \{-1,1\}^p} \tfrac12 f(\alpha)\, \sigma(\langle \alpha, x_V \rangle - (p - 2))

    Parameters
    ----------
    table : array-like of shape (2**p,)
        Real values, in table order (:mod:`sparsact.hypercube`) over ``variables`` as they stand: ``variables[i]`` is
        bit i of a place in the table.
    variables : sequence of p int
        Distinct coordinates V of the n, in any order.
    n : int
        Number of inputs.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of ``2**p`` units with sparse weights; :math:`W = \frac12 \sqrt{p} \max |f|`,
        :math:`B = \frac12 |p - 2| \max |f|`. Exactly one unit is active at every point of the cube: that of the
        assignment met, at pre-activation 2. One flip away a unit is at exactly 0, a tie, and so off; the others are at
        -2 or less. Units of the value 0 stay, so that this holds for every table.

    Raises
    ------
    ValueError
        If the table's length is not ``2 ** len(variables)``, a value is not finite, or a variable is strange.

    Notes
    -----
    ``p * 2**p`` weights. [A]_ takes :math:`\sigma(\langle \alpha, x \rangle - (p - 1))`, and prints the threshold with
    the other sign; using ties halves W and B.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Theorem 13.

    Examples
    --------
    The parity of coordinates 1 and 4 of five:

    >>> net = junta([1, -1, -1, 1], (1, 4), 5)
    >>> net([[1, -1, 1, 1, 1], [1, -1, 1, 1, -1]])
    array([-1.,  1.])
    """
    values, V, n = checked_table(table), tuple(index(i) for i in variables), checked_size(n, "the number `n` of inputs")
    masks_of([V], n)  # refuses strange coordinates
    if len(values) != 2 ** len(V):
        raise ValueError(f"a table over {len(V)} variables has {2 ** len(V)} values; got {len(values)}.")
    assignments = points(len(V)).astype(np.float64)
    ends = np.arange(len(values) + 1) * len(V)
    W = sp.csr_array((assignments.ravel(), np.tile(np.array(V, dtype=np.intp), len(values)), ends), (len(values), n))
    return SparselyActivatedNetwork(values / 2, W, np.full(len(values), len(V) - 2.0))


LARGEST_EXTREMAL: Final = 2**20
"""Units of :func:`extremal`: at most half a gigabyte of weights."""


def extremal(degree: int, k: int, W: float) -> SparselyActivatedNetwork:
    r"""The network with the most Fourier weight above a degree: :math:`4 k^2 W^2 / (d + 1)`, which no other exceeds.

    k copies of :func:`junta` for a parity, so that :func:`~sparsact.bounds.tail_bound`,
    :func:`~sparsact.bounds.sufficient_degree` and :func:`~sparsact.bounds.average_sensitivity_bound` are attained:

    .. math:: h(x) = k \sum_{\alpha \in \{-1,1\}^p} \frac{W \chi_{[p]}(\alpha)}{\sqrt p}\,
        \sigma(\langle \alpha, x \rangle - (p - 2)) = \frac{2 k W}{\sqrt p}\, \chi_{[p]}(x), \qquad p = d + 1

    Parameters
    ----------
    degree : int
        d, from 0.
    k : int
        Units active, at every point.
    W : float
        Scale of Definition 2, above 0.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of :math:`s = k 2^p` units with sparse weights on p inputs; :math:`B = W |p - 2| / \sqrt p`. Exactly k
        units are active at every point of the cube.

    Raises
    ------
    ValueError
        If a parameter is out of range, or there are more than a million units.

    Notes
    -----
    All of the weight :math:`4 k^2 W^2 / p` lies at degree p = d + 1. Source: Theorem 2 of "Exact degrees and fast rates
    for sparsely activated networks" in the documentation.

    Examples
    --------
    The weight above degree 3 is 4 / 4:

    >>> net = extremal(degree=3, k=1, W=1.0)
    >>> net([[1, 1, 1, 1], [1, 1, 1, -1]])
    array([ 1., -1.])
    """
    p, k = checked_size(degree, "the degree `degree`", minimum=0) + 1, checked_size(k, "the number `k` of active units")
    height = 2 * checked_positive(W, "`W`") / sqrt(p)
    if p >= LARGEST_EXTREMAL.bit_length() or k << p > LARGEST_EXTREMAL:
        raise ValueError(
            f"degree {degree} with {k} active needs k * 2**(degree + 1) units, more than {LARGEST_EXTREMAL:,}; "
            "lower `degree` or `k`."
        )
    one = junta(height * points(p).prod(axis=1), range(p), p)
    return SparselyActivatedNetwork(np.tile(one.u, k), sp.vstack([one.W] * k, format="csr"), np.tile(one.b, k))


def parity(subset: Iterable[int], m: int, *, signs: bool = False) -> SparselyActivatedNetwork:
    r"""Parity of the coordinates ``subset`` of y, as a network on the quadratic lift x(y).

    .. math:: \mathbf{1}\{\chi_S(y) = 1\}
        = \sum_{a \equiv |S| \,(4)} \sigma\Bigl(1 - \tfrac14 \bigl(\sum_{i \in S} y_i - a\bigr)^2\Bigr),
        \qquad -|S| \le a \le |S|.

    In the lifted coordinates ``x[i, j] = y_i y_j``, ``x[i, i] = y_i`` (:meth:`sparsact.lift.Lift.quadratic`) unit a has
    weights -1/4 at (i, j) and a/2 at (i, i) for i != j in S, 0 elsewhere, and threshold
    :math:`\frac14 (|S| + a^2) - 1`.

    Parameters
    ----------
    subset : iterable of int
        The coordinates S of y whose parity is taken; () gives the constant.
    m : int
        Number of coordinates of y; the network has ``m * m`` inputs.
    signs : bool
        False: 1 where S holds an even number of -1's and 0 elsewhere, floor(\|S\| / 2) + 1 units. True: the character
        :math:`\chi_S(y)` itself, +1 and -1, with \|S\| + 1 units: every :math:`a \equiv |S| \,(2)`, with its sign.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of scale :math:`W = \frac14 \sqrt{|S| (|S| - 1) + 4 a^2 |S|}`, at most about :math:`0.52\, m^{1.5}`, and
        :math:`B = \bigl| \frac14 (|S| + a^2) - 1 \bigr|`, at a = \|S\|.

    Raises
    ------
    ValueError
        If ``subset`` names a coordinate twice or outside ``range(m)``.

    Notes
    -----
    The network computes parity, and is one-sparse, *on lifted points only*: there one unit is active where the value is
    not 0, and none where it is. On other points of the cube of m * m signs several units can be active at once (up to 3
    for m = 3). The units next to the one that is met are at exactly 0, a tie, and so off: their sums differ by 2. [A]_
    takes :math:`2 \sigma(\frac12 - \cdot)` without the quarter, with a W and B some 8 times larger.

    Three mends of [A]_. The sum over S has the parity of \|S\| whatever y is, so the test is modulo 4, not modulo 2.
    The weights are 0 outside S (printed for all of [m]). Its outer weight 2 belongs to W and B by Definition 2.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.

    Examples
    --------
    >>> from sparsact.lift import Lift
    >>> parity((0, 2), 3)(Lift.quadratic(3)([[1, -1, 1], [1, 1, -1], [-1, 1, -1]]))
    array([1., 0., 1.])
    """
    members, m = checked_subset(subset), checked_size(m, "the number `m` of coordinates")
    masks_of([members], m)  # refuses strange coordinates
    v = np.zeros(m)
    v[list(members)] = 1
    negative = np.arange(0, len(members) + 1, 1 if signs else 2, dtype=np.float64)  # how many -1's a unit waits for
    return bump_network(1 - 2 * (negative % 2), v, len(members) - 2 * negative, step=2.0)


LARGEST_ADDRESS: Final = 20
"""A million units with a million inputs, in some gigabytes while they are made; the next few would end the process."""


def indexing(b: int) -> SparselyActivatedNetwork:
    r"""The function Index_b: b address signs x choose one of :math:`2^b` data signs y, whose value is (1 + y_x) / 2.

    .. math:: \mathrm{Index}_b(x, y) = \sum_{\alpha \in \{-1,1\}^b}
        \sigma\bigl(\langle \alpha, x \rangle + \tfrac12 y_\alpha - (b - \tfrac12)\bigr)

    Parameters
    ----------
    b : int
        Number of address coordinates, 0 to 20.

    Returns
    -------
    network : SparselyActivatedNetwork
        On ``n = b + 2**b`` inputs, of ``s = 2**b`` units with ``b + 1`` weights each;
        :math:`W = \sqrt{b + 1/4}`, :math:`B = |b - 1/2|`.

    Raises
    ------
    ValueError
        If ``b`` is out of range.

    Notes
    -----
    The address is the number of the point x in table order (:mod:`sparsact.hypercube`): coordinate i < b is bit i, set
    where its sign is -1. So x = (1, ..., 1) chooses coordinate b, and address A chooses coordinate b + A.

    One-sparse on the whole cube. Where the chosen sign is +1 its unit is active at pre-activation 1; where it is -1 the
    pre-activation is exactly 0, a tie: no unit is active, and the value 0 is right. ([A]_ says that the addressed
    unit is active at every input.) Every other unit is at -1 or less.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Introduction.

    Examples
    --------
    Address signs (-1, 1) spell 1, which chooses the second of four data signs:

    >>> net = indexing(2)
    >>> net([[-1, 1, -1, 1, -1, -1], [-1, 1, 1, -1, 1, 1]])
    array([1., 0.])
    """
    b = checked_size(b, "the number `b` of address coordinates of 2**b units", 0, LARGEST_ADDRESS)
    addresses = points(b).astype(np.float64)
    s = len(addresses)
    W = sp.hstack([sp.csr_array(addresses), sp.eye_array(s) / 2], format="csr")
    return SparselyActivatedNetwork(np.ones(s), W, np.full(s, b - 0.5))
