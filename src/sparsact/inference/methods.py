"""The methods by which a block can be computed: their names and options, and the states of its layers under each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule

from sparsact.inference.activation import ReplayedActivation
from sparsact.inference.apply import Replacement
from sparsact.inference.block import Activation, Block
from sparsact.inference.certified_screen import NARROW, Screen
from sparsact.inference.expression import operands_of
from sparsact.inference.layer_facts import WeightRows, device_type
from sparsact.inference.selectors import (
    ActiveInputs,
    GateMemo,
    GateThenUp,
    Readers,
    Screens,
    SwitchedOn,
    WhereGateIsOn,
    has_global_hooks,
    has_hooks,
)
from sparsact.inference.sparse_linear import MAX_ROWS, LayerState, Selector
from sparsact.inference.weight_cache import ActivationConstants, WeightCache, tensor_at
from sparsact.inference.weights import FloatWeights
from sparsact.kernels.screen import MAX_INPUTS
from sparsact.validation.parameters import checked_option, checked_share, checked_size

EXACT: Final = ("auto", "exact", "certified")
APPROXIMATE: Final = "approximate"
WEIGHTS: Final = ("keep", "int8", "int4")
TOP_K: Final = 50  # largest outputs of a head: that of transformers' top-k filter
SAMPLE: Final = 256  # inputs that a screen is fitted to


@dataclass(frozen=True)
class ApproximationTarget:
    """The density or the error, in (0, 1], that a rule is calibrated for."""

    kind: Literal["density", "error"]
    value: float


@dataclass(frozen=True)
class SparsifyOptions:
    """How blocks are computed, as the arguments of :func:`~sparsact.inference.sparsify` say.

    ``target`` is what an approximation is calibrated for; None for exact methods. ``k`` is the number of largest
    outputs that the head computes; None for all.
    """

    method: str
    weights: str
    keep_weights: bool
    time_limit: float
    target: ApproximationTarget | None
    k: int | None = None

    @classmethod
    def checked(
        cls,
        method: str,
        weights: str,
        keep_weights: bool,
        time_limit: float,
        density: float | None,
        error: float | None,
        head: str | None = None,
        k: int | None = None,
    ) -> SparsifyOptions:
        """The options; ValueError if one is unknown, or has no effect on the method."""
        if not isinstance(method, str):
            raise TypeError(
                f"`method` must be one of {', '.join((*EXACT, APPROXIMATE))}; got a {type(method).__name__}: pass "
                "inputs by name, sparsify(model, inputs=x)."
            )
        checked_option(method, "`method`", (*EXACT, APPROXIMATE))
        target = checked_target(method, density, error)
        checked_option(weights, "`weights`", WEIGHTS)
        if weights == "keep" and not keep_weights:
            raise ValueError(
                'keep_weights=False drops float weights, and weights="keep" needs them: pass weights="int8" or "int4".'
            )
        if weights != "keep" and method not in ("auto", "exact"):
            raise ValueError(
                f'weights="{weights}" goes with method="auto" or "exact", which return what the quantised model '
                f'returns; got "{method}": leave one of them out.'
            )
        if head is None and k is not None:
            raise ValueError(f'`k` needs a head that computes only some outputs; got k={k}: pass head="top_k" too.')
        checked_option(head, "`head`", (None, "top_k"))
        if head is not None and weights != "keep":
            raise ValueError(
                f'head="top_k" reads an int8 copy of float weights, no fewer bytes than weights="{weights}" leaves the '
                "head: leave one of them out."
            )
        largest = None if head is None else checked_size(TOP_K if k is None else k, "`k`")
        return cls(method, weights, keep_weights, time_limit, target, largest)


def checked_target(method: str, density: float | None, error: float | None) -> ApproximationTarget | None:
    """The one target of an approximate method, checked; None for an exact method, which takes none."""
    given = [] if density is None else [ApproximationTarget("density", density)]
    given += [] if error is None else [ApproximationTarget("error", error)]
    if method != APPROXIMATE:
        if given:
            raise ValueError(
                f'method="{method}" takes no {" and no ".join(one.kind for one in given)}: it computes what the model '
                'computes; to approximate, pass method="approximate".'
            )
        return None
    if len(given) != 1:
        got = ", ".join(f"{one.kind}={one.value:g}" for one in given) or "none"
        raise ValueError(f'method="{method}" takes one target, density or error; got {got}: pass error=0.05.')
    checked_share(given[0].value, f"`{given[0].kind}`")
    return given[0]


def exact_replacement(
    model: nn.Module, block: Block, screens: Screens | None = None, device: str | None = None, max_rows: int = MAX_ROWS
) -> Replacement:
    """The block computed exactly at the units that are on; pre-activations only where ``screens`` do not prove it off.

    With the products of that type of device: by default the one on which the weights are or, with screens, the CPU.
    """
    on = device or ("cpu" if screens is not None else device_type(block.linears(model)["down"].weight))
    state = partial(LayerState, FloatWeights, max_rows=max_rows, device=on)
    replacement = Replacement({block.down: state(ActiveInputs())})
    units = block_units(model, block)
    if units is None or block.up is None:  # all pre-activations are computed
        return replacement
    layers = replacement.layers
    if block.up_rows is not None and block.gate_rows is not None:
        make = block.up_rows.make(partial(FloatWeights.of, device=on))
        selector = GateThenUp(
            *units,
            screens,
            gate_rows=block.gate_rows,
            up_rows=block.up_rows,
            activation=block.activation,
            up_weights=WeightCache(make),
        )
        layers[block.up] = state(selector, rows=block.gate_rows)
    elif block.gate is not None:
        layers |= gated_layers(model, block, units, state, screens)
    elif screens is not None:
        layers[block.up] = state(SwitchedOn(*units, screens))
    return replacement


def block_units(model: nn.Module, block: Block) -> tuple[ActivationConstants, Readers] | None:
    """Selector that lets a layer of a block leave out units that are off; None if it may not."""
    constants = activation_constants(model, block.activation)
    before = [layer for role, layer in block.linears(model).items() if role != "down"]
    hooked = has_global_hooks() or Readers(model, block.readers).hooked or any(map(has_hooks, before))
    if constants is None or hooked or not block.private:  # hooks or other operations see pre-activations
        return None
    switching = filter(None, (block.up, block.gate))  # another module in their place, such as LoRA's, may add to them
    return constants, Readers(model, (*block.readers, *switching))


def gated_layers(
    model: nn.Module,
    block: Block,
    units: tuple[ActivationConstants, Readers],
    state: Callable[[Selector], LayerState],
    screens: Screens | None = None,
) -> dict[str, LayerState]:
    """States of gate and up-projection of a block whose off units are exactly 0; the gate decides which are off."""
    gate: Any = block.linears(model)["gate"]
    memo = GateMemo(block.activation)
    selectors = {block.gate: SwitchedOn(*units, screens, memo), block.up: WhereGateIsOn(*units, gate, memo)}
    return {name: state(selector) for name, selector in selectors.items() if name}


def certified_replacement(model: nn.Module, block: Block, sample: Tensor, max_rows: int = MAX_ROWS) -> Replacement:
    """The block computed exactly at the units that a screen cannot prove to be off."""
    make = partial(screen_of, threshold=block.activation.zero_below, sample=sample[:SAMPLE].clone())
    screens: Screens = WeightCache((block.gate_rows or WeightRows()).make(make))
    return exact_replacement(model, block, screens, max_rows=max_rows)


def screen_of(weight: Tensor, bias: Tensor | None, threshold: Tensor | None, sample: Tensor) -> Screen | None:
    """A screen, if its proof covers the dtype and the width of the weights.

    Weights of another type than the thresholds have pre-activations that may be rounded past them, unless they are 0.
    """
    covered = weight.dtype in NARROW and weight.shape[1] <= MAX_INPUTS
    covered &= threshold is None or threshold.dtype is weight.dtype or not threshold.any()
    seen = sample if len(sample) else None  # none after a plan was read from a file
    return Screen.of(weight, bias, threshold, seen) if covered else None


def activation_constants(model: nn.Module, activation: Activation) -> ActivationConstants | None:
    """The model's tensors that an activation reads; None if it reads values that are computed of them as it runs."""
    f = activation.function
    constants = operands_of(f.expression, Tensor) if isinstance(f, ReplayedActivation) else []
    modules = [module for module in model.modules() if not isinstance(module, ScriptModule)]
    places = [(module, name) for module in modules for name in (*module._parameters, *module._buffers)]
    read = [place for place in places if any(_share_memory(tensor_at(*place), one) for one in constants)]
    for constant in constants:
        if not any(_share_memory(tensor_at(*place), constant) for place in read):
            return None
    below = activation.zero_below if read else None
    if below is not None:  # constants that have changed since the block was found have moved its thresholds
        known = below.isfinite()
        if bool((f(torch.where(known, below, 0.0)[None])[0, known] != 0).any()):
            return None
    return None if any(tensor_at(*place).is_inference() for place in read) else ActivationConstants(read)


def _share_memory(one: Tensor, other: Tensor) -> bool:
    return one.numel() > 0 and one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
