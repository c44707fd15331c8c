"""A predictor from the int8 copy of the layer that the certified screen reads, without its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Protocol

from torch import Tensor

from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.certified_screen import Screen
from sparsact.inference.predictors.predictor import MarginPredictor, spreads


class LayerEstimator(Protocol):
    """Estimates a layer's output from few bytes, as :class:`sparsact.inference.certified_screen.Screen` does."""

    @property
    def nbytes(self) -> int:
        """Bytes that a call reads, at most."""

    def estimates(self, x: Tensor) -> Tensor:
        """Approximate pre-activations minus thresholds, (m, s) float32, of inputs (m, d) in float32."""


@dataclass(frozen=True, eq=False)
class Sketch(MarginPredictor):
    r"""Units whose estimated pre-activation is not far below its threshold.

    Unit j is computed if :math:`g_j(x) > -\lambda \sigma_j`: g estimates the pre-activation minus its threshold from an
    int8 copy of the weights, and :math:`\sigma_j` is the root mean square error of the estimate on sample inputs.
    The certified screen takes a margin that no input can exceed; this one is calibrated on inputs.

    Attributes
    ----------
    screen : LayerEstimator
        The estimator g.
    spread : Tensor of shape (s,)
        sigma.
    level : float
        The margin lambda, in units of sigma.
    """

    name: ClassVar[str] = "sketch"
    screen: LayerEstimator
    spread: Tensor
    level: float = inf

    @classmethod
    def fit(
        cls, weights: BlockWeights, x: Tensor, *, random_state: int, screen: LayerEstimator | None = None
    ) -> Sketch:
        """Spreads on the rows ``x``; ``screen`` is by default the layer's int8 screen. Its level is to be set."""
        if screen is None:
            screen = Screen.of(weights.weight, weights.bias, weights.threshold, x)
        truth = weights.pre_activations(x) - weights.threshold
        return cls(screen, spreads(screen.estimates(x.float()), truth))

    @property
    def nbytes(self) -> int:
        """Bytes of the copy, and of one number per unit."""
        return self.screen.nbytes + self.spread.nbytes

    def margins(self, x: Tensor) -> Tensor:
        """The estimates."""
        return self.screen.estimates(plain(x).float())

    def to_dict(self) -> dict[str, Any]:
        """The margin."""
        return {"predictor": self.name, "level": self.level}
