"""The largest values of each row, by a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_k(values: NDArray[Any], k: int, absolute: bool, places: NDArray[np.int64], n_threads: int) -> None:
    """Fill ``places`` (m, k); see :func:`sparsact.kernels.top_k`."""
    ranked = np.argsort(-(np.abs(values) if absolute else values), axis=1, kind="stable")
    places[:] = np.sort(ranked[:, :k], axis=1)
