"""Linear layers with integer weights in the place of those of a model, which read only the rows that an input needs.

A unit whose activation is quantised to the code of 0 adds exactly nothing, so its weights are left out and the output
is that of the quantised layer read whole.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.activation_function import ActivationConstants
from sparsact.inference.compiled import compiled_forward
from sparsact.inference.gate_memo import GateActivations, GateMemo
from sparsact.inference.integer_weights import KINDS, IntegerWeights
from sparsact.inference.layer_state import LinearState, Readers
from sparsact.inference.linear_layers import conv1d, weight_and_bias
from sparsact.inference.products import DEVICES, device_obstacle, device_type
from sparsact.inference.sparse_linear import SparseLinear, is_being_traced
from sparsact.inference.split_experts import SplitExperts
from sparsact.inference.weight_cache import CountedVersion, WeightCache
from sparsact.kernels.int8_linear import MAX_ADDED
from sparsact.validation.parameters import checked_option

DTYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
WEIGHTS: Final = ("keep", *KINDS)


@dataclass
class QuantizedState(LinearState):
    """What a quantised layer needs besides its parameters.

    Attributes
    ----------
    weights : {"int8", "int4"}
        The kind of its weights.
    by_input : bool
        Whether it reads only the weights of inputs that are not 0: for the second layer of a block.
    memo, gate, constants, readers
        Of the gate and the up-projection of a gated block, as in :class:`~sparsact.inference.sparse_linear.UpState`.
    dropped : IntegerWeights or None
        The integers, if they are all that is left of the weight.
    place : torch.device
        Where a dropped weight was.
    """

    weights: str = "int8"
    by_input: bool = False
    memo: GateMemo | None = None
    gate: QuantizedGate | None = None
    constants: ActivationConstants | None = None
    readers: Readers | None = None
    integers: WeightCache[IntegerWeights] = field(init=False)
    dropped: IntegerWeights | None = None
    place: torch.device = field(default_factory=lambda: torch.device("cpu"))

    VERSION = CountedVersion  # a look at the float weights would cost more than the product

    def __post_init__(self) -> None:
        self.integers = WeightCache(partial(KINDS[self.weights].of, by_input=self.by_input))

    def smooth(self, scales: Tensor) -> None:
        """Multiply inputs by these scales (inputs,), and divide weights by them, before they are quantised."""
        self.integers = WeightCache(partial(KINDS[self.weights].smoothed, scales=scales, by_input=self.by_input))
        self.direct = None


class QuantizedLinear(SparseLinear):
    """A linear layer that is computed with integer weights; with its own weights where gradients are recorded."""

    _sparse: QuantizedState

    def compiled_forward(self, x: Tensor) -> Tensor:
        """What the compiler records for a call, of the integers alone if the float weight was dropped."""
        return compiled_forward(self, x, self.weight if self._sparse.dropped is None else None)

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``, weights and input quantised."""
        out = self.outputs(x, rows)
        if rows and self.integers.scales is None:
            self._sparse.call_directly(self.integers.kernel, self, sys.maxsize)
        return out

    def outputs(self, x: Tensor, rows: int, mask: Tensor | None = None) -> Tensor:
        """The outputs at which ``mask`` is not 0, or all."""
        sparse = self._sparse
        sparse.calls += 1
        if not rows:
            return self.dense(x)
        sparse.sparse_calls += 1
        return self.integers(x, mask, sparse.device)

    @property
    def integers(self) -> IntegerWeights:
        """The integers that stand for the weight."""
        sparse = self._sparse
        return sparse.dropped or sparse.integers.get(sparse.weight_version(self))

    def eligible_rows(self, x: Tensor) -> int:
        """Number of input rows if the integer weights apply, else 0."""
        if self._sparse.dropped is None:
            return super().eligible_rows(x)
        applies = (
            type(x) is Tensor
            and not (torch.is_grad_enabled() and x.requires_grad)
            and not x.is_nested
            and DEVICES[self._sparse.device].holds(x)
            and x.dtype in DTYPES
            and not is_being_traced()
            and x.shape[-1] == self.in_features
        )
        return x.numel() // self.in_features if applies else 0

    @property
    def weight(self) -> Tensor:  # type: ignore[override] # torch registers it as a parameter
        """The float weight, or what the integers stand for if it was dropped."""
        dropped = self._sparse.dropped
        kept: Any = self._parameters.get("weight")
        if dropped is None:
            return kept  # type: ignore[no-any-return] # a parameter
        weight = dropped.dequantized().to(self._sparse.place)
        return weight.t() if self.transposed else weight

    def drop_weight(self) -> None:
        """Free the float weight; :attr:`weight` is computed from the integers from now on."""
        sparse = self._sparse
        if sparse.dropped is None:
            sparse.dropped, sparse.place = self.integers, self.weight.device
            sparse.integers, sparse.version = WeightCache(sparse.integers._make), None  # they hold the float weight
            del self._parameters["weight"]

    def restore_parameters(self) -> None:
        """Register the weight again if it was dropped."""
        if self._sparse.dropped is not None:
            bias = self._parameters.pop("bias")
            with torch.inference_mode(False):  # parameters made within it count no writes
                self._parameters["weight"] = nn.Parameter(self.weight.contiguous(), requires_grad=False)
            self._parameters["bias"] = bias


