"""The weights of one block, without its model, and what they compute."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.block import Activation, Block


@dataclass(frozen=True, eq=False)
class BlockWeights:
    r"""Weights of a block on the CPU, in float32 or float64: :math:`h = f(W x + b)`, gated :math:`h \odot (U x + a)`.

    Attributes
    ----------
    weight, bias : Tensor of shape (units, inputs) and (units,)
        W and b of the layer that switches units on: the gate, or else ``up``. A missing bias is zeros.
    up_weight, up_bias : Tensor of shape (units, inputs) and (units,), or None
        U and a of a gated block.
    down : Tensor of shape (outputs, units)
        V. Its bias is left out everywhere: it does not depend on which units are computed.
    activation : Activation
        f.
    """

    weight: Tensor
    bias: Tensor
    up_weight: Tensor | None
    up_bias: Tensor | None
    down: Tensor
    activation: Activation

    @classmethod
    def of(cls, model: nn.Module, block: Block) -> BlockWeights:
        """The weights of a block of ``model``; tensors that are float32 on the CPU already are shared, not copied."""
        up, down = (block.weight_and_bias(model, role) for role in ("up", "down"))
        switch = block.weight_and_bias(model, "gate") if block.gate else up
        gated = up if block.gate else None
        return cls(
            plain(switch[0]),
            _bias(*switch),
            None if gated is None else plain(gated[0]),
            None if gated is None else _bias(*gated),
            plain(down[0]),
            block.activation,
        )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Inputs d, units s and outputs."""
        return self.weight.shape[1], self.weight.shape[0], self.down.shape[0]

    @torch.no_grad()  # the activation may have parameters
    def hidden(self, x: Tensor) -> Tensor:
        """What ``down`` reads for each row of ``x`` (m, d): (m, units)."""
        h = self.activation.function(F.linear(x, self.weight, self.bias))
        return h if self.up_weight is None else h * F.linear(x, self.up_weight, self.up_bias)

    def output(self, h: Tensor) -> Tensor:
        """V h, (m, outputs)."""
        return F.linear(h, self.down)


def plain(tensor: Tensor) -> Tensor:
    """The tensor without gradient, on the CPU, in float32 or float64."""
    dtype = torch.promote_types(tensor.dtype, torch.float32)
    return tensor.detach().to(device="cpu", dtype=dtype)


def _bias(weight: Tensor, bias: Tensor | None) -> Tensor:
    return plain(weight).new_zeros(len(weight)) if bias is None else plain(bias)
