"""What makes activations sparse, against plain formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sparsact.inference.block import Activation, Block
from sparsact.inference.find_blocks import find_blocks
from sparsact_papers.training import ActivationPenalty, TopKTraining, Transformer
from sparsact_papers.training.penalties import unit_counts
from sparsact_papers.training.relufying import with_relu


def transformer(activation="relu"):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer(9, 6, 3, 2, 14, 5, activation=activation)


def activations(model, x):
    """Activations (inputs, units) of each layer, by hand."""
    found, stream = [], model.tokens(x) + model.places.weight[: x.shape[1]]
    for layer in model.blocks:
        middle = stream + layer.attention(layer.attention_norm(stream))
        inside = layer.feed_forward
        found.append(inside.activation(inside.up(layer.feed_forward_norm(middle))).flatten(0, 1))
        stream = layer(stream, x)
    return found


X = torch.arange(28).reshape(7, 4) % 9


def test_the_penalty_is_the_sum_of_mean_absolute_activations():
    model = transformer("gelu")  # with negative ones
    by_hand = 0.7 * sum(h.abs().mean() for h in activations(model, X))
    wanted = torch.autograd.grad(by_hand, list(model.blocks.parameters()), allow_unused=True)
    with ActivationPenalty(model, model.feed_forward_blocks(), 0.7) as penalty:
        model(X)
        loss = penalty.loss()
        with torch.no_grad():
            model(X)
        with pytest.raises(ValueError, match=r"block 'blocks.0.feed_forward' was not called"):
            penalty.loss()
    assert torch.allclose(loss, by_hand, rtol=1e-6)
    found = torch.autograd.grad(loss, list(model.blocks.parameters()), allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.allclose(one, other, atol=1e-7)


def test_two_calls_count_by_their_mean():
    model = transformer()
    with ActivationPenalty(model, model.feed_forward_blocks(), 1.0) as penalty:
        model(X)
        once = penalty.loss()
        model(X)
        model(X)
        assert torch.allclose(penalty.loss(), once)


def fail_within(inducement, model):
    with inducement:
        model(X)
        raise KeyError


@pytest.mark.parametrize(("kind", "amount"), [(ActivationPenalty, 1.0), (TopKTraining, 2)])
def test_nothing_is_left_behind(kind, amount):
    model, y = transformer(), transformer()(X)
    with pytest.raises(KeyError):
        fail_within(kind(model, model.feed_forward_blocks(), amount), model)
    assert torch.equal(model(X), y)
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_top_k_keeps_the_largest_and_sends_gradients_to_no_other(activation):
    layer = transformer(activation).blocks[1].feed_forward
    block = Block("", "up", "down", None, Activation("", F.relu, None))
    x = torch.randn(11, 6, generator=torch.Generator().manual_seed(1))
    h = layer.activation(layer.up(x)).detach()
    order = h.abs().argsort(dim=1, descending=True)
    kept = torch.stack([torch.isin(torch.arange(14), row[:4]) for row in order])
    with TopKTraining(layer, [block], 4) as top, unit_counts(layer, [block]) as counts:
        y = layer(x)
        assert top.loss() == 0
    assert torch.allclose(y, F.linear(h * kept, layer.down.weight, layer.down.bias), atol=1e-7)
    assert int(counts()[0].counts.sum()) <= 4 * 11
    y.sum().backward()
    z = layer.up(x).detach().requires_grad_()
    (layer.activation(z) * kept * layer.down.weight.sum(dim=0)).sum().backward()
    assert torch.allclose(layer.up.bias.grad, z.grad.sum(dim=0), atol=1e-6)


def test_dead_units_are_told_from_rare_ones():
    model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 2))
    block = Block("", "0", "2", None, Activation("relu", F.relu, torch.zeros(4)))
    with torch.no_grad():
        model[0].weight[:] = 1.0
        model[0].bias[:] = torch.tensor([0.5, -0.75, -1998.5, -5000.0])  # on for all, all but one, one, none
    with unit_counts(model, [block]) as counts:
        for part in torch.arange(2000.0).reshape(-1, 1).split(300):
            model(part)
    (found,) = counts()
    assert found.counts.tolist() == [2000, 1999, 1, 0]
    assert (found.n_inputs, found.dead, found.rare) == (2000, 1, 1)
    assert found.density == 4000 / (4 * 2000)
    with pytest.raises(ValueError, match="has seen no input"), unit_counts(model, [block]) as none:
        none()


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_relu_takes_the_place_of_a_module(activation):
    smooth, sharp = transformer(activation), transformer("relu")
    before = smooth(X)
    changed = with_relu(smooth, smooth.feed_forward_blocks())
    assert torch.equal(changed(X), sharp(X))  # the same parameters
    assert torch.equal(smooth(X), before)
    assert [block.activation.name for block in changed.feed_forward_blocks()] == ["relu"] * 3


def test_relu_in_a_sequence_goes_between_the_layers_of_the_block():
    model = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Dropout(0.5), nn.Linear(5, 4), nn.SiLU(), nn.Linear(4, 2))
    block = Block("", "0", "3", None, Activation("silu", F.silu, None))
    kinds = [type(module) for module in with_relu(model, [block])]
    assert kinds == [nn.Linear, nn.ReLU, nn.Dropout, nn.Linear, nn.SiLU, nn.Linear]


def test_blocks_that_were_found_and_lie_side_by_side():
    model = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 4), nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2))
    blocks = find_blocks(model, torch.randn(7, 3))
    kinds = [type(module) for module in with_relu(model, blocks)]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.Linear, nn.ReLU, nn.Linear]


def test_a_function_cannot_be_replaced():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(3, 5), nn.Linear(5, 2)

        def forward(self, x):
            return self.down(F.gelu(self.up(x)))

    block = Block("", "up", "down", None, Activation("gelu", F.gelu, None))
    with pytest.raises(ValueError, match=r"activation \(gelu\).*found 0: if its forward calls a function"):
        with_relu(Functional(), [block])


def test_hostile_choices():
    model = transformer()
    blocks = model.feed_forward_blocks()
    with pytest.raises(ValueError, match="`strength`"):
        ActivationPenalty(model, blocks, 0.0)
    with pytest.raises(ValueError, match="has 14 units: `n_active` = 14 leaves none out"):
        TopKTraining(model, blocks, 14)
    with pytest.raises(ValueError, match="`n_active`"):
        TopKTraining(model, blocks, 0)
    with pytest.raises(ValueError, match="needs the blocks"):
        TopKTraining(model, [], 3)
