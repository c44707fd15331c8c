"""A text as tokens, one a character, and what a model does on its validation part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.inference.training import unit_counts
from sparsact_papers.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class CharacterText:
    """Tokens of a text and what they stand for.

    Attributes
    ----------
    characters : str
        Those that occur, in ascending order; a token is a place in them.
    train, validation : Tensor of int64, one axis
        The beginning of the text, and the rest.

    Examples
    --------
    >>> text = CharacterText.of("banana", validation=0.5)
    >>> text.characters, text.train.tolist(), text.decoded(text.validation)
    ('abn', [1, 0, 2], 'ana')
    """

    characters: str
    train: Tensor
    validation: Tensor

    @classmethod
    def of(cls, text: str, validation: float = 0.1) -> CharacterText:
        """Tokens of a text, of which the last share is kept for validation."""
        if not 0 < validation < 1:
            raise ValueError(f"`validation` is a share between 0 and 1; got {validation!r}.")
        characters = "".join(sorted(set(text)))
        token = {character: place for place, character in enumerate(characters)}
        tokens = torch.tensor([token[character] for character in text], dtype=torch.int64)
        cut = round(len(tokens) * (1 - validation))
        return cls(characters, tokens[:cut], tokens[cut:])

    def decoded(self, tokens: Tensor) -> str:
        """The characters that tokens stand for."""
        return "".join(self.characters[int(token)] for token in tokens)

    def batch(self, size: int, context: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random passages (size, context) of the training part, and the token that follows each of their tokens."""
        starts = _enough(self.train, context, "training")
        return _passages(self.train, torch.randint(starts, (size,), generator=generator), context)

    def windows(self, n: int, context: int) -> tuple[Tensor, Tensor]:
        """Passages (n, context) of the validation part, evenly spread and always the same, and what follows."""
        starts = _enough(self.validation, context, "validation")
        spread = torch.arange(n, dtype=torch.int64) * (starts - 1) // max(n - 1, 1)
        return _passages(self.validation, spread, context)


def _enough(tokens: Tensor, context: int, part: str) -> int:
    """Number of places where a passage can begin."""
    if len(tokens) <= context:
        raise ValueError(
            f"a passage needs {context} characters and one more, the {part} part has {len(tokens)}; "
            "pass a longer text or a shorter context."
        )
    return len(tokens) - context


def _passages(tokens: Tensor, starts: Tensor, context: int) -> tuple[Tensor, Tensor]:
    places = starts[:, None] + torch.arange(context)
    return tokens[places], tokens[places + 1]


@dataclass(frozen=True)
class Evaluation:
    """What a model does on passages of the validation text, after ``step`` updates.

    ``loss`` is the mean cross-entropy of the next character, in nats, without any penalty; ``density`` the share of
    units that are on, a block each; ``dead`` and ``rare`` are the units of each block that are on for none of the
    ``n_inputs`` characters, and for some, but less than one in a thousand.
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
    recipe : Recipe
    blocks : sequence of Block
        Whose units are counted.
    step : int
        Written into the result.

    Returns
    -------
    evaluation : Evaluation
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
