"""Balance within sequences, and over the parts of a step, by counting."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from expert_layers import experts, inputs, layer, n
from torch.testing import assert_close

from sparsact import routing
from sparsact.layers import routing_losses

GATES = {
    "top_k": {"n_active": 2, "capacity_factor": None},
    "sigmoid": {"n_active": 3},
    "switch": {"capacity_factor": 0.6},  # f counts choices before drops
}
TERMS = ("load_balance", "sequence_balance", "z_loss")


def gate(name, **terms):
    return layer(name, **GATES[name] | dict.fromkeys(TERMS, 0) | terms)


def probabilities(moe, x):
    logits = x @ moe.routing.gate.T
    if not isinstance(moe.routing.router, routing.SigmoidTopK):
        return logits.softmax(-1), logits
    return logits.sigmoid() / logits.sigmoid().sum(-1, keepdim=True), logits


def shares(p, k):
    """Shares of the choices of tokens (T, E) that fell on each expert, one at a time."""
    found = torch.zeros(experts, dtype=p.dtype)
    for row in p:
        for e in row.topk(k).indices.tolist():
            found[e] += 1 / (k * len(p))
    return found


def by_sequence(moe, x, real):
    """Equations (17) to (20) of DeepSeek-V3 for each sequence, and the number of its tokens."""
    k, losses, lengths = moe.routing.router.max_active(n), [], []
    for row, its in zip(x, real, strict=True):
        if its.any():
            p = probabilities(moe, row[its])[0]
            losses.append(experts * (shares(p.detach(), k) * p.mean(0)).sum())
            lengths.append(int(its.sum()))
    return torch.stack(losses), torch.tensor(lengths, dtype=x.dtype)


@pytest.mark.parametrize("name", GATES)
def test_balance_within_sequences_matches_deepseek(name):
    moe, x, real = gate(name, sequence_balance=0.5), inputs(3, 5) + 0.5, torch.ones(3, 5, dtype=torch.bool)
    if name == "sigmoid":
        moe.routing.bias.copy_(torch.tensor([0.5, 0.0, -0.5, 0.25]))  # which decides the choice, and not f
    with routing_losses(moe, weight=0.25) as losses:
        moe(x)
    wanted = 0.125 * by_sequence(moe, x, real)[0].mean()
    assert_close(losses.total, wanted)
    found, its = (torch.autograd.grad(loss, moe.routing.gate)[0] for loss in (losses.total, wanted))
    assert_close(found, its)
    assert found.abs().max() > 1e-3
    flat = moe.forward_with_selection(x.flatten(0, 1))[1].auxiliary_loss  # one sequence
    assert_close(flat, 0.5 * by_sequence(moe, x.reshape(1, 15, n), real.reshape(1, 15))[0].mean())
    assert not torch.isclose(4 * losses.total, flat)


@pytest.mark.parametrize("name", GATES)
def test_sequences_count_by_their_tokens_without_padding(name):
    moe, x = gate(name, sequence_balance=1.0), inputs(4, 5) - 0.4
    real = torch.arange(5) < torch.tensor([[5], [2], [0], [3]])
    x[~real] = torch.nan
    found = moe.forward_with_selection(x, mask=real)[1].auxiliary_loss
    losses, lengths = by_sequence(moe, x, real)
    assert_close(found, (losses * lengths).sum() / 10)
    assert torch.autograd.grad(found, moe.routing.gate)[0].isfinite().all()
    nothing = moe.forward_with_selection(x, mask=torch.zeros_like(real))[1].auxiliary_loss
    assert nothing == 0


def test_balance_within_sequences_in_a_router_of_its_own():
    """Two inputs of equal choice in each sequence: E / k times the probability of the chosen."""
    state = {"gate": torch.tensor([[1.0], [2.0], [4.0]]).log()}
    router = routing.SoftmaxTopK(3, 1, load_balance=0, z_loss=0, sequence_balance=1.0)
    x = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    assert_close(router(x, {**state, "length": 2}).auxiliary_loss, torch.tensor(3 * (4 / 7 + 4 / 7) / 2))
    whole = router(x, state).auxiliary_loss
    assert_close(whole, torch.tensor(3 * (4 / 7 + 1 / 7) / 2))
    plain = router(x.numpy(), {"gate": state["gate"].numpy(), "length": 2}).auxiliary_loss
    assert plain == pytest.approx(12 / 7, rel=1e-6)
    with pytest.raises(ValueError, match="`length` of softmax_top_k must divide the 4 inputs; got 3"):
        router(x, {**state, "length": 3})


def parts(moe, x, real, bounds, chained=True):
    """Totals of the parts of a step, each times its share of the tokens."""
    losses, totals = None, []
    for some in map(slice, bounds, bounds[1:]):
        with routing_losses(moe, weight=1.0, earlier=losses if chained else None) as losses:
            moe(x[some], mask=real[some])
        totals.append(losses.total * real[some].sum() / real.sum())
    return totals


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("term", ["z_loss", "sequence_balance"])
def test_parts_of_a_step_add_up(name, term):
    moe, x = gate(name, **{term: 0.5}), inputs(6, 5) + 0.3
    real = torch.arange(5) < torch.tensor([[5], [1], [4], [0], [2], [5]])
    with routing_losses(moe, weight=1.0) as losses:
        moe(x, mask=real)
    found = sum(parts(moe, x, real, (0, 1, 4, 6)))
    assert_close(found, losses.total)
    assert_close(*(torch.autograd.grad(loss, moe.routing.gate)[0] for loss in (found, losses.total)))


@pytest.mark.parametrize("name", GATES)
def test_shares_count_all_parts_so_far(name):
    moe, x, bounds = gate(name, load_balance=2.0), inputs(13) + 0.5, (0, 4, 9, 13)
    real, k = torch.arange(13) % 4 != 1, moe.routing.router.max_active(n)
    wanted, alone = [], []
    for begin, end in pairwise(bounds):
        p = probabilities(moe, x[begin:end][real[begin:end]])[0]
        seen = probabilities(moe, x[:end][real[:end]])[0].detach()
        for f, to in ((shares(seen, k), wanted), (shares(p.detach(), k), alone)):
            to.append(2 * experts * (f * p.sum(0)).sum() / real.sum())
    found = parts(moe, x, real, bounds)
    assert_close(found, wanted)
    assert_close(*(torch.autograd.grad(sum(loss), moe.routing.gate)[0] for loss in (found, wanted)))
    assert_close(parts(moe, x, real, bounds, chained=False), alone)
    assert not torch.isclose(sum(wanted), sum(alone))
    twice = parts(moe, torch.cat([x, x, x]), real.repeat(3), (0, 13, 26, 39))  # parts of the same f: exact
    with routing_losses(moe, weight=1.0) as losses:
        moe(x, mask=real)
    assert_close(sum(twice), losses.total)


def test_parts_of_different_models_are_refused():
    moe, x = gate("top_k", load_balance=1.0), inputs(5)
    with routing_losses(moe) as losses:
        moe(x)
    with routing_losses(moe, earlier=losses) as both:
        moe(moe(x))
    with pytest.raises(RuntimeError, match="ran 1 times in the earlier part and 2 times in this one"):
        _ = both.total
    other = gate("top_k", n_experts=7, load_balance=1.0)
    with routing_losses(other, earlier=losses) as apart:
        other(x)
    with pytest.raises(RuntimeError, match="another model; run the same model in each"):
        _ = apart.total
    with pytest.raises(TypeError, match="`earlier` must be what routing_losses yields; got Tensor"):
        routing_losses(moe, earlier=losses.total).__enter__()
    with routing_losses(moe) as nothing:
        pass
    with pytest.raises(RuntimeError, match="no routed layer has run"), routing_losses(moe, earlier=nothing):
        pass
