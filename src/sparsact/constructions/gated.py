r"""Linear functions behind an address: sparsely activated, with weights that are not sparse."""

from __future__ import annotations

from math import ceil, comb, frexp, ldexp, log, sqrt
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.exact_sign import is_exact
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_number, checked_positive


def gated(weights: ArrayLike, n_address: int, gamma: float | None = None) -> SparselyActivatedNetwork:
    r"""The network of [A]_, Appendix A: an address x chooses the linear function that meets the data y.

    .. math:: F(x, y) = \sum_{\alpha \in \{-1,1\}^b} \sigma\bigl(\langle w_\alpha, y \rangle
        + \Gamma (\langle x, \alpha \rangle - b)\bigr)

    Where one unit at most is active, F is :math:`\sigma(\langle w_x, y \rangle)`.

    Parameters
    ----------
    weights : array-like of shape (2**n_address, q)
        Row A holds :math:`w_\alpha` of the address :math:`\alpha` number A in table order (:mod:`sparsact.hypercube`).
    n_address : int
        Number b of address coordinates, the first of the n = b + q.
    gamma : float, optional
        Strength :math:`\Gamma` of the gates, positive. By default ``gate_strength(weights)``, which makes the network
        1-sparse on the whole cube. For a strength with which it is 1-sparse at most points, see :func:`gate_strength`.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of ``2**n_address`` units; :math:`W = \sqrt{\Gamma^2 b + \max \|w_\alpha\|^2}`, :math:`B = \Gamma b`.

    Raises
    ------
    ValueError
        If ``weights`` has not ``2**n_address`` rows or is not finite, or ``gamma`` is not positive.

    Notes
    -----
    At an address that differs from :math:`\alpha` in d places the gate of unit alpha contributes -2 d Gamma. So
    :math:`2 \Gamma \ge \max \|w_\alpha\|_1` makes the network 1-sparse everywhere; at equality a tie keeps units off.
    The paper's :math:`\Gamma = \sqrt q` is enough where :math:`\|w_\alpha\|_2 \le 2`, since
    :math:`\|w\|_1 \le \sqrt q \|w\|_2`; it can fail beyond, and for :math:`\|w_\alpha\|_2 \le 1` half of it is enough.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Appendix A and Remark 11.

    Examples
    --------
    >>> net = gated([[1, 2], [3, -1]], n_address=1)
    >>> net([[1, 1, 1], [-1, 1, 1], [-1, -1, 1]])
    array([3., 2., 0.])
    """
    linear = _checked_weights(weights, n_address)
    strength = gate_strength(linear) if gamma is None else float(gamma)
    checked_positive(strength, "`gamma`")
    W = np.hstack([strength * points(n_address), linear])
    return SparselyActivatedNetwork(np.ones(len(linear)), W, np.full(len(linear), strength * n_address))


