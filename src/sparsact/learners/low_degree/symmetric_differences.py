"""The symmetric differences of a family's pairs: their moments, arranged by pair, are its Gram matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import Masks
from sparsact.learners.low_degree.family import Family


@dataclass(frozen=True, eq=False)
class Differences(ABC):
    """The distinct ``S xor T`` of the subsets of a family, the empty one among them.

    Attributes
    ----------
    masks : ndarray of shape (N, words), uint64
        In the order of the numbers they spell.
    """

    masks: Masks

    @staticmethod
    def of(family: Family) -> Differences:
        """By rank when the family holds all subsets up to some size; else by search."""
        if family.span is not None and family.span[0] == 1:
            size = min(2 * family.span[1], family.n)
            return Ranked(kernels.subsets_in_order(family.n, size), family.n, size)
        return Listed(*kernels.symmetric_differences(family.with_empty))

    def places(self, masks: Masks) -> NDArray[np.intp]:
        """Places of some of the masks."""
        return np.searchsorted(_spelled(self.masks), _spelled(masks))

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @abstractmethod
    def gram(self, family: Family, moments: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Moments (N,) arranged by pair, (D + 1, D + 1), for the family or a leading part of it."""


@dataclass(frozen=True, eq=False)
class Ranked(Differences):
    """All subsets of n coordinates with at most ``size`` members: the place of each follows from its members."""

    n: int
    size: int

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.masks.nbytes

    def gram(self, family: Family, moments: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Moments (N,) arranged by pair, (D + 1, D + 1), for the family or a leading part of it."""
        return kernels.ranked_gram(family.with_empty, moments, self.n, self.size, n_threads=n_threads)


@dataclass(frozen=True, eq=False)
class Listed(Differences):
    """Those of any family, with the place of every pair's, (D + 1, D + 1)."""

    position: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.masks.nbytes + self.position.nbytes

    def gram(self, family: Family, moments: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Moments (N,) arranged by pair, (D + 1, D + 1), for the family or a leading part of it."""
        size = len(family) + 1
        return np.asarray(moments[self.position[:size, :size]])


def _spelled(masks: Masks) -> NDArray[np.bytes_]:
    """Masks as strings of bytes that sort like the numbers they spell."""
    words = np.ascontiguousarray(masks[:, ::-1].astype(">u8"))
    return words.view(f"S{words.shape[1] * words.itemsize}").ravel()
