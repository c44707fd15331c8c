"""64-bit mixing that NumPy and torch compute alike: int64, where products wrap and shifts are made logical."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsact.routing.namespace import namespace

_STEP, _FIRST, _SECOND = (c - 2**64 for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def shifted(h: Any, by: int) -> Any:
    """Logical shift to the right, ``by`` from 1 to 63."""
    return (h >> by) & ((1 << (64 - by)) - 1)


def finished(h: Any) -> Any:
    """The finaliser of splitmix64: every bit of the result depends on every bit of h."""
    h = (h ^ shifted(h, 30)) * _FIRST
    h = (h ^ shifted(h, 27)) * _SECOND
    return h ^ shifted(h, 31)


def mixed(h: Any, code: Any) -> Any:
    """One more code mixed into h."""
    h = (h ^ code) * _STEP
    return h ^ shifted(h, 32)


def numbered(n: int, salt: int, x: Any) -> Any:
    """A key (n,) for each of the numbers 0 to n - 1, by position and ``salt``; beside x."""
    keys = _keys(range(n).stop, range(salt).stop)  # a range makes plain numbers of torch.compile's symbols
    return namespace(x).asarray(keys, dtype=namespace(x).int64, device=x.device)


def _keys(n: int, salt: int) -> list[int]:
    with np.errstate(over="ignore"):
        places = (np.arange(n, dtype=np.int64) + 1) * _STEP
    keys: list[int] = finished(finished(places) ^ finished_number(salt)).tolist()
    return keys


# What torch._dynamo.assume_constant_result does, without loading torch: a compiled graph holds the keys themselves.
# Traced, their products would be signed overflow of known numbers in C++, and inductor's code gave other keys.
_keys._dynamo_marked_constant = True  # type: ignore[attr-defined] # a function takes any attribute


def finished_number(value: int) -> int:
    """:func:`finished` of one whole number, as a signed 64-bit one."""
    word = 2**64 - 1
    h = (value + 1) * (_STEP % 2**64) & word
    h = (h ^ (h >> 30)) * (_FIRST % 2**64) & word
    h = (h ^ (h >> 27)) * (_SECOND % 2**64) & word
    h ^= h >> 31
    return h - 2**64 if h >> 63 else h
