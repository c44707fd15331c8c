"""What the gate of a block has computed for an input, until the layer beside it asks for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Switched(NamedTuple):
    """Pre-activations z (..., units) of a gate, and which units they switch on: a mask of uint8, of the same shape."""

    z: Tensor
    on: Tensor


class Exchange:
    """A place for one input and what the gate makes of it.

    The gate and the up-projection of a gated block are called one after the other, in either order, with one and the
    same tensor. The first puts, the second takes; whoever is called with another tensor finds nothing.

    Parameters
    ----------
    threshold : Tensor of shape (units,)
        Pre-activations up to which units are off.
    """

    def __init__(self, threshold: Tensor) -> None:
        self.threshold = threshold
        self._held: tuple[Tensor, int, Switched] | None = None

    def put(self, x: Tensor, z: Tensor) -> Switched:
        """Keep what the gate makes of ``x``; it replaces what was there. A NaN switches on, so that it is not lost."""
        switched = Switched(z, (z <= self.threshold).logical_not_().view(torch.uint8))
        self._held = (x, _writes(x), switched)
        return switched

    def take(self, x: Tensor) -> Switched | None:
        """What was put for this very tensor, unless it was written to since; it is gone then."""
        held, self._held = self._held, None
        if held is not None and held[0] is x and held[1] == _writes(x):
            return held[2]
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "_held": None}


def _writes(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version
