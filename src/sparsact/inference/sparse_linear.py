"""Linear layers that read only the weights of active units, in the place of those of a model.

Each takes over a layer by its class alone, as torch's own parametrizations do: parameters, hooks, ties and names stay.
Where the sparse path does not apply (gradients, training, another device or dtype, too many rows or active units) the
layer computes what ``nn.Linear`` computes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F  # noqa: N812 # as torch writes it
from torch.overrides import _get_current_function_mode_stack
from torch.utils import swap_tensors
from torch.utils._device import DeviceContext

from sparsact.inference.compiled import compiled_forward, handle_of
from sparsact.inference.gate_memo import GateActivations
from sparsact.inference.layer_state import (
    DownState,
    GatedUpState,
    LinearState,
    UpState,
    has_global_hooks,
    has_hooks,
)
from sparsact.inference.products import DEVICES, contiguous


class SparseLinear(nn.Linear):
    """A linear layer that is computed sparsely where that is possible and worthwhile."""

    _sparse: Any
    transposed: ClassVar[bool] = False  # whether the weight is (inputs, outputs)
    dense_class: ClassVar[type[nn.Module]] = nn.Linear

    def dense(self, x: Tensor) -> Tensor:
        """What the layer computes in a dense model."""
        return F.linear(x, self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as in nn.Linear
        """``input @ weight.T + bias``."""
        if torch.compiler.is_compiling():
            return self.compiled_forward(input)
        return self.outputs_of(input)

    def outputs_of(self, x: Tensor) -> Tensor:
        """The output: directly from the kernel where nothing has changed since the last call."""
        sparse = self._sparse
        out: Tensor | None = None if sparse.direct is None else sparse.direct(self, x, sparse.watched)
        if out is None:
            return self.sparse_forward(x, self.eligible_rows(x))
        sparse.calls += 1
        sparse.sparse_calls += 1
        return out

    def compiled_forward(self, x: Tensor) -> Tensor:
        """What the compiler records for a call."""
        return compiled_forward(self, x, self.weight)

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """The output, from the rows or columns of active units where that is worthwhile.

        ``rows`` is the number of input rows if the sparse path applies, else 0.
        """
        raise NotImplementedError

    def set_sparse(self, state: LinearState) -> None:
        """Compute with this state from now on."""
        self._sparse = state
        state.handle = handle_of(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies, and layers read from a file, have their own handles, and count writes, within inference mode too."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if "_sparse" in self.__dict__:
            self._sparse.handle = handle_of(self)
        count_writes(self)

    def eligible_rows(self, x: Tensor) -> int:
        """Number of input rows if the sparse path applies, else 0."""
        parameters = self._parameters
        weight, bias = parameters.get("weight"), parameters.get("bias")  # none if they are parametrized or pruned
        if (
            type(x) is not Tensor
            or type(weight) is not nn.Parameter
            or (bias is not None and (type(bias) is not nn.Parameter or bias.is_inference()))
        ):
            return 0
        if self.training or (
            torch.is_grad_enabled()
            and (x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad))
        ):
            self._sparse.suspect_write()  # a step that torch does not count may follow
            return 0
        dtype, device = x.dtype, DEVICES[self._sparse.device]
        if (
            dtype is not weight.dtype
            or dtype not in device.dtypes
            or not device.holds(x)
            or x.is_nested
            or x.layout is not torch.strided
            or not device.holds(weight)
            or weight.is_inference()  # writes to it are not counted
            or is_being_traced()
        ):
            return 0
        n_inputs = self.in_features
        return x.numel() // n_inputs if x.shape[-1] == n_inputs else 0

    def shaped_like(self, x: Tensor, out: Tensor) -> Tensor:
        """The output rows in the shape of the input."""
        return out if x.ndim == 2 else out.view(*x.shape[:-1], -1)

    @property
    def needs_all_units(self) -> bool:
        """Whether all units must be computed: hooks see, or change, pre-activations, or the activation has changed."""
        sparse = self._sparse
        return has_hooks(self) or has_global_hooks() or sparse.readers.hooked or not sparse.constants.is_current()

    def train(self, mode: bool = True) -> SparseLinear:
        """As in ``nn.Module``; weights are compared in full before they are used again."""
        self._sparse.suspect_write()
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

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``."""
        sparse = self._sparse
        sparse.calls += 1
        if rows and sparse.mask_small is not None:
            x = sparse.mask_small(x)
        if 0 < rows <= sparse.max_rows:
            product = sparse.product.get(sparse.weight_version(self))
            out = product(contiguous(x), rows, sparse.max_share) if product.finite else None
            if out is not None:
                sparse.sparse_calls += 1
                if sparse.mask_small is None:
                    sparse.call_directly(product.kernel, self, sparse.max_rows, sparse.max_share * x.shape[-1])
                return self.shaped_like(x, out)
        return self.dense(x)


