from __future__ import annotations

import copy

import pytest
import torch
from grids import few_of

from sparsact.layers import BlockSparseFeedForward

d, units, blocks = 8, 24, 6


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def layer(**options):
    return BlockSparseFeedForward(d, units, blocks, **{"generator": seeded(5), **options})


def inputs(*lead, dtype=None):
    return torch.randn(*lead, d, generator=seeded(11)).to(dtype)


def sampled(feed, x, seed):
    """A forward pass in training, with torch's generator at ``seed`` and then where it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return feed.train().forward_with_selection(x)


@pytest.mark.parametrize("method", ["sparse", "dense"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_one_unit_of_each_block_is_on(method, dtype):
    feed, x = layer(method=method, dtype=torch.float64).to(dtype).eval(), inputs(9, dtype=dtype)
    y, selection = feed.forward_with_selection(x)
    assert torch.equal(selection.indices // (units // blocks), torch.arange(blocks).expand(9, blocks))
    inner = feed.units
    controller = inner.routing
    scores = x @ controller.down.T @ controller.up.T
    best = scores.unflatten(1, (blocks, -1)).argmax(-1) + torch.arange(blocks) * (units // blocks)
    assert torch.equal(selection.indices, best)
    mask = torch.zeros(9, units, dtype=dtype).scatter(1, best, 1)
    expected = (torch.relu(x @ inner.up_weight.T + inner.up_bias) * mask) @ inner.down_weight + inner.down_bias
    atol = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2}[dtype]
    torch.testing.assert_close(y, expected, rtol=0, atol=atol)


def test_in_training_the_choice_is_sampled():
    feed, x = layer(), inputs(40)
    (_, first), (_, again), (_, other) = (sampled(feed, x, seed) for seed in (1, 1, 2))
    assert torch.equal(first.indices, again.indices)
    assert not torch.equal(first.indices, other.indices)


def test_units_are_sampled_by_their_softmax():
    """Gumbel noise: 4000 draws for one input; each frequency within 5 standard deviations, which fails once in 70,000
    for 24 units, and the seed is fixed."""
    feed, x, draws = layer(), inputs(1).expand(4000, d), 4000
    _, selection = sampled(feed, x, 3)
    expected = selection.logits[0].unflatten(0, (blocks, -1)).softmax(-1).flatten()
    found = torch.bincount(selection.indices.flatten(), minlength=units) / draws
    deviation = (expected * (1 - expected) / draws).sqrt()
    assert ((found - expected).abs() < 5 * deviation).all()
    assert expected.max() > 0.3


def test_in_training_values_are_hard_and_gradients_soft():
    feed, x = layer(dtype=torch.float64, temperature=0.7), inputs(5, dtype=torch.float64)
    y, selection = sampled(feed, x, 3)
    inner = feed.units
    z = torch.relu(x @ inner.up_weight.T + inner.up_bias)
    hard = torch.zeros(5, units, dtype=torch.float64).scatter(1, selection.indices, 1)
    torch.testing.assert_close(y, (z * hard) @ inner.down_weight + inner.down_bias, rtol=0, atol=1e-12)
    # The gradient of the controller is that of the soft choice, with the noise that was drawn.
    with torch.random.fork_rng():
        torch.manual_seed(3)
        noise = -(-torch.rand(5, units, dtype=torch.float32).clamp_min(2**-25).log()).log()
    scores = x @ inner.routing.down.T @ inner.routing.up.T
    soft = ((scores + noise) / 0.7).unflatten(1, (blocks, -1)).softmax(-1).flatten(1)
    controller = [inner.routing.down, inner.routing.up]
    found = torch.autograd.grad(y.sum(), controller)
    expected = torch.autograd.grad(((z * soft) @ inner.down_weight).sum(), controller)
    for gradient, expectation in zip(found, expected, strict=True):
        assert expectation.abs().max() > 1e-3
        torch.testing.assert_close(gradient, expectation, rtol=0, atol=1e-12)


@pytest.mark.grid
@pytest.mark.parametrize("training", few_of([True, False], [True]))
def test_compiled_without_a_break(training):
    feed, x = layer(method="sparse").train(training), inputs(9)
    compiled = torch.compile(feed, fullgraph=True, backend="aot_eager")
    with torch.random.fork_rng():
        y = compiled(x)
    assert y.shape == x.shape
    if not training:
        torch.testing.assert_close(y, feed(x))


@pytest.mark.grid
def test_training_then_sparse_inference():
    """It learns its target, in the noise of training and, as well, without it."""
    feed, x = layer(), inputs(256)
    y = torch.roll(torch.relu(x), 1, dims=1)
    optimizer = torch.optim.Adam(feed.parameters(), lr=0.01)
    before = float((feed.eval()(x) - y).square().mean().detach())
    feed.train()
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for _ in range(300):
            optimizer.zero_grad()
            (feed(x) - y).square().mean().backward()
            optimizer.step()
    assert (feed.eval()(x) - y).square().mean() < 0.5 * before
    assert (feed(x) - y).square().mean() < 0.8 * y.var()


def test_autocast_state_and_copies():
    feed, x = layer(), inputs(9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert feed.eval()(x).dtype == torch.bfloat16
        with torch.random.fork_rng():
            assert feed.train()(x).dtype == torch.bfloat16
    feed.eval()
    other = layer(generator=seeded(6)).eval()
    other.load_state_dict(feed.state_dict())
    assert torch.equal(other(x), feed(x))
    assert torch.equal(copy.deepcopy(feed)(x), feed(x))


def test_flops_and_defaults():
    feed = layer()
    rank = d // (units // blocks)
    assert feed.units.routing.down.shape == (rank, d)
    flops = feed.flops()
    assert flops.active == blocks * 4 * d
    assert flops.dense == units * 4 * d
    assert flops.routing == 2 * rank * (d + units) + units


def test_what_is_refused():
    with pytest.raises(ValueError, match="`n_blocks` must divide `d_ff`; got 5 blocks for 24 units"):
        BlockSparseFeedForward(d, units, 5)
    with pytest.raises(ValueError, match="`temperature` must be a finite number above 0"):
        layer(temperature=0.0)
    with pytest.raises(TypeError, match="real numbers"):
        layer()(torch.ones(3, d, dtype=torch.int32))
