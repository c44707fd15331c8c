"""Losses and biases that balance a mixture of experts: their formulas, and what training loops do to them."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from expert_layers import experts, inputs, layer, n, seeded
from torch import nn
from torch.utils.checkpoint import checkpoint

from sparsact import layers, routing
from sparsact.layers import routing_losses, update_biases


def balance(gate, x, indices, z_loss, mask=None):
    """The formula, over tokens one at a time."""
    real = [i for i in range(len(x)) if mask is None or mask[i]]
    p = torch.stack([(gate @ x[i]).softmax(0) for i in real])
    share = torch.zeros(experts, dtype=x.dtype)
    for i in real:
        for e in indices[i].tolist():
            share[e] += 1 / (len(real) * indices.shape[1])
    z = torch.stack([(gate @ x[i]).logsumexp(0) ** 2 for i in real]).mean()
    return experts * (share * p.mean(0)).sum() + z_loss * z


@pytest.mark.parametrize("masked", [False, True])
def test_the_balancing_loss_and_its_gradient_are_those_of_the_formula(masked):
    moe, x = layer(capacity_factor=None, n_active=2, z_loss=0.3), inputs(13) + 0.5
    mask = torch.arange(13) % 4 != 1 if masked else None
    with routing_losses(moe, weight=0.25) as losses:
        _ = moe(x, mask=mask)
    indices = layer(capacity_factor=None, n_active=2).route(x).indices
    (found,) = torch.autograd.grad(losses.total, moe.routing.gate)
    gate = moe.routing.gate.detach().clone().requires_grad_()
    loss = 0.25 * balance(gate, x, indices, 0.3, mask)
    (wanted,) = torch.autograd.grad(loss, gate)
    torch.testing.assert_close(losses.total, loss)
    torch.testing.assert_close(found, wanted)
    step = 1e-6 * torch.randn(gate.shape, generator=seeded(3), dtype=gate.dtype)
    with torch.no_grad():
        there = [0.25 * balance(gate + sign * step, x, indices, 0.3, mask) for sign in (1, -1)]
    torch.testing.assert_close((found * step).sum(), (there[0] - there[1]) / 2, rtol=1e-5, atol=0)
    assert found.abs().max() > 1e-3


class Twice(nn.Module):
    """Two layers; the first may be computed again in the backward pass."""

    def __init__(self, recompute, **options):
        super().__init__()
        self.first, self.second = layer(**options), layer(**options)
        self.recompute = recompute

    def forward(self, x):
        x = x + (checkpoint(self.first, x, **self.recompute) if self.recompute else self.first(x))
        return x + self.second(x)


def trained(recompute, parts=1, **options):
    """Gradients, loads and counts of one step in ``parts`` parts."""
    model, x = Twice(recompute, capacity_factor=None, **options), inputs(24)
    total, statistics = 0.0, []
    for part in x.chunk(parts):
        with routing_losses(model, weight=1.0) as losses:
            y = model(part.clone().requires_grad_())
            loss = (y.square().mean() + losses.total) / parts
            loss.backward()  # within, where a layer that runs again would be counted again
        total += float(loss.detach())
        statistics.append(losses.statistics)
    counts = {name: sum(its[name].counts for its in statistics).tolist() for name in ("first", "second")}
    return model, total, counts


@pytest.mark.parametrize("name", ["top_k", "sigmoid"])
def test_the_same_under_recomputation(name):
    plain, again = (trained(recompute, name=name) for recompute in (None, {"use_reentrant": False}))
    assert plain[1:] == again[1:]
    assert sum(plain[2]["first"]) == 24 * plain[0].first.routing.router.n_active
    for (key, one), other in zip(plain[0].named_parameters(), again[0].parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-14)
        assert one.grad.abs().max() > 0, key
    assert torch.equal(plain[0].first.load, again[0].first.load)
    assert int(again[0].first.load.sum()) == (48 if name == "sigmoid" else 0)


def test_a_reentrant_checkpoint_discards_the_gradient_and_is_refused():
    model = Twice({"use_reentrant": True})
    with routing_losses(model) as losses:
        _ = model(inputs(9).requires_grad_())
    with pytest.raises(RuntimeError, match=r"'first' carries no gradient.*use_reentrant=False"):
        _ = losses.total


def test_parts_of_a_batch_add_up_to_their_mean():
    """With accumulation the balancing loss is the mean over parts, each with its own shares."""
    model, total, _ = trained(None, parts=3)
    wanted, loss = copy.deepcopy(model), 0.0
    wanted.zero_grad()
    for part in inputs(24).chunk(3):
        y, first = wanted.first.forward_with_selection(part)
        z, second = wanted.second.forward_with_selection(part + y)
        squares = (part + y + z).square().mean()
        loss = loss + (squares + first.auxiliary_loss + second.auxiliary_loss) / 3
    loss.backward()
    assert total == pytest.approx(float(loss.detach()), rel=1e-12)
    for one, other in zip(model.parameters(), wanted.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-13)


def test_a_layer_that_runs_twice_counts_twice():
    moe, x = layer(capacity_factor=None), inputs(9)
    with routing_losses(moe) as losses:
        y = moe(moe(x))
    first, second = moe.route(x).auxiliary_loss, moe.route(moe(x)).auxiliary_loss
    assert y.shape == x.shape
    torch.testing.assert_close(losses.total, 0.01 * (first + second))
    assert losses.statistics[""].n_inputs == 18
    assert str(losses).startswith(f"MixtureOfExperts: 18 inputs over {experts} units: ")
    assert f"MixtureOfExperts: {losses.statistics['']}, entropy" in str(losses)  # in the same words


def test_losses_that_are_never_collected_are_warned_of_once():
    moe, x = layer(), inputs(9)
    for _ in range(7):
        moe(x)
    with pytest.warns(UserWarning, match="not collected, so nothing balances"):
        moe(x)
    for _ in range(30):
        moe(x)
    silent = layer(load_balance=0, z_loss=0)
    for _ in range(9):
        silent(x)


def test_biases_follow_the_sign_of_the_load():
    moe, x = layer("sigmoid", bias_rate=0.25), inputs(17) + 1
    loads = torch.zeros(experts, dtype=torch.int64)
    for part in x.split(6):  # three parts, one step
        loads += moe.forward_with_selection(part)[1].counts
    moe.eval()
    moe(x)  # evaluation does not count
    update_biases(moe)
    wanted = 0.25 * torch.sign(loads.double().mean() - loads)
    torch.testing.assert_close(moe.routing.bias, wanted)
    assert int(moe.load.sum()) == 0
    assert wanted.any()
    logits = x @ moe.routing.gate.T
    units = (logits.sigmoid() + wanted).topk(2, 1).indices.sort(1).values
    selection = moe.route(x)
    assert torch.equal(selection.indices, units)
    scores = logits.sigmoid().gather(1, units)  # the bias is not in the weights
    torch.testing.assert_close(selection.weights, 2.5 * scores / scores.sum(1, keepdim=True))
    assert not moe.routing.bias.requires_grad


def test_a_total_before_the_model_has_run_is_refused():
    with routing_losses(layer()) as losses, pytest.raises(RuntimeError, match="no routed layer has run yet"):
        _ = losses.total


def test_the_layers_of_the_package_are_all_collected():
    model = nn.Sequential(layers.SwitchLayer(n, 6, n, router=routing.Switch(3)), layer(dtype=torch.float32))
    with warnings.catch_warnings(), routing_losses(model) as losses:
        model(inputs(9, dtype=torch.float32))
    assert list(losses.statistics) == ["0", "1"]


@pytest.mark.parametrize("model", ["mixtral", "olmoe", "qwen3_moe"])
def test_the_loss_of_transformers_is_k_times_ours(model):
    """They count a token's k choices as k; the shares here add up to 1, as in Megatron and DeepSeek-V3."""
    module = pytest.importorskip(f"transformers.models.{model}.modeling_{model}")
    x, mask = inputs(29) + 0.5, torch.arange(29) % 4 != 1
    for k in (1, 2, 3):
        moe = layer(capacity_factor=None, n_active=k, z_loss=0)
        gate = moe.routing.gate
        for real in (None, mask):
            its = {} if real is None else {"attention_mask": real[None].long()}
            wanted = module.load_balancing_loss_func((x @ gate.T,), experts, k, **its)
            found = k * moe.route(x, mask=real).auxiliary_loss
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6, check_dtype=False)  # theirs is float32
            gradients = (torch.autograd.grad(loss, gate)[0] for loss in (found, wanted))
            torch.testing.assert_close(*gradients, rtol=0, atol=1e-7)
