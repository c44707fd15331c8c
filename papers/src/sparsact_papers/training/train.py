"""How a model is trained on texts or images, and what it does on the validation part while it learns."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.layers import MixtureOfExperts, routing_losses, update_biases
from sparsact.layers.memory import Memory
from sparsact_papers.training import checkpoint as checkpoints
from sparsact_papers.training.examples import TrainingExamples
from sparsact_papers.training.graphs import CapturedStep, float32_convolutions
from sparsact_papers.training.penalties import SparsityRegularizer, unit_counts

LAST_RATE: Final = 0.1  # the cosine ends at this share of the learning rate
TABLE_RATE: Final = 5.0  # learning rate of a memory's table, over that of the rest


@dataclass(frozen=True)
class Recipe:
    """How a model is trained by AdamW: everything but the model, the text and what is done to activations.

    An update sees ``batch`` passages of ``context`` characters. The rate rises over ``warmup`` steps to
    ``learning_rate``, then falls by a cosine to a tenth; ``weight_decay`` is on matrices alone, and ``clip`` is the
    largest norm of a gradient. Tables of memories have five times the rate and no decay, as Engram's have. Evaluations,
    of ``windows`` passages, and checkpoints are ``evaluate_every`` steps apart; the last step has both. ``seed`` is
    the one of batches and dropout.
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


@dataclass(frozen=True)
class Evaluation:
    """What a model does on passages of the validation text, or images, after ``step`` updates.

    ``loss`` is the mean cross-entropy of the next character, in nats, without any penalty; ``density`` the share of
    units that are on, a block each; ``dead`` and ``rare`` are the units of each block that are on for none of the
    ``n_inputs`` characters, and for some, but less than one in a thousand. ``accuracy`` is the share of characters, or
    labels, that have the largest logit; None in rows of older versions.
    """

    step: int
    loss: float
    density: list[float]
    dead: list[int]
    rare: list[int]
    n_inputs: int
    accuracy: float | None = None


def evaluation(
    model: nn.Module, text: TrainingExamples, recipe: Recipe, *, blocks: Sequence[Block] = (), step: int = 0
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
    text: TrainingExamples,
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
        Blocks whose activity the evaluations report.
    penalty : SparsityRegularizer, default=None
        :class:`ActivationPenalty` or :class:`TopKTraining` of this model, entered while it is trained and evaluated.
    checkpoint : path, default=None
        A folder. At each evaluation everything is written there, in one file that is whole at any moment.
    resume : bool
        Go on from the checkpoint, if there is one: parameters and evaluations then equal an uninterrupted training's
        to the bit (on a CPU with the same number of threads).
    progress : callable, default=None
        Told of steps that were done (see :func:`training_progress`).
    device : torch.device or str
        On a CUDA device a step is captured as a graph, unless there is a penalty, and convolutions are exact (no TF32).

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
    with checkpoints.seeded(recipe.seed, device), float32_convolutions(device), penalty or nullcontext():
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
    text: TrainingExamples,
    recipe: Recipe,
    penalty: SparsityRegularizer | None,
    rows: Sequence[Evaluation],
    progress: Callable[[int], None] | None,
) -> Iterator[int]:
    """Train, and stop at each step that is to be evaluated."""
    if not rows:
        yield 0
    training.model.train()
    on_cuda = training.device.type == "cuda"
    update: Callable[[Tensor, Tensor], Tensor] = partial(_update, training, recipe, penalty)
    if on_cuda and penalty is None:
        update = CapturedStep(update, training.device)
    for step in range(rows[-1].step, recipe.steps):
        for group in training.optimizer.param_groups:
            rate = recipe.rate(step)
            own = group["times"] * rate
            group["lr"] = group["lr"].fill_(own) if on_cuda else own
        x, y = text.batch(recipe.batch, recipe.context, generator=training.batches)
        loss = update(x.to(training.device), y.to(training.device))
        stops = (step + 1) % recipe.evaluate_every == 0 or step + 1 == recipe.steps
        if (stops or not on_cuda) and not loss.isfinite():  # a device is not waited for at every step
            raise ValueError(f"the loss is {loss.item()} at step {step}; lower `learning_rate` or `clip`.")
        if progress:
            progress(1)
        if stops:
            yield step + 1


def _update(
    training: checkpoints.TrainingState, recipe: Recipe, penalty: SparsityRegularizer | None, x: Tensor, y: Tensor
) -> Tensor:
    """One step of the optimiser; the loss before it. On the CPU nothing is done for one that is not finite."""
    loss = training_loss(training.model, x, y)
    if penalty:
        loss = loss + penalty.loss()
    if not (loss.is_cuda or loss.isfinite()):
        return loss.detach()
    training.optimizer.zero_grad()
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(training.model.parameters(), recipe.clip)
    training.optimizer.step()
    if any(name.endswith("routing.bias") for name, _ in training.model.named_buffers()):
        update_biases(training.model)
    return loss.detach()


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW whose decay spares vectors (biases and the scales of norms) and tables of memories."""
    tables = [m.values for m in model.modules() if isinstance(m, Memory) and m.values.requires_grad]
    others = [p for p in model.parameters() if p.requires_grad and not any(p is table for table in tables)]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in others if p.ndim > 1], "weight_decay": recipe.weight_decay, "times": 1.0},
        {"params": [p for p in others if p.ndim <= 1], "weight_decay": 0.0, "times": 1.0},
        {"params": tables, "weight_decay": 0.0, "times": TABLE_RATE},
    ]
    if others and others[0].is_cuda:  # rates that a CUDA graph reads anew at each step
        for group in groups:
            group["lr"] = torch.tensor(recipe.learning_rate, device=others[0].device)
        return torch.optim.AdamW(groups, fused=True, capturable=True)
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
