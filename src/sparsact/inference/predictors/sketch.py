"""The coarse copy of the layer that the certified screen reads, trusted without its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Protocol

from torch import Tensor

from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.predictor import Reads, mask, spreads
from sparsact.validation.former_names import renamed


class Estimates(Protocol):
    """What estimates a layer from few bytes, as :class:`sparsact.inference.certified_screen.Screen` does."""

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads, at most."""

    def estimates(self, x: Tensor) -> Tensor:
        """Pre-activations less thresholds, about, (m, s) float32, of inputs (m, d) in float32."""


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Units whose estimated pre-activation is not far below its threshold.

    Unit j is computed if :math:`g_j(x) > -\lambda \sigma_j`: g estimates the pre-activation less its threshold from an
    int8 copy of the weights, and :math:`\sigma_j` is the root mean square error of the estimate on sample inputs.
    The certified screen takes a margin that no input can exceed; this one is set by what inputs do.

    Attributes
    ----------
    screen : Estimates
        What estimates.
    spread : Tensor of shape (s,)
        sigma.
    level : float
        The margin lambda, in units of sigma.
    """

    name: ClassVar[str] = "sketch"
    reads: ClassVar[Reads] = "inputs"
    screen: Estimates
    spread: Tensor
    level: float = inf

    @classmethod
    @renamed(seed="random_state")
    def fit(cls, weights: BlockWeights, x: Tensor, *, random_state: int, screen: Estimates | None = None) -> Sketch:
        """Spreads from the rows ``x``; ``screen`` is by default the int8 screen of the layer. Not yet at a level."""
        if screen is None:
            from sparsact.inference.certified_screen import Screen

            screen = Screen.of(weights.weight, weights.bias, weights.threshold, x)
        truth = weights.pre_activations(x) - weights.threshold
        return cls(screen, spreads(screen.estimates(x.float()), truth))

    @property
    def nbytes(self) -> int:
        """The copy, and a number a unit."""
        return self.screen.nbytes + self.spread.nbytes

    def needs(self, x: Tensor) -> Tensor:
        """The margin above which each unit is computed."""
        return -self.screen.estimates(plain(x).float()) / self.spread

    def at(self, level: float) -> Sketch:
        """With another margin."""
        return replace(self, level=level)

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8."""
        return mask(self.needs(x), self.level)

    def to_dict(self) -> dict[str, Any]:
        """The margin."""
        return {"predictor": self.name, "level": self.level}
