"""A router for tests of layers: a learned gate that leaves some inputs without any unit."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sparsact.routing import Router, Selection
from sparsact.routing.selection import counts_of


@dataclass(frozen=True)
class DroppingGate(Router):
    """The most probable of n experts, times its probability; every fifth input is dropped."""

    n: int
    name = "dropping_gate"
    trainable = ("gate",)

    def width(self, in_features):
        return self.n

    def max_active(self, in_features):
        return 1

    def flops(self, in_features):
        return 2 * in_features * self.n

    def initial_state(self, in_features, *, rng):
        return {"gate": rng.normal(size=(in_features, self.n))}

    def select(self, x, state, *, training=False):
        logits = x.to(state["gate"].dtype) @ state["gate"]
        weights, indices = logits.softmax(1).max(1, keepdim=True)
        counts = counts_of(indices, self.n)
        dropped = torch.arange(len(x), device=x.device) % 5 == 4
        indices = torch.where(dropped[:, None], -1, indices)
        weights = torch.where(dropped[:, None], 0, weights).to(x.dtype)
        return Selection(indices, weights, logits, logits.square().sum(), counts, dropped)
