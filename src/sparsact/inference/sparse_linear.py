"""Linear layers that read only the weights of active units, in the place of those of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from threading import Lock
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F  # noqa: N812 # as torch writes it
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from sparsact.inference.activations import Constants
from sparsact.inference.expression import Readers, hooked, hooked_globally
from sparsact.inference.gate_memo import GateActivations, GateMemo
from sparsact.inference.products import DTYPES, ActiveProduct, RowProduct
from sparsact.inference.weight_cache import WeightCache, WeightVersion

_LOCK = Lock()


class UnitSelector(Protocol):
    """Names the units that are worth computing."""

    def active(self, x: Tensor) -> Tensor:
        """Of inputs (m, d), a mask (m, s) of one byte each: 0 for units that are left out."""


class SelectorFactory(Protocol):
    """Finds the selector for a layer's weights; None if there is none for weights of their kind."""

    def get(self, watch: WeightVersion) -> UnitSelector | None: ...  # noqa: D102 # see above


@dataclass
class LinearState:
    """How a layer is computed.

    Attributes
    ----------
    max_rows : int
        Most rows of an input for which the dense product is not taken.
    max_share : float
        Largest share of units, active for any of the rows, for which the dense product is not taken.
    watch : WeightVersion or None
        The weights that copies were made of.
    doubts : int
        How often something was seen after which these may have changed without torch's counting it.
    """

    max_rows: int
    max_share: float
    watch: WeightVersion | None = field(default=None, kw_only=True)
    doubts: int = field(default=0, kw_only=True)

    def weight_version(self, layer: nn.Linear) -> WeightVersion:
        """The weight and the bias of a layer as they are now: the same object as long as they are what they were."""
        parameters = layer._parameters  # much quicker than the attributes
        tensors = parameters["weight"], parameters["bias"]
        watch = self.watch
        if watch is None or not watch.is_current(tensors, self.doubts):
            with _LOCK:  # threads that come at the same time are given one and the same
                if self.watch is watch:
                    self.watch = WeightVersion(tensors, self.doubts)
                watch = self.watch
        return watch  # type: ignore[return-value] # it is never set to None again


@dataclass
class DownState(LinearState):
    """How the second layer of a block reads its weight.

    Attributes
    ----------
    keep : callable or None
        Makes small activations zero first, where approximation was asked for.
    calls, sparse_calls : int
        Calls of the layer, and those of them that read active units only.
    """

    keep: Callable[[Tensor], Tensor] | None = None
    product: WeightCache[RowProduct] = field(default_factory=lambda: WeightCache(RowProduct))
    calls: int = 0
    sparse_calls: int = 0


@dataclass
class UpState(LinearState):
    """How the layer whose pre-activations switch units on, up or gate, is computed.

    Attributes
    ----------
    selector : SelectorFactory or None
        Finds the units that may be on; None computes all.
    constants : Constants
        What the activation reads beside pre-activations: with other numbers other units would be on.
    readers : Readers
        Modules that are given pre-activations.
    memo : GateMemo or None
        Of a gated block.
    """

    selector: SelectorFactory | None
    constants: Constants
    readers: Readers
    memo: GateMemo | None = None
    product: WeightCache[ActiveProduct] = field(default_factory=lambda: WeightCache(ActiveProduct))
    calls_to_skip: int = 0  # calls to come that do not choose, because too many units were on
    backoff: int = 1

    MOST: ClassVar[int] = 64

    def back_off(self) -> None:
        """Choosing did not pay: leave it out for the next calls, twice as many each time."""
        self.calls_to_skip, self.backoff = self.backoff, min(2 * self.backoff, self.MOST)


@dataclass
class GatedUpState(LinearState):
    """How the up-projection of a gated block is computed: where the gate is on."""

    gate: SparseUp
    memo: GateMemo
    constants: Constants
    readers: Readers
    product: WeightCache[ActiveProduct] = field(default_factory=lambda: WeightCache(ActiveProduct))


