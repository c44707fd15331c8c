"""A block of a model, up to three linear layers with an activation between, and its weights alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.layer_facts import WeightRows, is_linear


@dataclass(frozen=True, eq=False)
class Activation:
    """The function between the layers of a block, elementwise or of each row, as the model computes it.

    Attributes
    ----------
    name : str
        Names of the traced operations, such as ``"relu"`` or ``"relu, pow"``.
    function : callable
        Function from pre-activations (..., units) to activations of the same shape.
    zero_below : Tensor of shape (units,) or None
        Thresholds t with f(z_j) = 0 for all z_j <= t_j: 0 for ReLU. None without thresholds, as for GELU and SiLU.
    scaled : bool
        Whether the model also multiplies the activations by a number of each row, as an RMS norm before ``down`` does
        (BitNet), or masks them. Zeros stay, and ``function`` leaves that factor out.
    zeros_elsewhere : bool
        Whether it is exactly 0 where no threshold says: if a unit depends on the others of its row, as under a top-k or
        a cutoff by mean and deviation (Gemma 3n), or is 0 above a number. Then ``function`` alone tells the units off.
    of_one_row : bool
        Whether ``function`` mixes units and was seen for one row alone: of several rows it may mix these too.
    dtype : torch.dtype or None
        Type of the pre-activations that ``function`` was seen for: others the model may cast, which it does not show.
    """

    name: str
    function: Callable[[Tensor], Tensor]
    zero_below: Tensor | None
    scaled: bool = False
    zeros_elsewhere: bool = False
    of_one_row: bool = False
    dtype: torch.dtype | None = None

    def units_on(self, values: Tensor) -> Tensor:
        """A uint8 mask of units that can be nonzero; a NaN counts as active, so that it propagates."""
        if self.of_one_row and values.numel() > values.shape[-1]:
            return torch.ones_like(values, dtype=torch.uint8)
        if self.dtype not in (None, values.dtype):
            return self._above_thresholds(values).view(torch.uint8)
        return (self.function(values) != 0).contiguous().view(torch.uint8)

    def _above_thresholds(self, values: Tensor) -> Tensor:
        """A mask of units that are not below their threshold; of all without."""
        if self.zero_below is None:
            return torch.ones_like(values, dtype=torch.bool)
        return ~(values <= self.zero_below.to(values.device))

    @property
    def exact(self) -> bool:
        """Whether inactive units are exactly zero."""
        return self.zero_below is not None or self.zeros_elsewhere


@dataclass(frozen=True, eq=False)
class Block:
    r"""A feed-forward block: :math:`V f(W x + b) + c`, or gated, :math:`V (f(G x + a) \odot (W x + b)) + c`.

    Or one layer alone, :math:`V h + c`, whose input has exact zeros: their columns of V need not be read, wherever they
    come from.

    Attributes
    ----------
    name : str
        Name of the module that holds its layers, with theirs where that module holds other blocks too; of a layer
        alone its own.
    up : str or None
        Name of the linear layer W, as in ``model.get_submodule``. None of a layer alone.
    down : str
        Name of the linear layer V.
    gate : str or None
        Name of the linear layer G of a gated block.
    activation : Activation
        f. For a layer alone the identity, named after what makes the zeros, or ``"unknown"``.
    private : bool
        Whether nothing else in the model reads the pre-activations of units that are off. They may then take any value
        up to their threshold, and in a gated block the outputs of ``up`` any value. False without thresholds.
    readers : tuple of str
        Names of the modules that receive or return what such values would change: their hooks see it.
    up_rows, gate_rows : WeightRows or None
        If one layer is both ``up`` and ``gate``: which rows of its weight are W, and which are G.
    """

    name: str
    up: str | None
    down: str
    gate: str | None
    activation: Activation
    private: bool = True
    readers: tuple[str, ...] = ()
    up_rows: WeightRows | None = None
    gate_rows: WeightRows | None = None

    @classmethod
    def of_zeros(cls, down: str, source: str = "unknown") -> Block:
        """The layer ``down`` alone, whose input has exact zeros that ``source`` makes."""
        return cls(down, None, down, None, Activation(source, _same, None), private=False)

    @property
    def switch(self) -> str | None:
        """Name of the layer whose pre-activations decide which units are on: the gate, or else ``up``, if any."""
        return self.gate or self.up

    @property
    def reader(self) -> str:
        """Name of the layer that reads the block's input: ``switch``, or ``down`` alone."""
        return self.switch or self.down

    @property
    def names(self) -> list[str]:
        """Names of its linear layers."""
        return [name for name in (self.up, self.gate, self.down) if name is not None]  # that of a model alone is empty

    @property
    def holder(self) -> str:
        """Name of the innermost module that holds its layers; empty for the model itself."""
        paths = [name.split(".")[:-1] for name in self.names]
        shared = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
        return ".".join(level[0] for level in shared)

    @property
    def exact(self) -> bool:
        """Whether inactive units are exactly zero, so that leaving them out changes nothing."""
        return self.up is None or self.activation.exact

    def linears(self, model: nn.Module) -> dict[str, Any]:
        """The linear layers, by role: ``down`` and, where there is one, ``up`` and ``gate``."""
        names = {"up": self.up, "down": self.down, "gate": self.gate}
        found = {role: model.get_submodule(name) for role, name in names.items() if name is not None}
        return {role: module for role, module in found.items() if is_linear(module)}

    def sizes(self, model: nn.Module) -> tuple[int, int, int]:
        """Inputs d, units s and outputs of the block; of a layer alone d = 0, so that what it reads is V."""
        outputs, units = self.weight_and_bias(model, "down")[0].shape
        return 0 if self.up is None else self.weight_and_bias(model, "up")[0].shape[1], units, outputs

    def weight_and_bias(self, model: nn.Module, role: str) -> tuple[Tensor, Tensor | None]:
        """Weight (outputs, inputs) and bias of ``up``, ``down`` or ``gate``."""
        rows = {"up": self.up_rows, "gate": self.gate_rows}.get(role) or WeightRows()
        return rows.of(self.linears(model)[role])

    def fits(self, model: nn.Module) -> bool:
        """Whether the model has linear layers of these names and of matching sizes."""
        names = dict(model.named_modules())
        if not all(is_linear(names.get(name)) for name in self.names) or not set(self.readers) <= set(names):
            return False
        if self.gate and not self.up:
            return False
        inputs, units, _ = self.sizes(model)
        before = [self.weight_and_bias(model, role)[0].shape for role in self.linears(model) if role != "down"]
        thresholds = self.activation.zero_below
        return (
            all(shape == (units, inputs) for shape in before)
            and (thresholds is None or thresholds.shape == (units,))
        )  # fmt: skip


