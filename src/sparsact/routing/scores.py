"""Inner products that routing decides by, in no less than single precision."""

from __future__ import annotations

from typing import Any

from sparsact.routing.namespace import namespace


def precise(x: Any, *others: Any) -> Any:
    """Data type to decide in: the widest of the arrays', float32 at least.

    A gate in half precision sends tokens elsewhere than it was trained to; Switch transformers route in float32 too.
    """
    xp = namespace(x)
    dtype = xp.float32
    for array in (x, *others):
        dtype = xp.result_type(dtype, array.dtype)
    return dtype


def scores(x: Any, directions: Any) -> Any:
    """Inner products (m, t) of the rows of ``x`` (m, d) with those of ``directions`` (t, d); autocast has no say."""
    xp = namespace(x)
    dtype = precise(x, directions)
    x, directions = xp.astype(x, dtype, copy=False), xp.astype(directions, dtype, copy=False)
    if not xp.__name__.endswith("torch"):
        return x @ directions.T
    import torch

    with torch.autocast(x.device.type, enabled=False):
        return x @ directions.T
