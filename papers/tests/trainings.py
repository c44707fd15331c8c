"""Small trainings on characters, shared by tests. Trainings to be killed run in processes that import this module."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save
from torch import nn

from sparsact import files
from sparsact_papers.training import ActivationPenalty, CharacterText, Recipe, TopKTraining, Transformer, train

TEXT = CharacterText.of("the quick brown fox jumps over the lazy dog. " * 20)
LONG = Recipe(steps=40, batch=3, context=11, warmup=2, evaluate_every=2, windows=4)


def model(seed=0, dropout=0.0, activation="relu"):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = Transformer(len(TEXT.characters), 8, 2, 2, 20, 13, activation=activation)
    if dropout:
        made.norm = nn.Sequential(made.norm, nn.Dropout(dropout))
    return made


def penalties(made):
    blocks = made.feed_forward_blocks()
    return {"none": None, "L1": ActivationPenalty(made, blocks, 0.3), "top-k": TopKTraining(made, blocks, 6)}


def train_to_the_end(kind: str, checkpoint: str | None, result: str) -> None:
    """Train, from the checkpoint on if there is one, and write weights and evaluations."""
    made = model(dropout=0.2)
    rows = train(
        made,
        TEXT,
        LONG,
        blocks=made.feed_forward_blocks(),
        penalty=penalties(made)[kind],
        checkpoint=checkpoint,
    )
    files.write(Path(result), save(made.state_dict(), {"rows": json.dumps([asdict(row) for row in rows])}))
