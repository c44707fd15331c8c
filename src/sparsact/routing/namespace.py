"""The array functions of the library that an array belongs to: NumPy, or torch where the caller has brought it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit


def namespace(array: Any) -> Any:
    """Array-API functions for ``array``: NumPy itself, which speaks it since 2.1, or ``array_api_compat.torch``.

    ``array_api_compat.array_namespace`` asks a cache, which torch.compile cannot see through.
    """
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import torch  # late: whoever has a tensor has torch; torch.compile follows this line

    return torch


def is_tensor(thing: Any) -> bool:
    """Whether it is a torch tensor, found without importing torch."""
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(thing).__mro__)


def like(array: Any, x: Any) -> Any:
    """A NumPy array as the kind of x; floats take its dtype, or float32 where that is half precision."""
    xp = namespace(x)
    dtype = xp.result_type(x.dtype, xp.float32) if array.dtype.kind == "f" else None
    if isinstance(x, np.ndarray):
        return array if dtype is None else array.astype(dtype)
    return xp.tensor(array, device=x.device, dtype=dtype)


def integers(n: int, x: Any) -> Any:
    """0, 1, ... n - 1 as int64 beside x."""
    xp = namespace(x)
    return xp.arange(n, dtype=xp.int64, device=x.device)


def ones(shape: tuple[int, ...], x: Any) -> Any:
    """Ones of x's dtype beside it."""
    return namespace(x).ones(shape, dtype=x.dtype, device=x.device)


def sigmoid(scores: Any) -> Any:
    """1 / (1 + exp(-score)), whose gradient is finite wherever the score is."""
    return expit(scores) if isinstance(scores, np.ndarray) else scores.sigmoid()


def constant(array: Any) -> Any:
    """The same numbers, through which no gradient flows."""
    return array if isinstance(array, np.ndarray) else array.detach()
