"""Slots of tables of prime size by hashes of the last token ids: the addresses of a memory of n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array, namespace, ones
from sparsact.routing.lsh import finished, numbered, shifted
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection
from sparsact.validation.parameters import check_random_state, check_sizes, checked_size


@dataclass(frozen=True, eq=False)
class Collisions:
    """Number of different n-grams that share slots.

    Attributes
    ----------
    n_grams : ndarray of shape (orders,), int64
        Number of different n-grams of each order.
    shared : ndarray of shape (orders, n_hashes)
        Share of n-grams whose slot in a table also holds another one; u in p slots have :math:`1 - (1 - 1/p)^{u - 1}`.
    inseparable : ndarray of shape (orders,)
        Share of n-grams that share all slots with another one.
    """

    n_grams: NDArray[np.int64]
    shared: NDArray[np.float64]
    inseparable: NDArray[np.float64]


@dataclass(frozen=True)
class NGramHash(Router):
    r"""One slot in each of several tables, by hashes of the last n token ids: the addresses of Engram [1]_.

    Column j of an input is the id of the token j places back, and column 0 the token itself; a negative id stands for
    no token, as before the beginning of a text, and is hashed as any other. Of each order n there are ``n_hashes``
    tables, whose sizes are different primes p,

    .. math:: \mathrm{slot}(x) = h(x_0, \ldots, x_{n-1}) \bmod p,

    so that two n-grams that share a slot of one table share one of the next with probability 1 / p only. Weights are 1.

    Parameters
    ----------
    n_slots : int
        Number of slots over all tables; the largest primes that fit give a few less.
    ngram : sequence of int, default=(2, 3)
        Orders n, increasing.
    n_hashes : int, default=2
        Number of tables for each order.
    random_state : int, default=0
        Seed of the hash.

    References
    ----------
    .. [1] X. Cheng et al., "Conditional Memory via Scalable Lookup", 2026 (Engram), Section 2.

    Examples
    --------
    The bigram (7, 4) has the same slots after any token, the trigram has not:

    >>> router = NGramHash(1000, ngram=(2, 3), n_hashes=1)
    >>> router.sizes
    (499, 491)
    >>> (router([[4, 7, 1]]).indices == router([[4, 7, 2]]).indices).tolist()
    [[True, False]]
    """

    name: ClassVar[str] = "ngram_hash"
    n_slots: int
    ngram: Sequence[int] = (2, 3)
    n_hashes: int = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        check_sizes(self, "n_slots", "n_hashes")
        check_random_state(self)
        given: Any = self.ngram if isinstance(self.ngram, tuple | list) else ()
        orders = tuple(checked_size(n, "each order of `ngram`") for n in given)
        if not orders or sorted(set(orders)) != list(orders):
            raise ValueError(f"`ngram` must be increasing orders such as (2, 3); got {self.ngram!r}.")
        object.__setattr__(self, "ngram", orders)
        if not self.sizes:
            raise ValueError(
                f"{self.n_slots} slots are too few for {len(orders) * self.n_hashes} tables of different prime sizes; "
                "raise `n_slots`."
            )

    @cached_property  # and no lru_cache, which compilers look through
    def sizes(self) -> tuple[int, ...]:
        """Slots of each table: ``n_hashes`` of the first order, then of the next; empty where they do not fit."""
        n_tables = len(self.ngram) * self.n_hashes
        return _primes(self.n_slots // n_tables, n_tables)

    def width(self, in_features: int) -> int:
        """Slots of all tables."""
        if in_features < self.ngram[-1]:
            raise ValueError(f"{self.ngram[-1]}-grams need {self.ngram[-1]} columns of token ids; got {in_features}.")
        return sum(self.sizes)

    def max_active(self, in_features: int) -> int:
        """One a table."""
        return len(self.sizes)

    def select(self, x: Array, state: State, *, training: bool = False) -> Selection:
        """The slot in each table, with weight 1."""
        xp = namespace(x)
        last = self.ngram[-1]
        ids = xp.astype(xp.floor(xp.astype(x[:, :last], xp.float64)), xp.int64)
        # Ids one by one, then sums of them: the hash of an order continues that of the order before.
        sums = finished(ids ^ numbered(last, self.random_state, ids))
        sums = xp.stack(
            [xp.sum(sums[:, :n], axis=1, dtype=xp.int64) for n in self.ngram for _ in range(self.n_hashes)], axis=1
        )
        sizes = xp.asarray(self.sizes, dtype=xp.int64, device=x.device)
        units = shifted(finished(sums), 1) % sizes + xp.cumsum(sizes, axis=0) - sizes
        return Selection.of(units, ones(tuple(units.shape), x), self.width(x.shape[1]))

    def flops(self, in_features: int) -> int:
        """About nine whole-number operations a column, and eleven a table."""
        return 9 * self.ngram[-1] + 11 * len(self.sizes)

    def collisions(self, x: NDArray[Any]) -> Collisions:
        """Collisions among the different n-grams of ``x`` (m, in_features), which are m of each order."""
        ids = np.asarray(x)[:, : self.ngram[-1]]
        n_grams, shared, inseparable = [], [], []
        for order, n in enumerate(self.ngram):
            different = ids[np.unique(ids[:, :n], axis=0, return_index=True)[1]]
            tables = slice(order * self.n_hashes, (order + 1) * self.n_hashes)
            slots = self.select(different, {}).indices[:, tables]
            n_grams.append(len(different))
            shared.append([_share_repeated(column) for column in slots.T])
            inseparable.append(_share_repeated(slots))
        return Collisions(np.array(n_grams), np.array(shared), np.array(inseparable))


def _share_repeated(rows: NDArray[np.int64]) -> float:
    """Share of the rows that occur more than once."""
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return float(counts[counts > 1].sum() / max(1, len(rows)))


def _primes(most: int, count: int) -> tuple[int, ...]:
    """The ``count`` largest primes up to ``most``, decreasing; empty where there are fewer."""
    found: list[int] = []
    while most > 1 and len(found) < count:
        if (most % np.arange(2, isqrt(most) + 1)).all():
            found.append(most)
        most -= 1
    return tuple(found) if len(found) == count else ()
