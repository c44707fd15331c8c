"""A trained model with ReLU in place of smooth activations, distilled from itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

import sparsact as sa
from sparsact.inference import RelufyStep, find_blocks
from sparsact.inference.relufying import ShiftedReLU
from sparsact.inference.training import with_relu


def target(x):
    """A function with local features: bumps along three directions."""
    directions = torch.linspace(-1, 1, 24).reshape(3, 8).sin()
    return torch.cos(2 * x @ directions.T) * x[:, :3]


@pytest.fixture(scope="module")
def trained():
    """A GELU network, trained for some seconds, and batches of inputs."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(8, 128), nn.GELU(), nn.Linear(128, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(400):
        x = torch.randn(64, 8, generator=generator)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target(x))
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    return model, list(torch.randn(40, 64, 8, generator=generator))


def test_a_gelu_network_becomes_sparse_and_computes_what_it_computed(trained):
    model, data = trained
    before = {name: value.clone() for name, value in model.state_dict().items()}
    shown, batches = [], [batch.clone() for batch in data]
    found = sa.relufy(model, data, target_density=0.15, steps=600, learning_rate=1e-2, progress=shown.append)
    unseen = torch.randn(500, 8, generator=torch.Generator().manual_seed(9))  # neither trained on nor held out
    with torch.no_grad():
        hidden = found.model[1](found.model[0](unseen))
        cosine = F.cosine_similarity(found.model(unseen), model(unseen), dim=-1).mean()
    assert float((hidden != 0).double().mean()) <= 0.2
    assert float(cosine) >= 0.95
    assert found.density_before > 0.999  # far below 0 GELU underflows
    assert (found.steps, found.n_held_out, found.kl) == (600, 4, None)
    assert abs(found.density - float((hidden != 0).double().mean())) < 0.03
    assert abs(found.cosine - float(cosine)) < 0.02
    assert "density 100.0% -> " in str(found)
    assert [one.step for one in shown] == list(range(1, 601))
    assert shown[-1].share == 1.0
    assert isinstance(shown[0], RelufyStep)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(map(torch.equal, data, batches))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert type(model[1]) is nn.GELU
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in (*model, *found.model))
    sparse = sa.sparsify(found.model, "exact", unseen)
    assert sa.plan_of(sparse).choices[0].method == "exact"


@pytest.mark.parametrize("activation", ["relu", "shifted_relu", "fatrelu"])
def test_a_seed_fixes_the_result(trained, activation):
    model, data = trained
    state = torch.get_rng_state()
    options = {"activation": activation, "threshold": 0.3, "steps": 7}
    one, same, other = (sa.relufy(model, data, **options, random_state=seed).model for seed in (3, 3, 4))
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)
    assert torch.equal(torch.get_rng_state(), state)
    [block] = find_blocks(one, data[0])
    assert block.activation.zero_below.tolist() == pytest.approx([0.0 if activation == "relu" else 0.3] * 128)


def test_cosine_and_divergence_against_plain_formulas():
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.act, self.down = nn.Linear(5, 7), nn.SiLU(), nn.Linear(7, 11)

        def forward(self, x):
            return type("Output", (), {"logits": self.down(self.act(self.up(x)))})()

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        model = Language()
        data = [torch.randn(2, 3, 5) for _ in range(3)]
    blocks = find_blocks(model, data[0])
    found = sa.relufy(model, iter(data), steps=3, blocks=blocks)
    with torch.no_grad():
        one, other = model(data[0]).logits.double(), found.model(data[0]).logits.double()
    p, q = one.softmax(-1), other.softmax(-1)
    assert found.kl == pytest.approx(float((p * (p / q).log()).sum(-1).mean()), rel=1e-6)
    cosines = (one * other).sum(-1) / one.norm(dim=-1) / other.norm(dim=-1)
    assert found.cosine == pytest.approx(float(cosines.mean()), rel=1e-6)
    assert list(found.block_density) == ["up-down"]


def test_seconds_end_the_training(trained):
    model, data = trained
    found = sa.relufy(model, data, seconds=0.2)
    assert found.steps > 0
    assert 0.2 <= found.seconds < 5


def test_each_block_has_a_copy_of_an_activation():
    stack = [nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 4), nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 2)]
    model = nn.Sequential(*stack)
    changed = with_relu(model, find_blocks(model, torch.randn(7, 3)), ShiftedReLU(0.5))
    assert changed[1] is not changed[4]
    assert torch.equal(changed[1](torch.tensor([0.25, 0.5, 2.0])), torch.tensor([0.0, 0.0, 1.5]))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"activation": "gelu"}, "`activation` must be one of"),
        ({"threshold": -1.0}, "`threshold` must be at least 0"),
        ({"target_density": 1.0}, "`target_density` must be a share"),
        ({"steps": 0}, "`steps` must be 1 or more"),
        ({"seconds": 0.0}, "`seconds` must be a finite number above 0"),
        ({"learning_rate": 0.0}, "`learning_rate` must be"),
        ({"blocks": []}, "`blocks` must hold one"),
    ],
)
def test_hostile_options(trained, options, why):
    model, data = trained
    with pytest.raises(ValueError, match=why):
        sa.relufy(model, data, **options)


def test_one_batch_leaves_none_to_measure(trained):
    model, data = trained
    with pytest.raises(ValueError, match=r"`data` must hold two batches at least.*got 1"):
        sa.relufy(model, data[0])
