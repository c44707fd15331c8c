"""A trained model with ReLU in place of smooth activations, distilled from itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sparsact as sa
from sparsact.inference import find_blocks
from sparsact_papers.training.relufying import RelufyStep, relufy


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
    found = relufy(model, data, target_density=0.15, steps=600, learning_rate=1e-2, progress=shown.append)
    unseen = torch.randn(500, 8, generator=torch.Generator().manual_seed(9))  # neither trained on nor held out
    with torch.no_grad():
        hidden = found.model[1](found.model[0](unseen))
        cosine = F.cosine_similarity(found.model(unseen), model(unseen), dim=-1).mean()
    assert float((hidden != 0).double().mean()) <= 0.2
    assert float(cosine) >= 0.95
    assert found.density_before > 0.999  # far below 0 GELU underflows
    assert found.n_held_out == 4
    assert abs(found.density - float((hidden != 0).double().mean())) < 0.03
    assert abs(found.cosine - float(cosine)) < 0.02
    assert "density 100.0% -> " in str(found)
    assert [one.step for one in shown] == list(range(1, 601))
    assert isinstance(shown[0], RelufyStep)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(map(torch.equal, data, batches))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert type(model[1]) is nn.GELU
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in (*model, *found.model))
    sparse = sa.sparsify(found.model, "exact", unseen)
    assert sa.plan_of(sparse).choices[0].method == "exact"


def test_a_seed_fixes_the_result(trained):
    model, data = trained
    state = torch.get_rng_state()
    one, same, other = (relufy(model, data, steps=7, random_state=seed).model for seed in (3, 3, 4))
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)
    assert torch.equal(torch.get_rng_state(), state)
    [block] = find_blocks(one, data[0])
    assert block.activation.zero_below.tolist() == [0.0] * 128


def test_the_cosine_against_a_plain_formula():
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
    found = relufy(model, iter(data), steps=3)
    with torch.no_grad():
        one, other = model(data[0]).logits.double(), found.model(data[0]).logits.double()
    cosines = (one * other).sum(-1) / one.norm(dim=-1) / other.norm(dim=-1)
    assert found.cosine == pytest.approx(float(cosines.mean()), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"target_density": 1.0}, "`target_density` must be a share"),
        ({"steps": 0}, "`steps` must be 1 or more"),
        ({"learning_rate": 0.0}, "`learning_rate` must be"),
    ],
)
def test_hostile_options(trained, options, why):
    model, data = trained
    with pytest.raises(ValueError, match=why):
        relufy(model, data, **options)


def test_one_batch_leaves_none_to_measure(trained):
    model, data = trained
    with pytest.raises(ValueError, match=r"`data` must hold two batches at least.*got 1"):
        relufy(model, data[0])
