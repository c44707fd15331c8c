"""Blocks of a model with units left out, and what that does to its loss."""

import pytest
import torch
from blocks_planted import relu
from torch import nn
from torch.nn.functional import gelu, mse_loss

from sparsact.inference.block import Activation, Block
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.comparison import compare
from sparsact.inference.predictors import Approximated, Threshold, TopKActivations, calibrate_blocks


class Model(nn.Module):
    """Two blocks, one of them gated and of GELU, over tokens (texts, tokens, 6)."""

    def __init__(self):
        super().__init__()
        draw = torch.Generator().manual_seed(8)
        self.first = nn.Sequential(nn.Linear(6, 31), nn.ReLU(), nn.Linear(31, 6))
        self.gate, self.up, self.down = nn.Linear(6, 23), nn.Linear(6, 23), nn.Linear(23, 4)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=draw) / parameter.shape[-1] ** 0.5

    def forward(self, x):
        x = x + self.first(x)
        return self.down(input=gelu(self.gate(x)) * self.up(x))


FIRST = Block("first", "first.0", "first.2", None, relu(31))
SECOND = Block("", "up", "down", "gate", Activation("gelu", gelu, None))


def texts(n, seed):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(3, 5, 6, generator=draw) for _ in range(n)]


def loss(output, batch):
    return mse_loss(output, batch[..., :4].cos(), reduction="none").mean(-1)


def test_units_are_left_out_of_one_block():
    model, x = Model(), texts(1, 0)[0]
    rule = TopKActivations(3)
    weights = BlockWeights.of(model, SECOND)
    middle = (x + model.first(x)).detach().reshape(-1, 6)
    h = weights.hidden(middle)
    expected = weights.output(h * rule.active(h)) + model.down.bias
    torch.testing.assert_close(Approximated(model, {SECOND: rule})(x), expected.reshape(3, 5, 4))
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_a_rule_of_all_units_changes_nothing():
    model, x = Model(), texts(1, 0)[0]
    assert torch.equal(Approximated(model, {FIRST: Threshold(0.0), SECOND: Threshold(0.0)})(x), model(x))


def test_predictors_of_a_model_carry_their_effect():
    model, held_out = Model(), texts(12, 2)
    predictors = calibrate_blocks(
        model, [FIRST], texts(30, 1), held_out=held_out, loss=loss, method="low_rank", rank=3, recall=0.9
    )
    predictor = predictors[FIRST]
    assert 0.75 < predictor.quality.recall.value < 1
    assert predictor.effect == compare(model, Approximated(model, predictors), held_out, loss)
    assert predictor.effect.losses == 12 * 15
    assert predictor.effect.cases == 12 * 3
    assert predictor.effect.largest_difference > 0
    assert predictor.to_dict()["effect"]["perplexity_ratio"]["value"] == predictor.effect.perplexity_ratio.value


def test_each_effect_is_that_of_its_block_alone():
    model, held_out = Model(), texts(12, 2)
    predictors = calibrate_blocks(
        model, [FIRST, SECOND], texts(30, 1), held_out=held_out, loss=loss, method="threshold", error=0.2
    )
    for block, predictor in predictors.items():
        alone = compare(model, Approximated(model, {block: predictor}), held_out, loss)
        assert predictor.effect == alone
    assert predictors[FIRST].effect != predictors[SECOND].effect


def test_errors():
    model = Model()
    with pytest.raises(ValueError, match="needs both `held_out` batches and a `loss`"):
        calibrate_blocks(model, [FIRST], texts(9, 1), loss=loss, method="top_k", density=0.1)
    with pytest.raises(ValueError, match="block '': the activation"):
        calibrate_blocks(model, [FIRST, SECOND], texts(9, 1), method="low_rank", recall=0.9)
    assert calibrate_blocks(model, [SECOND], texts(9, 1), method="top_k", density=0.3)[SECOND].effect is None
