"""A random set of units for each input: the same input, the same units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparsact.routing.array_functions import Array, namespace, ones
from sparsact.routing.lsh import finished, numbered, shifted
from sparsact.routing.router import Router, State, check_choice
from sparsact.routing.selection import Selection
from sparsact.routing.top_k import largest
from sparsact.validation.parameters import check_random_state, check_sizes


@dataclass(frozen=True)
class RandomHash(Router):
    """Chooses units by a hash of the input's bits: all sets are equally likely, and close inputs get unrelated sets.

    The same input has the same units in every process, on every platform, in every dtype that holds its numbers
    exactly, for -0.0 as for 0.0: numbers are taken as float64, and only whole numbers are computed with. The paper's
    listing (A.1) hashes the decimal text of a random *projection* of the input, whose last digits differ from one
    matrix library to the next.

    Parameters
    ----------
    n_active : int
        Active units.
    n_units : int, optional
        Units to choose from; default: as many as inputs have columns.
    random_state : int, default=0
        Seed of the hash.

    Examples
    --------
    >>> router = RandomHash(2, 6)
    >>> bool((router([[0.5, -1.0]]).indices == router([[0.5, -1.0]]).indices).all())
    True
    """

    name: ClassVar[str] = "random_hash"
    n_active: int
    n_units: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_active")
        check_sizes(self, "n_units", optional=True)
        check_random_state(self)
        if self.n_units is not None:
            check_choice(self.n_active, self.n_units)

    def width(self, in_features: int) -> int:
        """``n_units``, or the number of columns."""
        width = in_features if self.n_units is None else self.n_units
        check_choice(self.n_active, width)
        return width

    def max_active(self, in_features: int) -> int:
        """``n_active``."""
        return self.n_active

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The k units whose mixture with the input is largest, with weight 1."""
        width = self.width(x.shape[1])
        words = _words(x)
        columns = numbered(x.shape[1], 2 * self.random_state, words)
        units = numbered(width, 2 * self.random_state + 1, words)
        xp = namespace(words)
        inputs = finished(xp.sum(finished(words ^ columns), axis=1, dtype=xp.int64))
        ranks = xp.astype(shifted(finished(inputs[:, None] ^ units), 11), xp.float64)  # 53 bits: exact
        places = largest(ranks, self.n_active)
        return Selection.of(places, ones(tuple(places.shape), x), width)

    def flops(self, in_features: int) -> int:
        """About nine whole-number operations a column and ten a unit, with a comparison."""
        return 9 * in_features + 10 * self.width(in_features)


def _words(x: Array) -> Any:
    """The bits of each number as float64, -0.0 as 0.0: int64."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x.astype(np.float64) + 0.0).view(np.int64)
    xp = namespace(x)
    return (x.detach().to(xp.float64) + 0.0).contiguous().view(xp.int64)
