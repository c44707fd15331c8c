"""The outputs of a model whose blocks leave out the units that predictors do not select."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.inference.predictors.predictor import ActivityPredictor


class Approximated(nn.Module):
    """A model whose blocks set the units to zero that a rule does not select.

    Every unit is still computed, and then left out: for measuring the quality of an approximation, without saving time.
    The model itself is left as it is; both share their parameters.

    Parameters
    ----------
    model : nn.Module
        The model to approximate.
    rules : mapping of Block to ActivityPredictor
        Blocks of the model, and the rules that select their units.

    Examples
    --------
    >>> from sparsact.inference.block import Activation
    >>> from sparsact.inference.predictors import TopKActivations
    >>> model = nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False))
    >>> model[0].weight.data, model[2].weight.data = torch.tensor([[3.0], [2.0]]), torch.tensor([[10.0, 1.0]])
    >>> block = Block("", "0", "2", None, Activation("relu", torch.relu, torch.zeros(2)))
    >>> x = torch.tensor([[1.0]])
    >>> model(x).item(), Approximated(model, {block: TopKActivations(1)})(x).item()
    (32.0, 30.0)
    """

    def __init__(self, model: nn.Module, rules: Mapping[Block, ActivityPredictor]) -> None:
        super().__init__()
        self.model = model
        self.rules = dict(rules)

    def forward(self, *positional: Any, **named: Any) -> Any:
        """What the model returns, with units left out."""
        with ExitStack() as hooks:
            for block, rule in self.rules.items():
                masks: list[Tensor] = []  # from the switch layer to ``down``, in each pass
                if rule.reads == "inputs":
                    switch = self.model.get_submodule(block.switch)
                    predict = partial(_predict, rule, masks)
                    hooks.callback(switch.register_forward_pre_hook(predict, with_kwargs=True).remove)
                down = self.model.get_submodule(block.down)
                leave_out = partial(_leave_out, rule, masks)
                hooks.callback(down.register_forward_pre_hook(leave_out, with_kwargs=True).remove)
            return self.model(*positional, **named)


def _predict(
    rule: ActivityPredictor, masks: list[Tensor], layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    x = args[0] if args else kwargs["input"]
    masks.append(rule.active(x.detach().reshape(-1, x.shape[-1])))


def _leave_out(
    rule: ActivityPredictor, masks: list[Tensor], layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    h = args[0] if args else kwargs["input"]
    mask = masks.pop() if rule.reads == "inputs" else rule.active(h.detach().reshape(-1, h.shape[-1]))
    return (torch.where(mask.to(device=h.device, dtype=torch.bool).reshape(h.shape), h, 0),), {}
