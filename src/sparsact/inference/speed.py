"""The whole model, sparse beside dense, on the same batches in turns."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf, isfinite
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.batches import Batch, call, evaluating
from sparsact.inference.fast_paths import bar_fast_paths, free_fast_paths
from sparsact.inference.sparse_linear import SparseLinear

ROUNDS = 7


@dataclass(frozen=True)
class Speed:
    """Seconds of a model for one batch, and how far its outputs are from the dense ones.

    Attributes
    ----------
    dense, sparse : float
        Medians over rounds of the mean over batches.
    speed_up : float
        Median of the ratio of a round.
    low, high : float
        Least and greatest ratio.
    rounds, batches : int
    difference : float
        Largest :math:`|y' - y| / |y|` (norms, of finite numbers) of a tensor that the model returns, over the batches;
        infinite if one of the two has a number where the other has none.
    """

    dense: float
    sparse: float
    speed_up: float
    low: float
    high: float
    rounds: int
    batches: int
    difference: float

    def to_dict(self) -> dict[str, Any]:
        """All figures; an infinite difference is None."""
        return {name: value if isfinite(value) else None for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return (
            f"whole model: {1e3 * self.dense:.3g} ms dense, {1e3 * self.sparse:.3g} ms sparse, "
            f"{self.speed_up:.2f} times as fast [{self.low:.2f}, {self.high:.2f}] ({self.rounds} rounds of "
            f"{self.batches} batches); outputs differ by {self.difference:.1g} of their size"
        )


@contextmanager
def dense(model: nn.Module) -> Iterator[None]:
    """The model computed densely for a while; its sparse layers are as they were afterwards.

    Parameters
    ----------
    model : nn.Module
        As :func:`sparsify` returned it.

    Yields
    ------
    None
        Within the block every layer computes densely.
    """
    layers: list[Any] = [module for module in model.modules() if isinstance(module, SparseLinear)]
    kinds = [type(layer) for layer in layers]
    for layer in layers:
        layer.__class__ = nn.Linear
    free_fast_paths(model)
    try:
        yield
    finally:
        for layer, kind in zip(layers, kinds, strict=True):
            layer.__class__ = kind
        bar_fast_paths(model)


def speed(model: nn.Module, shown: Sequence[Batch], rounds: int = ROUNDS) -> Speed:
    """Time a sparsified model and the dense one in turns, and compare what they return.

    Parameters
    ----------
    model : nn.Module
        As :func:`sparsify` returns it.
    shown : sequence of batches
    rounds : int
        How often all batches are run by each; one round more is run first and thrown away.

    Returns
    -------
    speed : Speed
        Times of both ways, their ratio with its spread, and the difference of outputs.
    """
    sparse_seconds, dense_seconds = [], []
    with evaluating(model):
        difference = max(_difference(model, batch) for batch in shown)
        for _ in range(rounds + 1):
            with dense(model):
                dense_seconds.append(_seconds(model, shown))
            sparse_seconds.append(_seconds(model, shown))
    del dense_seconds[0], sparse_seconds[0]
    ratios = [one / other for one, other in zip(dense_seconds, sparse_seconds, strict=True)]
    return Speed(
        median(dense_seconds),
        median(sparse_seconds),
        median(ratios),
        min(ratios),
        max(ratios),
        rounds,
        len(shown),
        difference,
    )


def _seconds(model: nn.Module, shown: Sequence[Batch]) -> float:
    start = time.perf_counter()
    for batch in shown:
        call(model, batch)
    return (time.perf_counter() - start) / len(shown)


def _difference(model: nn.Module, batch: Batch) -> float:
    sparse = tree_leaves(call(model, batch))
    with dense(model):
        wanted = tree_leaves(call(model, batch))
    return max((_relative(one, other) for one, other in zip(sparse, wanted, strict=True)), default=0.0)


def _relative(found: Any, wanted: Any) -> float:
    if not getattr(wanted, "is_floating_point", bool)():
        return 0.0
    finite = wanted.isfinite()
    if not torch.equal(finite, found.isfinite()):
        return inf
    found, wanted = found[finite].double(), wanted[finite].double()
    size = float(wanted.norm())
    return float((found - wanted).norm()) / size if size else 0.0
