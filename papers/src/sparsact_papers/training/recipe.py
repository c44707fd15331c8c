"""How a model is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

LAST_RATE = 0.1  # the cosine ends at this share of the learning rate


@dataclass(frozen=True)
class Recipe:
    """How a model is trained by AdamW: everything but the model, the text and what is done to activations.

    An update sees ``batch`` passages of ``context`` characters. The rate rises over ``warmup`` steps to
    ``learning_rate``, then falls by a cosine to a tenth; ``weight_decay`` is on matrices alone, and ``clip`` is the
    largest norm of a gradient. Evaluations, of ``windows`` passages, and checkpoints are ``evaluate_every`` steps
    apart; the last step has both. ``seed`` is that of batches and dropout.
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
