"""Networks on the quadratic lift that look a value up by an integer: one bump of a quadratic form a unit."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.exact_sign import Weights
from sparsact.network import SparselyActivatedNetwork


def bump_network(
    heights: NDArray[np.float64], v: NDArray[np.float64], centres: NDArray[np.float64]
) -> SparselyActivatedNetwork:
    r"""Network on ``Lift.quadratic(r)`` that is ``heights[j]`` where :math:`\langle v, z \rangle` is ``centres[j]``.

    .. math:: \sum_j 2\, h_j\, \sigma\bigl(\tfrac12 - (\langle v, z \rangle - c_j)^2\bigr), \qquad
        \tfrac12 - (\langle v, z \rangle - c)^2 = \langle w, x(z) \rangle - b

    with :math:`w_{il} = -v_i v_l` off the diagonal, :math:`w_{ii} = 2 c v_i` and
    :math:`b = \|v\|^2 + c^2 - \tfrac12`, because :math:`z_i^2 = 1`. Where :math:`\langle v, z \rangle` and all centres
    lie on one grid of step 1 at least, exactly one unit is active if a centre is met and none if not.

    Shapes: ``heights`` and ``centres`` (s,), ``v`` (r,). The weights are a sparse matrix where at most a quarter of
    them can differ from 0.
    """
    r, inside = len(v), np.flatnonzero(v)
    weights = np.tile(-np.outer(v[inside], v[inside]), (len(centres), 1, 1))
    weights[:, range(len(inside)), range(len(inside))] = 2 * np.outer(centres, v[inside])
    columns = (inside[:, None] * r + inside).ravel()
    if 4 * len(columns) <= r * r:
        ends = np.arange(len(centres) + 1) * len(columns)
        W: Weights = sp.csr_array((weights.ravel(), np.tile(columns, len(centres)), ends), shape=(len(centres), r * r))
    else:
        W = np.zeros((len(centres), r * r))
        W[:, columns] = weights.reshape(len(centres), -1)
    return SparselyActivatedNetwork(2 * heights, W, v @ v + centres**2 - 0.5)
