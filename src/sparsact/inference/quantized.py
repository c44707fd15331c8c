"""Linear layers with int8 weights in the place of those of a model, which read only the rows that an input needs.

They return what torch's dynamically quantised layers return for weights of one scale per output. A unit whose
activation is quantised to the code of 0 adds exactly nothing, so its weights are left out and the output is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.activation_function import ActivationConstants
from sparsact.inference.gate_memo import GateActivations, GateMemo
from sparsact.inference.layer_state import LinearState, Readers
from sparsact.inference.sparse_linear import SparseLinear, contiguous, is_being_traced
from sparsact.inference.weight_cache import CountedVersion, WeightCache
from sparsact.kernels.int8_linear import MAX_ADDED, Int8Linear

DTYPES = (torch.float32, torch.bfloat16)
MAX_ROWS = 16  # of a call for which few weights are read; torch's own product is faster for more
MAX_ROWS_WHOLE = 2  # the same for all weights
SMALLEST_SCALE = float(np.finfo(np.float32).eps)  # of weights, in torch's observers


def quantized_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    r"""Integers :math:`q_{jk}` and scales :math:`s_j` of a weight, as torch's symmetric observers choose them.

    .. math:: s_j = \max_k |w_{jk}| \,/\, 127.5, \qquad q_{jk} = \mathrm{clip}(\mathrm{rint}(w_{jk} / s_j), -128, 127).

    Parameters
    ----------
    weight : Tensor of shape (outputs, inputs)
        Finite numbers.

    Returns
    -------
    integers : Tensor of shape (outputs, inputs), int8
    scale : Tensor of shape (outputs,), float32

    Examples
    --------
    >>> integers, scale = quantized_weight(torch.tensor([[1.0, -2.0, 255.0]]))
    >>> integers.tolist(), scale.item()
    ([[0, -1, 127]], 2.0)
    """
    numbers = weight.detach().float()
    scale = (numbers.abs().amax(dim=1) / 127.5).clamp_(min=SMALLEST_SCALE)
    integers = (numbers * scale.reciprocal()[:, None]).round_().clamp_(-128, 127).to(torch.int8)
    return integers, scale


class Int8Weights:
    """An int8 copy of a layer's weight (outputs, inputs), by rows of outputs or, ``by_input``, by rows of inputs."""

    def __init__(self, integers: Tensor, scale: Tensor, bias: Tensor | None, by_input: bool) -> None:
        self._by_input, self._scale, self._outputs = by_input, scale, len(scale)
        self._bias = torch.zeros_like(scale) if bias is None else bias.detach().float().clone()
        numbers = (integers.t() if by_input else integers).contiguous().numpy()
        self._product = Int8Linear(numbers, scale.numpy(), self._bias.numpy())
        self._packed: Any = None
        self.nbytes = self._product.nbytes

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, by_input: bool = False) -> Int8Weights:
        """The copy of a layer's float weight."""
        return cls(*quantized_weight(weight), bias, by_input)

    def __reduce__(self) -> tuple[Any, ...]:
        return Int8Weights, (self._integers().contiguous(), self._scale, self._bias, self._by_input)

    def __call__(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Outputs (m, outputs) for inputs (m, inputs).

        With a mask (m, outputs) of bytes only its outputs, and 0 elsewhere; not for weights by rows of inputs.
        """
        m, product, threads = len(x), self._product, torch.get_num_threads()
        dtype = x.dtype
        numbers = contiguous(x if dtype is torch.float32 else x.float())
        max_rows = MAX_ROWS if self._by_input else MAX_ROWS_WHOLE
        if m > max_rows and mask is None and "fbgemm" in torch.backends.quantized.supported_engines:
            return self._by_torch(numbers).to(dtype)
        out = numbers.new_empty(m, self._outputs)
        if self._by_input:
            product.columns(numbers.data_ptr(), m, out.data_ptr(), threads)
        elif mask is None:
            product.rows(numbers.data_ptr(), m, out.data_ptr(), threads)
        else:
            product.rows_at(numbers.data_ptr(), mask.contiguous().data_ptr(), m, out.data_ptr(), threads)
        return out if dtype is torch.float32 else out.to(dtype)

    def dequantized(self) -> Tensor:
        """The numbers (outputs, inputs) that the integers stand for, float32."""
        return self._integers().float() * self._scale[:, None]

    def _integers(self) -> Tensor:
        numbers = torch.from_numpy(self._product.weights)
        return numbers.t() if self._by_input else numbers

    def _by_torch(self, x: Tensor) -> Tensor:
        """The same outputs by torch's product of whole matrices, from a copy of its own that the first call makes."""
        if self._packed is None:
            integers = self._integers().contiguous()
            zeros = torch.zeros(len(self._scale), dtype=torch.int64)
            with catch_warnings():
                simplefilter("ignore", UserWarning)  # torch will give up quantised tensors some day
                held = torch._make_per_channel_quantized_tensor(integers, self._scale.double(), zeros, 0)
            self._packed = torch.ops.quantized.linear_prepack(held, self._bias)
        return torch.ops.quantized.linear_dynamic(x, self._packed, reduce_range=True)  # type: ignore[no-any-return]


@dataclass
class QuantizedState(LinearState):
    """What a quantised layer needs besides its parameters.

    Attributes
    ----------
    by_input : bool
        Whether it reads only the weights of inputs that are not 0: for the second layer of a block.
    memo, gate, constants, readers
        Of the gate and the up-projection of a gated block, as in :class:`~sparsact.inference.sparse_linear.UpState`.
    calls, sparse_calls : int
        Calls of the layer, and those of them that were computed in int8.
    dropped : Int8Weights or None
        The int8 copy, if it is all that is left of the weight.
    """

    by_input: bool = False
    memo: GateMemo | None = None
    gate: QuantizedGate | None = None
    constants: ActivationConstants | None = None
    readers: Readers | None = None
    int8: WeightCache[Int8Weights] = field(init=False)
    dropped: Int8Weights | None = None
    calls: int = 0
    sparse_calls: int = 0

    VERSION = CountedVersion  # a look at the float weights would cost more than the product

    def __post_init__(self) -> None:
        self.int8 = WeightCache(partial(Int8Weights.of, by_input=self.by_input))


class QuantizedLinear(SparseLinear):
    """A linear layer that is computed with int8 weights; with its own weights where gradients are recorded."""

    _sparse: QuantizedState

    def sparse_forward(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias``, weights and input quantised."""
        return self.outputs(x)

    def outputs(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The outputs at which ``mask`` is not 0, or all."""
        sparse = self._sparse
        sparse.calls += 1
        rows = self.eligible_rows(x)
        if not rows:
            return F.linear(x, self.weight, self.bias)
        sparse.sparse_calls += 1
        int8 = sparse.dropped or sparse.int8.get(sparse.weight_version(self))
        if x.ndim == 2:
            return int8(x, mask)
        return int8(x.reshape(rows, self.in_features), mask).view(*x.shape[:-1], self.out_features)

    def eligible_rows(self, x: Tensor) -> int:
        """Number of input rows if the int8 weights apply, else 0."""
        if self._sparse.dropped is None:
            return super().eligible_rows(x)
        applies = (
            not torch.compiler.is_compiling()
            and type(x) is Tensor
            and not (torch.is_grad_enabled() and x.requires_grad)
            and not x.is_nested
            and x.is_cpu
            and x.dtype in DTYPES
            and not is_being_traced()
            and x.shape[-1] == self.in_features
        )
        return x.numel() // self.in_features if applies else 0

    @property
    def weight(self) -> Tensor:  # type: ignore[override] # torch registers it as a parameter
        """The float weight, or what the int8 copy stands for if it was dropped."""
        dropped = self._sparse.dropped
        kept: Any = self._parameters.get("weight")
        return kept if dropped is None else dropped.dequantized()

    def drop_weight(self) -> None:
        """Free the float weight; :attr:`weight` is computed from the int8 copy from now on."""
        sparse = self._sparse
        if sparse.dropped is None:
            sparse.dropped = sparse.int8.get(sparse.weight_version(self))
            sparse.int8, sparse.version = WeightCache(sparse.int8._make), None  # they hold the float weight
            del self._parameters["weight"]

    def restore_parameters(self) -> None:
        """Register the weight again if it was dropped."""
        if self._sparse.dropped is not None:
            bias = self._parameters.pop("bias")
            self._parameters["weight"] = nn.Parameter(self.weight, requires_grad=False)
            self._parameters["bias"] = bias


class QuantizedGate(QuantizedLinear):
    """The gate of a gated block: keeps what it returns until the up-projection asks which units are on."""

    def sparse_forward(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias``, weights and input quantised."""
        memo = self._sparse.memo
        if memo is None or not self.eligible_rows(x) or self.needs_all_units:
            return self.outputs(x)
        known = memo.pop(x, by_gate=True)
        if known is None:
            known = memo.activations(self.outputs(x))
            if not memo.up_first:  # the up-projection is still to come
                memo.store(x, known, by_gate=True)
        return known.values


class QuantizedGatedUp(QuantizedLinear):
    """The up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    def sparse_forward(self, x: Tensor) -> Tensor:
        """``x @ weight.T + bias`` where the gate is on, weights and input quantised."""
        rows = self.sparse_rows(x)
        gate = self._gate_activations(x) if rows and not self.needs_all_units else None
        return self.outputs(x, None if gate is None else gate.mask.view(rows, -1))

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        gate, memo = self._sparse.gate, self._sparse.memo
        if gate is None or memo is None:
            return None
        known = memo.pop(x, by_gate=False)
        if known is None:
            if memo.up_first and gate.eligible_rows(x) and not gate.needs_all_units:
                known = memo.activations(gate.outputs(x))
            memo.store(x, known, by_gate=False)
        return known


def quantizing_obstacle(layer: nn.Module) -> str:
    """Why a layer keeps its float weights; empty if it can take int8."""
    weight = layer._parameters.get("weight")
    if type(layer) is not nn.Linear or "forward" in vars(layer) or type(weight) is not nn.Parameter:
        return "it is no plain nn.Linear"
    if weight.dtype not in DTYPES or not weight.is_cpu or weight.is_inference():
        return f"its weights are {weight.dtype} on {weight.device}; int8 takes float32 and bfloat16 on the CPU"
    if layer.in_features > MAX_ADDED:
        return f"it has {layer.in_features:,} inputs; int8 takes at most {MAX_ADDED:,}"
    if not all(bool(end.isfinite()) for end in weight.aminmax()):
        return "its weights are not all finite"
    return ""
