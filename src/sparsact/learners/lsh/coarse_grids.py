"""Coarse tables for rows whose buckets are all empty: the same hash functions, wider and wider."""

from __future__ import annotations

from math import ceil, log2
from typing import Final

import numpy as np

from sparsact.kernels.hashing import STEP, Hashes
from sparsact.learners.lsh.layout import MAX_LOCAL, Layout

REACH: Final = 16.0  # deviations along the leading direction: a cell of this width holds nearly all rows
MOST_LEVELS: Final = 10
RATIO: Final = 2.0  # between the widths of two levels, at least


def backup_layout(layout: Layout) -> Layout:
    """Grids of 2, 4, 8, ... times the width of a layout's first one, with a constant in each cell.

    They stand in its leading local coordinates, and belong to the layout.
    """
    hashes = layout.hashes
    p = min(layout.n_local, MAX_LOCAL)
    if hashes.grid:
        first, offsets = hashes.directions[:, : layout.n_hashes], hashes.offsets[: layout.n_hashes]
        width = 1.0 / max(float(np.hypot.reduce(first[:, 0])), 1e-300)
        n_levels = int(np.clip(ceil(log2(REACH) - log2(width)), 1, MOST_LEVELS))
    else:
        first, offsets, width, n_levels = np.eye(p), np.full(p, 0.5), 1.0, MOST_LEVELS
    ratio = max(RATIO, (REACH / width) ** (1.0 / n_levels))
    scales = ratio ** -np.arange(1.0, n_levels + 1)
    coarse = Hashes(
        hashes.centre,
        np.ascontiguousarray(hashes.local[:, : first.shape[0]]),
        np.ascontiguousarray(np.concatenate([first * scale for scale in scales], axis=1)),
        np.tile(offsets, n_levels),
        hashes.seeds[0] + STEP * np.arange(1, n_levels + 1, dtype=np.uint64),
        True,
        False,
    )
    return Layout(coarse, 0, layout.trend, layout.level, layout.unit)
