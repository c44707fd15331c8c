"""A measured complexity compared with its proved and conjectured bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsact import bounds
from sparsact.fourier import Estimate
from sparsact.network import SparselyActivatedNetwork
from sparsact.rademacher.argument_checks import check_scale, checked_n_active, checked_sample
from sparsact.validation.arrays import checked_signs


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""A Rademacher complexity and its bounds, numbers or arrays over the numbers of units.

    Parameters
    ----------
    complexity : Estimate
        The measured complexity.
    conjecture : float or ndarray
        Conjecture 20, :math:`(WR + B) \sqrt{sk/m}`, with constant 1 as printed; that is too small on some samples, see
        :func:`~sparsact.rademacher.orthogonal_network`.
    sparse_bound, dense_bound : float or ndarray
        Proved: equation (15) with every constant (:func:`sparsact.bounds.sparse_complexity_bound_explicit`), and the
        bound on all networks of s units (:func:`sparsact.bounds.dense_complexity_bound`).
    """

    complexity: Estimate
    conjecture: Any
    sparse_bound: Any
    dense_bound: Any

    @property
    def ratio(self) -> Estimate:
        """The complexity as a multiple of the conjecture, with its standard error."""
        measured = self.complexity
        value, error = (np.divide(part, self.conjecture)[()] for part in (measured.value, measured.standard_error))
        return Estimate(value, error, measured.n_samples)

    def exceeds_conjecture(self, confidence: float = 0.99) -> Any:
        """Whether the whole two-sided interval for the complexity lies above the conjecture.

        A lower bound by search can refute the conjecture on these points, and never confirm it.
        """
        return self.complexity.interval(confidence)[0] > self.conjecture * (1 + 1e-9)  # rounding


def compare(
    complexity: Estimate, X: ArrayLike, s: int | Sequence[int], k: int | None = 1, *, W: float = 1.0, B: float = 1.0
) -> Comparison:
    r"""A complexity, Conjecture 20 and the bounds, all for the points ``X`` with :math:`R = \max \|x_i\|`.

    Parameters
    ----------
    complexity : Estimate
        Result of :func:`~sparsact.rademacher.exact_complexity` or :func:`~sparsact.rademacher.lower_complexity`.
    X, s, k, W, B
        Its arguments. The dense class counts as k = s.

    Returns
    -------
    comparison : Comparison

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, equation (15) and Conjecture 20.

    Examples
    --------
    On one point the conjecture is met with equality:

    >>> from sparsact.rademacher import exact_complexity
    >>> round(float(compare(exact_complexity([[1.0]], 1), [[1.0]], 1).ratio.value), 6)
    1.0
    """
    rows, _ = checked_sample(X)
    check_scale(W, B)
    if np.shape(complexity.value) != np.shape(s):
        raise ValueError(
            f"the complexity has shape {np.shape(complexity.value)}, but `s` has {np.shape(s)}: "
            "pass the `s` of that estimate."
        )
    m, n = rows.shape
    R = float(np.linalg.norm(rows, axis=1).max())
    table = [
        (
            bounds.sparse_complexity_conjecture(size, active, W, B, R, m),
            bounds.sparse_complexity_bound_explicit(n, size, active, W, B, R, m),
            bounds.dense_complexity_bound(size, W, B, R, m),
        )
        for size in np.ravel(s).tolist()
        for active in [checked_n_active(k, size)]
    ]
    conjecture, sparse, dense = np.reshape(np.transpose(table), (3, *np.shape(s)))
    return Comparison(complexity, conjecture[()], sparse[()], dense[()])


def orthogonal_network(X: ArrayLike, signs: ArrayLike, *, W: float = 1.0) -> SparselyActivatedNetwork:
    r"""Two units, one of them active at each of m orthogonal points, with twice the values of a linear map.

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
        are active where :math:`|\langle w, x \rangle| < a`, at no row of ``X``.

    Notes
    -----
    *Ours.* By orthogonality :math:`\|w\| = W` and :math:`\langle w, x_i \rangle = a \zeta_i`: one unit is at 2a, the
    other at 0, hence off. So the complexity of :math:`\mathcal{H}_{n,2,1}^{W,B}` on X is at least
    :math:`2 W R / \sqrt m`, whereas Conjecture 20 of [A]_ allows

    .. math:: (WR + B) \sqrt{2 / m} = \frac{W R}{\sqrt m} \sqrt 2\, (1 + 1 / \sqrt m).

    As printed, with constant 1, it is false for m >= 6 such points: at m = 8 by a factor 1.045, in the limit by
    :math:`\sqrt 2`. With a root of a logarithm it is true (:func:`sparsact.bounds.rademacher_sparse_root_logarithm`).
    The class is that of networks 1-sparse on X. Thresholds are raised by a few rounding errors, so that a unit at a
    tie is off in floating point, too.

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
    check_scale(W, 1.0)
    m, n = rows.shape
    zeta = checked_signs(np.asarray(signs)[None], m)[0]
    square = float(np.mean(rows * rows) * n)
    if not square or np.abs(rows @ rows.T / square - np.eye(m)).max() > 1e-12:
        raise ValueError("`X` must hold orthogonal points of equal norm, such as rows of scipy.linalg.hadamard(8).")
    rounding = 8 * n * np.sqrt(m) * np.finfo(np.float64).eps
    w = zeta @ rows * (W * (1 - rounding) / np.sqrt(square * m))
    threshold = -W * np.sqrt(square / m) * (1 - 3 * rounding)
    return SparselyActivatedNetwork(np.array([1.0, -1.0]), np.stack([w, -w]), np.array([threshold, threshold]))
