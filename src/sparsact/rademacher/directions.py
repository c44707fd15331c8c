r"""Networks on M orthonormal directions, r points on each: the rate of Conjecture 20 is right, and the mean costs more.

The points are :math:`R e_c`, each r times, in the order of the directions, so m = Mr; the networks have s = kM units
:math:`\pm \sigma(W \langle e_c, x \rangle)` and B = 0. Let :math:`S_c` be the sum of the signs at :math:`e_c`.

With k units at each direction, of the sign of :math:`S_c`, a network has k active units at every point, and

.. math:: \mathcal R \ge \frac{kWR}{r}\, \mathbb{E} |S_1| \ge WR \sqrt{\frac{sk}{2m}}

by Khintchine's inequality: the rate :math:`\sqrt{sk/m}` is right in s, k and m. With all s units at the direction of
the largest :math:`|S_c|` the network has km active units in total, k in the mean over the points, and

.. math:: \mathcal R \ge \frac{kWR}{r}\, \mathbb{E} \max_c |S_c|,

which exceeds :math:`WR \sqrt{sk/m}` by a factor that grows as :math:`\sqrt{\ln(s/k)}` while :math:`r \ge \ln(s/k)`. So
for networks that are sparse in the mean a logarithm is needed. ("Rademacher complexity of sparsely activated networks"
in the documentation.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_positive, checked_size


def spread_network(signs: ArrayLike, k: int = 1, *, W: float = 1.0) -> SparselyActivatedNetwork:
    r"""Network with k units at each direction, of the sign that the direction's points have in sum.

    Parameters
    ----------
    signs : array-like of shape (n_directions, copies)
        The sign of every point.
    k : int
        Units of a direction, active at each of its points and nowhere else.
    W : float
        Norm of the weights.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of ``k * n_directions`` units, with scale W and B = 0.

    Examples
    --------
    >>> net = spread_network([[1, 1, 1], [1, -1, -1]])
    >>> net([[1, 0], [0, 1]]), net.n_active([[1, 0], [0, 1]])
    (array([ 1., -1.]), array([1, 1]))
    """
    sums = _sums(signs)
    chosen = np.repeat(np.arange(len(sums)), checked_size(k, "`k`"))
    return _network(sums, chosen, W)


def gathered_network(signs: ArrayLike, k: int = 1, *, W: float = 1.0) -> SparselyActivatedNetwork:
    r"""Network with all units at the direction whose points have the largest sum of signs in magnitude.

    Parameters
    ----------
    signs, k, W
        As in :func:`spread_network`.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of ``k * n_directions`` units, scale W and B = 0; all are active at one direction, k in the mean.

    Examples
    --------
    >>> net = gathered_network([[1, 1, 1], [1, -1, -1]])
    >>> net([[1, 0], [0, 1]]), net.n_active([[1, 0], [0, 1]])
    (array([2., 0.]), array([2, 0]))
    """
    sums = _sums(signs)
    chosen = np.full(len(sums) * checked_size(k, "`k`"), np.argmax(np.abs(sums)))
    return _network(sums, chosen, W)


def gathered_complexity(n_directions: int, copies: int, k: int = 1, *, W: float = 1.0, R: float = 1.0) -> float:
    r"""Mean correlation of :func:`gathered_network` with random signs, :math:`\frac{kWR}{r} \mathbb{E} \max_c |S_c|`.

    Parameters
    ----------
    n_directions, copies, k : int
        M, r and k, with s = kM units on m = Mr points. For M = 1 it is the mean of :func:`spread_network`, for any
        number of directions.
    W, R : float
        Norm of the weights and of the points.

    Returns
    -------
    complexity : float
        Exact, from the binomial distribution of each sum; a lower bound on the complexity of the networks that have km
        active units in total.

    Examples
    --------
    As a multiple of :math:`WR \sqrt{sk/m}`, which is :math:`k / \sqrt r` here:

    >>> [round(gathered_complexity(M, 400) * 400**0.5, 2) for M in (1, 64, 4096, 65536)]
    [0.8, 2.59, 3.79, 4.43]
    """
    n_directions, copies, k = (
        checked_size(value, f"`{name}`")
        for name, value in (("n_directions", n_directions), ("copies", copies), ("k", k))
    )
    scale = checked_positive(W, "`W`") * checked_positive(R, "`R`")
    ends = np.arange(copies + 1)  # P(|S| > t) is that of more than (r + t) / 2 signs of one kind, twice
    above = np.minimum(2 * binom.sf((copies + ends) // 2, copies, 0.5), 1.0)
    with np.errstate(divide="ignore"):
        largest = -np.expm1(n_directions * np.log1p(-above))
    return float(k * scale / copies * largest.sum())


def _sums(signs: ArrayLike) -> NDArray[np.float64]:
    table = checked_reals(signs, "`signs`")
    if table.ndim != 2 or not table.size or (np.abs(table) != 1).any():
        raise ValueError(
            f"`signs` must hold +1 or -1 for every point, one row a direction; got shape {table.shape}: reshape them "
            "to (n_directions, copies)."
        )
    return np.asarray(table.sum(axis=1))


def _network(sums: NDArray[np.float64], chosen: NDArray[np.intp], W: float) -> SparselyActivatedNetwork:
    """Units at the chosen directions, each of the sign of its sum."""
    weights = checked_positive(W, "`W`") * np.eye(len(sums))[chosen]
    return SparselyActivatedNetwork(np.where(sums[chosen] < 0, -1.0, 1.0), weights, np.zeros(len(chosen)))
