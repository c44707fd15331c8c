"""Hashes of memory that tell whether it still holds the bytes that it held."""

from __future__ import annotations

from typing import Any

from sparsact.kernels import dispatch


def fingerprint(places: list[tuple[int, int]]) -> Any:
    """The fingerprint of regions of memory as they are now.

    A region is divided into cache lines of 64 bytes, and these into at most 511 stripes of every so many lines.

    Parameters
    ----------
    places : list of (int, int)
        Address and number of bytes of each region. Whoever holds the fingerprint keeps the memory alive.

    Returns
    -------
    fingerprint : object
        ``next()`` tells whether the lines of one stripe of each region are what they were, another stripe in every
        call: ``stripes`` calls in a row read all. ``all()`` reads all at once. A change in what is read is missed
        with probability 2^-64.

    Notes
    -----
    ``next`` reads 16 to 31 lines of a region, or 1/511 of it where that is more.

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
    return dispatch.chosen().Fingerprint(places)
