"""Kernel of the certified screen: which units are proved off, from an int8 copy of their weights.

The mathematics, and the proof, are in :mod:`sparsact.inference.certified_screen`, whose names are used here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

SCREEN_BLOCK = 64
MAX_INPUTS = 65_536  # of 8 bits times 8 bits, added in 32


def screen(
    rows: NDArray[np.uint8],
    a: NDArray[np.float64],
    Q: NDArray[np.float64],
    R: NDArray[np.float64],
    offset: NDArray[np.float64],
    along: NDArray[np.float32],
    columns: NDArray[np.float64],
    directions: NDArray[np.float32],
    leak: float,
) -> Any:
    """The screen of a matrix, which holds these arrays; its calls take addresses, so that they cost microseconds.

    Parameters
    ----------
    rows : ndarray of shape (s, width), uint8
        Rows of the copy, q + 128, and 128 from ``d`` on; ``width`` is the next multiple of ``SCREEN_BLOCK``, d at most
        ``MAX_INPUTS``.
    a, Q, R, offset : ndarray of shape (s,), float64
        Scale of each row, bounds of its copy's norm and of its residual's, and b - t.
    along : ndarray of shape (s, k), float32
        Coefficients G of the residuals along the directions.
    columns : ndarray of shape (d,), float64
        1 / c, powers of two.
    directions : ndarray of shape (k, d), float32
        M.
    leak : float
        delta.

    Returns
    -------
    screen : object
        ``survivors(x, bfloat16, m, mask, counts, n_threads)`` fills ``mask`` (m, s), uint8, with 0 where a unit is
        proved off and else 1, and ``counts`` (m,), int64. ``bounds(x, bfloat16, m, bounds, n_threads)`` fills (m, s),
        float64, with the bounds that decide it, NaN where nothing is known;
        ``estimates(x, bfloat16, m, estimates, n_threads)`` fills (m, s), float32. Arrays are given as addresses of
        C-contiguous memory, x (m, d) as float32 or bfloat16.

    Notes
    -----
    Reads the copy once per call, ``s * width`` bytes; all instruction sets and the reference give the same bits.
    """
    return dispatch.chosen().Screen(rows, a, Q, R, offset, along, columns, directions, leak)
