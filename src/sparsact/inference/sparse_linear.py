"""Linear layers that read only the weights of active units, in the place of a model's own.

Weights have a form (:mod:`sparsact.inference.weights`), and a selector says which of them a call reads. A layer is
taken over by its class alone, as torch's own parametrizations do: parameters, hooks, ties and names stay. Where the
sparse path does not apply (gradients, training, another device or dtype, too many rows or active units) it computes
what it computed before.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sparsact.inference.certified_screen import NARROW
from sparsact.inference.compiled import compiled_forward, handle_of, is_being_traced
from sparsact.inference.layer_facts import DEVICES, WeightRows
from sparsact.inference.weight_cache import CountedVersion, WeightCache, WeightVersion, count_writes
from sparsact.inference.weights import IntegerWeights, WeightForm
from sparsact.kernels import dispatch

MAX_ROWS: Final = 16  # of a call: more rows together need most of the units
MAX_SHARE: Final = 0.4  # of the units: more are read faster in the order of memory
_LOCK: Final = Lock()
LayerCall: Any = getattr(dispatch.native, "LayerCall", None) if hasattr(Tensor, "__dlpack_c_exchange_api__") else None


class Selector(ABC):
    """Which weights of a layer a call reads.

    Attributes
    ----------
    by_input : bool
        Whether it reads weights of active inputs, rather than of outputs.
    whole : bool
        Whether it reads all weights, if they are rounded.
    watched : list of (parent, name, module), or None
        Modules whose hooks would see what the layer leaves out.
    """

    by_input: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    watched: Any = None

    @abstractmethod
    def outputs(self, layer: SparseLinear, x: Tensor, rows: int) -> Tensor:
        """The layer's outputs; ``rows`` is the number of rows of the input if the sparse path applies, else 0."""


class GradientNotice:
    """Warns once, for all layers of a model, that they compute densely: with gradients, or in training mode."""

    given = False

    def __call__(self) -> None:
        """Warn at the first call."""
        if not self.given:
            self.given = True
            warnings.warn(
                "sparse layers compute densely while gradients are recorded, and in training mode: call model.eval(), "
                "and run the model under torch.inference_mode() or torch.no_grad().",
                UserWarning,
                stacklevel=2,
            )


class LayerState:
    """What a sparse layer needs besides its parameters.

    Attributes
    ----------
    weights : WeightCache of WeightForm
        The form that its weight takes.
    selector : Selector
    max_rows : int
        Most rows of an input for which the layer is computed sparsely.
    max_share : float
        Largest mean share of active units, over the rows, for which the layer is computed sparsely.
    max_selected : int
        Most rows of an input that are screened before pre-activations are computed.
    device : str
        The type of device whose products it was given: elsewhere it is computed densely.
    version : WeightVersion or None
        The weights that copies were made from.
    alone : IntegerWeights or None
        The integers, if they are all that is left of the weight.
    place : torch.device
        Where a dropped weight was.
    handle : Tensor or None
        Handle of the layer, for compiled graphs.
    suspected_writes : int
        How many events were seen after which the weights may have changed without torch counting it.
    calls, sparse_calls : int
        Calls of the layer, and how many were not computed densely.
    direct : LayerCall or None
        Calls the kernel at once, where nothing has changed since the last call.
    notice : GradientNotice
        One for all layers of a model.
    """

    LIMITS: ClassVar[tuple[str, ...]] = ("max_rows", "max_share", "max_selected")

    def __init__(
        self,
        form: type[WeightForm],
        selector: Selector,
        max_rows: int = MAX_ROWS,
        max_share: float = MAX_SHARE,
        *,
        device: str = "cpu",
        rows: WeightRows = WeightRows(),  # noqa: B008 # frozen
    ) -> None:
        self.form, self.selector, self.device = form, selector, device
        self.max_rows, self.max_share, self.max_selected = max_rows, max_share, sys.maxsize
        make = partial(form.of, by_input=selector.by_input, whole=selector.whole, device=device)
        self.weights: WeightCache[WeightForm] = WeightCache(rows.make(make))
        self.version: WeightVersion | None = None
        self.alone: IntegerWeights | None = None
        self.place = torch.device("cpu")
        self.handle: Tensor | None = None
        self.suspected_writes = self.calls = self.sparse_calls = 0
        self.direct: Any = None
        self.notice = GradientNotice()

    @property
    def limits(self) -> dict[str, float]:
        """The attributes that say for which inputs the layer is computed sparsely."""
        return {name: getattr(self, name) for name in self.LIMITS}

    @limits.setter
    def limits(self, limits: Mapping[str, float]) -> None:
        self.direct = None
        for name, limit in limits.items():
            setattr(self, name, limit)

    def __getstate__(self) -> dict[str, Any]:
        """Without the handle and the direct call, which are another layer's in a copy."""
        return self.__dict__ | {"handle": None, "direct": None}

    def suspect_write(self) -> None:
        """Have the weights compared in full before they are used again."""
        self.suspected_writes += 1
        self.direct = None

    def smooth(self, scales: Tensor) -> None:
        """Multiply inputs by these scales (inputs,), and divide weights by them, before they are quantised."""
        form: Any = self.form
        read = {"by_input": self.selector.by_input, "whole": self.selector.whole}
        make = partial(form.smoothed, scales=scales, **read, device=self.device)
        self.weights, self.direct = WeightCache(make), None

    def call_directly(self, layer: SparseLinear, kernel: Callable[..., Any] | None, most: float, max_rows: int) -> None:
        """Call ``kernel`` at once from now on, as long as the weights stay the same and inputs are plain.

        ``most`` is the most units of a row that may be on, which a kernel takes that returns their number for all
        rows; -1 for others.
        """
        known = self.direct is not None and self.direct.holds(layer)
        native = LayerCall is not None and dispatch.chosen is dispatch.native and self.device == "cpu"
        if known or kernel is None or not native:
            return
        if any(held is not None and held.is_inference() for held in layer._parameters.values()):
            return  # writes to it are not counted
        version, sizes = self.version, (layer.in_features, layer.out_features)
        stripe = None if version is None else version.stripe
        self.direct = LayerCall(kernel, layer, version, stripe, *sizes, max_rows, most)

    def weight_version(self, layer: SparseLinear) -> WeightVersion:
        """The layer's weight and bias as they are now: the same object as long as they do not change."""
        parameters: Any = layer._parameters  # much quicker than the attributes
        weight = parameters["weight"]
        tensors = weight.t() if layer.transposed else weight, parameters["bias"]
        version = self.version
        if version is None or not version.is_current(tensors, self.suspected_writes):
            with _LOCK:  # simultaneous threads receive the same version
                if self.version is version:
                    # Of rounded weights a look at the float ones would cost more than the product.
                    kind = CountedVersion if self.form.rounded else WeightVersion
                    self.version, self.direct = kind(tensors, self.suspected_writes), None
                version = self.version
        return version  # type: ignore[return-value] # it is never set to None again


