"""The coarse copy of the layer that the certified screen reads, trusted without its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from sparsact.inference.predictors.graded import mask, shortfall, spreads
from sparsact.inference.predictors.rule import Reads
from sparsact.inference.weights import BlockWeights, plain


class Estimates(Protocol):
    """What estimates pre-activations from few bytes, as :class:`sparsact.inference.screen.Screen` does."""

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads."""

    def estimates(self, x: Tensor) -> Any:
        """Estimated pre-activations (m, s), bias included, float32, for inputs (m, d)."""


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Units whose estimated pre-activation is not far below its threshold.

    Unit j is computed if :math:`g_j(x) > t_j - \lambda \sigma_j`: g is the estimate from an int8 copy of the weights,
    t the threshold of the activation, :math:`\sigma_j` the root mean square error of the estimate on sample inputs.
    The certified screen takes a margin that no input can exceed; this one is set by what inputs do.

    Attributes
    ----------
    screen : Estimates
        What estimates.
    threshold, spread : Tensor of shape (s,)
        t and sigma.
    level : float
        The margin lambda, in units of sigma.
    """

    name: ClassVar[str] = "sketch"
    reads: ClassVar[Reads] = "inputs"
    screen: Estimates
    threshold: Tensor
    spread: Tensor
    level: float = inf

    @classmethod
    def fit(cls, weights: BlockWeights, x: Tensor, *, seed: int, screen: Estimates | None = None) -> Sketch:
        """Spreads from the rows ``x``; ``screen`` is by default the int8 screen of the layer. Not yet at a level."""
        if screen is None:
            from sparsact.inference.screen import Screen

            made: Estimates = Screen.of(weights.weight, weights.bias, weights.threshold, x)
            screen = made
        return cls(screen, weights.threshold, spreads(torch.as_tensor(screen.estimates(x)), weights.pre_activations(x)))

    @property
    def nbytes(self) -> int:
        """The copy, and two numbers a unit."""
        return self.screen.nbytes + self.threshold.nbytes + self.spread.nbytes

    def needs(self, x: Tensor) -> Tensor:
        """The margin above which each unit is computed."""
        return shortfall(torch.as_tensor(self.screen.estimates(plain(x))), self.threshold, self.spread)

    def at(self, level: float) -> Sketch:
        """With another margin."""
        return replace(self, level=level)

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8."""
        return mask(self.needs(x), self.level)

    def to_dict(self) -> dict[str, Any]:
        """The margin."""
        return {"predictor": self.name, "level": self.level}