class SparseLinear(nn.Linear):
    """A linear layer that may take a shorter way."""

    _sparse: Any

    def rows(self, x: Tensor) -> int:
        """Rows of the input if the short way is open to it, else 0."""
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
            self._sparse.doubts += 1  # a step that torch does not count may follow
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

    def few(self, x: Tensor) -> int:
        """Rows of the input if the short way is open to it and pays for so many, else 0."""
        rows = self.rows(x)
        return rows if rows <= self._sparse.max_rows else 0

    @property
    def whole(self) -> bool:
        """Whether all units must be computed: hooks see, or change, what there is; or the activation has changed."""
        sparse = self._sparse
        return (
            hooked(self)
            or hooked_globally()
            or sparse.readers.hooked
            or sparse.constants.trained
            or not sparse.constants.is_current()
        )

    def train(self, mode: bool = True) -> SparseLinear:
        """As of ``nn.Module``; weights are compared in full before they are used again."""
        self._sparse.doubts += 1
        return super().train(mode)

    def __prepare_scriptable__(self) -> nn.Linear:
        """What ``torch.jit.script`` compiles: a plain layer with the same parameters."""
        plain = nn.Linear(self.in_features, self.out_features, self.bias is not None, device="meta")
        plain.__dict__ = {name: value for name, value in self.__dict__.items() if name != "_sparse"}
        return plain


class SparseDown(SparseLinear):
    """The second layer of a block: reads the columns of its weight at which the input is not zero."""

    _sparse: DownState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as of nn.Linear
        """``input @ weight.T + bias``."""
        sparse = self._sparse
        sparse.calls += 1
        rows = self.rows(input)
        x = sparse.keep(input) if rows and sparse.keep is not None else input
        if 0 < rows <= sparse.max_rows:
            product = sparse.product.get(sparse.weight_version(self))
            out = product(x.contiguous(), rows, sparse.max_share) if product.finite else None
            if out is not None:
                sparse.sparse_calls += 1
                return out.view(*x.shape[:-1], self.out_features)
        return F.linear(x, self.weight, self.bias)


class SparseUp(SparseLinear):
    """The layer that switches units on: exact where they may be on; 0, which activations keep, where they are off."""

    _sparse: UpState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as of nn.Linear
        """``input @ weight.T + bias`` of the units that are chosen, and 0 of the others."""
        rows = self.few(input)
        if not rows or self.whole:
            return F.linear(input, self.weight, self.bias)
        memo = self._sparse.memo
        if memo is None:
            return self.compute(input, rows)
        known = memo.pop(input, by_gate=True)
        if known is None:
            known = memo.activations(self.compute(input, rows))
            if not memo.up_first:  # it is still to come
                memo.store(input, known, by_gate=True)
        return known.z

    def compute(self, x: Tensor, rows: int) -> Tensor:
        """The pre-activations themselves, of an input to which the short way is open."""
        sparse = self._sparse
        if sparse.calls_to_skip:
            sparse.calls_to_skip -= 1
        elif sparse.selector is not None:
            flat = x.reshape(rows, self.in_features).contiguous()
            watch = sparse.weight_version(self)
            selector = sparse.selector.get(watch)
            if selector is not None:
                out = sparse.product.get(watch)(flat, selector.active(flat), sparse.max_share)
                if out is not None:
                    sparse.backoff = 1
                    return out.view(*x.shape[:-1], self.out_features)
                sparse.back_off()
        return F.linear(x, self.weight, self.bias)


class GatedUp(SparseLinear):
    """The up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    _sparse: GatedUpState

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as of nn.Linear
        """``input @ weight.T + bias`` where the gate lets it through."""
        sparse = self._sparse
        rows = self.few(input)
        if rows and not self.whole:
            switched = self._gate_activations(input)
            product = sparse.product.get(sparse.weight_version(self))
            if switched is not None and product.finite and isfinite(input.sum()):  # 0 times infinity is not 0
                flat = input.reshape(rows, self.in_features).contiguous()
                out = product(flat, switched.on.view(rows, -1), sparse.max_share)
                if out is not None:
                    return out.view(*input.shape[:-1], self.out_features)
        return F.linear(input, self.weight, self.bias)

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        """What the gate makes of the input, if it was asked already or is known to be asked next."""
        gate, memo = self._sparse.gate, self._sparse.memo
        switched = memo.pop(x, by_gate=False)
        if switched is None:
            rows = gate.few(x)
            if memo.up_first and rows and not gate.whole:
                switched = memo.activations(gate.compute(x, rows))
            memo.store(x, switched, by_gate=False)
        return switched


def _function_mode() -> bool:
    """Whether Python code is shown the operations of torch; a default device is no such code."""
    modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return any(not isinstance(mode, DeviceContext) for mode in modes)


def is_being_traced() -> bool:
    """Whether torch records, transforms or casts operations, so that a product of ours would be left out of it."""
    return bool(
        torch._C._get_tracing_state()  # torch.jit.trace
        or torch._C._len_torch_dispatch_stack()  # make_fx, fake tensors, counters
        or (torch._C._len_torch_function_stack() and _function_mode())
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or torch._C._is_any_autocast_enabled()
    )
