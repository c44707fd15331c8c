"""Inputs of blocks as a model sees them, and that each row is as likely to be kept."""

import pytest
import torch
from blocks_planted import gelu, relu
from torch import nn

from sparsact.inference.block import Block, BlockWeights
from sparsact.inference.block_profile import sample_inputs


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(6, 10), nn.Linear(6, 10, bias=False), nn.Linear(10, 6)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.gate(input=x)) * self.up(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 6))
        self.second = Gated()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.second(self.drop(self.first(x)))


FIRST = Block("first", "first.0", "first.2", None, relu(9))
SECOND = Block("second", "second.up", "second.down", "second.gate", gelu())


def test_all_rows_in_order_when_there_is_room():
    torch.manual_seed(0)
    model, batches = Model(), [torch.randn(2, 3, 4), torch.randn(5, 1, 4)]
    rows = sample_inputs(model, [FIRST, SECOND], batches)
    x = torch.cat([batch.reshape(-1, 4) for batch in batches])
    assert torch.equal(rows[FIRST].sample, x)
    torch.testing.assert_close(rows[SECOND].sample, model.first(x).detach())
    assert model.training
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.grid
def test_every_row_is_kept_as_often():
    """5 of 40 rows that come in pieces, 400 times: each count is off by 5.5 standard deviations once in 10^6 runs."""
    model, x = Model().requires_grad_(False), torch.arange(160.0).reshape(40, 4)
    counts = torch.zeros(40)
    for seed in range(400):
        rows = sample_inputs(model, [FIRST], [x[:7], x[7:8], x[8:30], x[30:]], 5, random_state=seed)[FIRST].sample
        assert rows.shape == (5, 4)
        counts[(rows[:, 0] / 4).long()] += 1
    share = 5 / 40
    assert ((counts - 400 * share).abs() < 5.5 * (400 * share * (1 - share)) ** 0.5).all()


def test_blocks_keep_the_same_rows():
    model, x = Model(), torch.randn(50, 4, generator=torch.Generator().manual_seed(3))
    rows = sample_inputs(model, [FIRST, SECOND], [x[:20], x[20:]], 11, random_state=4)
    torch.testing.assert_close(rows[SECOND].sample, model.first(rows[FIRST].sample).detach())
    again = sample_inputs(model, [FIRST], x, 11, random_state=4)
    assert torch.equal(rows[FIRST].sample, again[FIRST].sample)


def test_half_precision_is_widened():
    rows = sample_inputs(Model().bfloat16(), [FIRST], torch.randn(3, 4).bfloat16())
    assert rows[FIRST].sample.dtype == torch.float32


def test_a_block_that_never_runs():
    model = Model()
    model.third = nn.Linear(2, 2)
    third = Block("third", "third", "third", None, relu(2))
    found = sample_inputs(model, [FIRST, third], torch.randn(3, 4))
    assert (found[FIRST].rows_per_call, found[third].rows_per_call) == ([3], [])
    with pytest.raises(ValueError, match="block 'third' did not run on these inputs"):
        _ = found[third].sample
    assert not model.third._forward_pre_hooks
    with pytest.raises(ValueError, match="`limit` must be 1 or more"):
        sample_inputs(model, [FIRST], torch.randn(3, 4), 0)


@pytest.mark.parametrize("block", [FIRST, SECOND])
def test_weights_compute_what_the_model_computes(block):
    model, x = Model().eval(), torch.randn(7, 6 if block.gate else 4)
    weights = BlockWeights.of(model, block)
    module = model.get_submodule(block.name)
    down = model.get_submodule(block.down)
    torch.testing.assert_close(weights.output(weights.hidden(x)) + down.bias, module(x))
    assert weights.sizes == block.sizes(model)
    assert not weights.down.requires_grad
    assert weights.weight.data_ptr() == model.get_submodule(block.switch).weight.data_ptr()
