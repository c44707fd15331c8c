"""Rules with one number to turn: the higher the level, the more units they compute."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from sparsact.inference.predictors.rule import Rule
from sparsact.inference.weights import BlockWeights


class Graded(Rule, Protocol):
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
