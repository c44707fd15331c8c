"""RandomHash: units by a hash of the input's bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sparsact.routing import hyperparameters
from sparsact.routing.largest import comparisons, largest
from sparsact.routing.mixing import MIXING, keys, mix, mixed, shifted, words_of
from sparsact.routing.namespace import namespace
from sparsact.routing.router import Router, State
from sparsact.routing.selection import Selection


@dataclass(frozen=True, init=False, repr=False)
class RandomHash(Router):
    """k units, as good as random, but always the same for the same input.

    Every unit hashes the input with its own number, and the k with the largest hashes are on; so each set of k units is
    as likely as any other. Nearness means nothing here: an input that differs in its last bit has another set.

    Parameters
    ----------
    k : int
        Units that each input switches on.
    width : int, default=None
        Units to choose from; None for as many as columns.
    seed : int, default=0
        Which hash.

    Notes
    -----
    The snippet of [B]_ (Appendix A.1) hashes the decimal string of a random projection of the input. Its digits depend
    on the order in which the product was summed, so on the machine, the library and the batch. Here the input's own
    numbers are hashed, as float64 spells them, in integer arithmetic: the set is the same on every platform, in NumPy
    and in torch, and for float32 and float64 copies of the same numbers. 53 bits of each hash are compared; should two
    agree, the first unit wins.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Appendix A.1.

    Examples
    --------
    >>> RandomHash(2, width=6)([[0.5, -1.0], [0.5, -1.0], [0.5, 1.0]]).indices.shape
    (3, 2)
    """

    k: int
    n_units: int | None
    seed: int

    name: ClassVar[str] = "random_hash"

    def __init__(self, k: int, width: int | None = None, seed: int = 0) -> None:
        for name, value in (("k", k), ("n_units", width), ("seed", seed)):
            object.__setattr__(self, name, value)
        hyperparameters.sizes(self, "k")
        hyperparameters.sizes(self, "n_units", optional=True)
        hyperparameters.seed(self)
        if self.n_units is not None and self.k > self.n_units:
            raise ValueError(f"cannot choose k = {self.k} units of {self.n_units}: lower `k` or raise `width`.")

    def width(self, in_features: int) -> int:
        """The ``width`` asked for, or the number of columns."""
        return in_features if self.n_units is None else self.n_units

    def n_active(self, in_features: int) -> int:
        """The k of the router."""
        return self.k

    def select(self, x: Any, state: State, *, training: bool = False) -> Selection:
        """The k units of each row of ``x`` whose hashes are largest."""
        xp = namespace(x)
        d, width = x.shape[1], self.width(x.shape[1])
        words = words_of(x)
        row = mixed(words, keys(0, d, self.seed, like=words))
        hashes = mix(row[:, None] ^ keys(-width, width, self.seed, like=words))
        ranks = xp.astype(shifted(hashes, 11), xp.float64)  # 53 bits: exact
        return Selection.mask(largest(ranks, self.k), width, dtype=x.dtype)

    def flops(self, in_features: int) -> int:
        """Integer operations of the hashes (they weigh as much as others here), and comparisons with a heap of k."""
        width = self.width(in_features)
        return (MIXING + 2) * (in_features + width) + MIXING + comparisons(width, self.k)

    def to_dict(self) -> dict[str, Any]:
        """``{"router": "random_hash", "k": ..., "width": ..., "seed": ...}``."""
        return {"router": self.name, "k": self.k, "width": self.n_units, "seed": self.seed}

    def __repr__(self) -> str:
        return f"RandomHash(k={self.k}, width={self.n_units}, seed={self.seed})"
