"""Sparse layers inside ``torch.compile``: one operator, which the compiler calls and does not look into.

A compiled graph holds ``sparsact::linear(x, weight, bias, handle)``. The handle, a tensor of one integer, names the
layer at run time, so that one graph serves all layers of a shape, and everything that may change after compilation
(weights, hooks, limits) is looked up in every call, as without compilation.
"""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F  # noqa: N812 # as torch writes it

_LAYERS: WeakValueDictionary[int, nn.Linear] = WeakValueDictionary()
_NUMBERS = count()


def handle_of(layer: nn.Linear) -> Tensor:
    """A new handle by which the operator finds this layer."""
    number = next(_NUMBERS)
    _LAYERS[number] = layer
    with torch.inference_mode(False):
        return torch.tensor(number)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, handle: Tensor) -> Tensor:
    """What the layer computes, or the dense product if the graph computed other parameters than the layer holds."""
    layer: Any = _LAYERS.get(int(handle))
    if layer is not None and "_sparse" in layer.__dict__:
        parameters = layer._parameters
        if _is_same(parameters.get("weight"), weight) and _is_same(parameters.get("bias"), bias):
            out: Tensor = layer.sparse_forward(x)
            return out
    return F.linear(x, weight, bias)


def _is_same(held: Tensor | None, given: Tensor | None) -> bool:
    if held is None or given is None:
        return held is given
    return held is given or (held.data_ptr() == given.data_ptr() and held.stride() == given.stride())


def _shape(x: Tensor, weight: Tensor, bias: Tensor | None, handle: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


_LIBRARY: Any = torch.library.Library("sparsact", "DEF")  # type: ignore[no-untyped-call]
_LIBRARY.define("linear(Tensor x, Tensor weight, Tensor? bias, Tensor handle) -> Tensor")
_LIBRARY.impl("linear", _linear, "CPU")
_LIBRARY.impl("linear", _shape, "Meta")
_OPERATOR = torch.ops.sparsact.linear.default
_CAN_TELL_EXPORT = hasattr(torch.compiler, "is_exporting")  # torch 2.7


def compiled_forward(layer: Any, x: Tensor) -> Tensor:
    """What the compiler records for a call of a sparse layer: the operator, or the dense product.

    Dense where gradients are recorded, which then are those of ``nn.Linear``, and in ``torch.export``, whose program
    must run without the layer.
    """
    weight, bias = layer.weight, layer.bias
    state: Any = layer._sparse
    recorded = torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    )
    if (
        layer.training
        or layer.transposed
        or recorded
        or not _CAN_TELL_EXPORT
        or torch.compiler.is_exporting()
        or x.device.type != "cpu"
        or weight.device.type != "cpu"
        or x.dtype != weight.dtype
        or torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return layer.dense(x)  # type: ignore[no-any-return] # a sparse layer of any kind
    out: Tensor = _OPERATOR(x, weight, bias, state.handle)
    return out
