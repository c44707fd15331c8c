"""The most that can be left out of a block for a given error of its output."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from torch import Tensor

from sparsact.inference.weights import BlockWeights


def relative_error(weights: BlockWeights, h: Tensor, left_out: Tensor) -> float:
    r"""Relative error of the output without the activations that are ``left_out`` (m, s): a root mean square over rows.

    .. math:: \sqrt{\sum \|V (h \cdot 1_{\text{left out}})\|^2 / \sum \|V h\|^2}
    """
    whole = float(weights.output(h).double().square().sum())
    if not whole:
        raise ValueError(
            "the block's output is 0 on every sample input, so an error relative to it has no meaning; "
            "pass other sample inputs, or a density."
        )
    return sqrt(float(weights.output(h.masked_fill(~left_out, 0)).double().square().sum()) / whole)


def largest_within(loss: Callable[[int], float], most: int, error: float) -> int:
    """A place i of 0 ... most with loss(i) <= error and, unless i is the last, loss(i + 1) > error.

    Place 0 is taken to be within. Where the loss grows, as it does but for cancellation between units,
    it is the largest.
    """
    if loss(most) <= error:
        return most
    inside, outside = 0, most
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if loss(middle) <= error else (inside, middle)
    return inside
