"""Learning with rounding: its labels, and the one-sparse network on a lift that computes them."""

from __future__ import annotations

from operator import index
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.constructions.bumps import bump_network
from sparsact.constructions.residues import ResidueLift, checked_residues
from sparsact.network import SparselyActivatedNetwork

Rule = Literal["round", "modulo"]


def rounded_products(w: ArrayLike, Y: ArrayLike, p: int, q: int, *, rule: Rule = "round") -> NDArray[np.int64]:
    r"""Labels of learning with rounding: products of the secret with each row of ``Y``, brought down to p values.

    .. math:: f_w(y) = \Bigl\lfloor \tfrac{p}{q} \bigl(\langle w, y \rangle \bmod q\bigr) \Bigr\rfloor \in \mathbb{Z}_p

    Parameters
    ----------
    w : array-like of shape (m,)
        The secret, residues modulo q.
    Y : array-like of shape (rows, m)
        Residues modulo q.
    p, q : int
        Moduli, 2 <= p <= q, with :math:`m q^2 \le 2^{63}`.
    rule : {"round", "modulo"}
        "modulo" is Definition 15 of [A]_ as printed, :math:`(\langle w, y \rangle \bmod q) \bmod p`. Where p divides q
        that is :math:`\langle w, y \rangle \bmod p`, linear and easy to learn: no hardness rests on it. "round" is the
        problem of [B]_.

    Returns
    -------
    labels : ndarray of shape (rows,), int64

    Raises
    ------
    ValueError
        If the moduli are out of range or an entry is no residue modulo q.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.
    .. [B] A. Banerjee, C. Peikert, A. Rosen, "Pseudorandom functions and lattices", 2012.

    Examples
    --------
    >>> rounded_products([1, 2], [[3, 1], [0, 3]], p=2, q=4)
    array([0, 1])
    """
    secret, p, q = _checked_secret(w, p, q, rule)
    sums: NDArray[np.int64] = checked_residues(Y, len(secret), q) @ secret
    return _brought_down(sums, p, q, rule)


def rounding(w: ArrayLike, p: int, q: int, *, rule: Rule = "round") -> SparselyActivatedNetwork:
    r"""Learning with rounding under the secret ``w``, as a network on the lift of the residues' binary digits.

    .. math:: f_w(y) = \sum_{a=0}^{m (q-1)^2} 2 \lambda(a)\,
        \sigma\bigl(\tfrac12 - (\langle v, z(y) \rangle - a')^2\bigr), \qquad \lambda(a) = f(a \bmod q)

    where z(y) are signs, :class:`~sparsact.constructions.ResidueLift` says in which order, with
    :math:`v_{iL+l} = -2^{l-1} w_i` and :math:`a' = a - c`, :math:`c = \frac{2^L - 1}{2} \sum_i w_i`; so that
    :math:`\langle v, z(y) \rangle + c = \langle w, y \rangle`. On the lift unit a has weights :math:`-v_i v_l` off the
    diagonal and :math:`2 a' v_i` on it, and threshold :math:`\|v\|^2 + a'^2 - \frac12`.

    Parameters
    ----------
    w : array-like of shape (m,)
        The secret, residues modulo q.
    p, q : int
        Moduli, 2 <= p <= q.
    rule : {"round", "modulo"}
        How <w, y> mod q becomes a label, see :func:`~sparsact.constructions.rounded_products`. Only "round" is hard.

    Returns
    -------
    network : SparselyActivatedNetwork
        Of :math:`m (q-1)^2 + 1` units on :math:`(mL)^2` inputs, L = ceil(log2 q). Units of the value 0 stay, and so do
        sums that this secret never reaches: the size says nothing of the secret. All weights are multiples of 1/4.

    Raises
    ------
    ValueError
        If the moduli are out of range or ``w`` holds anything but residues modulo q.

    Notes
    -----
    Exactly one unit is active at every lifted point (also at those of digits that spell a number of q or more, unless
    <w, y> then exceeds m (q-1)^2: there none is). Off the lift several can be.
    Memory: some :math:`8 m^3 q^2 L^2` bytes, three times that while it is made; meant for the small moduli at which
    reductions are checked.

    Four mends of [A]_. The square belongs inside the ReLU. A linear map alone cannot take signs to sums: the offset c
    is needed. The lifted weights are real, not signs. Its Definition 15 takes a remainder where the problem rounds.
    Here bit 1 is sign -1, hence the minus in v.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.

    Examples
    --------
    >>> lift = ResidueLift(m=2, q=4)
    >>> rounding([1, 2], p=2, q=4)(lift([[3, 1], [0, 3]]))
    array([0., 1.])
    """
    secret, p, q = _checked_secret(w, p, q, rule)
    lift = ResidueLift(len(secret), q)
    sums = np.arange(len(secret) * (q - 1) ** 2 + 1)
    v = -np.outer(secret, 2.0 ** np.arange(-1, lift.n_bits - 1)).ravel()
    offset = (2**lift.n_bits - 1) / 2 * secret.sum()
    return bump_network(_brought_down(sums, p, q, rule).astype(np.float64), v, sums - offset)


def _brought_down(sums: NDArray[np.int64], p: int, q: int, rule: Rule) -> NDArray[np.int64]:
    return p * (sums % q) // q if rule == "round" else sums % q % p


def _checked_secret(w: ArrayLike, p: int, q: int, rule: Rule) -> tuple[NDArray[np.int64], int, int]:
    p, q = index(p), index(q)
    if not 2 <= p <= q:
        raise ValueError(f"the moduli must satisfy 2 <= p <= q; got p = {p}, q = {q}.")
    if rule not in get_args(Rule):
        raise ValueError(f"`rule` must be one of {get_args(Rule)}; got {rule!r}.")
    secret = np.asarray(w)
    if secret.ndim != 1 or not len(secret):
        raise ValueError(f"the secret `w` must be one vector of residues, shape (m,); got shape {secret.shape}.")
    if len(secret) * q**2 > 2**63:
        raise ValueError(f"products of {len(secret)} residues modulo {q} exceed 64 bits; take m * q**2 <= 2**63.")
    return checked_residues(secret[None], len(secret), q).ravel(), p, q
