"""Layers that compute what ``nn.Linear`` does, parts of them, and what a model computes by other modules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Make = Callable[[Tensor, Tensor | None], Any]


def conv1d() -> type[nn.Module] | None:
    """``transformers.pytorch_utils.Conv1D``, the linear layer of GPT-2; None while no model has loaded transformers."""
    return getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)


def is_linear(module: object) -> bool:
    """Whether a module is an ``nn.Linear`` or ``Conv1D``."""
    other = conv1d()
    return isinstance(module, nn.Linear) or (other is not None and isinstance(module, other))


def is_plain(module: nn.Module) -> bool:
    """Whether a module computes what ``nn.Linear`` does, with the weight that it holds."""
    forwards = [kind.forward for kind in (nn.Linear, conv1d()) if kind is not None]
    if not is_linear(module) or type(module).forward not in forwards or "forward" in vars(module):
        return False
    weight = module._parameters.get("weight")
    return type(weight) is nn.Parameter and weight.is_floating_point() and weight.layout == torch.strided


def weight_and_bias(layer: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Weight (outputs, inputs) and bias of a linear layer; that of ``Conv1D`` is a transposed view."""
    weight: Any = layer.weight
    bias: Any = layer.bias
    return (weight if isinstance(layer, nn.Linear) and not getattr(layer, "transposed", False) else weight.t()), bias


@dataclass(frozen=True)
class WeightRows:
    """Rows of the weight of a linear layer: all, or those of one part of a layer that computes two."""

    start: int = 0
    stop: int | None = None

    def of(self, layer: nn.Module) -> tuple[Tensor, Tensor | None]:
        """Their weight (outputs, inputs) and bias."""
        weight, bias = weight_and_bias(layer)
        rows = slice(self.start, self.stop)
        return weight[rows], None if bias is None else bias[rows]

    def make(self, function: Make) -> Make:
        """A function of the weight and the bias of the rows, as one of those of the layer."""
        return function if self == WeightRows() else partial(_of_rows, function, self.start, self.stop)


def _of_rows(function: Make, start: int, stop: int | None, weight: Tensor, bias: Tensor | None) -> Any:
    return function(weight[start:stop], None if bias is None else bias[start:stop])


def other_forms(model: nn.Module) -> list[str]:
    """Modules of a model whose weights no block can be made of, with the reason of each kind."""
    reasons: dict[str, list[str]] = {}
    seen: tuple[str, ...] = ()
    for name, module in model.named_modules():
        reason = "" if name.startswith(seen) else _reason(module)
        if reason:
            seen += (f"{name}.",) if name else ()
            reasons.setdefault(reason, []).append(name)
    more = {reason: f" and {len(names) - 1} more" if len(names) > 1 else "" for reason, names in reasons.items()}
    return [f"{names[0] or 'the model'}{more[reason]}: {reason}" for reason, names in reasons.items()]


def _reason(module: nn.Module) -> str:
    """Why the weights that a module holds itself are left as they are; empty if they may form a block, or are none."""
    kind = f"{type(module).__module__}.{type(module).__qualname__}"
    if kind.startswith("sparsact.layers."):
        return f"{kind} has a router and computes only the units that it chooses already"
    stacks = [one for one in module._parameters.values() if one is not None and one.ndim == 3]
    if len(stacks) > 1 and len({len(one) for one in stacks}) == 1:
        return f"{kind} keeps all experts in one parameter per projection; sparsify splits what it knows"
    if is_linear_like(module) and not is_plain(module):
        return f"{kind} has another weight or forward than nn.Linear"
    return ""


def is_linear_like(module: nn.Module) -> bool:
    """Whether a module that is no container looks like a linear layer of another class."""
    named = any("Linear" in base.__name__ for base in type(module).__mro__)
    weight = getattr(module, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)
    return (named or matrix) and not isinstance(module, nn.Bilinear)
