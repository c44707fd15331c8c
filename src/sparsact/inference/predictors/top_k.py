"""The largest activations of each input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from sparsact.inference.predictors.bisection import largest_within, relative_error
from sparsact.inference.predictors.rule import Reads
from sparsact.inference.weights import BlockWeights, plain
from sparsact.routing import TopK


@dataclass(frozen=True)
class LargestActivations:
    """The k units with the largest :math:`|h_j|`, of equal ones the first; units at exactly 0 are never among them.

    Attributes
    ----------
    k : int
        The same for each input.
    """

    name: ClassVar[str] = "top_k"
    reads: ClassVar[Reads] = "activations"
    k: int
    router: TopK = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "router", TopK(self.k, absolute=True))

    @classmethod
    def for_density(cls, weights: BlockWeights, x: Tensor, density: float) -> LargestActivations:
        """The most units that are no more than a share ``density`` of all; one at least."""
        return cls(max(1, int(density * weights.sizes[1])))

    @classmethod
    def for_error(cls, weights: BlockWeights, x: Tensor, error: float) -> LargestActivations:
        """The least k with a relative error of the output of at most ``error`` on the rows ``x``, by bisection."""
        h = weights.hidden(x)
        s = weights.sizes[1]

        def loss(left_out: int) -> float:
            return relative_error(weights, h, cls(s - left_out).active(h) == 0)

        return cls(s - largest_within(loss, s - 1, error))

    @property
    def nbytes(self) -> int:
        """None to speak of: one number."""
        return 4

    def active(self, x: Tensor) -> Tensor:
        """Units (m, s) uint8 by their activations (m, s)."""
        h = plain(x)
        chosen = self.router.select(h, {}).indices
        mask = torch.zeros(h.shape, dtype=torch.uint8).scatter_(1, chosen, 1)
        return mask.masked_fill_(h == 0, 0)

    def to_dict(self) -> dict[str, Any]:
        """The number of units."""
        return {"predictor": self.name, "k": self.k}
