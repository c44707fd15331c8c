"""Train a model on characters, with progress, and report how sparse its activations become."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sparsact.inference.block import Block
from sparsact.inference.training import SparsityRegularizer
from sparsact_papers.training import checkpoint as checkpoints
from sparsact_papers.training.recipe import Recipe
from sparsact_papers.training.text import CharacterText, Evaluation, cross_entropy, evaluation


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
    text: CharacterText,
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
        From tokens (m, length) to logits (m, length, vocabulary), in float32. It is moved to ``device``.
    text : CharacterText
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
    settings["text"] = checkpoints.fingerprint(text.train, text.validation)
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
    text: CharacterText,
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
    text: CharacterText,
    recipe: Recipe,
    penalty: SparsityRegularizer | None,
    step: int,
) -> None:
    x, y = text.batch(recipe.batch, recipe.context, generator=training.batches)
    loss = cross_entropy(training.model, x.to(training.device), y.to(training.device))
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


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW whose decay spares vectors: biases and the scales of norms."""
    moved = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in moved if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in moved if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
