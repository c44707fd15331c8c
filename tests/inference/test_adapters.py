"""Adapters: modules that take the place of a sparse layer, call it, and add to its output, as LoRA does."""

import copy

import pytest
import torch
from sparse_models import reads
from torch import nn

from sparsact.inference import sparsify
from sparsact.inference.selectors import ActiveInputs

d, s, o = 24, 70, 18


class Adapter(nn.Module):
    """A layer, plus a product of two thin matrices."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        draw = torch.Generator().manual_seed(layer.in_features)
        self.thin = nn.Parameter(torch.randn(2, layer.in_features, generator=draw))
        self.wide = nn.Parameter(torch.randn(layer.out_features, 2, generator=draw))

    def forward(self, x):
        return self.layer(x) + x @ self.thin.T @ self.wide.T


class FeedForward(nn.Module):
    def __init__(self, gated):
        super().__init__()
        self.up, self.down = nn.Linear(d, s), nn.Linear(s, o)
        self.gate = nn.Linear(d, s) if gated else None
        nn.init.constant_((self.gate or self.up).bias, -1.5)

    def forward(self, x):
        return self.down(self.up(x).relu() if self.gate is None else self.gate(x).relu() * self.up(x))


@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize(
    ("gated", "name"), [(False, "up"), (False, "down"), (True, "up"), (True, "gate"), (True, "down")]
)
def test_an_adapter_around_a_layer(gated, name, method):
    torch.manual_seed(4)
    dense, x = FeedForward(gated).eval(), torch.randn(3, d)
    sparse = sparsify(copy.deepcopy(dense), method, torch.randn(41, d))
    with torch.inference_mode():
        torch.testing.assert_close(sparse(x), dense(x))
        before = sparse.down._sparse.sparse_calls
        assert before
        for model in (dense, sparse):
            setattr(model, name, Adapter(getattr(model, name)))
        torch.testing.assert_close(sparse(x), dense(x))
        for model in (dense, sparse):  # taken away again
            setattr(model, name, getattr(model, name).layer)
        torch.testing.assert_close(sparse(x), dense(x))
    assert reads(sparse.down, ActiveInputs)
    assert sparse.down._sparse.sparse_calls > before
