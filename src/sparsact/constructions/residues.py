r"""Vectors of residues as points of a cube: their binary digits, and the quadratic lift of these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.checks import checked_generator, checked_size
from sparsact.hypercube import bits_to_signs
from sparsact.lift import Lift


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
        object.__setattr__(self, "q", checked_size(self.q, "the modulus `q`", least=2))

    @property
    def n_bits(self) -> int:
        """Bits L of one entry."""
        return (self.q - 1).bit_length()

    @property
    def quadratic(self) -> Lift:
        """The lift of the signs z; its points include those of all z, also such as no residue encodes."""
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
