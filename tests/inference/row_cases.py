"""Sizes, and the comparison, of models whose activations depend on their row."""

from __future__ import annotations

import torch
from torch import nn

D, S, K = 12, 70, 9


def check_equal(model, dense, x):
    with torch.no_grad():
        wanted, found = dense(x), model(x)
    assert torch.equal(found.isfinite(), wanted.isfinite())
    eps = {torch.float32: 1e-5, torch.bfloat16: 0.03, torch.float64: 1e-12}[x.dtype]
    size = wanted.nan_to_num(0.0, 0.0, 0.0).abs().amax(-1, keepdim=True)
    error = (found.double() - wanted.double()).abs().nan_to_num(0.0, 0.0, 0.0)
    assert bool((error <= eps * (1 + size)).all())


class Gated(nn.Module):
    """V (f(G x) * (W x)), with G and W in one layer if ``halves``."""

    def __init__(self, f, halves=False):
        super().__init__()
        self.f, self.halves = f, halves
        self.up, self.gate = nn.Linear(D, 2 * S if halves else S), nn.Linear(D, S)
        self.down = nn.Linear(S, 5)

    def forward(self, x):
        gate, up = self.up(x).chunk(2, dim=-1) if self.halves else (self.gate(x), self.up(x))
        return self.down(self.f(gate) * up)
