"""Blocks with known active units, and inputs that lie near a plane, like the inputs of layers in trained models."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import gelu as gelu_function

from sparsact.inference.block import Activation, BlockWeights

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


def block(activation: Activation | None = None, *, gated: bool = False, bias: float = -2.0) -> BlockWeights:
    """Random weights; a bias that leaves a small share of the units on."""
    draw = torch.Generator().manual_seed(2)
    weight = torch.randn(S, D, generator=draw)
    biases = bias + 0.3 * torch.randn(S, generator=draw)
    up, down = torch.randn(S, D, generator=draw), torch.randn(OUT, S, generator=draw)
    up_bias = torch.randn(S, generator=draw)
    return BlockWeights(weight, biases, up if gated else None, up_bias if gated else None, down, activation or relu())
