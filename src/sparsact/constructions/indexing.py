"""The indexing function as a one-sparse network."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.parameters import checked_size

LARGEST_ADDRESS = 20
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
    b = checked_size(b, "the number `b` of address coordinates", minimum=0)
    if b > LARGEST_ADDRESS:
        raise ValueError(f"`b` address coordinates choose among 2**b units, up to 2**{LARGEST_ADDRESS}; got b = {b}.")
    addresses = points(b).astype(np.float64)
    s = len(addresses)
    W = sp.hstack([sp.csr_array(addresses), sp.eye_array(s) / 2], format="csr")
    return SparselyActivatedNetwork(np.ones(s), W, np.full(s, b - 0.5))