class QuantizedGate(QuantizedLinear):
    """The gate of a gated block: keeps what it returns until the up-projection asks which units are on."""

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias``, weights and input quantised."""
        memo = self._sparse.memo
        if memo is None or not rows or self.needs_all_units:
            return self.outputs(x, rows)
        known = memo.pop(x, by_gate=True)
        if known is None:
            known = memo.activations(self.outputs(x, rows))
            if not memo.up_first:  # the up-projection is still to come
                memo.store(x, known, by_gate=True)
        return known.values


class QuantizedGatedUp(QuantizedLinear):
    """The up-projection of a gated block: computed where the gate is on, 0 elsewhere."""

    def sparse_forward(self, x: Tensor, rows: int) -> Tensor:
        """``x @ weight.T + bias`` where the gate is on, weights and input quantised."""
        few = 0 < rows <= self._sparse.max_rows
        gate = self._gate_activations(x) if few and not self.needs_all_units else None
        return self.outputs(x, rows, None if gate is None else gate.mask)

    def _gate_activations(self, x: Tensor) -> GateActivations | None:
        gate, memo = self._sparse.gate, self._sparse.memo
        if gate is None or memo is None:
            return None
        known = memo.pop(x, by_gate=False)
        if known is None:
            rows = gate.eligible_rows(x)
            if memo.up_first and rows and not gate.needs_all_units:
                known = memo.activations(gate.outputs(x, rows))
            memo.store(x, known, by_gate=False)
        return known


def drop_weights(model: nn.Module, names: Iterable[str]) -> None:
    """Free the float weights of quantised layers; those that are tied to another module, which needs them, stay."""
    held = Counter(id(one) for module in model.modules() for one in module._parameters.values())
    for name in names:
        layer: Any = model.get_submodule(name)
        if held[id(layer.weight)] == 1:
            layer.drop_weight()
    for module in model.modules():
        if isinstance(module, SplitExperts):
            module.release()


def quantizing_obstacle(layer: nn.Module, weights: str, device: str | None = None) -> str:
    """Why a layer keeps its float weights; empty if it can take integers, by default where it is."""
    weight = layer._parameters.get("weight")
    plain = type(layer) in (nn.Linear, conv1d()) and "forward" not in vars(layer)
    if not plain or type(weight) is not nn.Parameter:
        return "it is no plain nn.Linear"
    if not weight.numel():
        return "it has no weights"
    if weight.is_inference():
        return "its weights were made in inference mode, which counts no writes to them: copy the model outside of it"
    device = device or device_type(weight)
    if away := device_obstacle([weight], device):
        return away
    if weights not in DEVICES[device].integers:
        return f'its weights are on {weight.device}, where integers are int8: pass weights="int8", or move the model'
    if weight.dtype not in DTYPES:
        return f"its weights are {weight.dtype} on {weight.device}; quantisation takes float32, bfloat16 and float16"
    inputs = weight_and_bias(layer)[0].shape[1]
    if inputs > MAX_ADDED:
        return f"it has {inputs:,} inputs; quantisation takes at most {MAX_ADDED:,}"
    if not all(bool(end.isfinite()) for end in weight.aminmax()):
        return "its weights are not all finite"
    return ""


def check_weights(model: nn.Module, weights: str, keep_weights: bool, method: str) -> None:
    """Raise if the options do not go together, or if a layer of the model holds integers already."""
    checked_option(weights, "`weights`", WEIGHTS)
    if weights == "keep":
        if not keep_weights:
            raise ValueError(
                'keep_weights=False drops float weights, and weights="keep" needs them: pass weights="int8" or "int4".'
            )
        return
    if method not in ("auto", "exact"):
        raise ValueError(
            f'weights="{weights}" goes with method="auto" or "exact", which return what the quantised model returns; '
            f'got "{method}": leave one of them out.'
        )
    for name, module in model.named_modules():
        kind, weight = type(module), getattr(module, "weight", None)
        by_torch = kind.__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized"))
        subclass = isinstance(weight, Tensor) and type(weight).__module__.startswith("torchao")
        if by_torch or subclass or (isinstance(weight, Tensor) and weight.dtype == torch.int8):
            raise ValueError(
                f'weights="{weights}" quantises float layers, and {name or "the model"} is quantised already '
                f"({kind.__module__}.{kind.__qualname__}): pass the model as it was before."
            )
