"""Learning with rounding as a one-sparse network on the quadratic lift of vectors of residues."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sparsact.exact_sign import Weights
from sparsact.hypercube import bits_to_signs
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork
from sparsact.validation.parameters import checked_generator, checked_option, checked_size


@dataclass(frozen=True)
class ResidueLift:
    r"""The map of :math:`y \in \mathbb{Z}_q^m` to the quadratic lift x(z(y)) of its binary digits z(y).

    Entry i takes L = ceil(log2 q) coordinates: coordinate ``i * L + l`` of z is the sign of the bit of value ``2**l``
    of y_i, bit 1 being sign -1 as everywhere in this library (:mod:`sparsact.hypercube`). Hence

    .. math:: y_i = \frac{2^L - 1}{2} - \sum_{l < L} 2^{l-1} z_{iL + l}.

    Examples
    --------
    >>> lift = ResidueLift(m=2, q=3)
    >>> lift.signs([[2, 1]])
    array([[ 1, -1, -1,  1]], dtype=int8)
    >>> lift([[2, 1]]).shape
    (1, 16)
    """

    m: int
    q: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", checked_size(self.m, "the number `m` of entries of a vector"))
        object.__setattr__(self, "q", checked_size(self.q, "the modulus `q`", minimum=2))

    @property
    def n_bits(self) -> int:
        """Bits L of one entry."""
        return (self.q - 1).bit_length()

    @property
    def quadratic(self) -> Lift:
        """The lift of the signs z; its points include all z, also ones that encode no residue."""
        return Lift.quadratic(self.m * self.n_bits)

    @property
    def n(self) -> int:
        """Number of coordinates of the lifted points."""
        return (self.m * self.n_bits) ** 2

    def signs(self, Y: ArrayLike) -> NDArray[np.int8]:
        """Signs z(y) of the binary digits of residues ``Y`` (rows, m), shape (rows, m * L)."""
        residues = checked_residues(Y, self.m, self.q)
        return bits_to_signs(residues[:, :, None] >> np.arange(self.n_bits) & 1).reshape(
            len(residues), self.m * self.n_bits
        )

    def __call__(self, Y: ArrayLike) -> NDArray[np.int8]:
        """Lifted points x(z(y)), signs (rows, n), of residues ``Y`` (rows, m)."""
        return self.quadratic(self.signs(Y))

    def sample(self, n_samples: int, *, rng: np.random.Generator) -> NDArray[np.int8]:
        """Lifted points of uniform residues, (n_samples, n)."""
        return self(checked_generator(rng).integers(self.q, size=(n_samples, self.m)))


def checked_moduli(p: int, q: int) -> tuple[int, int]:
    """Moduli of rounding, 2 <= p <= q."""
    p, q = index(p), index(q)
    if not 2 <= p <= q:
        raise ValueError(f"the moduli must satisfy 2 <= p <= q; got p = {p}, q = {q}.")
    return p, q


def checked_residues(Y: ArrayLike, m: int, q: int) -> NDArray[np.int64]:
    """``Y`` as int64 residues modulo ``q``, one row a vector of ``m``."""
    rows = np.asarray(Y)
    if rows.ndim != 2 or rows.shape[1] != m:
        raise ValueError(f"`Y` must have one row a vector of {m} residues; got shape {rows.shape}.")
    if rows.dtype.kind not in "biufO":
        raise ValueError(f"residues are integers; got {rows.dtype}.")
    strange = ~((rows >= 0) & (rows < q) & (rows == np.floor(rows)))
    if strange.any():
        row, column = np.argwhere(strange)[0]
        raise ValueError(
            f"residues modulo {q} are the integers 0 to {q - 1}; row {row}, column {column} holds {rows[row, column]}: "
            f"reduce them first, Y % {q}."
        )
    return rows.astype(np.int64)


def bump_network(
    heights: NDArray[np.float64], v: NDArray[np.float64], centres: NDArray[np.float64], step: float
) -> SparselyActivatedNetwork:
    r"""Network on ``Lift.quadratic(r)`` that is ``heights[j]`` where :math:`\langle v, z \rangle` is ``centres[j]``.

    .. math:: \sum_j h_j\, \sigma\bigl(1 - (\langle v, z \rangle - c_j)^2 / g^2\bigr), \qquad
        g^2 - (\langle v, z \rangle - c)^2 = \langle w, x(z) \rangle - b

    with :math:`w_{il} = -v_i v_l` off the diagonal, :math:`w_{ii} = 2 c v_i` and :math:`b = \|v\|^2 + c^2 - g^2`,
    because :math:`z_i^2 = 1`; the units are these over :math:`g^2`. Where :math:`\langle v, z \rangle` and all centres
    lie on one grid of ``step`` g, exactly one unit is active if a centre is met and none if not: the neighbours of a
    centre are at exactly 0, a tie. With g a power of 2 no division rounds.

    Shapes: ``heights`` and ``centres`` (s,), ``v`` (r,). The weights are a sparse matrix where at most a quarter of
    them can differ from 0.
    """
    r, inside = len(v), np.flatnonzero(v)
    weights = np.tile(-np.outer(v[inside], v[inside]), (len(centres), 1, 1))
    weights[:, range(len(inside)), range(len(inside))] = 2 * np.outer(centres, v[inside])
    weights /= step**2
    columns = (inside[:, None] * r + inside).ravel()
    if 4 * len(columns) <= r * r:
        ends = np.arange(len(centres) + 1) * len(columns)
        W: Weights = sp.csr_array((weights.ravel(), np.tile(columns, len(centres)), ends), shape=(len(centres), r * r))
    else:
        W = np.zeros((len(centres), r * r))
        W[:, columns] = weights.reshape(len(centres), -1)
    return SparselyActivatedNetwork(heights, W, (v @ v + centres**2) / step**2 - 1)


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

    .. math:: f_w(y) = \sum_{a=0}^{m (q-1)^2} \lambda(a)\,
        \sigma\bigl(1 - (\langle v, z(y) \rangle - a')^2\bigr), \qquad \lambda(a) = f(a \bmod q)

    where z(y) are signs, :class:`~sparsact.constructions.ResidueLift` says in which order, with
    :math:`v_{iL+l} = -2^{l-1} w_i` and :math:`a' = a - c`, :math:`c = \frac{2^L - 1}{2} \sum_i w_i`; so that
    :math:`\langle v, z(y) \rangle + c = \langle w, y \rangle`. On the lift unit a has weights :math:`-v_i v_l` off the
    diagonal and :math:`2 a' v_i` on it, and threshold :math:`\|v\|^2 + a'^2 - 1`.

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
        Network of :math:`m (q-1)^2 + 1` units on :math:`(mL)^2` inputs, L = ceil(log2 q). Units of the value 0 stay,
        and so do sums that this secret never reaches: the size says nothing of the secret. All weights are multiples of
        1/4.

    Raises
    ------
    ValueError
        If the moduli are out of range or ``w`` holds anything but residues modulo q.

    Notes
    -----
    Exactly one unit is active at every lifted point (also where the digits spell a number of q or more, unless
    <w, y> then exceeds m (q-1)^2: there none is). Off the lift several can be.
    Memory: some :math:`8 m^3 q^2 L^2` bytes, three times that while it is made; meant for the small moduli at which
    reductions are checked.

    [A]_ takes :math:`2 \sigma(\frac12 - \cdot)`; using ties halves W and B.

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
    return bump_network(_brought_down(sums, p, q, rule).astype(np.float64), v, sums - offset, step=1.0)


def _brought_down(sums: NDArray[np.int64], p: int, q: int, rule: Rule) -> NDArray[np.int64]:
    return p * (sums % q) // q if rule == "round" else sums % q % p


def _checked_secret(w: ArrayLike, p: int, q: int, rule: Rule) -> tuple[NDArray[np.int64], int, int]:
    p, q = checked_moduli(p, q)
    checked_option(rule, "`rule`", get_args(Rule))
    secret = np.asarray(w)
    if secret.ndim != 1 or not len(secret):
        raise ValueError(f"the secret `w` must be one vector of residues, shape (m,); got shape {secret.shape}.")
    if len(secret) * q**2 > 2**63:
        raise ValueError(f"products of {len(secret)} residues modulo {q} exceed 64 bits; take m * q**2 <= 2**63.")
    return checked_residues(secret[None], len(secret), q).ravel(), p, q
