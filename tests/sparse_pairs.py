"""A sparsified model with a dense twin, compared after anything that is done to the sparse one."""

from __future__ import annotations

import copy

import torch

from sparsact.inference import sparsify


def rows(m, d, seed=0):
    """Inputs (m, d)."""
    return torch.randn(m, d, generator=torch.Generator().manual_seed(seed))


def sparse_and_dense(make, method="certified"):
    """A sparse model whose copies of weights are made, and a dense one with weights of its own."""
    dense = make()
    model = sparsify(make(), method, rows(64, dense.d))
    with torch.no_grad():
        model(rows(1, dense.d))
    assert model.down._sparse.sparse_calls
    return model, dense


def assert_as_dense(model, dense, calls=4):
    """The sparse model answers as the dense one does with its parameters."""
    dense.load_state_dict(copy.deepcopy(model.state_dict()))
    with torch.no_grad():
        for seed in range(calls):
            x = rows(1 + seed % 3, dense.d, seed)
            torch.testing.assert_close(model(x), dense(x), rtol=1e-4, atol=1e-5)