def checked_blocks(model: nn.Module, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, if there are any and all belong to this model."""
    if not blocks:
        raise ValueError("`blocks` must hold at least one; got none: leave it out to search the model.")
    for block in blocks:
        if not block.fits(model):
            raise ValueError(
                f"`blocks` must be of this model; {block.name!r} needs linear layers {', '.join(block.names)} of "
                "matching sizes and thresholds, which it lacks: pass the result of find_blocks(model, inputs)."
            )
    return list(blocks)


@dataclass(frozen=True, eq=False)
class BlockWeights:
    r"""Weights of a block on the CPU, in float32 or float64: :math:`h = f(W x + b)`, gated :math:`h \odot (U x + a)`.

    Attributes
    ----------
    weight, bias : Tensor of shape (units, inputs) and (units,), or None
        W and b of the layer that decides: the gate, or else ``up``; 0 for a missing bias. None for a layer alone.
    up_weight, up_bias : Tensor of shape (units, inputs) and (units,), or None
        U and a of a gated block.
    down : Tensor of shape (outputs, units)
        V. Its bias is left out everywhere: it does not depend on which units are computed.
    activation : Activation
        f.
    """

    weight: Tensor | None
    bias: Tensor | None
    up_weight: Tensor | None
    up_bias: Tensor | None
    down: Tensor
    activation: Activation

    @classmethod
    def of(cls, model: nn.Module, block: Block) -> BlockWeights:
        """The weights of a block of ``model``; tensors that are float32 on the CPU already are shared, not copied."""
        down, _ = block.weight_and_bias(model, "down")
        if block.up is None:
            return cls(None, None, None, None, plain(down), block.activation)
        up = block.weight_and_bias(model, "up")
        if not block.gate:
            return cls(plain(up[0]), _bias(*up), None, None, plain(down), block.activation)
        gate = block.weight_and_bias(model, "gate")
        return cls(plain(gate[0]), _bias(*gate), plain(up[0]), _bias(*up), plain(down), block.activation)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Inputs d, units s and outputs, as of the block."""
        outputs, units = self.down.shape
        return 0 if self.weight is None else self.weight.shape[1], units, outputs

    @torch.no_grad()  # the activation may have parameters
    def hidden(self, x: Tensor) -> Tensor:
        """What ``down`` reads for each row of ``x`` (m, d): (m, units)."""
        if self.weight is None:
            return x
        h = self.activation.function(F.linear(x, self.weight, self.bias))
        return h if self.up_weight is None else h * F.linear(x, self.up_weight, self.up_bias)

    def output(self, h: Tensor) -> Tensor:
        """V h, (m, outputs)."""
        return F.linear(h, self.down)


def plain(tensor: Tensor) -> Tensor:
    """The tensor without gradient, on the CPU, in float32 or float64."""
    dtype = torch.promote_types(tensor.dtype, torch.float32)
    return tensor.detach().to(device="cpu", dtype=dtype)


def _same(h: Tensor) -> Tensor:
    return h


def _bias(weight: Tensor, bias: Tensor | None) -> Tensor:
    return plain(weight).new_zeros(len(weight)) if bias is None else plain(bias)
