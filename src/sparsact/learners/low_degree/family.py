"""Which monomials a low-degree polynomial may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, Subset, masks_of, n_subsets, n_words, subset_masks, subsets_of
from sparsact.validation.arrays import checked_subset


@dataclass(frozen=True, eq=False)
class Family:
    """A set of non-empty subsets of n coordinates, by size, then lexicographic; the empty subset is the intercept.

    Attributes
    ----------
    n : int
        Number of coordinates.
    masks : ndarray of shape (D, ceil(n / 64)), uint64
        The subsets.
    span : (int, int) or None
        ``(min_degree, degree)`` when these are all subsets of those sizes, None for a list.
    """

    n: int
    masks: Masks
    span: tuple[int, int] | None

    @classmethod
    def full(cls, n: int, degree: int, min_degree: int = 1) -> Family:
        """All subsets with ``max(1, min_degree) <= |S| <= min(degree, n)``."""
        span = (max(1, min_degree), min(degree, n))
        return cls(n, subset_masks(n, span[1], span[0]), span)

    @classmethod
    def listed(cls, n: int, subsets: Sequence[Iterable[int]]) -> Family:
        """The given subsets, without repetition and without the empty one.

        Raises
        ------
        ValueError
            If a subset names a coordinate outside ``range(n)``, or one twice.
        TypeError
            If a coordinate is no integer.
        """
        chosen = sorted({checked_subset(subset) for subset in subsets} - {()}, key=_graded)
        return cls(n, masks_of(chosen, n), None)

    @staticmethod
    def count(n: int, degree: int, min_degree: int = 1) -> int:
        """Size of :meth:`full` without building it."""
        return n_subsets(n, degree, max(1, min_degree))

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def subsets(self) -> list[Subset]:
        """The subsets as sorted tuples of coordinates."""
        return subsets_of(self.masks)

    @cached_property
    def with_empty(self) -> Masks:
        """Masks of the empty subset, then of the family: shape (D + 1, words)."""
        return np.concatenate([np.zeros((1, n_words(self.n)), dtype=np.uint64), self.masks])

    def part(self, chosen: NDArray[np.intp]) -> Family:
        """Some of the subsets, in graded order."""
        return Family(self.n, np.ascontiguousarray(self.masks[np.sort(chosen)]), None)

    def leading(self, wanted: Family) -> Family:
        """The wanted family, which must be the leading part of this one, whose sums were kept.

        Raises
        ------
        ValueError
            If it is not.
        """
        if not np.array_equal(self.masks[: len(wanted)], wanted.masks):
            raise ValueError(
                f"sums were kept for {len(self):,} monomials, and the rows are gone; to change degree, min_degree or "
                "subsets, fit anew."
            )
        return wanted


def _graded(subset: Subset) -> tuple[int, Subset]:
    return len(subset), subset
