"""Whether memory still holds the bytes that it held."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from sparsact.kernels.reference.neurons import array_at

LINE, LEAST_LINES, MOST_STRIPES = 64, 16, 511


class Fingerprint:
    """See :class:`sparsact.kernels.fingerprint.Fingerprint`."""

    def __init__(self, address: int, bytes: int) -> None:  # noqa: A002 # as of the native kernel
        self._bytes = bytes
        self.stripes = min(bytes // LINE // LEAST_LINES | 1, MOST_STRIPES)
        self._hashes = [self._stripe(address, k) for k in range(self.stripes)]
        self._turns = cycle(range(self.stripes))

    def next(self, address: int) -> bool:
        """Whether the lines of the next stripe are what they were."""
        k = next(self._turns)
        return self._stripe(address, k) == self._hashes[k]

    def all(self, address: int) -> bool:
        """Whether all lines are what they were."""
        return all(self._stripe(address, k) == known for k, known in enumerate(self._hashes))

    def _stripe(self, address: int, k: int) -> int:
        memory = array_at(address, (1, self._bytes), np.dtype(np.uint8))[0]
        whole = self._bytes // LINE * LINE
        lines = memory[:whole].reshape(-1, LINE)[k :: self.stripes].tobytes()
        rest = memory[whole:].tobytes() if whole // LINE % self.stripes == k else b""
        return hash(lines + rest)
