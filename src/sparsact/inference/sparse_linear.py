"""Linear layers that read only the weights of active units, in the place of those of a model.

Each takes over a layer by its class alone, as torch's own parametrizations do: parameters, hooks, ties and names stay.
Where the sparse path does not apply (gradients, training, another device or dtype, too many rows or active units) the
layer computes what ``nn.Linear`` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import isfinite
from threading import Lock
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F  # noqa: N812 # as torch writes it
from torch.nn.modules import module as global_hooks
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from sparsact.inference.activation_function import ActivationConstants
from sparsact.inference.gate_memo import GateActivations, GateMemo
from sparsact.inference.products import DTYPES, ActiveProduct, RowProduct
from sparsact.inference.weight_cache import WeightCache, WeightVersion

_LOCK = Lock()


class UnitSelector(Protocol):
    """Selects the units to compute."""

    def active(self, x: Tensor) -> Tensor:
        """Mask (m, s) of one byte each for inputs (m, d): 0 for units that are left out."""


class SelectorFactory(Protocol):
    """Returns the selector for a layer's weights; None if there is none for weights of their kind."""

    def get(self, version: WeightVersion) -> UnitSelector | None: ...  # noqa: D102 # see above


class Readers:
    """Modules of a model, by name, that compute or see the pre-activations of a block."""

    def __init__(self, model: nn.Module, names: Iterable[str]) -> None:
        self._places = []
        for name in names:
            parent, _, last = name.rpartition(".")
            self._places.append((model.get_submodule(parent), last, model.get_submodule(name)))

    @property
    def hooked(self) -> bool:
        """Whether one of them has hooks, or was replaced by another module."""
        return any(
            parent._modules.get(name) is not module or has_hooks(module) for parent, name, module in self._places
        )


def has_hooks(module: nn.Module) -> bool:
    """Whether hooks of a module see, or change, what it receives or returns."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def has_global_hooks() -> bool:
    """Whether there are hooks for all modules of the process."""
    return bool(global_hooks._global_forward_hooks or global_hooks._global_forward_pre_hooks)


@dataclass
class LinearState:
    """What a sparse layer needs besides its parameters.

    Attributes
    ----------
    max_rows : int
        Most rows of an input for which the layer is computed sparsely.
    max_share : float
        Largest share of units, active for any of the rows, for which the layer is computed sparsely.
    version : WeightVersion or None
        The weights that copies were made from.
    suspected_writes : int
        How many events were seen after which the weights may have changed without torch counting it.
    """

    max_rows: int
    max_share: float
    version: WeightVersion | None = field(default=None, kw_only=True)
    suspected_writes: int = field(default=0, kw_only=True)

    VERSION: ClassVar[type[WeightVersion]] = WeightVersion

    def weight_version(self, layer: nn.Linear) -> WeightVersion:
        """The layer's weight and bias as they are now: the same object as long as they do not change."""
        parameters = layer._parameters  # much quicker than the attributes
        tensors = parameters["weight"], parameters["bias"]
        version = self.version
        if version is None or not version.is_current(tensors, self.suspected_writes):
            with _LOCK:  # simultaneous threads receive the same version
                if self.version is version:
                    self.version = self.VERSION(tensors, self.suspected_writes)
                version = self.version
        return version  # type: ignore[return-value] # it is never set to None again


@dataclass
class DownState(LinearState):
    """State of the second layer of a block.

    Attributes
    ----------
    mask_small : callable or None
        Sets small activations to zero first, where an approximation was requested.
    calls, sparse_calls : int
        Calls of the layer, and those of them that read only active units.
    """

    mask_small: Callable[[Tensor], Tensor] | None = None
    product: WeightCache[RowProduct] = field(default_factory=lambda: WeightCache(RowProduct))
    calls: int = 0
    sparse_calls: int = 0


@dataclass
class UpState(LinearState):
    """State of the layer whose pre-activations switch units on, ``up`` or the gate.

    Attributes
    ----------
    selector : SelectorFactory or None
        Selects the units that may be on; None computes all.
    constants : ActivationConstants
        What the activation reads besides pre-activations: other values would switch other units on.
    readers : Readers
        Modules that receive pre-activations, and the layers that compute them.
    memo : GateMemo or None
        Of a gated block.
    """

    selector: SelectorFactory | None
    constants: ActivationConstants
    readers: Readers
    memo: GateMemo | None = None
    product: WeightCache[ActiveProduct] = field(default_factory=lambda: WeightCache(ActiveProduct))
    calls_to_skip: int = 0  # next calls without selection, because too many units were on
    backoff: int = 1

    MAX_BACKOFF: ClassVar[int] = 64

    def back_off(self) -> None:
        """Skip selection, which was not worthwhile, in the next calls: twice as many each time."""
        self.calls_to_skip, self.backoff = self.backoff, min(2 * self.backoff, self.MAX_BACKOFF)


@dataclass
class GatedUpState(LinearState):
    """State of the up-projection of a gated block, which is computed where the gate is on."""

    gate: SparseUp
    memo: GateMemo
    constants: ActivationConstants
    readers: Readers
    product: WeightCache[ActiveProduct] = field(default_factory=lambda: WeightCache(ActiveProduct))


