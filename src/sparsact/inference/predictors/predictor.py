"""What selects units: rules, rules with a level, and a rule with its measured quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.comparison import ModelComparison
from sparsact.inference.quality import Quality
from sparsact.validation.former_names import renamed

Reads = Literal["inputs", "activations"]


class ActivityPredictor(Protocol):
    """A choice of units for each input, approximate in general.

    Attributes
    ----------
    name : str
        Of the method.
    reads : {"inputs", "activations"}
        Whether :meth:`active` takes inputs of the block (m, d), and predicts before any unit is computed, or the units'
        activations (m, s), and tells which of them ``down`` should read.
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
        """The method and its numbers, as JSON spells them; not its arrays."""


@renamed(seed="random_state")
@dataclass(frozen=True)
class CalibrationSplit:
    """How the rows of a sample were shared out, in a random order.

    Attributes
    ----------
    fitted : int
        Rows that the rule was fitted to: directions, spreads.
    calibrated : int
        Rows that its one free number was chosen on.
    held_out : int
        Rows that its quality was measured on, which no choice has seen.
    random_state : int
        Of the order.
    """

    fitted: int
    calibrated: int
    held_out: int
    random_state: int


@dataclass(frozen=True, eq=False)
class Predictor:
    """A rule with its quality on rows that it has not seen: there is none without.

    Made by :func:`sparsact.inference.predictors.calibration`.

    Attributes
    ----------
    rule : ActivityPredictor
        What chooses.
    quality : Quality
        Measured on the held-out rows.
    split : CalibrationSplit
        Which rows served what.
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
        """Of the method."""
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
        """The rule, what was asked, the split and the quality, as JSON spells them."""
        return {
            **self.rule.to_dict(),
            "reads": self.reads,
            "nbytes": self.nbytes,
            "target": dict(self.target),
            "split": vars(self.split).copy(),
            "quality": self.quality.to_dict(),
            "effect": None if self.effect is None else self.effect.to_dict(),
        }


class Graded(ActivityPredictor, Protocol):
    """A rule of the inputs whose choice grows with its level."""

    def needs(self, x: Tensor) -> Tensor:
        """Level above which each unit is computed, (m, s) float32; infinite for a unit that no level reaches."""

    def at(self, level: float) -> Graded:
        """The same rule at another level."""


def mask(needs: Tensor, level: float) -> Tensor:
    """Units whose need is below the level, as uint8; where a need is not a number the unit is computed too."""
    return (needs >= level).logical_not_().to(torch.uint8)


def spreads(scores: Tensor, truth: Tensor) -> Tensor:
    r"""Root mean square error :math:`\sigma_j` of the score of each unit, (s,), from rows (m, s).

    At least the rounding error of the pre-activations, so that scores without error have a spread to divide by. A unit
    that no finite threshold switches on has no error.
    """
    error = (scores - truth).double().nan_to_num(0.0, 0.0, 0.0).square().mean(0).sqrt()
    size = truth.double().nan_to_num(0.0, 0.0, 0.0).square().mean(0).sqrt()
    rounding = torch.finfo(truth.dtype).eps * size
    return torch.maximum(error, rounding).clamp(min=torch.finfo(torch.float32).tiny).to(truth.dtype)


def whole(weights: BlockWeights) -> tuple[Tensor, Tensor, Tensor]:
    """Weight (s, d), bias (s,) and threshold (s,) of the layer that switches, in double precision."""
    return weights.weight.double(), weights.bias.double(), weights.threshold.double()
