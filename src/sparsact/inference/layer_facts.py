"""Facts of a model's modules that decide which of them become sparse, and what kernels read on a device.

A module is classified once, by its class and its parameters; planning reads the facts and no module.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import MethodType
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from sparsact.extras import install
from sparsact.inference.certified_screen import NARROW
from sparsact.kernels.int8_linear import MAX_ADDED

Make = Callable[[Tensor, Tensor | None], Any]
Role = Literal["linear", "similar", "convolution", "routed", "experts", "other"]
DTYPES: Final = (*NARROW, torch.float64)


@dataclass(frozen=True)
class Device:
    """What runs on one type of device: dtypes that kernels take, methods of ``sparsify``, kinds of integer weights.

    ``holds`` says whether a tensor lies there.
    """

    holds: Callable[[Tensor], bool]
    dtypes: tuple[torch.dtype, ...]
    methods: tuple[str, ...]
    integers: tuple[str, ...]


_CUDA: Final = "is_cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "is_cuda"  # where Triton's kernels run
DEVICES: Final = {
    "cpu": Device(attrgetter("is_cpu"), DTYPES, ("exact", "certified", "approximate"), ("int8", "int4")),
    "cuda": Device(attrgetter(_CUDA), NARROW, ("exact",), ("int8",)),
}


def conv1d() -> type[nn.Module] | None:
    """``transformers.pytorch_utils.Conv1D``, the linear layer of GPT-2; None while no model has loaded transformers."""
    return getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)


def falcon_linear() -> type[nn.Module] | None:
    """``FalconLinear`` of transformers, whose forward is its own; None while no model has loaded it."""
    return getattr(sys.modules.get("transformers.models.falcon.modeling_falcon"), "FalconLinear", None)


def is_linear(module: object) -> bool:
    """Whether a module is an ``nn.Linear`` or ``Conv1D``."""
    other = conv1d()
    return isinstance(module, nn.Linear) or (other is not None and isinstance(module, other))


@dataclass(frozen=True)
class LayerFacts:
    """What planning reads of a module.

    Attributes
    ----------
    kind : str
        Its class, with the module that defines it.
    role : str
        ``"linear"``: an ``nn.Linear`` or ``Conv1D``; ``"similar"``: it looks like one but has another class;
        ``"convolution"``; ``"routed"``: a layer of this library that computes chosen units alone; ``"experts"``: it
        stacks experts in one parameter a projection; ``"other"``.
    forward : bool
        Whether a linear layer computes by the forward of its class.
    unchanged : bool
        Whether its class is ``nn.Linear``, ``Conv1D`` or ``FalconLinear``, no subclass, with the forward of the class.
    transposed : bool
        Whether its weight is (inputs, outputs), as that of ``Conv1D``.
    weight : Tensor or None
        The parameter that it holds itself; None if it is computed, as of a layer that is pruned or parametrized.
    wraps : bool
        Whether it shows the weight of a layer within it, as the wrappers of adapters do.
    taken_by : str
        What computes it in place of Python's code of its class, and the remedy: TorchScript or accelerate, or empty.
    """

    kind: str
    role: Role
    forward: bool
    unchanged: bool
    transposed: bool
    weight: Tensor | None
    wraps: bool = False
    taken_by: str = ""

    @classmethod
    def of(cls, module: nn.Module) -> LayerFacts:
        """The facts of a module."""
        kind, taken_by = f"{type(module).__module__}.{type(module).__qualname__}", _taken_by(module)
        if isinstance(module, torch.jit.ScriptModule):
            return cls(kind, "other", False, False, False, None, taken_by=taken_by)
        other = conv1d()
        kinds = [one for one in (nn.Linear, other, falcon_linear()) if one is not None]
        held, as_defined = module._parameters.get("weight"), _has_forward_of_class(module)
        return cls(
            kind=kind,
            role=_role(module),
            forward=type(module).forward in [one.forward for one in kinds] and as_defined,
            unchanged=type(module) in kinds and as_defined,
            transposed=type(module) is other,
            weight=held if type(held) is nn.Parameter else None,
            wraps=not is_linear(module) and "weight" not in module._parameters and any(module.children()),
            taken_by=taken_by,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the module computes what ``nn.Linear`` does, with the weight that it holds."""
        dense = self.weight is not None and self.weight.is_floating_point() and self.weight.layout == torch.strided
        return self.role == "linear" and self.forward and dense

    @property
    def n_inputs(self) -> int | None:
        """Length of the last axis of its inputs; None if that says nothing."""
        matrix = self.weight is not None and self.weight.ndim == 2
        return self.weight.shape[0 if self.transposed else -1] if self.weight is not None and matrix else None

    @property
    def left_as_it_is(self) -> str:
        """Why the weights that the module holds itself form no block; empty if they may, or are none."""
        if self.role == "routed":
            return f"{self.kind} already computes only the units that its router chooses"
        if self.role == "linear" and self.kind.startswith("sparsact.inference."):
            return f"{self.kind} is sparse already: call sparsact.densify(model) first"
        if self.role == "experts":
            return f"{self.kind} keeps all experts in one parameter per projection, in an unknown layout"
        if self.role == "convolution":
            return f"{self.kind} is a convolution; sparse kernels take linear layers only"
        if self.taken_by:
            return f"{self.kind} has a forward of its own, {self.taken_by}"
        other = self.role == "similar" or (self.role == "linear" and not self.is_plain)
        if other and self.kind.startswith(("torch.ao.nn.quantized", "torch.nn.quantized")):
            return f'{self.kind} is quantised already: pass the float model, and use weights="int8"'
        return f"{self.kind} differs from nn.Linear in its weight or forward method" if other else ""

    def quantizing_obstacle(self, weights: str, device: str | None = None) -> str:
        """Why a linear layer keeps its float weights; empty if it can take integers, by default where it is."""
        weight = self.weight
        if not self.unchanged or weight is None:
            return f"it has a forward of its own, {self.taken_by}" if self.taken_by else "it is no plain nn.Linear"
        place = device or device_type(weight)
        inputs = weight.shape[0 if self.transposed else -1]
        found = first_reason(
            (not weight.numel(), "it has no weights"),
            (bool(unread := device_obstacle([weight], place)), unread),
            (
                weights not in DEVICES[place].integers,
                f'its weights are on {weight.device}, where integers are int8: pass weights="int8", or move the model',
            ),
            (
                weight.dtype not in NARROW,
                f"its weights are {weight.dtype} on {weight.device}; quantisation takes float32, bfloat16 and float16",
            ),
            (inputs > MAX_ADDED, f"it has {inputs:,} inputs; quantisation takes at most {MAX_ADDED:,}"),
        )
        finite = bool(found) or all(bool(end.isfinite()) for end in weight.aminmax())
        return found if finite else "its weights are not all finite"


