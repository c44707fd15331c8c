"""The best choice of sets that cover each point a few times at most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NUMBERS_AT_ONCE = 2**24


def packings(values: NDArray[np.float64], sets: NDArray[np.bool_], s: int, k: int) -> NDArray[np.float64]:
    """Largest total value of 0, 1, ..., s of the sets that cover no point more than k times, (draws, s + 1).

    ``values`` (draws, N), not negative, of ``sets`` (N, m); a set may be taken more than once. A table over how often
    each point may still be covered, ``(k + 1)**m`` entries a draw, is filled set by set.
    """
    places = (k + 1) ** np.arange(sets.shape[1])
    digits = np.arange((k + 1) ** sets.shape[1])[:, None] // places % (k + 1)
    rooms = [np.flatnonzero((digits[:, inside] > 0).all(axis=1)) for inside in sets]
    used = sets @ places
    totals = np.zeros((len(values), s + 1))
    draws = max(1, NUMBERS_AT_ONCE // len(digits))
    for start in range(0, len(values), draws):
        block = slice(start, start + draws)
        best = np.zeros((len(values[block]), len(digits)))
        for size in range(1, s + 1):
            fewer, best = best, best.copy()
            for value, room, cost in zip(values[block].T, rooms, used, strict=True):
                best[:, room] = np.maximum(best[:, room], fewer[:, room - cost] + value[:, None])
            totals[block, size] = best[:, -1]
    return totals
