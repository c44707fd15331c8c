"""Whether regions of memory still hold the bytes that they held."""

from __future__ import annotations

from itertools import count

import numpy as np

from sparsact.kernels.reference.neurons import array_at

LINE, LEAST_LINES, MOST_STRIPES = 64, 16, 511


class Fingerprint:
    """See :func:`sparsact.kernels.fingerprint.fingerprint`."""

    def __init__(self, places: list[tuple[int, int]]) -> None:
        self._places, self._turns = places, count()
        stripes = [min(n_bytes // LINE // LEAST_LINES | 1, MOST_STRIPES) for _, n_bytes in places]
        self._hashes = [[_stripe(place, k, of) for k in range(of)] for place, of in zip(places, stripes, strict=True)]
        self.stripes = max(stripes, default=0)

    def next(self) -> bool:
        """Whether the lines of the next stripe of each region are what they were."""
        turn = next(self._turns)
        return all(
            _stripe(place, turn % len(known), len(known)) == known[turn % len(known)]
            for place, known in zip(self._places, self._hashes, strict=True)
        )

    def all(self) -> bool:
        """Whether all lines are what they were."""
        return all(
            _stripe(place, k, len(known)) == hashed
            for place, known in zip(self._places, self._hashes, strict=True)
            for k, hashed in enumerate(known)
        )


def _stripe(place: tuple[int, int], k: int, stripes: int) -> int:
    address, n_bytes = place
    memory = array_at(address, (1, n_bytes), np.dtype(np.uint8))[0]
    whole = n_bytes // LINE
    lines = memory[: whole * LINE].reshape(whole, LINE)[k::stripes].tobytes()
    rest = memory[whole * LINE :].tobytes() if whole % stripes == k else b""
    return hash(lines + rest)
