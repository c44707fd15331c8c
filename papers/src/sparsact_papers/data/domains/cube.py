"""The whole cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_columns
from sparsact.validation.parameters import checked_size
from sparsact_papers.data.domains.domain import Domain, in_cube


@dataclass(frozen=True)
class Cube(Domain):
    """The cube [-1, 1]^n, from which paper B draws the inputs of its experiments (Section A.1).

    Examples
    --------
    >>> Cube(3).sample(2, rng=np.random.default_rng(0)).shape
    (2, 3)
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checked_size(self.n, "the number `n` of columns"))

    @property
    def dimension(self) -> int:
        """``n``."""
        return self.n

    @property
    def ambient(self) -> int:
        """``n``."""
        return self.n

    def coordinates(self, X: ArrayLike) -> NDArray[np.float64]:
        """The points themselves, shape (m, n)."""
        return checked_columns(X, self.n).copy()

    def _sample(self, m: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(-1, 1, size=(m, self.n))

    def _contains(self, X: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
        return in_cube(X, tolerance)
