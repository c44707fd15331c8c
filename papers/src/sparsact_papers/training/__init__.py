"""Small transformers on characters and on images, their training, and feed-forward layers of many kinds.

>>> text = CharacterText.of("to be or not to be, that is the question. " * 9)
>>> model = Transformer(len(text.characters), width=8, n_layers=2, n_heads=2, hidden=24, context=16)
>>> blocks, recipe = model.feed_forward_blocks(), Recipe(steps=3, batch=4, context=16, windows=2)
>>> rows = train(model, text, recipe, blocks=blocks, penalty=ActivationPenalty(model, blocks, 0.1))
>>> [row.step for row in rows], rows[-1].n_inputs
([0, 3], 32)
"""

from sparsact_papers.training.examples import CharacterText, LabelledImages
from sparsact_papers.training.feed_forward import feed_forward
from sparsact_papers.training.penalties import ActivationPenalty, TopKTraining
from sparsact_papers.training.train import Evaluation, Recipe, evaluation, train, training_progress
from sparsact_papers.training.transformer import FeedForward, Transformer, VisionTransformer, WithMemory

__all__ = [
    "ActivationPenalty",
    "CharacterText",
    "Evaluation",
    "FeedForward",
    "LabelledImages",
    "Recipe",
    "TopKTraining",
    "Transformer",
    "VisionTransformer",
    "WithMemory",
    "evaluation",
    "feed_forward",
    "train",
    "training_progress",
]
