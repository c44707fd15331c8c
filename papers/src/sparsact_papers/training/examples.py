"""Texts as tokens, and images: what models are trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class TrainingExamples(Protocol):
    """Inputs with the classes to predict, for training and for validation."""

    def batch(self, size: int, context: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random inputs of the training part and their classes; ``context`` is the length of a passage of a text."""

    def windows(self, n: int, context: int) -> tuple[Tensor, Tensor]:
        """Inputs of the validation part, evenly spread and always the same, and their classes."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Everything that distinguishes examples."""


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images (m, 3, height, width) uint8 and labels (m,) int64, for training and for validation.

    Examples
    --------
    >>> blank = torch.zeros(4, 3, 2, 2, dtype=torch.uint8), torch.tensor([0, 1, 1, 0])
    >>> LabelledImages(*blank, *blank).windows(2, 0)[1].tolist()
    [0, 0]
    """

    images: Tensor
    labels: Tensor
    validation_images: Tensor
    validation_labels: Tensor

    def batch(self, size: int, context: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random images of the training part, each as likely flipped from left to right as not, and their labels."""
        chosen = torch.randint(len(self.labels), (size,), generator=generator)
        flipped = torch.randint(2, (size, 1, 1, 1), generator=generator, dtype=torch.bool)
        images = self.images[chosen]
        return torch.where(flipped, images.flip(-1), images), self.labels[chosen]

    def windows(self, n: int, context: int) -> tuple[Tensor, Tensor]:
        """Images of the validation part, evenly spread and always the same, and their labels."""
        spread = torch.arange(n, dtype=torch.int64) * (len(self.validation_labels) - 1) // max(n - 1, 1)
        return self.validation_images[spread], self.validation_labels[spread]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Images and labels of both parts."""
        return self.images, self.labels, self.validation_images, self.validation_labels


@dataclass(frozen=True, eq=False)
class CharacterText:
    """Tokens of a text for training, its beginning, and for validation; a token is a place in the sorted characters.

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
        """Tokens of a text; the last share is kept for validation."""
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

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tokens of both parts."""
        return self.train, self.validation

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
