"""What a sparse layer needs besides its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Final

from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from sparsact.inference.activation_function import ActivationConstants
from sparsact.inference.certified_screen import Screen
from sparsact.inference.gate_memo import GateMemo
from sparsact.inference.products import ActiveProduct, RowProduct
from sparsact.inference.weight_cache import WeightCache, WeightVersion
from sparsact.kernels import dispatch

_LOCK: Final = Lock()
LayerCall: Any = getattr(dispatch.native, "LayerCall", None) if hasattr(Tensor, "__dlpack_c_exchange_api__") else None


Screens = WeightCache[Screen | None]  # of a layer's weights; None for weights of a kind that no screen covers


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
        Largest mean share of active units, over the rows, for which the layer is computed sparsely.
    device : str
        The type of device whose products it was given: elsewhere it is computed densely.
    version : WeightVersion or None
        The weights that copies were made from.
    handle : Tensor or None
        Of the layer, for compiled graphs.
    suspected_writes : int
        How many events were seen after which the weights may have changed without torch counting it.
    calls, sparse_calls : int
        Calls of the layer that could be computed sparsely, and those of them that were.
    direct : LayerCall or None
        Calls the kernel at once, where nothing has changed since the last call.
    watched : list or None
        Modules whose hooks would see what the layer leaves out: (parent, name, module).
    """

    max_rows: int
    max_share: float
    device: str = field(default="cpu", kw_only=True)
    version: WeightVersion | None = field(default=None, kw_only=True)
    handle: Tensor | None = field(default=None, kw_only=True)
    suspected_writes: int = field(default=0, kw_only=True)
    calls: int = field(default=0, kw_only=True)
    sparse_calls: int = field(default=0, kw_only=True)
    direct: Any = field(default=None, kw_only=True)

    VERSION: ClassVar[type[WeightVersion]] = WeightVersion
    LIMITS: ClassVar[tuple[str, ...]] = ("max_rows", "max_share")
    watched: ClassVar[Any] = None

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

    def call_directly(self, kernel: Callable[..., Any], layer: Any, max_rows: int, most: float = -1.0) -> None:
        """Call ``kernel`` at once from now on, as long as the weights are those of this call and inputs are plain.

        With ``most``, the most units of a row that may be on, the kernel takes and returns their number for all rows.
        """
        known = self.direct is not None and self.direct.holds(layer)
        if known or LayerCall is None or dispatch.backend() == "reference" or self.device != "cpu":
            return
        if any(held is not None and held.is_inference() for held in layer._parameters.values()):
            return  # writes to it are not counted
        version, sizes = self.version, (layer.in_features, layer.out_features)
        stripe = None if version is None else version.stripe
        self.direct = LayerCall(kernel, layer, version, stripe, *sizes, max_rows, most)

    def weight_version(self, layer: Any) -> WeightVersion:
        """The layer's weight and bias as they are now: the same object as long as they do not change."""
        parameters = layer._parameters  # much quicker than the attributes
        weight = parameters["weight"]
        tensors = weight.t() if layer.transposed else weight, parameters["bias"]
        version = self.version
        if version is None or not version.is_current(tensors, self.suspected_writes):
            with _LOCK:  # simultaneous threads receive the same version
                if self.version is version:
                    self.version, self.direct = self.VERSION(tensors, self.suspected_writes), None
                version = self.version
        return version  # type: ignore[return-value] # it is never set to None again


@dataclass
class DownState(LinearState):
    """State of the second layer of a block.

    Attributes
    ----------
    mask_small : callable or None
        Sets small activations to zero first, where an approximation was requested.
    """

    mask_small: Callable[[Tensor], Tensor] | None = None
    product: WeightCache[RowProduct] = field(init=False)

    def __post_init__(self) -> None:
        self.product = WeightCache(partial(RowProduct, device=self.device))


@dataclass
class UpState(LinearState):
    """State of the layer whose pre-activations switch units on, ``up`` or the gate.

    Attributes
    ----------
    screens : WeightCache of Screen, or None
        Proves units off, which are then not computed; None computes all.
    constants : ActivationConstants
        What the activation reads besides pre-activations: other values would switch other units on.
    readers : Readers
        Modules that receive pre-activations, and the layers that compute them.
    memo : GateMemo or None
        Of a gated block.
    max_selected : int
        Most rows of an input that are screened before pre-activations are computed.
    """

    screens: Screens | None
    constants: ActivationConstants
    readers: Readers
    memo: GateMemo | None = None
    product: WeightCache[ActiveProduct] = field(init=False)
    max_selected: int = sys.maxsize
    calls_to_skip: int = 0  # next calls without a screen, because too many units were on
    backoff: int = 1

    LIMITS = ("max_rows", "max_share", "max_selected")
    MAX_BACKOFF: ClassVar[int] = 64

    def __post_init__(self) -> None:
        self.product = WeightCache(partial(ActiveProduct, device=self.device))

    def back_off(self) -> None:
        """Skip the screen, which was not worthwhile, in the next calls: twice as many each time."""
        self.calls_to_skip, self.backoff = self.backoff, min(2 * self.backoff, self.MAX_BACKOFF)
        self.direct = None

    @property
    def watched(self) -> Any:
        """Those that receive pre-activations."""
        return self.readers.places


@dataclass
class GatedUpState(LinearState):
    """State of the up-projection of a gated block, which is computed where the gate is on."""

    gate: Any  # the SparseUp layer
    memo: GateMemo
    constants: ActivationConstants
    readers: Readers
    product: WeightCache[ActiveProduct] = field(init=False)

    def __post_init__(self) -> None:
        self.product = WeightCache(partial(ActiveProduct, device=self.device))
