"""What is no block is left out, and the answer says what came nearest."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from inference.zoo import Attention, Written, X
from torch import nn
from torch.nn import functional as F

from sparsact.inference import find_blocks

NORMED = nn.Sequential(nn.Linear(3, 7), nn.GELU(), nn.LayerNorm(7), nn.Linear(7, 5))
TIED = nn.Linear(3, 3)


class Own(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


def fused(m, x):
    first, second = m.a(x).split(4, -1)[0], m.g(x)[..., :4]
    return m.b(F.pad(F.gelu(first) * second, (0, 3)))


def two_activations(m, x):
    return m.b(F.gelu(m.a(x))) + m.b(m.a(x).tanh())


def two_sources(m, x):
    return m.b(F.gelu(m.a(x))) + m.b(F.gelu(m.g(x)))


def overwritten_in_part(m, x):
    h = F.gelu(m.a(x))
    h[:, 0] = 5
    return m.b(h)


def changed_between(m, x):
    x = x.clone()
    gate = F.gelu(m.g(x))
    x += 1
    return m.b(gate * m.a(x))


@pytest.mark.parametrize(
    ("forward", "why"),
    [
        (lambda m, x: m.b(m.a(x)), "b reads a, but nothing is between them"),
        (lambda m, x: m.b(2 * m.a(x) + m.theta), "b reads a, but nothing but an affine function is between them"),
        (lambda m, x: m.b(m.a(x) * m.g(x)), "b reads a and g, but their product has no activation"),
        (lambda m, x: m.b(F.gelu(m.a(x)) * F.gelu(m.g(x))), "not a function of one, times the other"),
        (lambda m, x: m.b(F.gelu(m.a(x) + m.g(x))), "not a function of one, times the other"),
        (lambda m, x: m.b(F.gelu(m.a(x)) * m.g(x + 1)), "these do not read the same input"),
        (changed_between, "these do not read the same input"),
        (lambda m, x: m.b(F.gelu(m.a(x)) * m.a(x)), "one or two layers before its activation"),
        (
            lambda m, x: m.b(F.gelu(m.a(x)) + x.sum(-1, keepdim=True)),
            "b reads a through add, with other numbers",
        ),
        (lambda m, x: m.b(m.a(x).softmax(-1)), "b reads a through softmax, which is not of each unit alone"),
        (lambda m, x: m.b(F.gelu(m.a(x)).flip(-1)), "b reads a through flip, which is not of each unit alone"),
        (lambda m, x: m.b(F.gelu(m.a(x)).transpose(0, 1)), "b reads a, but it reads them in another order"),
        (
            lambda m, x: m.b(F.gelu(m.a(x)) + torch.arange(5.0)[:, None]),
            "b reads a through add, with other numbers",
        ),
        (lambda m, x: m.b(F.gelu(m.a(x)) + torch.rand(7)), "b reads a through add, with other numbers"),
        (fused, "none are such"),
        (overwritten_in_part, "none are such"),
        (two_activations, "b is called 2 times and does not always read the same activations"),
        (two_sources, "b is called 2 times and does not always read the same activations"),
        (lambda m, x: x, "3 plain nn.Linear, 0 ran"),
    ],
)
def test_reasons(forward, why):
    with pytest.raises(ValueError, match=f"The model must have a feed-forward block.*{re.escape(why)}"):
        find_blocks(Written(forward), X)


def test_one_row_does_not_make_an_input_a_constant():
    with pytest.raises(ValueError, match="b reads a through add, with other numbers of the input"):
        find_blocks(Written(lambda m, x: m.b(F.gelu(m.a(x)) + x.sum())), X[0, 0])


@pytest.mark.parametrize("kind", [dict, lambda items: torch.utils._pytree.OrderedDict(items)])
def test_inputs_by_name_are_not_constants(kind):
    with pytest.raises(ValueError, match="with other numbers of the input"):
        find_blocks(Written(lambda m, x: m.b(F.gelu(m.a(x)) + x.sum())), kind({"x": X}))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (NORMED, "3 reads 0 through native_layer_norm"),
        (
            nn.Sequential(Own(3, 7), nn.GELU(), nn.Linear(7, 5)),
            r"as they are: 0: .*\.Own differs from nn",
        ),
        (nn.Sequential(nn.Conv1d(5, 7, 1), nn.GELU()), "0 plain nn.Linear"),
        (nn.Sequential(TIED, nn.GELU(), TIED), "0 is called 2 times"),
        (
            nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 7)), nn.GELU(), nn.Linear(7, 5)),
            "ParametrizedLinear",
        ),
    ],
    ids=["norm", "subclass", "convolution", "tied", "parametrized"],
)
def test_models_without_a_block(model, why):
    with pytest.raises(ValueError, match=why):
        find_blocks(model, X)


def test_attention_alone():
    with pytest.raises(ValueError, match=r"out reads .*v through (bmm|\w*attention).*Pass inputs that reach"):
        find_blocks(Attention(), torch.randn(2, 5, 6))


def test_a_forward_that_was_replaced_is_not_trusted():
    model = nn.Sequential(nn.Linear(3, 7), nn.GELU(), nn.Linear(7, 5))
    model[0].forward = lambda x: F.linear(x, model[0].weight) + 1
    with pytest.raises(ValueError, match=r"1 plain nn\.Linear"):
        find_blocks(model, X)


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated", "ignore:torch.quantize_per_tensor, torch")
def test_quantised_layers():
    model = nn.Sequential(nn.Linear(3, 7), nn.GELU(), nn.Linear(7, 5))
    quantised = torch.ao.quantization.quantize_dynamic(copy.deepcopy(model), {nn.Linear})
    with pytest.raises(
        ValueError,
        match=r"0 and 1 more: torch\.ao\.nn\.quantized\.\S*Linear is quantised already",
    ):
        find_blocks(quantised, X)


def test_meta_tensors():
    model = nn.Sequential(nn.Linear(3, 7), nn.GELU(), nn.Linear(7, 5)).to("meta")
    with pytest.raises(ValueError, match=r"on the meta device.*load its weights"):
        find_blocks(model, X)


def test_hostile_inputs():
    with pytest.raises(TypeError, match="`inputs` must be"):
        find_blocks(NORMED, 3)
    with pytest.raises(ValueError, match="holds no batch"):
        find_blocks(NORMED, [])


@pytest.mark.parametrize(("shift", "alone"), [(1.0, []), (-1.0, [(None, "value")])])
def test_two_blocks_do_not_share_their_first_layer(shift, alone):
    """The second layer that reads the activations is a block alone where they are few."""

    class TwoHeads(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.policy, self.value = nn.Linear(3, 7), nn.Linear(7, 5), nn.Linear(7, 2)
            nn.init.normal_(self.trunk.weight), nn.init.constant_(self.trunk.bias, shift)

        def forward(self, x):
            h = F.relu(self.trunk(x))
            return self.policy(h), self.value(h)

    torch.manual_seed(0)
    block, *others = find_blocks(TwoHeads(), X)
    assert (block.up, block.down, block.private) == ("trunk", "policy", True)
    assert [(one.up, one.down) for one in others] == alone