def first_reason(*reasons: tuple[object, str]) -> str:
    """The first reason that holds, of pairs of whether it does and the reason; empty if none does."""
    return next((reason for holds, reason in reasons if holds), "")


def _role(module: nn.Module) -> Role:
    if type(module).__module__.startswith("sparsact.layers."):
        return "routed"
    stacks = [one.shape for one in module._parameters.values() if one is not None and one.ndim == 3]
    if any(map(_is_chain, stacks, stacks[1:])):
        return "experts"
    if is_linear(module):
        return "linear"
    if isinstance(module, _ConvNd):
        return "convolution"
    named = any("Linear" in base.__name__ for base in type(module).__mro__)
    weight = getattr(module, "weight", None)
    matrix = isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding)
    return "similar" if (named or matrix) and not isinstance(module, nn.Bilinear) else "other"


def _has_forward_of_class(module: nn.Module) -> bool:
    """Whether no other forward was put in its place; accelerate leaves that of the class there, bound, when it goes."""
    own = vars(module).get("forward")
    return own is None or bool(own == MethodType(type(module).forward, module))


def _is_chain(one: torch.Size, other: torch.Size) -> bool:
    """Whether weights of these shapes hold a matrix for each of several experts, and one reads what the other returns.

    Position embeddings, and factors that mix a token with the one before it, have three axes too.
    """
    return one[0] == other[0] > 1 and (one[1] == other[2] or one[2] == other[1])


def _taken_by(module: nn.Module) -> str:
    """As the attribute of :class:`LayerFacts`."""
    if isinstance(module, torch.jit.ScriptModule):
        matrices = any(held.ndim == 2 for held in module.parameters())
        return "compiled by TorchScript: put the module that it was made from in its place" if matrices else ""
    if is_linear(module) and "_hf_hook" in vars(module):
        return "a hook of accelerate: call accelerate.hooks.remove_hook_from_module(model, recurse=True) first"
    return ""


