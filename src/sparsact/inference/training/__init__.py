"""Sparse activations, induced: a small transformer on characters, and training that switches units off.

>>> import torch
>>> text = CharacterText.of("to be or not to be, that is the question. " * 9)
>>> model = Transformer(len(text.characters), width=8, n_layers=2, n_heads=2, hidden=24, context=16)
>>> blocks, recipe = model.feed_forward_blocks(), Recipe(steps=3, batch=4, context=16, windows=2)
>>> rows = train(model, text, recipe, blocks=blocks, penalty=ActivationPenalty(model, blocks, 0.1))
>>> [row.step for row in rows], rows[-1].n_inputs
([0, 3], 32)
"""

from sparsact.inference.training.activity import UnitCounts, unit_counts
from sparsact.inference.training.evaluate import Evaluation, evaluation
from sparsact.inference.training.penalty import ActivationPenalty, Inducement, TopKTraining
from sparsact.inference.training.progress import training_progress
from sparsact.inference.training.recipe import Recipe
from sparsact.inference.training.relu import with_relu
from sparsact.inference.training.text import CharacterText
from sparsact.inference.training.train import train
from sparsact.inference.training.transformer import FeedForward, Transformer, generate

__all__ = [
    "ActivationPenalty",
    "CharacterText",
    "Evaluation",
    "FeedForward",
    "Inducement",
    "Recipe",
    "TopKTraining",
    "Transformer",
    "UnitCounts",
    "evaluation",
    "generate",
    "train",
    "training_progress",
    "unit_counts",
    "with_relu",
]
