"""Memories in training: clipped and second derivatives, and narrow layers with a norm over the batch."""

from __future__ import annotations

import pytest
import torch
from grids import grid
from memory_layers import BOTH, products, states

from sparsact.layers import clip_gradients


@grid(name=list(BOTH))
def test_sparse_gradients_are_clipped_as_dense_ones(name):
    norms, clipped = {}, {}
    for sparse in (True, False):
        layer, x, others = BOTH[name](sparse=sparse)
        layer(x, **others).square().sum().backward()
        norms[sparse] = clip_gradients(layer, 0.1)
        clipped[sparse] = [one.grad.to_dense() for one in layer.parameters()]
    torch.testing.assert_close(norms[True], norms[False])
    torch.testing.assert_close(torch.cat([one.flatten() for one in clipped[True]]).norm(), torch.tensor(0.1))
    torch.testing.assert_close(clipped[True], clipped[False])


@grid(name=list(BOTH))
@pytest.mark.grid
def test_second_derivatives_of_dense_tables(name):
    layer, x, others = BOTH[name](sparse=False, dtype=torch.float64)
    moved = others.get("context", x).double().requires_grad_()
    call = layer if name == "product keys" else lambda context: layer(x, context=context)
    torch.autograd.gradgradcheck(call, moved)
    loss = call(moved).square().sum()
    plain = torch.autograd.grad(loss, layer.values, retain_graph=True)[0]
    (found,) = torch.autograd.grad(loss, layer.values, create_graph=True)
    torch.testing.assert_close(found, plain)
    assert torch.autograd.grad(found.square().sum(), layer.values)[0].any()


@grid(dtype=[torch.bfloat16, torch.float16])
def test_batch_norm_in_narrow_layers(dtype):
    layer = products(batch_norm=True, dtype=dtype)
    y = layer(states(9).to(dtype), mask=torch.arange(9) > 1)
    y.float().sum().backward()
    assert y.dtype == layer.norm.weight.grad.dtype == dtype
    assert layer.norm.running_mean.any()