class SparseUp(SparseLinear):
    """The layer that switches units on: exact where they may be on; 0, where the activation is 0 too, where not."""

    _sparse: UpState

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias`` at the units that are not proved off, and 0 at the others."""
        sparse = self._sparse
        if not 0 < rows <= sparse.max_rows or self.needs_all_units:
            return self.dense(x)
        memo = sparse.memo
        if memo is None:
            out = self.pre_activations(x, rows)
            self._call_directly()
            return out
        known = memo.pop(x, by_gate=True)
        if known is None:
            known = memo.activations(self.pre_activations(x, rows))
            if not memo.up_first:  # the up-projection is still to come
                memo.store(x, known, by_gate=True)
        return known.values

    def _call_directly(self) -> None:
        """Call the kernel at once from now on, if there is a screen, whatever the model holds."""
        sparse = self._sparse
        if sparse.screens is None or sparse.calls_to_skip or not sparse.constants.none:
            return
        version = sparse.weight_version(self)
        screen, product = sparse.screens.get(version), sparse.product.get(version)
        if screen is not None:
            kernel = partial(product.at_screen, screen.kernel)
            most = sparse.max_share * self.out_features
            sparse.call_directly(kernel, self, min(sparse.max_rows, sparse.max_selected), most)

    def pre_activations(self, x: Tensor, rows: int) -> Tensor:
        """The layer's output for an input to which the sparse path applies."""
        sparse = self._sparse
        sparse.calls += 1
        if sparse.calls_to_skip:
            sparse.calls_to_skip -= 1
        elif sparse.screens is not None and rows <= sparse.max_selected:
            version = sparse.weight_version(self)
            screen = sparse.screens.get(version)
            if screen is not None:
                out = sparse.product.get(version).screened(contiguous(x), screen, rows, sparse.max_share)
                if out is not None:
                    sparse.backoff = 1
                    sparse.sparse_calls += 1
                    return self.shaped_like(x, out)
                sparse.back_off()
        return self.all_pre_activations(x)

    def all_pre_activations(self, x: Tensor) -> Tensor:
        """Pre-activations of all units."""
        return self.dense(x)


class GatedUp(SparseLinear):
    """The up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    _sparse: GatedUpState

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias`` where the gate is on."""
        sparse = self._sparse
        if 0 < rows <= sparse.max_rows and not self.needs_all_units:
            gate = self._gate_activations(x)
            product = sparse.product.get(sparse.weight_version(self))
            out = None if gate is None else product.gated(x, gate.mask, rows, sparse.max_share)
            if out is not None:
                return self.shaped_like(x, out)
        return self.dense(x)

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        """Gate activations of the input, if the gate was called already or is known to be called next."""
        gate, memo = self._sparse.gate, self._sparse.memo
        known = memo.pop(x, by_gate=False)
        if known is None:
            rows = gate.eligible_rows(x)
            if memo.up_first and 0 < rows <= gate._sparse.max_rows and not gate.needs_all_units:
                known = memo.activations(gate.pre_activations(x, rows))
            memo.store(x, known, by_gate=False)
        return known


def count_writes(layer: nn.Module) -> None:
    """Have torch count writes to the parameters of a layer, which it does not if they were made in inference mode."""
    with torch.inference_mode(False):
        for held in layer._parameters.values():
            if held is not None and held.is_inference():  # swapped, so that it stays tied to other modules
                swap_tensors(held, nn.Parameter(held.clone(), held.requires_grad))  # type: ignore[no-untyped-call]


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
