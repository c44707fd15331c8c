"""Blocks whose active units are known, and inputs near a plane as those of trained models are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu as gelu_function

from sparsact.inference.block import Activation
from sparsact.inference.block_weights import BlockWeights

D, S, OUT = 24, 61, 7


def relu(s: int = S, threshold: float = 0.0) -> Activation:
    return Activation("relu", lambda z: torch.where(z > threshold, z, 0.0), torch.full((s,), threshold))


def gelu() -> Activation:
    return Activation("gelu", gelu_function, None)


def inputs(m: int, *, seed: int, d: int = D, dimension: int = 5, noise: float = 0.05) -> Tensor:
    """Points near a plane of few dimensions off the origin; the plane is the same for every seed."""
    frame = torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(1))).Q
    draw = torch.Generator().manual_seed(seed)
    points = 2 * torch.randn(m, dimension, generator=draw) @ frame[:dimension] + 0.5 * frame[-1]
    return points + noise * torch.randn(m, d, generator=draw)


def block(
    activation: Activation | None = None, *, gated: bool = False, bias: float = -2.0, rank: int | None = None
) -> BlockWeights:
    """Random weights, of a given rank or whole; a bias that leaves a small share of the units on."""
    draw = torch.Generator().manual_seed(2)
    weight = torch.randn(S, D, generator=draw)
    if rank is not None:
        weight = torch.randn(S, rank, generator=draw) @ torch.randn(rank, D, generator=draw) / rank**0.5
    biases = bias + 0.3 * torch.randn(S, generator=draw)
    up, down = torch.randn(S, D, generator=draw), torch.randn(OUT, S, generator=draw)
    up_bias = torch.randn(S, generator=draw)
    return BlockWeights(weight, biases, up if gated else None, up_bias if gated else None, down, activation or relu())


@dataclass(frozen=True, eq=False)
class Coarse:
    """Stands for the screen: weights rounded to int8 with one scale a row."""

    rows: Tensor
    scale: Tensor
    offset: Tensor

    @classmethod
    def of(cls, weights: BlockWeights, levels: int = 7) -> Coarse:
        scale = weights.weight.abs().amax(1) / levels
        rows = (weights.weight / scale[:, None]).round().to(torch.int8)
        return cls(rows, scale, weights.bias - weights.threshold)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.scale.nbytes + self.offset.nbytes

    def estimates(self, x: Tensor) -> Tensor:
        assert x.dtype == torch.float32
        return x @ self.rows.float().T * self.scale + self.offset


def settings(method: str, weights: BlockWeights) -> dict[str, object]:
    """What a method needs on blocks of this size."""
    if method == "sketch":
        return {"screen": Coarse.of(weights)}
    return {"low_rank": {"rank": 4}, "lsh": {"n_hashes": 2, "n_tables": 40}}.get(method, {})
