"""Sparsely activated layers learn."""

from __future__ import annotations

import torch

from sparsact.layers import SparselyActivatedLayer
from sparsact.routing import (
    TopK,
)

n, t = 7, 24


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_training_beats_a_dense_layer_of_as_many_active_units():
    """24 units with 5 on fit a curved target better than 5 that are always on; both fit better than the mean."""
    x = torch.randn(512, n, generator=seeded(11))
    y = torch.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]
    first, sparse = trained(SparselyActivatedLayer(n, t, 1, router=TopK(5), generator=seeded(5)), x, y)
    _, dense = trained(SparselyActivatedLayer(n, 5, 1, router=TopK(5), generator=seeded(5)), x, y)
    assert sparse < first / 3
    assert sparse < dense / 2
    assert dense < y.var()


def trained(units, x, y):
    optimizer, losses = torch.optim.Adam(units.parameters(), lr=0.02), []
    for _ in range(300):
        loss = (units(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]
