"""Parity as a one-sparse network on the quadratic lift."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparsact.constructions.rounding import bump_network
from sparsact.hypercube import masks_of
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_subset
from sparsact.validation.parameters import checked_size


def parity(subset: Iterable[int], m: int, *, signs: bool = False) -> SparselyActivatedNetwork:
    r"""Parity of the coordinates ``subset`` of y, as a network on the quadratic lift x(y).

    .. math:: \mathbf{1}\{\chi_S(y) = 1\}
        = \sum_{a \equiv |S| \,(4)} 2\, \sigma\Bigl(\tfrac12 - \bigl(\sum_{i \in S} y_i - a\bigr)^2\Bigr),
        \qquad -|S| \le a \le |S|.

    In the lifted coordinates ``x[i, j] = y_i y_j``, ``x[i, i] = y_i`` (:meth:`sparsact.lift.Lift.quadratic`) unit a has
    weights -1 at (i, j) and 2a at (i, i) for i != j in S, 0 elsewhere, and threshold :math:`|S| + a^2 - \frac12`.

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
        Of scale :math:`W = 2 \sqrt{|S| (|S| - 1) + 4 a^2 |S|}` and :math:`B = 2 \bigl| |S| + a^2 - \frac12 \bigr|`
        at a = \|S\|. The norm of a single :math:`w` (half of W) is at most about :math:`2.06\, m^{1.5}`.

    Raises
    ------
    ValueError
        If ``subset`` names a coordinate twice or outside ``range(m)``.

    Notes
    -----
    The network computes parity, and is one-sparse, *on lifted points only*: there one unit is active where the value is
    not 0, and none where it is. On other points of the cube of m * m signs several units can be active at once (up to 3
    for m = 3). No pre-activation of a lifted point is 0.

    Three mends of [A]_. The sum over S has the parity of \|S\| whatever y is, so the test is modulo 4, not modulo 2.
    The weights are 0 outside S (printed for all of [m]). The outer weight 2 belongs to W and B by Definition 2.

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
    return bump_network(1 - 2 * (negative % 2), v, len(members) - 2 * negative)
