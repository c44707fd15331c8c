"""Count exact zeros in what the layers of a model read: linear layers, others with a matrix, and convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.conv import _ConvNd

from sparsact.inference.batches import numbers_and_nonzero, tensors_in
from sparsact.inference.layer_facts import LayerFacts, first_reason
from sparsact.inference.layer_measurement import LayerMeasurement
from sparsact.inference.roofline import bytes_read
from sparsact.inference.sparse_linear import MAX_SHARE


@dataclass
class LayerInputs:
    """Numbers that a layer read while the model ran, and how many of them were not exactly 0.

    A convolution reads a place of its input once for every tap of the kernel that falls on it, in each channel of its
    group: strides leave places out, and padding is not counted.
    """

    facts: LayerFacts
    numbers: int = 0
    nonzero: int = 0
    paused: bool = False

    @property
    def density(self) -> float:
        """Share of the numbers that are not 0; NaN if there were none."""
        return self.nonzero / self.numbers if self.numbers else nan

    def count_input(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A hook that counts the input of a layer: the first tensor of floats as wide as its weight."""
        if self.paused:
            return
        width = self.facts.n_inputs
        given = [x for x in tensors_in((args, kwargs)) if x.is_floating_point() and x.ndim]
        x = next((x for x in given if width is None or x.shape[-1] == width), None)
        if x is not None:
            self.add(layer, x)

    def add(self, layer: nn.Module, x: Tensor) -> None:
        """Count one input."""
        if isinstance(layer, _ConvNd) and not layer.transposed:
            numbers, nonzero = _of_convolution(layer, x.detach())
        else:
            numbers, nonzero = numbers_and_nonzero(x)
        self.numbers += numbers
        self.nonzero += nonzero

    def measurement(self, name: str, layer: nn.Module, block: str | None, model_bytes: int) -> LayerMeasurement:
        """The measurement of the layer, which belongs to that block."""
        kept = self.facts.left_as_it_is
        reason = first_reason(
            (block is not None, ""),
            (not self.numbers, kept or "no sample call reached it"),
            (self.nonzero == self.numbers, "the input has no exact zeros"),
            (self.density > MAX_SHARE, f"more than {MAX_SHARE:.0%} of the input is not 0"),
            (bool(kept), kept),
            (True, "it is in no block given or found on the first batch"),
        )
        share = bytes_read(layer) / (model_bytes or 1)
        return LayerMeasurement(name, type(layer).__name__, self.density, share, block, reason)


def layer_inputs(model: nn.Module) -> dict[str, LayerInputs]:
    """Counts, still of nothing, for every layer that holds a matrix or a kernel, by name."""
    found = {name: LayerFacts.of(module) for name, module in model.named_modules()}
    return {name: LayerInputs(facts) for name, facts in found.items() if facts.role != "other" and not facts.wraps}


def _of_convolution(layer: _ConvNd, x: Tensor) -> tuple[int, int]:
    """Numbers that a convolution reads in an input (..., channels, *axes), and how many are not 0."""
    axes = len(layer.kernel_size)
    padding = layer._reversed_padding_repeated_twice  # before and after, of the last axis first
    if layer.padding_mode != "zeros":
        x, padding = F.pad(x, padding, mode=layer.padding_mode), [0, 0] * axes
    taps = torch.ones((), dtype=torch.int64, device=x.device)
    for i, length in enumerate(x.shape[-axes:]):
        before, after = padding[2 * (axes - 1 - i) :][:2]
        span = layer.dilation[i] * (layer.kernel_size[i] - 1) + 1
        starts = torch.arange(-before, max(length + after - span + 1, -before), layer.stride[i], device=x.device)
        places = starts[:, None] + torch.arange(0, span, layer.dilation[i], device=x.device)
        inside = places[(places >= 0) & (places < length)]
        taps = taps[..., None] * torch.bincount(inside, minlength=length)
    maps = (x != 0).flatten(0, -axes - 1)
    return len(maps) * int(taps.sum()), int((maps.sum(0) * taps).sum())
