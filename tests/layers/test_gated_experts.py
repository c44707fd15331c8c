"""Gradients of gated experts at few tokens and at many: their values, their order in memory, and how much they take."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch
from expert_layers import seeded
from torch import nn
from torch.nn import functional as F

from sparsact.layers import MixtureOfExperts, gated_experts

E, K, d, h, o = 5, 2, 7, 6, 9


def made(dtype=torch.float64):
    return MixtureOfExperts(d, h, n_experts=E, n_active=K, d_out=o, generator=seeded(1), dtype=dtype)


def by_loop(moe, x):
    """Weighted outputs of the experts that are chosen, from matrices of one expert at a time."""
    selection = moe.route(x)
    y = x.new_zeros(len(x), o)
    for e in range(E):
        u, v = (x @ moe.up_weight[e]).chunk(2, 1)
        weight = (selection.weights * (selection.indices == e)).sum(1, keepdim=True)
        y = y + weight * ((F.silu(u) * v) @ moe.down_weight[e])
    return y


@pytest.mark.parametrize("few_rows", [1, gated_experts.FEW_ROWS])  # with more than one row an expert, and with few
@pytest.mark.parametrize("m", [1, 3, 41])
def test_gradients_match_a_loop_whether_or_not_all_experts_have_tokens(m, few_rows, monkeypatch):
    monkeypatch.setattr(gated_experts, "FEW_ROWS", few_rows)
    moe, x = made(), torch.randn(m, d, generator=seeded(2), dtype=torch.float64).requires_grad_()
    assert (moe.route(x).counts == 0).any() == (m < 4)
    of = [x, *moe.parameters()]
    weights = torch.randn(m, o, generator=seeded(3), dtype=torch.float64)
    found = torch.autograd.grad(moe(x), of, weights)
    for gradient, wanted in zip(found, torch.autograd.grad(by_loop(moe, x), of, weights), strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradients_have_the_order_of_their_weights_in_memory(dtype):
    """Then ``.grad`` is the memory that was written; in another order torch copies it."""
    moe = made(dtype)
    moe.down_weight = nn.Parameter(moe.down_weight.detach().mT.contiguous().mT)  # as models of transformers keep it
    moe(torch.randn(3, d, generator=seeded(2)).to(dtype)).sum().backward()
    for weight in (moe.up_weight, moe.down_weight):
        assert weight.grad.stride() == weight.stride()
        assert weight.grad.untyped_storage().nbytes() == weight.nbytes


def test_a_gradient_alone_matches_the_gradient_among_all():
    """Whichever of the tokens, the gate and the matrices of the experts are trained."""
    moe, x = made(), torch.randn(11, d, generator=seeded(2), dtype=torch.float64).requires_grad_()
    of = [x, *moe.parameters()]
    together = torch.autograd.grad(moe(x).square().sum(), of)
    for one, wanted in zip(of, together, strict=True):
        for each in of:
            each.requires_grad_(each is one)
        torch.testing.assert_close(torch.autograd.grad(moe(x).square().sum(), one)[0], wanted, rtol=0, atol=1e-12)


def test_outputs_without_gradients_are_the_same():
    moe, x = made(), torch.randn(11, d, generator=seeded(2), dtype=torch.float64)
    with torch.no_grad():
        y = moe(x)
    assert not y.requires_grad
    assert torch.equal(y, moe(x))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what a process holds by /proc")
def test_experts_without_tokens_take_no_memory_for_their_gradients():
    def held():
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    moe = MixtureOfExperts(256, 1024, n_experts=16, n_active=1, generator=None)
    moe(torch.ones(1, 256)).sum().backward()
    moe.zero_grad(set_to_none=True)
    y, before = moe(torch.ones(1, 256)).sum(), held()
    y.backward()
    gradients = moe.up_weight.grad.nbytes + moe.down_weight.grad.nbytes
    assert held() - before < gradients / 2  # one expert of sixteen, and the large pages that it lies in
    assert (moe.up_weight.grad != 0).any((1, 2)).sum() == 1
