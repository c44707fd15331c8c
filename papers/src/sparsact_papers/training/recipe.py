"""How a model is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

LAST_RATE = 0.1  # the cosine ends at this share of the learning rate


@dataclass(frozen=True)
class Recipe:
    """How a model is trained: everything but the model, the text and what is done to activations.

    Attributes
    ----------
    steps : int
        Updates.
    batch, context : int
        Passages an update, and characters a passage.
    learning_rate, weight_decay, clip : float
        Of AdamW, the decay on matrices alone; the largest norm of a gradient.
    warmup : int
        Steps over which the learning rate rises; then it falls by a cosine to a tenth.
    evaluate_every : int
        Steps between evaluations, and between checkpoints; the last step has both.
    windows : int
        Passages of an evaluation.
    seed : int
        Of batches and dropout.
    """

    steps: int
    batch: int = 16
    context: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    clip: float = 1.0
    warmup: int = 100
    evaluate_every: int = 100
    windows: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name in ("warmup", "weight_decay", "seed") else 1
            least = least if field.type == "int" else 0
            if not math.isfinite(value) or value < least or (field.type == "int" and value != int(value)):
                raise ValueError(f"`{field.name}` must be of type {field.type}, {least} or more; got {value!r}.")

    def rate(self, step: int) -> float:
        """Learning rate of the update with this number, the first being 0."""
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        done = (step - self.warmup) / max(self.steps - self.warmup, 1)
        return self.learning_rate * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * done)) / 2)
