r"""Bounds on the average sensitivity of one network, from which of its units are active together.

For every network, with :math:`R_x` the units active at x and absolute values taken entry by entry,

.. math:: \mathrm{AS}(h) \le 4\, \mathbb{E}_x \Big\| \sum_{j \in R_x} |u_j|\, |w_j| \Big\|^2
          \le 4\, \mathbb{E}_x\, |R_x| \sum_{j \in R_x} u_j^2 \|w_j\|^2 \le 4 k^2 W^2.

*Sharper, proved* (the documentation, "Sharper bounds", has the proof). No sparsity is assumed before the last step.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_reals, checked_signs
from sparsact.validation.parameters import check_named

_NUMBERS_AT_ONCE = 2**22


def sensitivity_certificate(network: SparselyActivatedNetwork, X: ArrayLike) -> NDArray[np.float64]:
    r"""Number at each row whose mean bounds the average sensitivity: :math:`4 \| \sum_{j \in R_x} |u_j|\, |w_j| \|^2`.

    Parameters
    ----------
    network : SparselyActivatedNetwork
        Of s units on n inputs.
    X : array-like of shape (m, n)
        Signs. Over all points of the cube the mean is a proof; over random points it estimates one.

    Returns
    -------
    certificate : ndarray of shape (m,)

    Notes
    -----
    One product of the (m, s) activity with the (s, n) weights, in blocks of rows. It needs the values of the network
    nowhere, so that it holds for ReLU, and for any other activation that is 1-Lipschitz and 0 where ReLU is.

    Examples
    --------
    The bound is attained:

    >>> from sparsact import SparselyActivatedNetwork
    >>> sensitivity_certificate(SparselyActivatedNetwork([1, -1], [[1], [-1]], [-1, -1]), [[1], [-1]])
    array([4., 4.])
    """
    signs = checked_signs(X, network.n)
    weights = abs(network.W)
    scaled = sp.diags_array(np.abs(network.u)) @ weights if isinstance(weights, sp.csr_array) else None
    dense = np.abs(network.u)[:, None] * weights if scaled is None else scaled
    certificate = np.empty(len(signs))
    step = max(1, _NUMBERS_AT_ONCE // max(network.s, network.n))
    for start in range(0, len(signs), step):
        rows = slice(start, start + step)
        slopes = np.asarray((dense.T @ network.active(signs[rows]).T.astype(np.float64)).T)
        certificate[rows] = 4 * np.einsum("mi,mi->m", slopes, slopes)
    return certificate


def sensitivity_from_activity(network: SparselyActivatedNetwork, probabilities: ArrayLike, k: int) -> float:
    r"""Most average sensitivity, from how often each unit is active: :math:`4 k \sum_j p_j\, u_j^2 \|w_j\|^2`.

    Parameters
    ----------
    network : SparselyActivatedNetwork
        Of s units.
    probabilities : array-like of shape (s,)
        Probability, or an upper bound of it, that a unit is active at a uniform point.
    k : int
        Most units active at any point, from 1 to s.

    Returns
    -------
    bound : float
        Of the average sensitivity.

    Raises
    ------
    ValueError
        If a probability is none, or their number is not s.

    Examples
    --------
    Two units that share the points of the cube between them:

    >>> from sparsact import SparselyActivatedNetwork
    >>> sensitivity_from_activity(SparselyActivatedNetwork([1, -1], [[1], [-1]], [-1, -1]), [0.5, 0.5], k=1)
    4.0
    """
    p = checked_reals(probabilities, "`probabilities`")
    check_named(s=network.s, k=k)
    if p.shape != (network.s,):
        raise ValueError(f"`probabilities` must be one a unit, shape ({network.s},); got shape {p.shape}.")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"`probabilities` must lie in [0, 1]; they span [{p.min():.4g}, {p.max():.4g}].")
    norms = np.asarray((network.W * network.W).sum(axis=1)).ravel()
    return float(4 * k * (p * network.u**2) @ norms)
