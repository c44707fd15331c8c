"""Small models whose units are seldom on: of all sizes different, of several shapes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from sparsact.inference import sparsify
from sparsact.inference.sparse_linear import SparseLinear

PLAIN = {"d": 24, "width": 70, "out": 18}


class Block(nn.Module):
    """down(f(up(x))), or gated."""

    def __init__(self, d, width, out, activation=F.relu, gate=False, up_first=False, seed=1, shift=2.0):
        super().__init__()
        self.d, self.activation, self.up_first = d, activation, up_first
        self.up, self.down = nn.Linear(d, width, bias=not gate), nn.Linear(width, out)
        self.gate = nn.Linear(d, width) if gate else None
        draw = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in (
                p for layer in self.children() if isinstance(layer, nn.Linear) for p in layer.parameters()
            ):
                parameter.normal_(generator=draw).div_(d**0.5 if parameter.ndim > 1 else 1)
            switch = self.up if self.gate is None else self.gate
            switch.bias.sub_(shift)
        self.eval()

    def forward(self, x):
        if self.gate is None:
            return self.down(self.activation(self.up(x)))
        if self.up_first:
            u = self.up(x)
            return self.down(u * self.activation(self.gate(x)))
        return self.down(self.activation(self.gate(x)) * self.up(x))


def rows(m, model, *, seed=7, dtype=torch.float32):
    """Inputs (m, d) of a model."""
    return torch.randn(m, model.d, generator=torch.Generator().manual_seed(seed)).to(dtype)


def plain(**options):
    return Block(**PLAIN, **options)


def squared(**options):
    return Block(26, 51, 17, activation=lambda z: F.relu(z) ** 2, **options)


def gated(**options):
    return Block(22, 66, 22, gate=True, **options)


def gated_up_first(**options):
    return Block(22, 65, 19, gate=True, up_first=True, **options)


class GateUp(nn.Module):
    """A gated block whose gate and up-projection are one layer."""

    def __init__(self):
        super().__init__()
        parts = gated()
        self.d, self.down = parts.d, parts.down
        self.up = nn.Linear(self.d, 2 * parts.up.out_features)
        with torch.no_grad():
            self.up.weight.copy_(torch.cat([parts.gate.weight, parts.up.weight]))
            self.up.bias.copy_(torch.cat([parts.gate.bias, torch.zeros(parts.up.out_features)]))
        self.eval()

    def forward(self, x):
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(F.relu(gate) * up)


def gate_up():
    return GateUp()


def conv1d():
    """A block of the linear layers of GPT-2."""
    from transformers.pytorch_utils import Conv1D

    model = plain()
    for name in ("up", "down"):
        linear = getattr(model, name)
        other = Conv1D(linear.out_features, linear.in_features)
        with torch.no_grad():
            other.weight.copy_(linear.weight.t())
            other.bias.copy_(torch.zeros(linear.out_features) if linear.bias is None else linear.bias)
        setattr(model, name, other)
    return model.eval()


class Jump(nn.Module):
    """Thresholds of its own for every unit."""

    def __init__(self, width):
        super().__init__()
        self.theta = nn.Parameter(torch.linspace(0.1, 0.9, width))

    def forward(self, z):
        return z * (z > self.theta)


def jump(**options):
    return Block(23, 47, 16, activation=Jump(47), **options)


def shared_middle(seed=1):
    """Two blocks, the second layer of the first being the first of the second."""
    model = nn.Sequential(nn.Linear(20, 60), nn.ReLU(), nn.Linear(60, 62), nn.ReLU(), nn.Linear(62, 14))
    model.d = 20
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=draw).div_(20**0.5 if parameter.ndim > 1 else 1)
        model[0].bias.sub_(1.5)
    return model.eval()


class Stack(nn.Module):
    """Residual blocks, each behind a norm."""

    def __init__(self, d, width, depth, **options):
        super().__init__()
        self.d = d
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(depth))
        self.blocks = nn.ModuleList(Block(d, width, d, seed=5 + i, **options) for i in range(depth))
        self.eval()

    def forward(self, x):
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + block(norm(x))
        return x


def language_like(width=80, depth=3, **options):
    return Stack(28, width, depth, **options)


METHODS = ["exact", "certified"]


def both(make, method="certified"):
    """A model sparsified, and the dense one."""
    dense = make()
    return sparsify(make(), method, rows(64, dense, seed=3)), dense


def assert_same(found, wanted):
    assert (type(found), found.dtype, found.shape) == (type(wanted), wanted.dtype, wanted.shape)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)


def selectors(model):
    """What the sparse layers of a model read, in its order."""
    return [type(layer._sparse.selector) for layer in model.modules() if isinstance(layer, SparseLinear)]


def reads(layer, kind):
    """Whether a layer is sparse and reads what a selector of this kind chooses."""
    return isinstance(layer, SparseLinear) and type(layer._sparse.selector) is kind
