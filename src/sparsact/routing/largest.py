"""The k largest scores of each row, exactly; of equal ones the first wins."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsact import kernels


def largest(scores: Any, k: int, *, absolute: bool = False) -> Any:
    """Places (m, k), int64, in increasing order, of the k largest of each row of ``scores`` (m, t)."""
    if k > scores.shape[1]:
        raise ValueError(f"cannot choose k = {k} units of {scores.shape[1]}: lower `k` or widen the layer.")
    if isinstance(scores, np.ndarray):
        wide = np.ascontiguousarray(scores, dtype=np.result_type(scores.dtype, np.float32))
        return kernels.top_k(wide, k, absolute=absolute)
    ranked = (scores.abs() if absolute else scores).sort(dim=1, descending=True, stable=True).indices
    return ranked[:, :k].sort(dim=1).values


def comparisons(width: int, k: int) -> int:
    """Comparisons that choose the k largest of ``width`` numbers, at most: each meets a heap of k."""
    return width * k.bit_length()
