"""A small convolutional network with a dense or a sparsely activated penultimate layer, and how it is trained.

Torch is imported where it is used: an experiment can be listed without it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


LAYER, FILTERS, ORDER = range(1, 4)  # streams of a seed
FEATURES: Final = 1024  # 64 filters on the 4 x 4 places that are left of an image of 32 x 32
CLASSES: Final = 10
Bytes = NDArray[np.uint8]
AT_ONCE: Final = 500  # images classified together


@dataclass(frozen=True)
class Epoch:
    """Mean cross-entropy of an epoch's training images in nats, validation accuracy after it, seconds of training."""

    loss: float
    accuracy: float
    seconds: float


def network(*, width: int, n_active: int, activation: str, seed: int) -> torch.nn.Sequential:
    """Three convolutional layers, a layer of ``width`` units, and the logits.

    Convolutions of 3 x 3 with 32, 64 and 64 filters and ReLU, 2 x 2 max-pooling after the first two, no padding. Where
    ``n_active < width``, each image keeps the units with the largest pre-activations. The convolutions that a seed
    draws are the same for any width.
    """
    from torch import device, nn

    from sparsact_papers.training.checkpoint import seeded

    filters, layer = (int(np.random.default_rng([seed, stream]).integers(2**63)) for stream in (FILTERS, LAYER))
    with seeded(filters, device("cpu")):
        # The maximum is taken before ReLU: the values are the same, on a quarter of the numbers.
        convolutions = [
            *(nn.Conv2d(3, 32, 3), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten()),
        ]
    with seeded(layer, device("cpu")):
        return nn.Sequential(*convolutions, *_top(width, n_active, activation))


def _top(width: int, n_active: int, activation: str) -> list[torch.nn.Module]:
    from torch import nn

    from sparsact.layers import SparselyActivatedLayer
    from sparsact.routing import TopK

    if n_active == width and activation == "relu":
        return [nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, CLASSES)]
    # Whole matrices and a mask: the fastest for batches, with values and gradients of the sparse computation.
    router = TopK(n_active)
    return [SparselyActivatedLayer(FEATURES, width, CLASSES, router=router, activation=activation, method="dense")]


def trained(
    model: torch.nn.Sequential,
    train: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    validation: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    *,
    epochs: int,
    batch: int,
    learning_rate: float,
    device: str,
    seed: int,
) -> Iterator[Epoch]:
    """Train by Adam on cross-entropy; the order of the images in each epoch is that of the seed."""
    import torch
    from torch.nn import functional as F

    from sparsact_papers.training.graphs import CapturedStep, float32_convolutions

    model.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload] # a keyword that its stub lacks
    on_cuda = device == "cuda"
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True, capturable=on_cuda)
    images, labels = _tensors(*train, device)
    orders, total = np.random.default_rng([seed, ORDER]), torch.zeros((), device=device)

    def update(chosen: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(model(_scaled(images[chosen])), labels[chosen])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        return total.add_(loss.detach() * len(chosen))

    step = CapturedStep(update, torch.device(device)) if on_cuda else update
    with float32_convolutions(torch.device(device)):
        for _ in range(epochs):
            start = time.perf_counter()
            total.zero_()
            for chosen in _batches(torch.from_numpy(orders.permutation(len(images))).to(device), batch):
                step(chosen)
            mean = total.item() / len(images)
            seconds = time.perf_counter() - start
            yield Epoch(mean, accuracy(model, *validation, device=device), seconds)


def _batches(rows: torch.Tensor, size: int) -> Iterator[torch.Tensor]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def accuracy(
    model: torch.nn.Module, images: Bytes, labels: Bytes, *, device: str = "cpu", at_once: int = AT_ONCE
) -> float:
    """Share of images whose largest logit is that of their label."""
    import torch

    x, y = _tensors(images, labels, device)
    pairs = zip(_batches(x, at_once), _batches(y, at_once), strict=True)
    with torch.inference_mode():
        right = sum(int((model(_scaled(part)).argmax(dim=1) == label).sum()) for part, label in pairs)
    return right / len(y)


def _tensors(images: NDArray[np.uint8], labels: NDArray[np.uint8], device: str) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    x = torch.from_numpy(images).to(device).contiguous(memory_format=torch.channels_last)
    return x, torch.from_numpy(labels.astype(np.int64)).to(device)


def _scaled(images: torch.Tensor) -> torch.Tensor:
    """Bytes as numbers from 0 to 1."""
    return images.float() / 255
