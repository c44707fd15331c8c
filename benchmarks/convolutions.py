"""Exact zeros in what the layers of convolutional networks read, before training and after it.

A CNN and a ResNet of twenty layers, trained for some seconds on three quarters of scikit-learn's digits and measured on
the others. A number counts once for every tap of a kernel that falls on it. Goal: none, it says where zeros are; no
kernel leaves them out of a convolution yet. Check: a sparse classifier returns what the dense one does.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import Final

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from benchmarks.figures import Check, Figure
from benchmarks.program import option, program
from sparsact.inference import Measurement, measure, sparsify
from sparsact.inference.sparse_linear import MAX_SHARE

HELD_OUT: Final = 449  # a quarter of the images, the last ones: they are of other writers
BATCH: Final = 64


def cnn() -> nn.Module:
    """Three convolutions with norms between, and two linear layers on all that they leave."""
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, 64, 1), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)),
    )


class Residual(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut, which is a 1 x 1 convolution where sizes change."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        stride = width // channels
        self.first = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.shortcut = nn.Conv2d(channels, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, three stages of residual blocks, and a classifier on averages over the image."""

    def __init__(self, blocks: int = 3, width: int = 16) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        widths = [width] + [width * 2**stage for stage in range(3) for _ in range(blocks)]
        self.blocks = nn.Sequential(*(Residual(*pair) for pair in pairwise(widths)))
        self.classifier = nn.Linear(4 * width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (m, 1, height, width)."""
        logits: Tensor = self.classifier(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))
        return logits


def digits() -> tuple[Tensor, Tensor]:
    """Images (1797, 1, 8, 8) from 0 to 1, and their digits."""
    found = load_digits()
    images = torch.tensor(found.images, dtype=torch.float32)[:, None] / 16
    return images, torch.tensor(found.target)


def train(model: nn.Module, images: Tensor, targets: Tensor, epochs: int) -> None:
    """Adam with a falling step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(images[rows]), targets[rows]).backward()
            optimizer.step()
        schedule.step()


def densities(work: str, when: str, found: Measurement) -> list[Figure]:
    """Mean density of what convolutions read, and the share of bytes behind inputs sparse enough to gather columns."""
    inner = [one for one in found.layers if one.kind == "Conv2d"][1:]  # the first reads the image
    sparse = sum(one.share for one in found.layers if one.density <= MAX_SHARE)
    mean = sum(one.density * one.share for one in inner) / sum(one.share for one in inner)
    return [
        Figure(work, f"convolutions {when}: density, mean by bytes", mean, ""),
        Figure(work, f"{when}: share of bytes behind inputs of at most {MAX_SHARE:.0%}", sparse, ""),
    ]


def network(name: str, make: Callable[[], nn.Module], epochs: int) -> list[Figure]:
    """The figures of one network."""
    images, targets = digits()
    trained, tested = images[:-HELD_OUT], images[-HELD_OUT:]
    model, work = make(), f"{name} on digits"
    figures = densities(work, "untrained", measure(model, tested))
    train(model, trained, targets[:-HELD_OUT], epochs)
    found = measure(model.eval(), tested)
    with torch.no_grad():
        accuracy = float((model(tested).argmax(1) == targets[-HELD_OUT:]).float().mean())
    figures += [*densities(work, "trained", found), Figure(work, "test accuracy", accuracy, "")]
    figures += [
        Figure(work, f"{one.name} ({one.kind}): density", one.density, "") for one in found.layers if one.density < 1
    ]
    return [*figures, Check(work, "exact against dense", _difference(model, tested), "", most=2e-6)]


def _difference(model: nn.Module, images: Tensor) -> float:
    """Relative difference of the logits of single images, sparse and dense; 0 where no layer can be sparse."""
    if not any(layer.block for layer in measure(model, images).layers):
        return 0.0
    sparse = sparsify(deepcopy(model), "exact", list(images[:16].split(1)))
    with torch.inference_mode():
        pairs = [(model(image), sparse(image)) for image in images[:64].split(1)]
    return max(float((one - other).norm() / one.norm()) for one, other in pairs)


@program(option("--epochs", type=int, default=20), repeats=1)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2026)
    epochs = 1 if arguments.quick else arguments.epochs
    return [one for name, make in (("CNN", cnn), ("ResNet-20", ResNet)) for one in network(name, make, epochs)]
