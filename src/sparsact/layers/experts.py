"""Outputs of the chosen experts, from groups of tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.layers.common import ACTIVATIONS, Activation, activation_of
from sparsact.layers.gather import gather_sum, scatter_outer
from sparsact.layers.segments import Groups, segment_matmul


def gated(function: Activation, z: Tensor) -> Tensor:
    """``f(u) * v`` (m, h) of pre-activations z (m, 2 h), those of u first."""
    u, v = z.chunk(2, -1)
    return function(u) * v


GATED: dict[str, Activation] = {"geglu": F.gelu, "swiglu": F.silu}


def expert_activation(activation: str | Activation) -> Activation:
    """The function of pre-activations that a name stands for; a function stands for itself."""
    if isinstance(activation, str) and activation in GATED:
        return partial(gated, GATED[activation])
    if isinstance(activation, str) and activation not in ACTIVATIONS:
        names = ", ".join(sorted([*ACTIVATIONS, *GATED]))
        raise ValueError(f"`activation` must be one of {names} or a function; got {activation!r}.")
    return activation_of(activation)


def experts_of(
    rows: Tensor,
    groups: Groups,
    weights: Tensor,
    up: Tensor,
    down: Tensor,
    activation: Callable[[Tensor], Tensor],
    up_bias: Tensor | None = None,
) -> Tensor:
    """Sums (m, o) of the chosen experts' outputs for ``rows`` (m, d), each times its weight (m, k)."""
    ones = torch.ones_like(weights)
    grouped = scatter_outer(ones, rows, groups.slots, groups.n_slots)
    hidden = segment_matmul(grouped, up.to(rows.dtype), groups.starts)
    if up_bias is not None:
        experts = groups.experts[:, None]
        hidden = hidden + gather_sum(torch.ones_like(experts, dtype=rows.dtype), up_bias.to(rows.dtype), experts)
    outputs = segment_matmul(activation(hidden), down.to(rows.dtype), groups.starts)
    y: Tensor = gather_sum(weights, outputs, groups.slots)
    return y
