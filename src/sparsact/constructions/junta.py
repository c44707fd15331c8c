"""Functions of a few coordinates, as one-sparse networks with a unit for every assignment of these."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sparsact.hypercube import masks_of, points
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_table
from sparsact.validation.parameters import checked_size


def junta(table: ArrayLike, variables: Sequence[int], n: int) -> SparselyActivatedNetwork:
    r"""The function of the coordinates ``variables`` with the values ``table``, on n inputs.

    .. math:: f(x) = \sum_{\alpha \in \{-1,1\}^p} f(\alpha)\, \sigma(\langle \alpha, x_V \rangle - (p - 1))

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
        Of ``2**p`` units with sparse weights; :math:`W = \sqrt{p} \max |f|`, :math:`B = |p - 1| \max |f|`. Exactly one
        unit is active at every point of the cube: that of the assignment met, at pre-activation 1; the others are at -1
        or less. Units of the value 0 stay, so that this holds for every table.

    Raises
    ------
    ValueError
        If the table's length is not ``2 ** len(variables)``, a value is not finite, or a variable is strange.

    Notes
    -----
    ``p * 2**p`` weights. In Definition 1's form the threshold is p - 1; [A]_ prints it with the other sign.

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
    return SparselyActivatedNetwork(values, W, np.full(len(values), len(V) - 1.0))
