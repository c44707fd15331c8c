"""The array functions of the library that an array belongs to: NumPy, or torch where the caller has brought it."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import numpy


def namespace(array: Any) -> Any:
    """Array-API functions for ``array``: ``array_api_compat.numpy`` or ``array_api_compat.torch``.

    ``array_api_compat.array_namespace`` asks a cache, which torch.compile cannot see through.
    """
    if isinstance(array, np.ndarray):
        return numpy
    from array_api_compat import torch  # late: only who brings tensors has torch

    return torch


def taken(values: Any, places: Any) -> Any:
    """Of each row along the last axis, the values at ``places``; differentiable."""
    if isinstance(values, np.ndarray):
        return np.take_along_axis(values, places, axis=-1)
    return values.take_along_dim(places, dim=-1)


def constant(array: Any) -> Any:
    """``array`` as a constant, through which no gradient flows."""
    return array if isinstance(array, np.ndarray) else array.detach()


def softmax(logits: Any) -> Any:
    """Probabilities along the last axis."""
    if isinstance(logits, np.ndarray):
        from scipy import special

        return special.softmax(logits, axis=-1) if logits.size else logits
    return logits.softmax(-1)


def log_sum_exp(logits: Any) -> Any:
    """Logarithm of the sum of exponentials along the last axis."""
    if isinstance(logits, np.ndarray):
        from scipy import special

        return special.logsumexp(logits, axis=-1) if logits.size else logits[..., 0]
    return logits.logsumexp(-1)


def sigmoid(scores: Any) -> Any:
    """1 / (1 + exp(-score)), entry by entry."""
    if isinstance(scores, np.ndarray):
        from scipy import special

        return special.expit(scores)
    return scores.sigmoid()
