"""Gate activations of a block, stored for an input until the up projection asks for them."""

from __future__ import annotations

from threading import local
from typing import Any, NamedTuple

import torch
from torch import Tensor


class GateActivations(NamedTuple):
    """Pre-activations z (..., units) of a gate, and which units they switch on: a mask of uint8, of the same shape."""

    z: Tensor
    on: Tensor


class GateMemo:
    """A place for one input and what the gate makes of it, for each thread.

    The gate and the up-projection of a gated block are called one after the other, in either order, with one and the
    same tensor, or views of it. What the one puts, the other takes; whoever is called with other numbers finds nothing.

    Parameters
    ----------
    threshold : Tensor of shape (units,)
        Pre-activations up to which units are off.

    Attributes
    ----------
    up_first : bool
        Whether the up-projection is called before the gate, as far as the last call tells.
    """

    def __init__(self, threshold: Tensor) -> None:
        self.threshold = threshold
        self.up_first = False
        self._here = local()

    def activations(self, z: Tensor) -> GateActivations:
        """Pre-activations and their mask. A NaN switches on, so that it is not lost."""
        z = z.contiguous()
        return GateActivations(z, (z <= self.threshold).logical_not_().view(torch.uint8))

    def store(self, x: Tensor, switched: GateActivations | None, *, by_gate: bool) -> None:
        """Keep what the gate makes of ``x``, or that it was not asked yet; it replaces what was there."""
        self._here.held = by_gate, x, _writes(x), switched

    def pop(self, x: Tensor, *, by_gate: bool) -> GateActivations | None:
        """What the other layer put for this very tensor, unless it was written to since; it is gone then."""
        held: tuple[bool, Tensor, int, GateActivations | None] | None = getattr(self._here, "held", None)
        self._here.held = None
        if held is not None and (held[0] == by_gate or not _same(held[1], x) or held[2] != _writes(x)):
            held = None
        if by_gate:
            self.up_first = held is not None
        return None if held is None else held[3]

    def __getstate__(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "up_first": self.up_first}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _here=local())


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same memory, read in the same order."""
    return one is other or (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


def _writes(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version
