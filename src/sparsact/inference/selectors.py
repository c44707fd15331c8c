"""Selectors: which weights a sparse layer reads, by its place in a block.

The second layer reads weights of inputs that are not 0; the layer that switches units on, of units that a screen does
not prove off; the up-projection of a gated block, of units whose gate is on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from threading import local
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules import module as global_hooks

from sparsact.inference.block import Activation
from sparsact.inference.certified_screen import Screen
from sparsact.inference.layer_facts import WeightRows
from sparsact.inference.sparse_linear import Selector, SparseLinear, contiguous
from sparsact.inference.weight_cache import ActivationConstants, WeightCache
from sparsact.inference.weights import FloatWeights, WeightForm

Screens = WeightCache[Screen | None]  # of a layer's weights; None for weights of a kind that no screen covers


class Everything(Selector):
    """All weights, which are rounded."""

    whole: ClassVar[bool] = True

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``."""
        if not rows:
            return layer.dense(x)
        sparse, weights = layer._sparse, layer.weights
        sparse.sparse_calls += 1
        out = layer.shaped_like(x, weights.all(contiguous(x), rows))
        sparse.call_directly(layer, weights.kernel, -1.0, sparse.max_rows)
        return out


@dataclass
class ActiveInputs(Selector):
    """The weights of inputs that are not 0, for the second layer of a block.

    ``mask_small`` sets small activations to zero first, where an approximation was requested.
    """

    by_input: ClassVar[bool] = True
    mask_small: Callable[[Tensor], Tensor] | None = None

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``."""
        sparse = layer._sparse
        if rows and self.mask_small is not None:
            x = self.mask_small(x)
        if 0 < rows <= sparse.max_rows:
            weights = layer.weights
            out = weights.columns(contiguous(x), rows, sparse.max_share)
            if out is not None:
                sparse.sparse_calls += 1
                if self.mask_small is None:
                    most = sparse.max_share * x.shape[-1] if weights.counted else -1.0
                    sparse.call_directly(layer, weights.kernel, most, sparse.max_rows)
                return layer.shaped_like(x, out)
        return layer.dense(x)


@dataclass
class BlockUnits(Selector):
    """Units that are on, for a layer before the activation of a block.

    Attributes
    ----------
    constants : ActivationConstants
        What the activation reads besides pre-activations: other values would switch other units on.
    readers : Readers
        Modules that receive pre-activations, and the layers that compute them.
    """

    constants: ActivationConstants
    readers: Readers

    def needs_all_units(self, layer: SparseLinear) -> bool:
        """Whether all units must be computed: hooks see, or change, pre-activations, or the activation is another."""
        seen = has_hooks(layer) or has_global_hooks() or self.readers.hooked or self.readers.training
        return seen or not self.constants.is_current()


@dataclass
class SwitchedOn(BlockUnits):
    """For ``up`` or the gate: exact where units may be on; 0, where the activation is 0 too, where they are not.

    Attributes
    ----------
    screens : WeightCache of Screen, or None
        Proves units off, which are then not computed; None computes all.
    memo : GateMemo or None
        Memo of a gated block.
    calls_to_skip : int
        Next calls without a screen, because too many units were on.
    """

    screens: Screens | None = None
    memo: GateMemo | None = None
    calls_to_skip: int = 0
    backoff: int = 1

    MAX_BACKOFF: ClassVar[int] = 64
    whole: ClassVar[bool] = True

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias`` at the units that are not proved off, and 0 at the others."""
        if not 0 < rows <= layer._sparse.max_rows or self.needs_all_units(layer):
            return layer.whole(x, rows)
        memo = self.memo
        if memo is None:
            out = self.pre_activations(layer, x, rows)
            self._call_directly(layer)
            return out
        known = memo.pop(x, by_gate=True)
        if known is None:
            known = memo.activations(self.pre_activations(layer, x, rows))
            if not memo.up_first:  # the up-projection is still to come
                memo.store(x, known, by_gate=True)
        return known.values

    def pre_activations(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """The layer's output for an input to which the sparse path applies."""
        sparse = layer._sparse
        if self.calls_to_skip:
            self.calls_to_skip -= 1
        elif self.screens is not None and rows <= sparse.max_selected:
            version = sparse.weight_version(layer)
            screen, weights = self.screens.get(version), sparse.weights.get(version)
            if screen is not None and isinstance(weights, FloatWeights):
                out = weights.screened(contiguous(x), screen, rows, sparse.max_share)
                if out is not None:
                    self.backoff = 1
                    sparse.sparse_calls += 1
                    return layer.shaped_like(x, out)
                self._back_off(layer)
        return self.all_pre_activations(layer, x, rows)

    def all_pre_activations(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """Pre-activations of all units."""
        return layer.whole(x, rows)

    def _back_off(self, layer: SparseLinear) -> None:
        """Skip the screen, which was not worthwhile, in the next calls: twice as many each time."""
        self.calls_to_skip, self.backoff = self.backoff, min(2 * self.backoff, self.MAX_BACKOFF)
        layer._sparse.direct = None

    def _call_directly(self, layer: SparseLinear) -> None:
        """Call the kernel at once from now on, if there is a screen, whatever the model holds."""
        sparse = layer._sparse
        if self.screens is None or self.calls_to_skip or not self.constants.none:
            return
        version = sparse.weight_version(layer)
        screen, weights = self.screens.get(version), sparse.weights.get(version)
        if screen is not None and isinstance(weights, FloatWeights):
            kernel, most = partial(weights.at_screen, screen.kernel), sparse.max_share * layer.out_features
            sparse.call_directly(layer, kernel, most, min(sparse.max_rows, sparse.max_selected))

    @property
    def watched(self) -> Any:
        """Modules that receive pre-activations."""
        return self.readers.places


@dataclass
class WhereGateIsOn(BlockUnits):
    """For the up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    gate: SparseLinear
    memo: GateMemo

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias`` where the gate is on."""
        sparse = layer._sparse
        if 0 < rows <= sparse.max_rows and not self.needs_all_units(layer):
            gate = self._gate_activations(x)
            out = None if gate is None else layer.weights.rows(contiguous(x), gate.mask, rows, sparse.max_share)
            if out is not None:
                sparse.sparse_calls += 1
                return layer.shaped_like(x, out)
        return layer.whole(x, rows)

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        """Gate activations of the input, if the gate was called already or is known to be called next."""
        gate, memo = self.gate, self.memo
        known = memo.pop(x, by_gate=False)
        if known is None:
            rows, selector = gate.eligible_rows(x), gate._sparse.selector
            applies = memo.up_first and 0 < rows <= gate._sparse.max_rows
            if applies and isinstance(selector, SwitchedOn) and not selector.needs_all_units(gate):
                known = memo.activations(selector.pre_activations(gate, x, rows))
            memo.store(x, known, by_gate=False)
        return known


@dataclass(kw_only=True)
class GateThenUp(SwitchedOn):
    """For one layer that computes gate and up-projection: the gate first, then the up-projection where it is on.

    Attributes
    ----------
    gate_rows, up_rows : WeightRows
        Rows of the weight that belong to each.
    activation : Activation
    up_weights : WeightCache of WeightForm
        The form of the weights of the up-projection; the layer's state holds that of the gate's.
    """

    gate_rows: WeightRows
    up_rows: WeightRows
    activation: Activation
    up_weights: WeightCache[WeightForm]

    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``, of the up-projection only where the gate is on."""
        sparse = layer._sparse
        if not 0 < rows <= sparse.max_rows or self.needs_all_units(layer):
            return layer.dense(x)
        gate = self.pre_activations(layer, x, rows)
        on = self.activation.units_on(gate)
        up = self.up_weights.get(sparse.weight_version(layer)).rows(contiguous(x), on, rows, sparse.max_share)
        up = F.linear(x, *self.up_rows.of(layer)) if up is None else up.view(gate.shape)
        return torch.cat([gate, up] if self.gate_rows.start < self.up_rows.start else [up, gate], dim=-1)

    def all_pre_activations(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """The output of the gate."""
        return F.linear(x, *self.gate_rows.of(layer))


class Readers:
    """Modules of a model, by name, that compute or see the pre-activations of a block."""

    def __init__(self, model: nn.Module, names: Iterable[str]) -> None:
        self.places = []
        for name in names:
            parent, _, last = name.rpartition(".")
            self.places.append((model.get_submodule(parent), last, model.get_submodule(name)))

    @property
    def hooked(self) -> bool:
        """Whether one of them has hooks, or was replaced by another module."""
        for parent, name, module in self.places:  # faster than any() of a generator
            if parent._modules.get(name) is not module or module._forward_hooks or module._forward_pre_hooks:
                return True
        return False

    @property
    def training(self) -> bool:
        """Whether one of them is in training mode, as a dropout may be alone."""
        return any(module.training for _, _, module in self.places)


def has_hooks(module: nn.Module) -> bool:
    """Whether hooks of a module see, or change, what it receives or returns."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def has_global_hooks() -> bool:
    """Whether there are hooks for all modules of the process."""
    return bool(global_hooks._global_forward_hooks or global_hooks._global_forward_pre_hooks)


class GateActivations(NamedTuple):
    """Pre-activations (..., units) of a gate, and which units they switch on: a uint8 mask of the same shape."""

    values: Tensor
    mask: Tensor


class GateMemo:
    """One input and its gate activations, for each thread.

    The gate and the up-projection of a gated block are called one after the other, in either order, with the same
    tensor, or views of it. What the one stores, the other pops; a call with another tensor finds nothing. Units are off
    where ``activation``, which is computed as in the model, is 0; ``up_first`` says whether the up-projection was
    called before the gate, last time.
    """

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.up_first = False
        self._thread = local()

    def activations(self, values: Tensor) -> GateActivations:
        """Pre-activations with their mask."""
        values = values.contiguous()
        return GateActivations(values, self.activation.units_on(values))

    def store(self, x: Tensor, activations: GateActivations | None, *, by_gate: bool) -> None:
        """Store the gate activations of ``x``, or None if they are not computed yet, in place of the stored ones."""
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
        return {"activation": self.activation, "up_first": self.up_first}

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