def check_model(model: object) -> None:
    """Raise TypeError if a model is no ``nn.Module`` in Python, whose layers can be observed and replaced."""
    scripted = isinstance(model, torch.jit.ScriptModule)
    if scripted or not isinstance(model, nn.Module):
        fact = f"{type(model).__name__}{', compiled by TorchScript' * scripted}"
        remedy = "pass the module that it was made from" if scripted else "pass the module itself"
        raise TypeError(
            f"`model` must be a torch.nn.Module in Python, whose layers can be replaced; got {fact}: {remedy}."
        )


def other_forms(model: nn.Module) -> list[str]:
    """Modules of a model whose weights no block can be made of, with the reason of each kind."""
    reasons: dict[str, list[str]] = {}
    seen: tuple[str, ...] = ()
    for name, module in model.named_modules():
        reason = "" if name.startswith(seen) else LayerFacts.of(module).left_as_it_is
        if reason:
            seen += (f"{name}.",) if name else ()
            reasons.setdefault(reason, []).append(name)
    more = {reason: f" and {len(names) - 1} more" if len(names) > 1 else "" for reason, names in reasons.items()}
    return [f"{names[0] or 'the model'}{more[reason]}: {reason}" for reason, names in reasons.items()]


def check_not_quantized(model: nn.Module, weights: str) -> None:
    """Raise ValueError if a layer of the model, which is to take ``weights``, holds integers already."""
    for name, module in model.named_modules():
        kind, weight = type(module), getattr(module, "weight", None)
        by_torch = kind.__module__.startswith(("torch.ao.nn.quantized", "torch.nn.quantized"))
        subclass = isinstance(weight, Tensor) and type(weight).__module__.startswith("torchao")
        if by_torch or subclass or (isinstance(weight, Tensor) and weight.dtype == torch.int8):
            raise ValueError(
                f'weights="{weights}" quantises float layers, and {name or "the model"} is quantised already '
                f"({kind.__module__}.{kind.__qualname__}): pass the float model."
            )


def device_type(weight: Tensor) -> str:
    """The key of ``DEVICES`` for a layer with this weight: ``"cpu"`` for devices without kernels."""
    return weight.device.type if weight.device.type in DEVICES else "cpu"


def setting(tensors: Iterable[Tensor]) -> str:
    """What times of a model with these tensors depend on: threads of torch and processor, or the GPU."""
    if device := next((tensor.device for tensor in tensors if tensor.is_cuda), None):
        return torch.cuda.get_device_name(device)
    threads, facts = torch.get_num_threads(), Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", facts.read_text()) if facts.is_file() else None
    return f"{threads} thread{'s' * (threads > 1)} on {named[1] if named else platform.processor()}"


def device_obstacle(weights: Sequence[Tensor], device: str) -> str:
    """Why kernels cannot read weights that should be on this type of device, and rely on them; empty if they can."""
    places = ", ".join(sorted({str(weight.device) for weight in weights}))
    if not all(map(DEVICES[device].holds, weights)):
        return f"its weights are on {places}, kernels run on the CPU or on CUDA: move the model"
    if device == "cuda" and find_spec("triton") is None:
        return f"its weights are on {places}, where kernels need Triton: {install('gpu')}"
    if any(weight.is_inference() for weight in weights):
        return "its weights were made in inference mode, which counts no writes: copy the model outside of it"
    return ""


@dataclass(frozen=True)
class WeightRows:
    """Rows of the weight of a linear layer: all, or one part's, of a layer that computes two."""

    start: int = 0
    stop: int | None = None

    def of(self, layer: nn.Module) -> tuple[Tensor, Tensor | None]:
        """Their weight (outputs, inputs) and bias; the weight of ``Conv1D`` is a transposed view."""
        weight: Any = layer.weight
        bias: Any = layer.bias
        other, rows = conv1d(), slice(self.start, self.stop)
        whole = weight.t() if other is not None and isinstance(layer, other) else weight
        return whole[rows], None if bias is None else bias[rows]

    def make(self, function: Make) -> Make:
        """A function of the rows' weight and bias, as a function of the layer's."""
        return function if self == WeightRows() else partial(_of_rows, function, self.start, self.stop)


def _of_rows(function: Make, start: int, stop: int | None, weight: Tensor, bias: Tensor | None) -> Any:
    return function(weight[start:stop], None if bias is None else bias[start:stop])
