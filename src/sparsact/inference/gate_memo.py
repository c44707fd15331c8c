"""Gate activations of a block, stored for an input until the up-projection asks for them."""

from __future__ import annotations

from threading import local
from typing import Any, NamedTuple

import torch
from torch import Tensor


class GateActivations(NamedTuple):
    """Pre-activations (..., units) of a gate, and which units they switch on: a uint8 mask of the same shape."""

    values: Tensor
    mask: Tensor


class GateMemo:
    """One input and its gate activations, for each thread.

    The gate and the up-projection of a gated block are called one after the other, in either order, with the same
    tensor, or views of it. What the one stores, the other pops; a call with another tensor finds nothing. Units are off
    up to ``threshold`` (units,); ``up_first`` says whether the up-projection was called before the gate, last time.
    """

    def __init__(self, threshold: Tensor) -> None:
        self.threshold = threshold
        self.up_first = False
        self._thread = local()

    def activations(self, values: Tensor) -> GateActivations:
        """Pre-activations with their mask. A NaN counts as on, so that it propagates."""
        values = values.contiguous()
        return GateActivations(values, (values <= self.threshold).logical_not_().view(torch.uint8))

    def store(self, x: Tensor, activations: GateActivations | None, *, by_gate: bool) -> None:
        """Keep the gate activations of ``x``, or that they are not computed yet, in place of what was stored."""
        self._thread.stored = by_gate, x, _write_count(x), activations

    def pop(self, x: Tensor, *, by_gate: bool) -> GateActivations | None:
        """What the other layer stored for this tensor, unless it was written to since; the memo is empty afterwards."""
        stored: tuple[bool, Tensor, int, GateActivations | None] | None = getattr(self._thread, "stored", None)
        self._thread.stored = None
        if stored is not None and (
            stored[0] == by_gate or not _is_same_tensor(stored[1], x) or stored[2] != _write_count(x)
        ):
            stored = None
        if by_gate:
            self.up_first = stored is not None
        return None if stored is None else stored[3]

    def __getstate__(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "up_first": self.up_first}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _thread=local())


def _is_same_tensor(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same memory, read in the same order."""
    return one is other or (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


def _write_count(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version