class SparseLinear(nn.Linear):
    """A linear layer that is computed sparsely where that is possible and worthwhile."""

    _sparse: Any

    def eligible_rows(self, x: Tensor) -> int:
        """Number of input rows if the sparse path applies, else 0."""
        parameters = self._parameters
        weight, bias = parameters.get("weight"), parameters.get("bias")  # none if they are parametrized or pruned
        if (
            torch.compiler.is_compiling()
            or type(x) is not Tensor
            or type(weight) is not nn.Parameter
            or (bias is not None and (type(bias) is not nn.Parameter or bias.is_inference()))
        ):
            return 0
        if self.training or (
            torch.is_grad_enabled()
            and (x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad))
        ):
            self._sparse.suspected_writes += 1  # a step that torch does not count may follow
            return 0
        if (
            x.is_nested
            or not x.is_cpu
            or x.dtype is not weight.dtype
            or x.dtype not in DTYPES
            or not weight.is_cpu
            or weight.is_inference()  # writes to it are not counted
            or x.layout is not torch.strided
            or is_being_traced()
            or x.shape[-1] != self.in_features
        ):
            return 0
        return x.numel() // self.in_features

    def sparse_rows(self, x: Tensor) -> int:
        """Number of input rows if the sparse path applies and is worthwhile for that many, else 0."""
        rows = self.eligible_rows(x)
        return rows if rows <= self._sparse.max_rows else 0

    @property
    def needs_all_units(self) -> bool:
        """Whether all units must be computed: hooks see, or change, pre-activations, or the activation has changed."""
        sparse = self._sparse
        return (
            has_hooks(self)
            or has_global_hooks()
            or sparse.readers.hooked
            or sparse.constants.records_gradient
            or not sparse.constants.is_current()
        )

    def train(self, mode: bool = True) -> SparseLinear:
        """As in ``nn.Module``; weights are compared in full before they are used again."""
        self._sparse.suspected_writes += 1
        return super().train(mode)

    def restore_parameters(self) -> None:
        """Make the parameters those of ``nn.Linear`` again, which they always are here."""

    def __prepare_scriptable__(self) -> nn.Linear:
        """What ``torch.jit.script`` compiles: a plain layer with the same parameters."""
        plain = nn.Linear(self.in_features, self.out_features, self.bias is not None, device="meta")
        plain.__dict__ = {name: value for name, value in self.__dict__.items() if name != "_sparse"}
        return plain


class SparseDown(SparseLinear):
    """The second layer of a block: reads the columns of its weight at which the input is not zero."""

    _sparse: DownState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as in nn.Linear
        """``input @ weight.T + bias``."""
        sparse = self._sparse
        sparse.calls += 1
        rows = self.eligible_rows(input)
        x = sparse.mask_small(input) if rows and sparse.mask_small is not None else input
        if 0 < rows <= sparse.max_rows:
            product = sparse.product.get(sparse.weight_version(self))
            out = product(x.contiguous(), rows, sparse.max_share) if product.finite else None
            if out is not None:
                sparse.sparse_calls += 1
                return out.view(*x.shape[:-1], self.out_features)
        return F.linear(x, self.weight, self.bias)


class SparseUp(SparseLinear):
    """The layer that switches units on: exact where they may be on; 0, where the activation is 0 too, where not."""

    _sparse: UpState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as in nn.Linear
        """``input @ weight.T + bias`` at the selected units, and 0 at the others."""
        rows = self.sparse_rows(input)
        if not rows or self.needs_all_units:
            return F.linear(input, self.weight, self.bias)
        memo = self._sparse.memo
        if memo is None:
            return self.pre_activations(input, rows)
        known = memo.pop(input, by_gate=True)
        if known is None:
            known = memo.activations(self.pre_activations(input, rows))
            if not memo.up_first:  # the up-projection is still to come
                memo.store(input, known, by_gate=True)
        return known.values

    def pre_activations(self, x: Tensor, rows: int) -> Tensor:
        """The layer's output for an input to which the sparse path applies."""
        sparse = self._sparse
        if sparse.calls_to_skip:
            sparse.calls_to_skip -= 1
        elif sparse.selector is not None:
            flat = x.reshape(rows, self.in_features).contiguous()
            version = sparse.weight_version(self)
            selector = sparse.selector.get(version)
            if selector is not None:
                out = sparse.product.get(version)(flat, selector.active(flat), sparse.max_share)
                if out is not None:
                    sparse.backoff = 1
                    return out.view(*x.shape[:-1], self.out_features)
                sparse.back_off()
        return F.linear(x, self.weight, self.bias)


class GatedUp(SparseLinear):
    """The up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    _sparse: GatedUpState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as in nn.Linear
        """``input @ weight.T + bias`` where the gate is on."""
        sparse = self._sparse
        rows = self.sparse_rows(input)
        if rows and not self.needs_all_units:
            gate = self._gate_activations(input)
            product = sparse.product.get(sparse.weight_version(self))
            if gate is not None and product.finite and isfinite(input.sum()):  # 0 times infinity is not 0
                flat = input.reshape(rows, self.in_features).contiguous()
                out = product(flat, gate.mask.view(rows, -1), sparse.max_share)
                if out is not None:
                    return out.view(*input.shape[:-1], self.out_features)
        return F.linear(input, self.weight, self.bias)

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        """Gate activations of the input, if the gate was called already or is known to be called next."""
        gate, memo = self._sparse.gate, self._sparse.memo
        known = memo.pop(x, by_gate=False)
        if known is None:
            rows = gate.sparse_rows(x)
            if memo.up_first and rows and not gate.needs_all_units:
                known = memo.activations(gate.pre_activations(x, rows))
            memo.store(x, known, by_gate=False)
        return known


def is_being_traced() -> bool:
    """Whether torch records, transforms or casts operations, so that a kernel of ours would be left out of it."""
    return bool(
        torch._C._get_tracing_state()  # torch.jit.trace
        or torch._C._len_torch_dispatch_stack()  # make_fx, fake tensors, counters
        or (torch._C._len_torch_function_stack() and _is_function_mode_active())
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._is_any_autocast_enabled()
    )


def _is_function_mode_active() -> bool:
    """Whether Python code sees torch's operations; a default device does not count."""
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return any(not isinstance(mode, DeviceContext) for mode in modes)
