"""Share of exact zeros in the inputs of convolutional layers, before and after training.

A CNN and a ResNet of twenty layers train for some seconds on three quarters of scikit-learn's digits, with and without
an L1 penalty on activations, and are measured on the other quarter. A number counts once for every tap of a kernel that
falls on it. No target: the benchmark shows where the zeros are, but no kernel skips them in a convolution yet. Check: a
sparse classifier returns what the dense one does.
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
from torch.nn import functional as F

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
        self.relu = nn.ReLU()
        self.first = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.shortcut = nn.Conv2d(channels, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        y: Tensor = self.relu(self.norms[0](self.first(x)))
        return self.relu(self.norms[1](self.second(y)) + self.shortcut(x))


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


def train(model: nn.Module, images: Tensor, targets: Tensor, penalty: float, epochs: int) -> None:
    """Adam with a falling step, on cross-entropy plus ``penalty`` times the mean activation of each ReLU, added up."""
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    active: list[Tensor] = []
    hooks = [
        one.register_forward_hook(lambda layer, args, output: active.append(output.mean()))
        for one in model.modules()
        if isinstance(one, nn.ReLU)
    ]
    model.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH):
            active.clear()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images[rows]), targets[rows])
            (loss + penalty * torch.stack(active).sum()).backward()
            optimizer.step()
        schedule.step()
    for hook in hooks:
        hook.remove()


def density(found: Measurement) -> float:
    """Mean density of what layers read, by their bytes; the image, which the first layer reads, left out."""
    inner = found.layers[1:]
    return sum(one.density * one.share for one in inner) / sum(one.share for one in inner)


def network(name: str, make: Callable[[], nn.Module], penalty: float, epochs: int) -> list[Figure]:
    """The figures of one network."""
    images, targets = digits()
    trained, tested = images[:-HELD_OUT], images[-HELD_OUT:]
    model, work = make(), f"{name} on digits"
    figures = [Figure(work, "density, untrained", density(measure(model, tested)), "")]
    train(model, trained, targets[:-HELD_OUT], penalty, epochs)
    found = measure(model.eval(), tested)
    by_density = sorted(found.layers[1:], key=lambda one: one.density)
    sparse = sum(one.share for one in by_density if one.density <= MAX_SHARE)
    with torch.no_grad():
        accuracy = float((model(tested).argmax(1) == targets[-HELD_OUT:]).float().mean())
    figures += [
        Figure(work, "density", density(found), ""),
        *(Figure(work, f"density, {which}", by_density[i].density, "") for which, i in (("least", 0), ("most", -1))),
        Figure(work, f"bytes behind inputs of at most {MAX_SHARE:.0%}", sparse, ""),
        Figure(work, "test accuracy", accuracy, ""),
    ]
    if found.blocks:
        figures.append(Check(work, "exact against dense", _difference(model, tested), "", most=2e-6))
    return figures


def _difference(model: nn.Module, images: Tensor) -> float:
    """Largest relative difference of the logits of single images, sparse and dense."""
    sparse = sparsify(deepcopy(model), "exact", list(images[:16].split(1)))
    with torch.inference_mode():
        pairs = [(model(image), sparse(image)) for image in images[:64].split(1)]
    return max(float((one - other).norm() / one.norm()) for one, other in pairs)


NETWORKS: Final = {  # a network, and the penalty on its activations
    "CNN": (cnn, 0.0),
    "CNN, L1": (cnn, 0.5),
    "ResNet-20": (ResNet, 0.0),
    "ResNet-20, L1": (ResNet, 0.1),
}


@program(option("--epochs", type=int, default=20), repeats=1)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2026)
    epochs = 1 if arguments.quick else arguments.epochs
    return [one for name, case in NETWORKS.items() for one in network(name, *case, epochs)]
