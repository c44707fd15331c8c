"""Sparse layers inside ``torch.compile``: one operator, which the compiler calls and does not look into.

A compiled graph holds ``sparsact::linear(x, weight, bias, handle, outputs)``. The handle names the layer at run time,
so that one graph serves all layers of a shape, and everything that may change after compilation (weights, hooks,
limits) is looked up in every call, as without compilation. Inductor's code calls the function of the operator without
torch's dispatcher, whose share of a call can exceed that of the product.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from itertools import count
from typing import Any, Final
from weakref import WeakValueDictionary, ref

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from sparsact.inference.layer_facts import DTYPES

_LAYERS: Final[WeakValueDictionary[int, nn.Linear]] = WeakValueDictionary()
_NUMBERS: Final = count()


def handle_of(layer: nn.Linear) -> Tensor:
    """A new handle by which the operator finds this layer: a parameter, so that dynamo compares it with no other."""
    number = next(_NUMBERS)
    _LAYERS[number] = layer
    with torch.inference_mode(False):
        handle: Any = nn.Parameter(torch.tensor(number), requires_grad=False)
    handle.layer = ref(layer)
    return handle  # type: ignore[no-any-return] # a tensor with an attribute


def linear(x: Tensor, weight: Tensor | None, bias: Tensor | None, handle: Tensor, outputs: int) -> Tensor:
    """What the layer computes. Graphs that inductor keeps on disk import this function by its name."""
    layer = _layer_of(weight, bias, handle)
    if layer is None:
        return F.linear(x, weight, bias)  # type: ignore[arg-type] # a layer without a weight is found
    out: Tensor = layer.outputs_of(x)
    return out


def _layer_of(weight: Tensor | None, bias: Tensor | None, handle: Tensor) -> Any:
    """The sparse layer, or None if the graph computed other parameters than the layer holds."""
    found = getattr(handle, "layer", None)
    layer: Any = _LAYERS.get(int(handle)) if found is None else found()  # torch copies what it folds into a graph
    if layer is None:
        return None
    parameters = layer._parameters
    if layer._sparse.direct is not None and parameters.get("weight") is weight and parameters.get("bias") is bias:
        return layer  # the usual case, without further questions
    same = _is_same(parameters.get("weight"), weight) and _is_same(parameters.get("bias"), bias)
    return layer if same else None


def _is_same(held: Tensor | None, given: Tensor | None) -> bool:
    """Whether the layer holds what it is given, and writes to it are counted."""
    if held is None or given is None:
        return held is given
    if held is not given and (
        type(held) is not nn.Parameter or held.data_ptr() != given.data_ptr() or held.stride() != given.stride()
    ):
        return False
    return not held.is_inference()


def _shape(x: Tensor, weight: Tensor | None, bias: Tensor | None, handle: Tensor, outputs: int) -> Tensor:
    """An output without numbers, for the compiler, which has loaded inductor by now if that is to write the code."""
    registry = sys.modules.get("torch._inductor.codegen.custom_extern_kernel_codegen")
    if registry is not None:
        _register_call(registry)
    return x.new_empty(*x.shape[:-1], outputs)


def _register_call(registry: Any) -> None:
    """Have inductor write calls of :func:`linear`, if its code is as expected; else it calls the operator."""
    example = getattr(registry, "generate_print_python", None)
    if example is not None and [*signature(example).parameters] == ["node", "writeline"]:  # torch 2.13
        registry.CUSTOM_EXTERN_KERNEL_CODEGEN.setdefault(_NAME, registry.CustomCodegen(python=_write_call))


def _write_call(node: Any, writeline: Callable[[Any], None]) -> None:
    """Write a call of :func:`linear` into inductor's code, whose shape need not be checked again."""
    from torch._inductor.codegen.wrapper import ExternKernelAllocLine
    from torch._inductor.virtualized import V

    wrapper = V.graph.wrapper_code
    if V.graph.fx_wrapper or not hasattr(wrapper, "add_import_once"):
        writeline(ExternKernelAllocLine(wrapper, node))
        return
    for output in node.outputs:
        output.skip_size_stride_alignment_checks = True
    wrapper.add_import_once("from sparsact.inference.compiled import linear as sparsact_linear")
    writeline(f"{node.get_name()} = sparsact_linear({', '.join(node.codegen_args())})")


_LIBRARY: Final[Any] = torch.library.Library("sparsact", "DEF")  # type: ignore[no-untyped-call]
_LIBRARY.define("linear(Tensor x, Tensor? weight, Tensor? bias, Tensor handle, int outputs) -> Tensor")
_LIBRARY.impl("linear", linear, "CPU")
_LIBRARY.impl("linear", _shape, "Meta")
_OPERATOR: Final = torch.ops.sparsact.linear.default
_NAME: Final = "torch.ops.sparsact.linear.default"  # in inductor's code
_CAN_TELL_EXPORT: Final = hasattr(torch.compiler, "is_exporting")  # torch 2.7


def compiled_forward(layer: Any, x: Tensor, weight: Tensor | None) -> Tensor:
    """What the compiler records for a call of a sparse layer: the operator, or the dense product.

    Dense where gradients are recorded, so that they equal the gradients of ``nn.Linear``, and in ``torch.export``,
    whose program must run without the layer. ``weight`` is None if the layer holds integers only.
    """
    bias = layer.bias
    recorded = torch.is_grad_enabled() and (
        x.requires_grad or (weight is not None and weight.requires_grad) or (bias is not None and bias.requires_grad)
    )
    if (
        layer.training
        or recorded
        or not _CAN_TELL_EXPORT
        or torch.compiler.is_exporting()
        or type(x) is not Tensor
        or x.device.type != "cpu"
        or x.shape[-1] != layer.in_features
        or (weight is not None and (weight.device.type != "cpu" or x.dtype != weight.dtype))
        or x.dtype not in DTYPES
        or torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    ):
        return layer.dense(x)  # type: ignore[no-any-return] # a sparse layer of any kind
    out: Tensor = _OPERATOR(x, weight, bias, layer._sparse.handle, layer.out_features)
    return out


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
