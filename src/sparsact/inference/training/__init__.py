"""Training that switches units off: activations are penalised, or only the k largest are kept.

>>> import torch
>>> from sparsact.inference import find_blocks
>>> model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
>>> X = torch.randn(10, 4, generator=torch.manual_seed(0))
>>> with ActivationPenalty(model, find_blocks(model, X), 0.1) as penalty:
...     loss = model(X).square().mean() + penalty.loss()
>>> loss.requires_grad
True
"""

from sparsact.inference.training.activity import UnitCounts, unit_counts
from sparsact.inference.training.penalty import ActivationPenalty, Inducement, TopKTraining
from sparsact.inference.training.relu import with_relu

__all__ = ["ActivationPenalty", "Inducement", "TopKTraining", "UnitCounts", "unit_counts", "with_relu"]
