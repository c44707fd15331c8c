"""Hashes of 64-bit words: integers only, so the same bits in NumPy and torch, on every platform.

References
----------
.. [1] G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", 2014 (SplitMix64).
"""

from __future__ import annotations

from typing import Any

from sparsact.routing.namespace import namespace

# The constants of [1]_, as int64 spells them: torch has no arithmetic on uint64, and two's complement needs none.
FIRST, SECOND = 0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64
MIXING = 8  # multiplications, shifts and exclusive ors of `mix`


def shifted(words: Any, places: int) -> Any:
    """int64 ``words`` shifted right as if they were unsigned."""
    return (words >> places) & ((1 << (64 - places)) - 1)


def mix(words: Any) -> Any:
    """A bijection of int64 words in which each bit depends on all: the finaliser of [1]_. Products wrap around."""
    words = (words ^ shifted(words, 30)) * FIRST
    words = (words ^ shifted(words, 27)) * SECOND
    return words ^ shifted(words, 31)


def keys(start: int, n: int, seed: int, *, like: Any) -> Any:
    """Pseudorandom words (n,) of the places start, ..., start + n - 1: others for every seed, no two alike."""
    xp = namespace(like)
    return mix(mix(xp.arange(start, start + n, dtype=xp.int64, device=like.device)) ^ seed)


def mixed(words: Any, places: Any) -> Any:
    """One word for each row of ``words`` (..., n), of which column i has the key ``places[..., i]``."""
    return mix(namespace(words).sum(mix(words ^ places), axis=-1))


def words_of(x: Any) -> Any:
    """The bits of each number as float64, which holds every narrower float exactly; -0.0 and 0.0 are one number."""
    xp = namespace(x)
    wide = xp.astype(x, xp.float64, copy=False)
    return xp.where(wide == 0, xp.zeros_like(wide), wide).view(xp.int64)
