r"""Conjecture 20 needs a constant: samples on which the class reaches about :math:`\sqrt 2` times what it says."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sparsact.checks import checked_signs
from sparsact.network import SparselyActivatedNetwork
from sparsact.rademacher.sample import checked_sample, checked_scale


def orthogonal_network(X: ArrayLike, signs: ArrayLike, *, W: float = 1.0) -> SparselyActivatedNetwork:
    r"""Two units, one of them active at each of m orthogonal points, that double the signs which a linear map can give.

    .. math:: h(x) = \sigma(\langle w, x \rangle + a) - \sigma(a - \langle w, x \rangle), \qquad
        w = \frac{W}{R \sqrt m} \sum_i \zeta_i x_i, \quad a = \frac{W R}{\sqrt m}

    Parameters
    ----------
    X : array-like of shape (m, n)
        Orthogonal points of equal norm R, such as m rows of a Hadamard matrix (``scipy.linalg.hadamard``).
    signs : array-like of shape (m,)
        The signs :math:`\zeta`.
    W : float
        Norm of the weights, positive.

    Returns
    -------
    network : SparselyActivatedNetwork
        1-sparse on ``X``, of scale W and :math:`B = WR / \sqrt m`, with values :math:`h(x_i) = 2 a \zeta_i`; both units
        are active where :math:`|\langle w, x \rangle| < a`, which no row of ``X`` is.

    Raises
    ------
    ValueError
        If the points are not orthogonal or of equal norm, or a sign is none.

    Notes
    -----
    *Ours.* By orthogonality :math:`\|w\| = W` and :math:`\langle w, x_i \rangle = a \zeta_i`: one unit is at 2a, the
    other at 0, hence off. So the complexity of :math:`\mathcal{H}_{n,2,1}^{W,B}` on X is at least
    :math:`2 W R / \sqrt m`, whereas Conjecture 20 of [A]_ allows

    .. math:: (WR + B) \sqrt{2 / m} = \frac{W R}{\sqrt m} \sqrt 2\, (1 + 1 / \sqrt m).

    As printed, with constant 1, it is false for m >= 6 such points: at m = 8 by a factor 1.045, and in the limit of
    many by :math:`\sqrt 2`. With another constant
    and logarithms it is true for k = 1. The class is that of networks 1-sparse on X.
    Thresholds are raised by a few rounding errors, so that a unit at a tie is off for the numbers stored, too.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Conjecture 20.

    Examples
    --------
    >>> from scipy.linalg import hadamard
    >>> net = orthogonal_network(hadamard(4), [1, -1, -1, 1])
    >>> net(hadamard(4)).round(9), net.n_active(hadamard(4)).max()
    (array([ 2., -2., -2.,  2.]), np.int64(1))
    """
    rows, _ = checked_sample(X)
    checked_scale(W, 1.0)
    m, n = rows.shape
    zeta = checked_signs(np.asarray(signs)[None], m)[0]
    square = float(np.mean(rows * rows) * n)
    if not square or np.abs(rows @ rows.T / square - np.eye(m)).max() > 1e-12:
        raise ValueError("`X` must hold orthogonal points of equal norm, such as rows of scipy.linalg.hadamard(8).")
    rounding = 8 * n * np.sqrt(m) * np.finfo(np.float64).eps
    w = zeta @ rows * (W * (1 - rounding) / np.sqrt(square * m))
    threshold = -W * np.sqrt(square / m) * (1 - 3 * rounding)
    return SparselyActivatedNetwork(np.array([1.0, -1.0]), np.stack([w, -w]), np.array([threshold, threshold]))
