"""MixtureOfExperts: the definition by a loop, its losses by their formulas, and what training loops do to it."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from expert_layers import ACTIVATIONS, NAMES, experts, hidden, inputs, layer, n, o, seeded
from grids import few_of, grid
from torch.nn import functional as F

from sparsact import routing
from sparsact.layers import MixtureOfExperts, routing_losses, update_biases


def by_loop(moe, x, selection):
    """The definition: a token at a time, an expert at a time."""
    phi, rows = ACTIVATIONS[moe.activation], []
    for token, units, weights in zip(x, selection.indices, selection.weights, strict=True):
        y = torch.zeros(moe.out_features, dtype=x.dtype)
        for e, weight in zip(units.tolist(), weights, strict=True):
            if e >= 0:
                z = token @ moe.up_weight[e] + (0 if moe.up_bias is None else moe.up_bias[e])
                y = y + weight * (phi(z) @ moe.down_weight[e] + (0 if moe.down_bias is None else moe.down_bias[e]))
        rows.append(y)
    return torch.stack(rows)


def gradients(value, moe, x):
    weights = torch.arange(1.0, 1 + value.numel(), dtype=value.dtype).reshape(value.shape) / value.numel()
    return torch.autograd.grad((value * weights).sum(), [x, *moe.parameters()], materialize_grads=True)


@grid(name=list(NAMES), bias=[True, False])
def test_values_and_gradients_are_those_of_a_loop(name, bias):
    moe, x = layer(name, bias=bias, d_out=o), inputs(13).requires_grad_()
    y, expected = moe(x), by_loop(moe, x, moe.route(x))
    assert expected.abs().max() > 0.01
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    for found, wanted in zip(gradients(y, moe, x), gradients(expected, moe, x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("activation", few_of(ACTIVATIONS, ["squared_relu", "geglu"]))
def test_activations_on_a_batch_whose_segments_are_padded(activation):
    moe, x = layer(activation=activation, capacity_factor=None), inputs(300).requires_grad_()
    y, expected = moe(x), by_loop(moe, x, moe.route(x))
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    for found, wanted in zip(gradients(y, moe, x), gradients(expected, moe, x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_in_other_dtypes(dtype):
    moe = MixtureOfExperts(64, 96, n_experts=3, n_active=2, generator=seeded(1))
    x = torch.randn(200, 64, generator=seeded(2))
    wanted, selection = moe.double().forward_with_selection(x.double())
    weights = moe.to(dtype).route(x.to(dtype))
    assert (weights.indices == selection.indices).float().mean() > 0.9
    rows = (weights.indices == selection.indices).all(1)
    scale = float(wanted.detach().abs().max())
    tolerance = {torch.float32: 1e-6, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
    found = moe(x.to(dtype))
    torch.testing.assert_close(found[rows].double(), wanted[rows], rtol=0, atol=tolerance * scale)


def test_second_derivatives():
    moe, x = layer(n_active=2).eval(), inputs(3)
    assert torch.autograd.gradcheck(moe, x.requires_grad_(), fast_mode=True)
    assert torch.autograd.gradgradcheck(moe, x.requires_grad_(), fast_mode=True)


@grid(name=list(NAMES))
def test_gradients_that_are_differentiated_are_the_plain_ones(name):
    moe, x = layer(name).eval(), inputs(13).requires_grad_()
    of, loss = [x, moe.up_weight, moe.down_weight], moe(x).square().sum()
    plain = torch.autograd.grad(loss, of, retain_graph=True)
    found = torch.autograd.grad(loss, of, create_graph=True)  # the gate reads the same inputs: counted once
    torch.testing.assert_close(found, plain)


def test_shared_experts_see_every_token():
    moe, x = layer(n_shared=2), inputs(9)
    routed = by_loop(moe, x, moe.route(x))
    u, v = (x @ moe.shared_up).chunk(2, 1)
    torch.testing.assert_close(moe(x), routed + (F.silu(u) * v) @ moe.shared_down)
    assert moe.flops(3).active == 3 * (3 + 2) * 2 * (2 * n * hidden + hidden * n)


# ---- weights, losses ----


def test_weights_of_both_normalisations_have_one_softmax():
    """A second softmax, over probabilities that are already one, makes weights nearly even."""
    x = inputs(13)
    for name in ("top_k", "top_k all"):
        moe = layer(name, n_active=2, **({"capacity_factor": None} if name == "top_k" else {}))
        with torch.no_grad():
            moe.routing.gate.mul_(9)
        logits = x @ moe.routing.gate.T
        values, units = logits.softmax(1).topk(2, 1)
        if name == "top_k":
            values = logits.gather(1, units).softmax(1)
        wanted = torch.zeros(13, experts, dtype=x.dtype).scatter(1, units, values)
        torch.testing.assert_close(moe.route(x).dense(), wanted)
        assert wanted.max() > 0.9


# ---- biases ----


# ---- masks, capacity, other inputs of the router ----


@grid(name=list(NAMES))
def test_padding_changes_nothing_for_the_others(name):
    moe, x = layer(name), inputs(3, 5)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], dtype=torch.bool)
    y, selection = moe.forward_with_selection(x, mask=mask)
    alone, wanted = moe.forward_with_selection(x[mask])
    torch.testing.assert_close(y[mask], alone)
    assert torch.equal(y[~mask], torch.zeros_like(y[~mask]))
    assert torch.equal(selection.counts, wanted.counts)
    torch.testing.assert_close(selection.auxiliary_loss, wanted.auxiliary_loss)
    assert torch.equal(selection.indices[mask.flatten()], wanted.indices)
    changed = torch.where(mask[..., None], x, 100 * x)
    torch.testing.assert_close(moe(changed, mask=mask), y)


@grid(priority=["weight", "arrival"], name=["top_k", "sigmoid"])
def test_full_experts_drop_by_priority(name, priority):
    """By brute force: all first choices before second ones, then by the largest score of a token, or in order."""
    moe, x = layer(name, n_active=2, capacity_factor=0.5, priority=priority), inputs(19)
    free = layer(name, n_active=2, capacity_factor=None).route(x)
    room, taken, kept = -(-19 * 2 * 0.5 // experts), [0] * experts, set()
    scores = free.logits.softmax(1) if name == "top_k" else free.logits.sigmoid()
    largest = scores.max(1).values.tolist()
    order = sorted(range(19), key=lambda i: -largest[i]) if priority == "weight" else range(19)
    for choice in range(2):
        for i in order:
            place = free.weights[i].argsort(descending=True)[choice]
            e = int(free.indices[i, place])
            if taken[e] < room:
                taken[e] += 1
                kept.add((i, e))
    selection = moe.route(x)
    found = {(i, e) for i, row in enumerate(selection.indices.tolist()) for e in row if e >= 0}
    assert found == kept
    assert 0 < len(kept) < 38
    assert torch.equal(selection.dropped, (selection.indices < 0).any(1))


@pytest.mark.parametrize("priority", ["weight", "arrival"])
@pytest.mark.parametrize("name", ["top_k", "sigmoid"])
def test_each_group_is_routed_as_a_batch_of_its_own(name, priority):
    options = {"n_active": 2, "capacity_factor": 0.6, "priority": priority}
    moe, alone = (layer(name, **options, group_size=size) for size in (6, None))
    x, mask = inputs(20), torch.arange(20) % 5 != 3
    y, selection = moe.forward_with_selection(x, mask=mask)
    pairs = zip(x.split(6), mask.split(6), strict=True)
    parts = [alone.forward_with_selection(part, mask=real) for part, real in pairs]
    torch.testing.assert_close(y, torch.cat([part for part, _ in parts]))
    assert torch.equal(selection.indices, torch.cat([chosen.indices for _, chosen in parts]))
    assert torch.equal(selection.dropped, torch.cat([chosen.dropped for _, chosen in parts]))
    assert not torch.equal(selection.indices, alone.route(x, mask=mask).indices)
    assert selection.dropped.any()


def test_experts_choose_their_tokens():
    moe, x = layer("expert_choice"), inputs(10)
    p = (x @ moe.routing.gate.T).softmax(1)
    wanted = torch.zeros_like(p)
    for e in range(experts):
        for i in p[:, e].argsort(descending=True)[:5]:  # 2 * 10 / 4
            wanted[i, e] = p[i, e]
    torch.testing.assert_close(moe.route(x).dense(), wanted)


def test_tokens_are_routed_by_their_ids():
    ids = torch.tensor([[3, 50_257, 3], [16_777_217, 16_777_216, 0]])
    moe = MixtureOfExperts(n, hidden, n_experts=64, n_active=2, router="random_hash", route_features=1)
    selection = moe.forward_with_selection(inputs(2, 3, dtype=torch.float32), route_by=ids)[1]
    units = selection.indices.tolist()
    assert units[0] == units[2]
    assert units[3] != units[4]  # of ids that float32 does not tell apart
    wanted = routing.RandomHash(2, 64)(ids.reshape(-1, 1).double()).indices
    assert torch.equal(selection.indices, wanted)


def test_tokens_are_routed_by_a_table_of_their_ids():
    counts = torch.tensor([9, 1, 4, 2, 7, 1])
    table = routing.balanced_table(counts, 3)
    moe = MixtureOfExperts(n, hidden, n_experts=3, router="hash_table", n_tokens=6)
    moe.routing.table.copy_(torch.as_tensor(table))
    ids = torch.repeat_interleave(torch.arange(6), counts)
    selection = moe.forward_with_selection(inputs(24, dtype=torch.float32), route_by=ids)[1]
    assert torch.equal(selection.indices, torch.as_tensor(table)[ids])
    assert selection.counts.tolist() == [9, 8, 7]
    assert moe.half().routing.table.dtype == torch.int64


def test_jitter_is_seen_by_the_router_alone_and_in_training_alone():
    moe, x = layer(jitter=0.3, capacity_factor=None), inputs(9)
    one, other = moe.route(x).logits, moe.route(x).logits
    assert not torch.equal(one, other)
    moe.eval()
    assert torch.equal(moe.route(x).logits, x @ moe.routing.gate.T)


# ---- torch around it ----


@pytest.mark.parametrize("name", ["top_k", *(pytest.param(each, marks=pytest.mark.slow) for each in list(NAMES)[1:])])
def test_compiled_without_a_break(name):
    moe, x = layer(name), inputs(13).requires_grad_()
    compiled = torch.compile(moe, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        with routing_losses(moe) as losses:
            y = compiled(x)
        total = losses.total
        with routing_losses(moe) as losses:
            expected = moe(x)
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(total, losses.total)
    for found, wanted in zip(gradients(y, moe, x), gradients(expected, moe, x), strict=True):
        torch.testing.assert_close(found, wanted)


def steps(moe, optimizer, batches):
    for x in batches:
        with routing_losses(moe) as losses:
            loss = (moe(x) - x.flip(-1)).square().mean()
        optimizer.zero_grad()
        (loss + losses.total).backward()
        optimizer.step()
        update_biases(moe)


def test_training_that_resumes_from_a_file_goes_on_as_if_it_had_not_stopped():
    batches = [inputs(12, seed=seed) for seed in range(6)]
    whole = layer("sigmoid")
    steps(whole, torch.optim.Adam(whole.parameters(), 0.01), batches)
    first, file = layer("sigmoid"), io.BytesIO()
    optimizer = torch.optim.Adam(first.parameters(), 0.01)
    steps(first, optimizer, batches[:3])
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    second = layer("sigmoid", generator=seeded(8))
    optimizer = torch.optim.Adam(second.parameters(), 0.01)
    saved = torch.load(file, weights_only=True)
    second.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    steps(second, optimizer, batches[3:])
    assert set(saved["model"]) == {"up_weight", "down_weight", "routing.gate", "routing.bias"}
    for key, value in whole.state_dict().items():
        assert torch.equal(value, second.state_dict()[key]), key
    assert torch.equal(copy.deepcopy(whole).eval()(batches[0]), whole.eval()(batches[0]))


# ---- errors ----


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ("top_k", "top_k all", "sigmoid", "switch", "expert_choice", "block_top1", "learned_lsh")]
    + [(name, {"n_active": 1}) for name in ("top_k", "top_k all", "sigmoid", "block_top1", "learned_lsh", "tree")],
)
def test_the_task_trains_the_router(name, options):
    """By every router that learns, however few experts a token has: without the balancing losses."""
    moe = layer(name, **options)
    moe(inputs(30)).square().sum().backward()
    trained = [moe.routing.get_parameter(one) for one in moe.routing.router.trainable]
    assert trained
    assert all(one.grad.abs().max() > 1e-5 for one in trained)


def test_a_single_choice_has_the_weight_that_its_gate_gives_it():
    """As in Switch transformers; by sigmoids, as in DeepSeek-V3, which divides by the sum of two and more alone."""
    x = inputs(9)
    for name, scale, score in (("top_k", {}, lambda z: z.softmax(1)), ("sigmoid", {"scale": 2.5}, torch.sigmoid)):
        moe = layer(name, n_active=1, capacity_factor=None, **scale)
        selection, scores = moe.route(x), score(x @ moe.routing.gate.T)
        torch.testing.assert_close(selection.weights, scale.get("scale", 1) * scores.amax(1, keepdim=True))
        assert torch.equal(selection.indices, scores.argmax(1, keepdim=True))
    renormalised = layer("top_k", n_active=1, capacity_factor=None, normalise="chosen").route(x).weights
    torch.testing.assert_close(renormalised, torch.ones_like(renormalised))


@pytest.mark.parametrize("name", ["top_k", "sigmoid"])
def test_a_full_expert_with_one_choice_drops_the_least_weights(name):
    """Not the last of the batch, unless that is asked for."""
    x, options = inputs(21), {"n_active": 1, "capacity_factor": 0.8}
    room = -(-21 * 0.8 // experts)
    for priority in ("weight", "arrival"):
        moe = layer(name, priority=priority, **options)
        free = layer(name, n_active=1, capacity_factor=None)
        chosen, kept = free.route(x), moe.route(x).indices[:, 0] >= 0
        wanted = torch.zeros(21, dtype=torch.bool)
        for e in range(experts):
            its = (chosen.indices[:, 0] == e).nonzero()[:, 0]
            order = chosen.weights[its, 0].argsort(descending=True) if priority == "weight" else torch.arange(len(its))
            wanted[its[order[: int(room)]]] = True
        assert torch.equal(kept, wanted)
        assert not kept.all()


@grid(name=["top_k", "sigmoid"], k=[1, 2])
def test_a_permuted_batch_drops_the_same_tokens(name, k):
    """By probability, also where a single choice is normalised over itself, so that every weight is 1."""
    normalised = {"normalise": "chosen"} if name == "top_k" else {}
    moe, x = layer(name, n_active=k, capacity_factor=0.6, **normalised), inputs(23)
    order = torch.randperm(23, generator=seeded(4))
    assert moe.route(x).dropped.any()
    torch.testing.assert_close(moe(x[order]), moe(x)[order])
    assert torch.equal(moe.route(x[order]).dropped, moe.route(x).dropped[order])


def test_gradients_that_arrive_at_padding_reach_no_parameter():
    """NaN in tokens and in gradients, as a residual stream of padding may hold them."""
    moe, x, mask = layer(n_shared=1), inputs(3, 5), torch.arange(5).expand(3, 5) < 3
    y = moe(x.masked_fill(~mask[..., None], torch.nan), mask=mask)
    y.backward(torch.ones_like(y).masked_fill(~mask[..., None], torch.nan))
    assert all(p.grad.isfinite().all() for p in moe.parameters())
