"""Random-looking words that depend on a number and a seed alone: rows are drawn and dealt by them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.hashing import STEP, finished


def mixed(numbers: NDArray[np.uint64], seed: int = 0) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) of each number."""
    with np.errstate(over="ignore"):
        return finished((numbers + np.uint64(int(seed) % 2**64)) * STEP + STEP)
