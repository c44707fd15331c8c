"""Exact zeros of what layers read, counted by hooks, beside what `measure` says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import torch
from torch import nn

import sparsact as sa
from sparsact.inference import measure
from sparsact.inference.batches import call
from sparsact.inference.split_experts import split_experts


@contextmanager
def inputs_of_layers(model) -> Iterator[dict[str, list[tuple[nn.Module, torch.Tensor]]]]:
    """What every layer with a weight of two axes or more reads, by hooks."""
    seen: dict[str, list] = {}
    with ExitStack() as stack:
        for name, module in model.named_modules():
            weight = module._parameters.get("weight")
            if weight is not None and weight.ndim > 1 and not isinstance(module, nn.Embedding):
                hook = module.register_forward_pre_hook(
                    lambda m, args, name=name: seen.setdefault(name, []).append((m, args[0].detach().clone()))
                )
                stack.callback(hook.remove)
        yield seen


def reads(layer, x) -> tuple[float, float]:
    """Numbers that a layer reads and how many are not 0: a convolution of ones adds them up."""
    if not isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return x.numel(), int((x != 0).sum())
    ones = copy.deepcopy(layer)
    ones.groups, ones.out_channels, ones.bias = 1, 1, None
    ones.weight = nn.Parameter(torch.ones(1, layer.in_channels, *layer.kernel_size, dtype=torch.float64))
    with torch.no_grad():
        return tuple(round(float(ones(one.double()).sum())) for one in (torch.ones_like(x), x != 0))


def check_densities(model, batches) -> sa.inference.Measurement:
    with split_experts(model), inputs_of_layers(model) as seen, torch.no_grad():
        for batch in batches:
            call(model, batch)
    found = measure(model, batches)
    layers = {layer.name: layer for layer in found.layers}
    assert seen
    for name, calls in seen.items():
        numbers, nonzero = (sum(part) for part in zip(*(reads(*one) for one in calls), strict=True))
        assert layers[name].density == pytest.approx(nonzero / numbers, rel=1e-12), name
    assert {layer.block for layer in found.layers} - {None} == {block.name for block in found.blocks}
    assert all((layer.block is None) == bool(layer.reason) for layer in found.layers)
    return found
