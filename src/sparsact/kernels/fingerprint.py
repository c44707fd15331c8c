"""Hashes of memory that tell whether it still holds the bytes that it held."""

from __future__ import annotations

from typing import Any

from sparsact.kernels import dispatch


def fingerprint(address: int, n_bytes: int) -> Any:
    """The fingerprint of memory as it is now.

    Memory is divided into cache lines of 64 bytes, and these into at most 511 stripes of every so many lines.

    Parameters
    ----------
    address : int
        Where it begins; it is not kept.
    n_bytes : int
        May be 0.

    Returns
    -------
    fingerprint : object
        ``next(address)`` tells whether the lines of one stripe are what they were, another stripe in each call:
        ``stripes`` calls in a row read all. ``all(address)`` reads all at once. A change in what is read is missed with
        probability 2^-64.

    Notes
    -----
    ``next`` reads 16 lines, or 1/511 of the memory where that is more.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.zeros(1000)
    >>> found = fingerprint(table.ctypes.data, table.nbytes)
    >>> found.all(table.ctypes.data)
    True
    >>> table[123] = 1e-300
    >>> found.all(table.ctypes.data), all([found.next(table.ctypes.data) for _ in range(found.stripes)])
    (False, False)
    """
    return dispatch.chosen().Fingerprint(address, n_bytes)
