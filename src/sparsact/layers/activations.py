"""Activations by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

Activation = Callable[[Tensor], Tensor]


def identity(z: Tensor) -> Tensor:
    """``z`` itself."""
    return z


ACTIVATIONS: dict[str, Activation] = {
    "gelu": F.gelu,
    "identity": identity,
    "relu": F.relu,
    "silu": F.silu,
    "tanh": torch.tanh,
}


def activation_of(name: str | Activation) -> Activation:
    """The function that a name stands for; a function stands for itself."""
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise ValueError(f"`activation` must be one of {', '.join(ACTIVATIONS)} or a function; got {name!r}.")
    return ACTIVATIONS[name]
