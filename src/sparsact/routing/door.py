"""What a router takes at its public door."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsact.checks import checked_reals
from sparsact.routing.namespace import is_tensor, namespace


def checked_inputs(x: Any) -> Any:
    """``x`` (m, d) as finite float32 or float64 of NumPy, or as a tensor of a floating dtype."""
    if is_tensor(x):
        rows = x if x.is_floating_point() else x.to(namespace(x).float32)
        finite = rows.isfinite()
        if not bool(finite.all()):
            row, column = (int(i) for i in (~finite.reshape(-1, rows.shape[-1])).nonzero()[0])
            raise ValueError(f"router inputs must be finite; row {row}, column {column} is not: drop or fill it.")
    else:
        narrow = isinstance(x, np.ndarray) and x.dtype == np.float32
        rows = checked_reals(x, "router inputs")
        rows = np.ascontiguousarray(rows, dtype=np.float32 if narrow else np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"router inputs must have one row an input, (m, d); got shape {tuple(rows.shape)}.")
    return rows


def checked_state(state: Any, names: tuple[str, ...], name: str) -> Any:
    """A state that holds all names that a router needs."""
    missing = [each for each in names if each not in state]
    if missing:
        raise ValueError(f"the state of {name} lacks {', '.join(missing)}; start from initial_state().")
    return state