class SparseLinear(nn.Linear):
    """A linear layer that is computed sparsely where that is possible and worthwhile."""

    _sparse: LayerState
    transposed: ClassVar[bool] = False  # whether the weight is (inputs, outputs)
    dense_class: ClassVar[type[nn.Module]] = nn.Linear

    def dense(self, x: Tensor) -> Tensor:
        """What the layer computes in a dense model."""
        return F.linear(x, self.weight, self.bias)

    def whole(self, x: Tensor, rows: int) -> Tensor:
        """All outputs: from the form of weights where that is rounded and the sparse path applies, else densely."""
        sparse = self._sparse
        if not rows or not sparse.form.rounded:
            return self.dense(x)
        sparse.sparse_calls += 1
        return self.shaped_like(x, self.weights.all(contiguous(x), rows))

    @property
    def weights(self) -> WeightForm:
        """The weight as kernels read it."""
        sparse = self._sparse
        return sparse.alone or sparse.weights.get(sparse.weight_version(self))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 # as in nn.Linear
        """``input @ weight.T + bias``."""
        if torch.compiler.is_compiling():
            return self.compiled_forward(input)
        return self.outputs_of(input)

    def outputs_of(self, x: Tensor) -> Tensor:
        """The output: directly from the kernel where nothing has changed since the last call."""
        sparse = self._sparse
        out: Tensor | None = None if sparse.direct is None else sparse.direct(self, x, sparse.selector.watched)
        sparse.calls += 1
        if out is None:
            return sparse.selector.outputs(self, x, self.eligible_rows(x))
        sparse.sparse_calls += 1
        return out

    def compiled_forward(self, x: Tensor) -> Tensor:
        """What the compiler records for a call."""
        return compiled_forward(self, x, self.weight)

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
            if not (self.training and torch.is_grad_enabled()):  # else it is being trained
                self._sparse.notice()
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

    def train(self, mode: bool = True) -> SparseLinear:
        """As in ``nn.Module``; weights are compared in full before they are used again."""
        self._sparse.suspect_write()
        return super().train(mode)

    def __prepare_scriptable__(self) -> nn.Module:
        """What ``torch.jit.script`` compiles: a plain layer with the same parameters."""
        plain = self.dense_class.__new__(self.dense_class)
        plain.__dict__ = {name: value for name, value in self.__dict__.items() if name != "_sparse"}
        return plain


class IntegerLayer(SparseLinear):
    """A layer that has dropped its float weight: the integers are all that is left."""

    @property
    def weight(self) -> Tensor:  # type: ignore[override] # torch registers it as a parameter
        """The numbers that the integers stand for."""
        integers: Any = self._sparse.alone  # every layer of this class has them
        weight: Tensor = integers.dequantized().to(self._sparse.place)
        return weight.t() if self.transposed else weight

    def compiled_forward(self, x: Tensor) -> Tensor:
        """What the compiler records for a call, of the integers alone."""
        return compiled_forward(self, x, None)

    def eligible_rows(self, x: Tensor) -> int:
        """Number of input rows if the integers apply, else 0."""
        if torch.is_grad_enabled() and x.requires_grad and not self.training:
            self._sparse.notice()
        applies = (
            type(x) is Tensor
            and not (torch.is_grad_enabled() and x.requires_grad)
            and not x.is_nested
            and DEVICES[self._sparse.device].holds(x)
            and x.dtype in NARROW
            and not is_being_traced()
            and x.shape[-1] == self.in_features
        )
        return x.numel() // self.in_features if applies else 0

    def restore_parameters(self) -> None:
        """Register the numbers that the integers stand for as the weight."""
        bias = self._parameters.pop("bias")
        with torch.inference_mode(False):  # parameters made within it count no writes
            self._parameters["weight"] = nn.Parameter(self.weight.contiguous(), requires_grad=False)
        self._parameters["bias"] = bias


def holds_sparse_layer(module: nn.Module) -> bool:
    """Whether a module is a sparse layer, or one within it is."""
    return any(isinstance(one, SparseLinear) for one in module.modules())


def contiguous(x: Tensor) -> Tensor:
    """The tensor with its rows one after another; quicker than torch where they are."""
    return x if x.is_contiguous() else x.contiguous()
