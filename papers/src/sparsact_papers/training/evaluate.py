"""What a model does on the validation text: its loss, and how many of its units are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.inference.training import unit_counts
from sparsact_papers.training.recipe import Recipe
from sparsact_papers.training.text import CharacterText


@dataclass(frozen=True)
class Evaluation:
    """What a model does on passages of the validation text.

    Attributes
    ----------
    step : int
        Updates before it.
    loss : float
        Mean cross-entropy of the next character, in nats, without any penalty.
    density : list of float
        Share of units that are on, a block each.
    dead, rare : list of int
        Units of each block that are on for none of the inputs; for some, but less than one in a thousand.
    n_inputs : int
        Characters of the evaluation.
    """

    step: int
    loss: float
    density: list[float]
    dead: list[int]
    rare: list[int]
    n_inputs: int


def evaluation(
    model: nn.Module, text: CharacterText, recipe: Recipe, *, blocks: Sequence[Block] = (), step: int = 0
) -> Evaluation:
    """Loss and activity on ``recipe.windows`` passages of the validation text, always the same.

    Parameters
    ----------
    model : nn.Module
        From tokens (m, length) to logits (m, length, vocabulary).
    text : CharacterText
        Of which the validation part is read.
    recipe : Recipe
        Says how many windows of what length.
    blocks : sequence of Block
        Whose units are counted.
    step : int
        Written into the result.

    Returns
    -------
    evaluation : Evaluation
        Mean loss a character, in nats, and the activity of the blocks.
    """
    device = next(model.parameters()).device
    x, y = text.windows(recipe.windows, recipe.context)
    total = 0.0
    with evaluating(model), unit_counts(model, blocks) as counts:
        for start in range(0, len(x), recipe.batch):
            part = slice(start, start + recipe.batch)
            total += len(x[part]) * cross_entropy(model, x[part].to(device), y[part].to(device)).item()
        found = counts()
    densities, dead, rare = ([getattr(one, name) for one in found] for name in ("density", "dead", "rare"))
    return Evaluation(step, total / len(x), densities, dead, rare, x.numel())


def cross_entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, of tokens ``y`` (m, length) after each of ``x``."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())
