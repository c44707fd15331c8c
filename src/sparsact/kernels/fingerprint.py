"""Hashes of memory that reveal whether its bytes have changed."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from sparsact.kernels import dispatch
from sparsact.kernels.neurons import array_at

PIECE, MOST_STRIPES = 1024, 511


def fingerprint(places: list[tuple[int, int]]) -> Any:
    """Compute the fingerprint of the present content of regions of memory.

    A region is divided into pieces of 1,024 bytes, and these into at most 511 stripes. ``next`` reads at most three
    pieces of a region, or 1/511 of it where that is more.

    Parameters
    ----------
    places : list of (int, int)
        Address and number of bytes of each region. Whoever holds the fingerprint keeps the memory alive.

    Returns
    -------
    fingerprint : object
        ``next()`` returns whether the pieces of one stripe of each region are what they were, another stripe in every
        call: ``stripes`` calls in a row read all. ``all()`` reads all at once. A change in what is read is missed
        with probability 2^-64.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.zeros(1000)
    >>> found = fingerprint([(table.ctypes.data, table.nbytes)])
    >>> found.all()
    True
    >>> table[123] = 1e-300
    >>> found.all(), all([found.next() for _ in range(found.stripes)])
    (False, False)
    """
    return dispatch.chosen.Fingerprint(places)


@dispatch.kernel
class _Fingerprint:
    def __init__(self, places: list[tuple[int, int]]) -> None:
        self._places, self._turns = places, count()
        stripes = [min(max(n_bytes // PIECE - 1, 0) | 1, MOST_STRIPES) for _, n_bytes in places]
        self._hashes = [[_stripe(place, k, of) for k in range(of)] for place, of in zip(places, stripes, strict=True)]
        self.stripes = max(stripes, default=0)

    def next(self) -> bool:
        turn = next(self._turns)
        return all(
            _stripe(place, turn % len(known), len(known)) == known[turn % len(known)]
            for place, known in zip(self._places, self._hashes, strict=True)
        )

    def all(self) -> bool:
        return all(
            _stripe(place, k, len(known)) == hashed
            for place, known in zip(self._places, self._hashes, strict=True)
            for k, hashed in enumerate(known)
        )


def _stripe(place: tuple[int, int], k: int, stripes: int) -> int:
    address, n_bytes = place
    memory = array_at(address, (1, n_bytes), np.uint8)[0]
    return hash(b"".join(memory[at : at + PIECE].tobytes() for at in range(k * PIECE, n_bytes, stripes * PIECE)))
