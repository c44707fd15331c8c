"""What selects units: rules, rules with a level, and a rule with its measured quality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.comparison import ModelComparison
from sparsact.inference.quality import Quality

Reads = Literal["inputs", "activations"]


class ActivityPredictor(Protocol):
    """A selection of units for each input, approximate in general.

    Attributes
    ----------
    name : str
        Name of the method.
    reads : {"inputs", "activations"}
        Whether :meth:`active` takes inputs of the block (m, d), and predicts before any unit is computed, or the units'
        activations (m, s), and selects those that ``down`` should read.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 # see above

    @property
    def reads(self) -> Reads: ...  # noqa: D102 # see above

    @property
    def nbytes(self) -> int:
        """Bytes of its own that a call reads, at most."""

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8, contiguous, on the CPU: 1 for those; the others are taken as off."""

    def to_dict(self) -> dict[str, Any]:
        """The method and its numbers, as JSON holds them; without its arrays."""


class Graded(ActivityPredictor, Protocol):
    """A predictor from inputs that computes more units at a higher level."""

    def unit_levels(self, x: Tensor) -> Tensor:
        """Level above which each unit is computed, (m, s) float32; infinite for a unit that no level reaches."""

    def with_level(self, level: float) -> Graded:
        """The same predictor at another level."""


class MarginPredictor(ABC):
    r"""Units whose estimated pre-activation is less than :math:`\lambda \sigma_j` below its threshold.

    Subclasses are dataclasses with the fields ``spread`` (s,), the root mean square error :math:`\sigma` of the
    estimates on sample inputs, and ``level``, the margin :math:`\lambda`.
    """

    reads: ClassVar[Reads] = "inputs"
    spread: Tensor
    level: float

    @abstractmethod
    def margins(self, x: Tensor) -> Tensor:
        """Estimated pre-activations minus thresholds, (m, s)."""

    def unit_levels(self, x: Tensor) -> Tensor:
        """The margin above which each unit is computed."""
        return -self.margins(x) / self.spread

    def with_level(self, level: float) -> Self:
        """The same predictor with another margin."""
        return replace(self, level=level)  # type: ignore[type-var] # subclasses are dataclasses

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8; those with a margin that is not a number too."""
        return (self.unit_levels(x) >= self.level).logical_not_().to(torch.uint8)


def spreads(scores: Tensor, truth: Tensor) -> Tensor:
    r"""Root mean square error :math:`\sigma_j` of the score of each unit, (s,), from rows (m, s).

    At least the rounding error of the pre-activations, so that exact scores have a spread to divide by. A unit that no
    finite threshold switches on has no error.
    """
    error = (scores - truth).double().nan_to_num(0.0, 0.0, 0.0).square().mean(0).sqrt()
    size = truth.double().nan_to_num(0.0, 0.0, 0.0).square().mean(0).sqrt()
    rounding = torch.finfo(truth.dtype).eps * size
    return torch.maximum(error, rounding).clamp(min=torch.finfo(torch.float32).tiny).to(truth.dtype)


def switch_layer(weights: BlockWeights) -> tuple[Tensor, Tensor, Tensor]:
    """Weight (s, d), bias (s,) and threshold (s,) of the layer that switches units on, in double precision."""
    return weights.weight.double(), weights.bias.double(), weights.threshold.double()


@dataclass(frozen=True)
class CalibrationSplit:
    """Use of a sample's rows, in a random order.

    Attributes
    ----------
    fitted : int
        Rows that the rule was fitted to: directions, spreads.
    calibrated : int
        Rows that its one free number was chosen on.
    held_out : int
        Rows that its quality was measured on, which no choice has seen.
    random_state : int
        Seed of the order.
    """

    fitted: int
    calibrated: int
    held_out: int
    random_state: int


@dataclass(frozen=True, eq=False)
class Predictor:
    """A rule with its quality on rows that it has not seen.

    Made by :func:`sparsact.inference.predictors.calibrate`.

    Attributes
    ----------
    rule : ActivityPredictor
        What selects units.
    quality : Quality
        Measured on the held-out rows.
    split : CalibrationSplit
        Use of the rows.
    target : dict
        What was asked for: ``{"recall": 0.99}``.
    effect : ModelComparison or None
        On the whole model, of this predictor alone: the change of loss and of perplexity, where a loss was given to
        :func:`sparsact.inference.predictors.calibrate_blocks`.
    """

    rule: ActivityPredictor
    quality: Quality
    split: CalibrationSplit
    target: dict[str, float]
    effect: ModelComparison | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.quality, Quality):
            raise TypeError(f"a predictor needs its measured Quality; got {self.quality!r}: use calibrate().")

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.rule.name

    @property
    def reads(self) -> Reads:
        """``"inputs"`` of the block, or ``"activations"`` of its units: what :meth:`active` takes."""
        return self.rule.reads

    @property
    def nbytes(self) -> int:
        """Bytes of its own that a call reads, at most."""
        return self.rule.nbytes

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8, contiguous, on the CPU."""
        return self.rule.active(x)

    def to_dict(self) -> dict[str, Any]:
        """The rule, its target, the split and the quality, as JSON holds them."""
        return {
            **self.rule.to_dict(),
            "reads": self.reads,
            "nbytes": self.nbytes,
            "target": dict(self.target),
            "split": vars(self.split).copy(),
            "quality": self.quality.to_dict(),
            "effect": None if self.effect is None else self.effect.to_dict(),
        }