def gate_strength(weights: ArrayLike, failure_probability: float = 0.0) -> float:
    r"""A strength :math:`\Gamma` of the gates with which a network of :func:`gated` is 1-sparse, always or mostly.

    .. math:: \Gamma_0 = \tfrac12 \max_\alpha \|w_\alpha\|_1, \qquad
        \Gamma_\delta = \max_\alpha \|w_\alpha\|_2 \sqrt{\tfrac12 \ln \tfrac{s}{\delta}}

    Parameters
    ----------
    weights : array-like of shape (s, q)
        Linear functions behind the gates.
    failure_probability : float
        0 requires 1-sparsity on the whole cube: :math:`\Gamma_0`. A :math:`\delta` in (0, 1) requires it with
        probability :math:`1 - \delta` under the uniform distribution: the smaller of the two. With delta polynomial in
        1/s that is the :math:`\Theta(\sqrt{\log s})` of [A]_, for norms of order 1.

    Returns
    -------
    strength : float
        Rounded up to 24 binary digits, so that gates add up without error. At least 2**-126, where all weights are 0.

    Notes
    -----
    *Proof of the second.* If a second unit is active then one is whose address differs from x, in d >= 1 places: then
    :math:`\langle w_\alpha, y \rangle > 2 d \Gamma`, of probability at most
    :math:`e^{-2 d^2 \Gamma^2 / \|w_\alpha\|^2}` by Hoeffding's inequality, hence of
    :math:`\delta / s` at most; and there are s - 1 such units. :func:`gated_failure_probability` sums the same bound
    address by address, which is sharper.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Appendix A.

    Examples
    --------
    >>> gate_strength([[1, 2], [3, -1]])
    2.0
    """
    checked_number(failure_probability, "`failure_probability`", below=1)
    linear = checked_reals(weights, "`weights`")
    if linear.ndim != 2 or not linear.size:
        raise ValueError(f"`weights` must have one row a unit and one column a data coordinate; got {linear.shape}.")
    strength = float(_largest_sums(linear).max(initial=0.0)) / 2
    if failure_probability:
        largest = float(np.linalg.norm(linear, axis=1).max(initial=0.0))
        strength = min(strength, largest * sqrt(log(len(linear) / failure_probability) / 2))
    return _rounded_up(max(strength, 2.0**-126))


def _largest_sums(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    r""":math:`\|w_\alpha\|_1`, or a few rounding errors more where floating point does not find it exactly."""
    norms = np.abs(linear).sum(axis=1)
    rounded = ~is_exact(linear, np.zeros(len(linear)))
    norms[rounded] *= 1 + (linear.shape[1] + 2) * np.finfo(np.float64).eps
    return np.asarray(norms)


def _rounded_up(value: float) -> float:
    mantissa, exponent = frexp(value)
    return ldexp(ceil(ldexp(mantissa, 24)), exponent - 24)


def gated_failure_probability(weights: ArrayLike, n_address: int, gamma: float) -> float:
    r"""Bound on the probability that :func:`gated` has two units active at a uniform point.

    .. math:: \Pr[\text{more than one active}] \le 2^{-b} \sum_\alpha \sum_{d=1}^{b} \binom{b}{d}
        \begin{cases} e^{-2 d^2 \Gamma^2 / \|w_\alpha\|_2^2} & \|w_\alpha\|_1 > 2 d \Gamma \\ 0 & \text{else}\end{cases}

    The union bound over units that are not addressed, by the number d of places in which their address differs, and
    Hoeffding's inequality for each; see :func:`gate_strength`. It may exceed 1, where it says nothing. Parameters and
    errors as in :func:`gated`.

    Parameters
    ----------
    weights : array-like of shape (2**b, q)
        Linear functions of each address.
    n_address : int
        b.
    gamma : float
        Strength of the gates.

    Returns
    -------
    bound : float
        From 0; above 1 it says nothing.

    Examples
    --------
    >>> gated_failure_probability([[1, 2], [3, -1]], n_address=1, gamma=2.0)
    0.0
    """
    linear = _checked_weights(weights, n_address)
    checked_positive(gamma, "`gamma`")
    one = 2.0 ** frexp(float(np.abs(linear).max()))[1]  # near the largest weight, so that no square is lost
    l1, l2, strength = _largest_sums(linear / one), np.linalg.norm(linear / one, axis=1), gamma / one
    bound = 0.0
    for d in range(1, n_address + 1):
        reachable = l1 > 2 * d * strength
        bound += comb(n_address, d) * float(np.exp(-2 * (d * strength / l2[reachable]) ** 2).sum())
    return bound / len(linear)


def _checked_weights(weights: ArrayLike, n_address: int) -> NDArray[np.float64]:
    linear = checked_reals(weights, "`weights`")
    if index(n_address) < 0 or linear.ndim != 2 or len(linear) != 2**n_address or not linear.shape[1]:
        raise ValueError(
            f"`weights` must have one row for each of the 2**n_address addresses, and columns; "
            f"got shape {linear.shape} for n_address = {n_address}."
        )
    return linear
