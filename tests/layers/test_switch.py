from __future__ import annotations

import pytest
import torch
from gates import DroppingGate
from grids import grid
from torch.nn import functional as F

from sparsact.layers import SparselyActivatedLayer, SwitchLayer
from sparsact.routing import HyperplaneLSH, RandomHash, RoutingStatistics, Switch, TopK

n, hidden, o, experts = 7, 6, 5, 4
ROUTERS = {
    "switch": Switch(experts, capacity_factor=0.8),  # drops in training
    "two_tables": HyperplaneLSH(1, n_tables=2),  # two experts for each token
    "random_hash": RandomHash(3, experts),
    "gate": DroppingGate(experts),
}
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def layer(router="switch", **options):
    return SwitchLayer(n, hidden, o, router=ROUTERS.get(router, router), **{"generator": seeded(5), **options})


def inputs(*lead, dtype=None):
    return torch.randn(*lead, n, generator=seeded(11)).to(dtype)


def all_experts(moe, x):
    """The definition: every expert computes every token, and the router's weights choose."""
    up, down = (torch.zeros(()), torch.zeros(())) if moe.up_bias is None else (moe.up_bias, moe.down_bias)
    outputs = [
        F.relu(x @ moe.up_weight[e] + (up[e] if up.ndim else 0)) @ moe.down_weight[e] + (down[e] if down.ndim else 0)
        for e in range(moe.n_experts)
    ]
    return torch.einsum("emo,me->mo", torch.stack(outputs), moe.route(x).dense())


def gradients(value, moe, x):
    weights = torch.arange(1.0, 1 + value.numel()).reshape(value.shape).to(value.dtype) / value.numel()
    return torch.autograd.grad((value * weights).sum(), [x, *moe.parameters()], materialize_grads=True)


@grid(router=list(ROUTERS), bias=[True, False], dtype=DTYPES)
def test_values_and_gradients_match_all_experts_and_a_mask(router, bias, dtype):
    moe, x = layer(router, bias=bias, dtype=torch.float64).to(dtype), inputs(13, dtype=dtype).requires_grad_()
    found, expected = moe(x), all_experts(moe, x)
    assert found.dtype == dtype
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype])
    for gradient, expectation in zip(gradients(found, moe, x), gradients(expected, moe, x), strict=True):
        atol = TOLERANCE[dtype] * max(1.0, float(expectation.abs().max()))
        torch.testing.assert_close(gradient, expectation, rtol=0, atol=atol)


def test_a_full_expert_drops_its_tokens_and_they_give_zero():
    moe, x = layer(Switch(experts, capacity_factor=0.5)), inputs(16)
    y, selection = moe.forward_with_selection(x)
    statistics = RoutingStatistics.of(selection)
    assert statistics.n_dropped == int(selection.dropped.sum()) > 0
    assert torch.equal(y[selection.dropped], torch.zeros(statistics.n_dropped, o))
    assert y[~selection.dropped].abs().sum(1).gt(0).all()
    kept = torch.bincount(selection.indices[~selection.dropped, 0], minlength=experts)
    assert kept.max() == 2  # ceil(0.5 * 16 / 4)
    moe.eval()
    assert not moe.forward_with_selection(x)[1].dropped.any()


def test_an_expert_without_tokens_is_not_read():
    moe, x = layer(Switch(experts, capacity_factor=None)), inputs(3)
    idle = moe.route(x).counts == 0
    assert idle.any()
    expected = moe(x)
    with torch.no_grad():
        moe.up_weight[idle] = moe.down_weight[idle] = torch.nan
    y = moe(x)
    assert torch.equal(y, expected)
    y.sum().backward()
    assert torch.equal(moe.up_weight.grad[idle], torch.zeros(int(idle.sum()), n, hidden))


def test_it_is_a_sparsely_activated_layer_of_blocks():
    """Without output biases: experts are blocks of units, as Section 3.1 of paper B says."""
    moe = layer(Switch(experts, capacity_factor=None), bias=False)
    units = SparselyActivatedLayer(
        n, experts * hidden, o, router=moe.routing.router, bias=False, generator=seeded(5), method="sparse"
    )
    with torch.no_grad():
        units.up_weight.copy_(moe.up_weight.transpose(1, 2).flatten(0, 1))
        units.down_weight.copy_(moe.down_weight.flatten(0, 1))
        units.routing.gate.copy_(moe.routing.gate)
    torch.testing.assert_close(units(inputs(9)), moe(inputs(9)))


def test_the_auxiliary_loss_balances():
    """Inputs that lie to one side of 0 crowd into few experts at first."""
    moe, x = layer(), inputs(64) + 1.3
    before = float(moe.route(x).auxiliary_loss.detach())
    optimizer = torch.optim.SGD(moe.parameters(), lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        moe.forward_with_selection(x)[1].auxiliary_loss.backward()
        optimizer.step()
    assert before > 1.1
    assert float(moe.route(x).auxiliary_loss.detach()) < 1 + (before - 1) / 2


def test_flops_by_hand():
    flops = layer().flops(3)
    assert flops.active == 3 * 2 * hidden * (n + o)
    assert flops.dense == experts * flops.active
    assert flops.routing == 3 * ROUTERS["switch"].flops(n)


def test_what_is_refused():
    with pytest.raises(ValueError, match="reads pre-activations"):
        layer(TopK(2))
    with pytest.raises(ValueError, match="`n_units` must be 1 or more"):
        SwitchLayer(n, 0, o, router=Switch(3))
    with pytest.raises(ValueError, match="7 features"):
        layer()(torch.ones(2, 3))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("router", list(ROUTERS))
def test_on_a_cuda_device(router):
    moe, x = layer(router).cuda(), inputs(13).cuda()
    torch.testing.assert_close(moe(x), all_experts(moe, x), rtol=0, atol=1e-4)
