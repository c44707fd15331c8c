"""Models of random architecture under every method and kind of weights, and their copies in every mode of torch."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from grids import few_of
from torch import nn
from torch.nn import functional as F

import sparsact as sa

pytestmark = pytest.mark.filterwarnings("ignore:outputs should change by at most:UserWarning")
TOKENS, D, S = 13, 24, 70
IDS = [torch.tensor([i]) for i in (1, 7, 3, 12, 0)]


class Snake(nn.Module):
    """x + sin(a x)^2 / a."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.linspace(0.5, 1.5, S))

    def forward(self, x):
        return x + torch.sin(self.a * x) ** 2 / self.a


class Shifted(nn.Module):
    """ReLU from a threshold of each unit on."""

    def __init__(self) -> None:
        super().__init__()
        self.threshold = nn.Parameter(torch.linspace(0.3, 0.9, S))

    def forward(self, x):
        return F.relu(x - self.threshold)


class Swish(nn.Module):
    """x sigmoid(b x)."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor(1.3))

    def forward(self, x):
        return x * torch.sigmoid(self.b * x)


class Adapted(nn.Module):
    """A linear layer and a product of low rank beside it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base, self.a, self.b = nn.Linear(inputs, outputs), nn.Linear(inputs, 3), nn.Linear(3, outputs)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def conv1d(inputs: int, outputs: int) -> nn.Module:
    return pytest.importorskip("transformers.pytorch_utils").Conv1D(outputs, inputs)


LAYERS = (nn.Linear, nn.Linear, conv1d, Adapted)
ACTIVATIONS = (nn.ReLU, nn.GELU, nn.PReLU, lambda: nn.PReLU(S), Snake, Shifted, Swish)


class Random(nn.Module):
    """An embedding, two feed-forward blocks, and a head, which may be the embedding."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        layer, activation = LAYERS[rng.integers(len(LAYERS))], ACTIVATIONS[seed % len(ACTIVATIONS)]
        self.form = rng.choice(["plain", "gated", "halves", "scaled"])
        self.normed = bool(rng.integers(2))
        self.embedding, self.norm = nn.Embedding(TOKENS, D), nn.LayerNorm(D)
        self.up = nn.ModuleList(layer(D, 2 * S if self.form == "halves" else S) for _ in range(2))
        self.gate = nn.ModuleList(layer(D, S) for _ in range(2))
        self.down = nn.ModuleList(layer(S, D) for _ in range(2))
        for part in (*self.up, *self.gate):
            nn.init.constant_(getattr(part, "base", part).bias, -0.5)  # so that ReLU switches few units on
        self.activation = activation()
        self.head = nn.Linear(D, TOKENS, bias=False)
        if rng.integers(2):
            self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids)
        for up, gate, down in zip(self.up, self.gate, self.down, strict=True):
            z = self.norm(x) if self.normed else x
            if self.form == "plain":
                h = self.activation(up(z))
            elif self.form == "halves":
                one, two = up(z).chunk(2, dim=-1)
                h = self.activation(one) * two
            else:
                h = self.activation(gate(z)) * up(z)
            if self.form == "scaled":
                h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-3)
            x = x + down(h)
        return self.head(x)


def outputs(model):
    return torch.cat([model(ids) for ids in IDS]).detach()


WAYS = [
    ("exact", "keep", True),
    ("certified", "keep", True),
    ("auto", "keep", True),
    ("auto", "int8", True),
    ("exact", "int8", False),
    ("exact", "int4", True),
    ("auto", "int4", False),
]


@pytest.mark.parametrize("seed", few_of(range(11), range(4)))
@pytest.mark.parametrize(("method", "weights", "keep_weights"), WAYS)
def test_outputs_match_the_dense_model_up_to_the_error_of_the_plan(seed, method, weights, keep_weights):
    dense = Random(seed).eval()
    model = deepcopy(dense)
    options = {"weights": weights, "keep_weights": keep_weights, "time_limit": 0.02}
    adapted, zeros = isinstance(dense.up[0], Adapted), isinstance(dense.activation, nn.ReLU | Shifted)
    if not zeros and (adapted or (weights == "keep" and method != "auto")):  # no block, or none for an exact method
        with pytest.raises(ValueError, match=r"must have a feed-forward block|never exactly zero"):
            sa.sparsify(model, method, IDS, **options)
        return
    sa.sparsify(model, method, IDS, **options)
    exact = outputs(dense)
    with torch.no_grad():
        found = outputs(model)
    error = float((found - exact).double().norm() / exact.double().norm())
    plan = sa.plan_of(model)
    if weights == "keep":
        assert error < 1e-5
    else:
        assert error == pytest.approx(plan.output_error, rel=1e-3)
        assert error < {"int8": 0.1, "int4": 0.6}[weights]
        assert {one.layer for one in plan.layers} >= {
            "head",
            *(f"{part}{'.base' * adapted}" for part in ("down.0", "up.1")),
        }
    assert plan.to_json()
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            for other in (deepcopy(model), pickle.loads(pickle.dumps(model))):
                again = outputs(other)
                if mode is torch.enable_grad and weights != "keep":  # float weights, where they are kept
                    assert (again - exact).norm() <= 1.5 * (found - exact).norm() + 1e-5 * exact.norm()
                else:
                    assert torch.allclose(again, found, rtol=1e-5, atol=1e-5)
                tied = other.head._parameters.get("weight") is other.embedding.weight
                assert tied == (dense.head.weight is dense.embedding.weight)
    sa.densify(model)
    assert list(model.state_dict()) == list(dense.state_dict())
