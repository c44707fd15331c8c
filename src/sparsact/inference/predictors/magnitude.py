"""Predictors by magnitude: a threshold on activations, or the k largest of each input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, Final, Protocol

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.predictor import Reads
from sparsact.routing import TopK


class SecondLayer(Protocol):
    """What computes activations from inputs, and an output from activations: a block, or a linear layer."""

    def hidden(self, x: Tensor) -> Tensor: ...  # noqa: D102 # see above

    def output(self, h: Tensor) -> Tensor: ...  # noqa: D102 # see above


STEPS: Final = 1 << 16  # quantiles of the activations among which a threshold is chosen


@dataclass(frozen=True)
class Threshold:
    r"""The units with :math:`|h_j| > \tau`, for any activation: the others are not read by ``down``.

    Due to [1]_ and [2]_, who set the threshold to a share of activations.

    Attributes
    ----------
    tau : float
        One number for the layer.

    References
    ----------
    .. [1] D. Lee et al., "CATS: Contextually-Aware Thresholding for Sparsity in Large Language Models", 2024.
    .. [2] J. Liu et al., "Training-Free Activation Sparsity in Large Language Models" (TEAL), 2024.
    """

    name: ClassVar[str] = "threshold"
    reads: ClassVar[Reads] = "activations"
    tau: float

    @classmethod
    def for_density(cls, weights: SecondLayer, x: Tensor, density: float) -> Threshold:
        """The smallest threshold that keeps at most a share ``density`` of the activations on the rows ``x``."""
        sizes = weights.hidden(x).abs().flatten()
        n_kept = min(int(density * len(sizes)), len(sizes) - 1)
        return cls(float(sizes.kthvalue(len(sizes) - n_kept).values))

    @classmethod
    def for_error(cls, weights: SecondLayer, x: Tensor, error: float) -> Threshold:
        r"""The largest threshold with a relative error of the output of at most ``error`` on the rows ``x``.

        .. math:: \sum \|V (h - h \cdot 1[|h| > \tau])\|^2 \le \mathrm{error}^2 \sum \|V h\|^2

        by bisection over 65,536 quantiles of the sample's activations: 16 products with V.
        """
        h = weights.hidden(x)
        sizes = h.abs().flatten().sort().values
        places = torch.linspace(0, len(sizes) - 1, min(len(sizes), STEPS), dtype=torch.float64).long()
        taus = [0.0, *sizes[places].tolist()]

        def loss(i: int) -> float:
            return relative_error(weights, h, h.abs() <= taus[i])

        return cls(taus[last_within_error(loss, len(taus) - 1, error)])

    @property
    def nbytes(self) -> int:
        """Bytes of one number."""
        return 4

    def active(self, x: Tensor) -> Tensor:
        """Units (m, s) uint8 by their activations (m, s); those that are not numbers too."""
        return (plain(x).abs() <= self.tau).logical_not_().to(torch.uint8)

    def to_dict(self) -> dict[str, Any]:
        """The threshold."""
        return {"predictor": self.name, "tau": self.tau}


@dataclass(frozen=True)
class TopKActivations:
    """The units with the largest :math:`|h_j|`, ties in favour of the first, and never a unit that is exactly 0.

    Attributes
    ----------
    n_active : int
        The same for each input.
    """

    name: ClassVar[str] = "top_k"
    reads: ClassVar[Reads] = "activations"
    n_active: int
    router: TopK = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "router", TopK(self.n_active, absolute=True))

    @classmethod
    def for_density(cls, weights: BlockWeights, x: Tensor, density: float) -> TopKActivations:
        """As many units as a share ``density`` of all holds; at least one."""
        return cls(max(1, int(density * weights.sizes[1])))

    @classmethod
    def for_error(cls, weights: BlockWeights, x: Tensor, error: float) -> TopKActivations:
        """The fewest units with a relative error of the output of at most ``error`` on the rows ``x``, by bisection."""
        h = weights.hidden(x)
        s = weights.sizes[1]

        def loss(left_out: int) -> float:
            return relative_error(weights, h, cls(s - left_out).active(h) == 0)

        return cls(s - last_within_error(loss, s - 1, error))

    @property
    def nbytes(self) -> int:
        """Bytes of one number."""
        return 4

    def active(self, x: Tensor) -> Tensor:
        """Units (m, s) uint8 by their activations (m, s)."""
        h = plain(x)
        chosen = self.router.select(h, {}).indices
        mask = torch.zeros(h.shape, dtype=torch.uint8).scatter_(1, chosen, 1)
        return mask.masked_fill_(h == 0, 0)

    def to_dict(self) -> dict[str, Any]:
        """The number of units."""
        return {"predictor": self.name, "n_active": self.n_active}


def relative_error(weights: SecondLayer, h: Tensor, left_out: Tensor) -> float:
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


def last_within_error(loss: Callable[[int], float], last: int, error: float) -> int:
    """By bisection, an i of 0 ... last with loss(i) <= error and, unless i is the last, loss(i + 1) > error.

    loss(0) is taken to be within. Where the loss grows, as it does but for cancellation between units, i is largest.
    """
    if loss(last) <= error:
        return last
    inside, outside = 0, last
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if loss(middle) <= error else (inside, middle)
    return inside
