r"""Lifts: maps of the cube :math:`\{-1, 1\}^m` into a larger one whose coordinates are products of coordinates.

A function that is quadratic in y is linear in its quadratic lift; so networks on the lift compute what no network on y
of the same size does.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.hypercube import Subset, bits_to_signs, characters, masks_of
from sparsact.validation.arrays import checked_signs, checked_subset
from sparsact.validation.parameters import checked_generator, checked_size


@dataclass(frozen=True)
class Lift:
    r"""The map :math:`x(y)_c = \chi_{T_c}(y)`, one subset :math:`T_c` of the m coordinates for each of n outputs.

    Examples
    --------
    >>> Lift.quadratic(2)([[1, -1]])
    array([[ 1, -1, -1, -1]], dtype=int8)
    """

    subsets: tuple[Subset, ...]
    m: int

    def __init__(self, subsets: Iterable[Iterable[int]], m: int) -> None:
        m = checked_size(m, "the number `m` of coordinates")
        members = tuple(checked_subset(subset) for subset in subsets)
        if not members:
            raise ValueError("a lift needs at least one subset; () is that of the constant coordinate 1.")
        masks_of(members, m)  # refuses strange coordinates
        object.__setattr__(self, "subsets", members)
        object.__setattr__(self, "m", m)

    @classmethod
    def quadratic(cls, m: int) -> Lift:
        """The quadratic lift of [A]_: ``x[i, j] = y_i * y_j`` off the diagonal, ``x[i, i] = y_i``; row by row."""
        m = checked_size(m, "the number `m` of coordinates")
        return cls([(i,) if i == j else (i, j) for i in range(m) for j in range(m)], m)

    @classmethod
    def of(cls, lift: Lift | None, m: int) -> Lift:
        """Return the lift, or the identity for None; raise unless it takes m coordinates."""
        if lift is None:
            return cls([(i,) for i in range(m)], m)
        if lift.m != m:
            raise ValueError(f"the function has {m} coordinates and the lift takes {lift.m}; they must agree.")
        return lift

    @property
    def n(self) -> int:
        """Number of coordinates of the lifted points."""
        return len(self.subsets)

    def __call__(self, Y: ArrayLike) -> NDArray[np.int8]:
        """Lifted points, signs (rows, n), of points ``Y``, signs (rows, m)."""
        return characters(checked_signs(Y, self.m), self.subsets).astype(np.int8)

    def sample(self, n_samples: int, *, rng: np.random.Generator) -> NDArray[np.int8]:
        """Lifted points of uniform y: the distribution that the lift induces, (n_samples, n)."""
        return self(bits_to_signs(checked_generator(rng).integers(2, size=(n_samples, self.m), dtype=np.int8)))
