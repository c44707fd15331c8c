"""Texts and images, how a model is trained on them, and what it does on the validation part while it learns."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.inference.training import SparsityRegularizer, unit_counts
from sparsact.layers import MixtureOfExperts, routing_losses, update_biases
from sparsact_papers.training import checkpoint as checkpoints

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


class Examples(Protocol):
    """Inputs with the classes to predict, for training and for validation."""

    def batch(self, size: int, context: int, *, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random inputs of the training part and their classes; ``context`` is the length of a passage of a text."""

    def windows(self, n: int, context: int) -> tuple[Tensor, Tensor]:
        """Inputs of the validation part, evenly spread and always the same, and their classes."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All there are: what tells examples apart."""


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


@dataclass(frozen=True)
class Evaluation:
    """What a model does on passages of the validation text, or images, after ``step`` updates.

    ``loss`` is the mean cross-entropy of the next character, in nats, without any penalty; ``density`` the share of
    units that are on, a block each; ``dead`` and ``rare`` are the units of each block that are on for none of the
    ``n_inputs`` characters, and for some, but less than one in a thousand. ``accuracy`` is the share of characters, or
    labels, that have the largest logit.
    """

    step: int
    loss: float
    density: list[float]
    dead: list[int]
    rare: list[int]
    n_inputs: int
    accuracy: float


def evaluation(
    model: nn.Module, text: Examples, recipe: Recipe, *, blocks: Sequence[Block] = (), step: int = 0
) -> Evaluation:
    """Loss and activity on ``recipe.windows`` passages of the validation text, always the same.

    Parameters
    ----------
    model : nn.Module
        From tokens (m, length) to logits (m, length, vocabulary), or from images to logits (m, classes).
    text : CharacterText or LabelledImages
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
    total, right = 0.0, 0
    with evaluating(model), unit_counts(model, blocks) as counts:
        for start in range(0, len(x), recipe.batch):
            part = slice(start, start + recipe.batch)
            logits, wanted = model(x[part].to(device)), y[part].to(device)
            total += len(x[part]) * cross_entropy(logits, wanted).item()
            right += int((logits.argmax(-1) == wanted).sum())
        found = counts()
    densities, dead, rare = ([getattr(one, name) for one in found] for name in ("density", "dead", "rare"))
    return Evaluation(step, total / len(x), densities, dead, rare, y.numel(), right / y.numel())


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Mean cross-entropy, in nats, of classes ``y`` (...) under ``logits`` (..., classes)."""
    return F.cross_entropy(logits.flatten(0, -2), y.flatten())


def training_loss(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, with the balancing losses of routed layers."""
    if not any(isinstance(module, MixtureOfExperts) for module in model.modules()):
        return cross_entropy(model(x), y)
    with routing_losses(model) as losses:
        logits = model(x)
    return cross_entropy(logits, y) + losses.total


@contextmanager
def training_progress(steps: int, what: str = "training") -> Iterator[Callable[[int], None]]:
    """A bar over a number of steps; its value is called with the steps done, as ``progress`` of :func:`train`.

    Parameters
    ----------
    steps : int
    what : str
        Label of the bar.

    Yields
    ------
    done : callable
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bars:
        bar = bars.add_task(what, total=steps)
        yield lambda done: bars.advance(bar, done)


def train(
    model: nn.Module,
    text: Examples,
    recipe: Recipe,
    *,
    blocks: Sequence[Block] = (),
    penalty: SparsityRegularizer | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = True,
    progress: Callable[[int], None] | None = None,
    device: torch.device | str = "cpu",
) -> list[Evaluation]:
    """Train a model in place by AdamW on the next character; its evaluations, from before the first step on.

    Parameters
    ----------
    model : nn.Module
        From tokens (m, length) to logits (m, length, vocabulary), or from images to logits (m, classes), in float32. It
        is moved to ``device``. Balancing losses of routed layers are added, biases of routers updated.
    text : CharacterText or LabelledImages
    recipe : Recipe
    blocks : sequence of Block
        Whose activity the evaluations tell.
    penalty : SparsityRegularizer, default=None
        :class:`ActivationPenalty` or :class:`TopKTraining` of this model, entered while it is trained and evaluated.
    checkpoint : path, default=None
        A folder. At each evaluation everything is written there, in one file that is whole at any moment.
    resume : bool
        Go on from the checkpoint, if there is one: parameters and evaluations are then those of a training that was
        never interrupted, to the bit (on a CPU with the same number of threads).
    progress : callable, default=None
        Told of steps that were done (see :func:`training_progress`).
    device : torch.device or str

    Returns
    -------
    evaluations : list of Evaluation
        From before the first step to after the last.
    """
    device = torch.device(device)
    model.to(device)
    training = checkpoints.TrainingState(
        model, _optimizer(model, recipe), torch.Generator().manual_seed(recipe.seed), device
    )
    settings = {**asdict(recipe), "penalty": repr(penalty), "blocks": [block.name for block in blocks]}
    settings["text"] = checkpoints.fingerprint(*text.tensors)
    with checkpoints.seeded(recipe.seed, device), penalty or nullcontext():
        rows: list[Evaluation] = []
        if checkpoint is not None and resume:
            rows = [Evaluation(**row) for row in checkpoints.read(checkpoint, settings, training)]
        if rows and progress:
            progress(rows[-1].step)
        for step in _evaluated(training, text, recipe, penalty, rows, progress):
            rows.append(evaluation(model, text, recipe, blocks=blocks, step=step))
            if checkpoint is not None:
                checkpoints.write(checkpoint, settings, rows, training)
    return rows


def _evaluated(
    training: checkpoints.TrainingState,
    text: Examples,
    recipe: Recipe,
    penalty: SparsityRegularizer | None,
    rows: Sequence[Evaluation],
    progress: Callable[[int], None] | None,
) -> Iterator[int]:
    """Train, and stop at each step that is to be evaluated."""
    if not rows:
        yield 0
    training.model.train()
    for step in range(rows[-1].step, recipe.steps):
        _update(training, text, recipe, penalty, step)
        if progress:
            progress(1)
        if (step + 1) % recipe.evaluate_every == 0 or step + 1 == recipe.steps:
            yield step + 1


def _update(
    training: checkpoints.TrainingState,
    text: Examples,
    recipe: Recipe,
    penalty: SparsityRegularizer | None,
    step: int,
) -> None:
    x, y = text.batch(recipe.batch, recipe.context, generator=training.batches)
    loss = training_loss(training.model, x.to(training.device), y.to(training.device))
    if penalty:
        loss = loss + penalty.loss()
    if not loss.isfinite():
        raise ValueError(f"the loss is {loss.item()} at step {step}; lower `learning_rate` or `clip`.")
    training.optimizer.zero_grad()
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(training.model.parameters(), recipe.clip)
    for group in training.optimizer.param_groups:
        group["lr"] = recipe.rate(step)
    training.optimizer.step()
    if any(name.endswith("routing.bias") for name, _ in training.model.named_buffers()):
        update_biases(training.model)


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW whose decay spares vectors: biases and the scales of norms."""
    moved = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in moved if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in moved if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
