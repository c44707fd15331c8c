"""Small models whose feed-forward blocks are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Expected = tuple[str, str | None, str, str, str]  # name, gate, up, down, operations


@dataclass
class Case:
    """A model, what it is shown, its blocks, and the thresholds of each (None: it has none)."""

    model: nn.Module
    inputs: Any
    blocks: list[Expected]
    zero_below: float | Tensor | None = 0.0
    private: bool = field(default=True)


class Written(nn.Module):
    """Linear layers a, g (from 3 to 7), b (from 7 to 5), thresholds, and a forward pass given as a function."""

    def __init__(self, forward: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.a, self.g, self.b = nn.Linear(3, 7), nn.Linear(3, 7), nn.Linear(7, 5)
        self.theta = nn.Parameter(torch.linspace(0.1, 1.3, 7))
        self.written = forward

    def forward(self, x: Tensor) -> Any:
        return self.written(self, x)


class Residual(nn.Module):
    """Two feed-forward blocks in the manner of a transformer, without norms."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict({"wide": nn.Linear(3, 7), "act": nn.ReLU(), "narrow": nn.Linear(7, 3)}) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer["narrow"](F.dropout(layer["act"](layer["wide"](x)), 0.5, self.training))
        return x


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(6, 6) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x)))


def _in_place(m: Written, x: Tensor) -> Tensor:
    z = m.a(x)
    z.view(-1, 7).relu_()
    return m.b(z)


def _jump_relu(m: Written, x: Tensor) -> Tensor:
    z = m.a(x)
    return m.b(z * (z > m.theta))


def _jump_relu_by_where(m: Written, x: Tensor) -> tuple[Tensor, Tensor]:
    z = m.a(x)
    latents = torch.where(z > m.theta.log().exp(), z, torch.zeros(z.shape))
    return m.b(latents), latents


def _silu_by_parts(m: Written, x: Tensor) -> Tensor:
    z = m.a(x)
    return m.b(z * torch.sigmoid(z))


def _exposed(m: Written, x: Tensor) -> tuple[Tensor, Tensor]:
    z = m.a(x)
    return m.b(z.relu()), z.square().mean()


def _up_exposed(m: Written, x: Tensor) -> tuple[Tensor, Tensor]:
    z = m.a(x)
    return m.b(m.g(x).relu() * z), z


def _two_heads(m: Written, x: Tensor) -> tuple[Tensor, Tensor]:
    h = m.a(x).relu()
    return m.b(h), h.sum(-1)


PLAIN = ("a-b", None, "a", "b")
GATED = ("a-b", "g", "a", "b")
X = torch.linspace(-2, 2, 30).reshape(2, 5, 3).sin()


def _written(forward: Callable[[Any, Tensor], Any], roles: tuple[Any, ...], words: str, *rest: Any) -> Case:
    return Case(Written(forward), X.clone(), [(*roles, words)], *rest)


def cases() -> dict[str, Case]:
    """The zoo, by name, with fresh parameters."""
    theta = torch.linspace(0.1, 1.3, 7)
    stack = [nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 5)]
    mlp = nn.Sequential(nn.Linear(3, 7), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(7, 5))
    encoder = nn.TransformerEncoderLayer(6, 2, 11, batch_first=True)
    return {
        "sequential": Case(mlp, X.clone(), [("0-3", None, "0", "3", "relu")]),
        "three in a row": Case(
            nn.Sequential(nn.Identity(), nn.Sequential(*stack)),
            (X.clone(),),
            [("1.0-2", None, "1.0", "1.2", "relu"), ("1.2-4", None, "1.2", "1.4", "relu")],
        ),
        "residual": Case(
            Residual(),
            {"x": X.clone()},
            [(f"layers.{i}", None, f"layers.{i}.wide", f"layers.{i}.narrow", "relu") for i in range(2)],
        ),
        "encoder layer": Case(encoder, torch.randn(2, 5, 6), [("linear1-linear2", None, "linear1", "linear2", "relu")]),
        "functional": _written(lambda m, x: m.b(F.relu(m.a(x))), PLAIN, "relu"),
        "named arguments": _written(lambda m, x: m.b(input=F.relu(m.a(input=x))), PLAIN, "relu"),
        "reshaped": _written(lambda m, x: m.b(m.a(x.view(-1, 3)).relu().view(2, 5, 7)), PLAIN, "relu"),
        "in place through a view": _written(_in_place, PLAIN, "relu"),
        "gated": _written(lambda m, x: m.b(F.relu(m.g(x)) * m.a(x)), GATED, "relu"),
        "gated, other order": _written(lambda m, x: m.b(m.a(x) * F.relu(m.g(x))), GATED, "relu"),
        "gated, two views": _written(lambda m, x: m.b(m.a(x.view(10, 3)) * F.relu(m.g(x.view(10, 3)))), GATED, "relu"),
        "gated silu": _written(lambda m, x: m.b(F.silu(m.g(x)) * m.a(x)), GATED, "silu", None, False),
        "squared": _written(lambda m, x: m.b(F.relu(m.a(x)) ** 2), PLAIN, "relu, pow"),
        "square": _written(lambda m, x: m.b(torch.square(F.relu(m.a(x)))), PLAIN, "relu, pow"),
        "jump": _written(_jump_relu, PLAIN, "lt, mul", theta),
        "jump by where": _written(_jump_relu_by_where, PLAIN, "gt, where", theta.log().exp()),
        "shifted": _written(lambda m, x: m.b(F.relu(m.a(x) + 0.5)), PLAIN, "add, relu", -0.5),
        "silu by parts": _written(_silu_by_parts, PLAIN, "sigmoid, mul", None, False),
        "gelu in 64 bits": _written(lambda m, x: m.b(F.gelu(m.a(x).double()).float()), PLAIN, "gelu", None, False),
        "heads": _written(_two_heads, PLAIN, "relu"),
        "exposed": _written(_exposed, PLAIN, "relu", 0.0, False),
        "up exposed": _written(_up_exposed, GATED, "relu", 0.0, False),
        "one module twice": _written(lambda m, x: m.b(m.a(m.b(m.a(x).relu())[..., :3]).relu()), PLAIN, "relu"),
    }
