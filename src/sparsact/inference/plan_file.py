"""Save the plan of a sparsified model next to its weights, and apply it to the model that is loaded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparsact.inference.apply import (
    Applicability,
    PlannedBlock,
    Replacement,
    apply,
    certified_replacement,
    exact_replacement,
    verified,
)
from sparsact.inference.batches import Batch, Inputs, batches
from sparsact.inference.block import Block
from sparsact.inference.certified_screen import Screen
from sparsact.inference.layer_state import UpState
from sparsact.inference.linear_layers import is_linear, weight_and_bias
from sparsact.inference.plan import BlockPlan, Plan, WholeModel, finite
from sparsact.inference.quantized_plan_file import (
    QUANTIZED,
    SAVED,
    block_plan,
    digest_of,
    load_quantized,
    planned_blocks,
    quantized_state,
)
from sparsact.inference.quantizing import QuantizedPlan
from sparsact.inference.sparse_linear import SparseLinear, count_writes
from sparsact.inference.sparsifying import PLAN, being_sparsified, densify, plan_of
from sparsact.inference.weight_cache import WeightVersion
from sparsact.saving import ModelFileError, modelfile

Model = TypeVar("Model", bound=nn.Module)
Arrays = dict[str, NDArray[Any]]
KIND: Final = "plan"


def save_plan(model: nn.Module, path: str | Path) -> None:
    """Write the plan of a sparsified model, with its screens and times, to a safetensors file.

    Parameters
    ----------
    model : nn.Module
        As :func:`sparsify` returned it, by an exact method.
    path : str or Path

    Raises
    ------
    ValueError
        If the model has no plan, or if its plan is an approximation.

    Notes
    -----
    Holds a byte for each weight that a screen covers, the integers of quantised layers, and a digest of the parameters
    of sparse layers, to which the plan belongs. It holds no code: the activations are found again when it is loaded.

    Examples
    --------
    >>> import tempfile
    >>> from sparsact.inference import sparsify
    >>> model, x = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)), torch.randn(20, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_plan(sparsify(model, "exact", x), f"{folder}/plan.safetensors")
    """
    plan = plan_of(model)
    wrong = sorted({one.method for one in plan.choices} - set(SAVED))
    if wrong:
        raise ValueError(
            f"a plan that is saved must be exact; this one has blocks by {', '.join(wrong)}, calibrated for inputs: "
            "call sparsact.sparsify again where the model is loaded."
        )
    if isinstance(plan, QuantizedPlan):
        modelfile.write(path, QUANTIZED, *quantized_state(model, plan))
        return
    arrays: Arrays = {}
    limits: dict[str, dict[str, float]] = {}
    for name, layer in sparse_layers(model):
        state = layer._sparse
        limits[name] = state.limits
        screens = state.screens if isinstance(state, UpState) else None
        screen = None if screens is None else screens.get(state.weight_version(layer))
        if screen is not None:
            arrays |= {f"{name}/{part}": value.numpy() for part, value in _tensors(screen).items()}
            arrays[f"{name}/leak"] = np.array([screen.leak])
    state = {
        "weights": digest_of(model, list(limits)),
        "limits": limits,
        "choices": [finite(asdict(one)) for one in plan.choices],
        "whole": None if plan.whole is None else finite(asdict(plan.whole)),
        "left_dense": list(plan.left_dense),
    }
    modelfile.write(path, KIND, state, arrays)


def load_plan(model: Model, path: str | Path, inputs: Inputs) -> Model:
    """Make a model sparse by a plan that was saved: nothing is measured, and no screen is computed.

    Parameters
    ----------
    model : nn.Module
        With the weights of the model whose plan it is; changed in place. Weights that were dropped
        (``keep_weights=False``) come from the file, and those of this model are dropped too.
    path : str or Path
    inputs : tensor, mapping, tuple, or iterable of these
        One batch, on which the blocks are found and the result is compared with the dense model.

    Returns
    -------
    model : nn.Module
        The same object; :func:`plan_of` returns the plan.

    Raises
    ------
    ModelFileError
        If the file holds no plan, or is damaged.
    ValueError
        If the model has other weights, or other blocks, or the plan has a method that is not exact or was removed.

    Notes
    -----
    Three forward passes, and reading the weights once for their digest; one pass if the layers are quantised. Integers
    are mapped from the file, which processes share and which must stay as it is while the model is in use. Times are of
    the machine that made the plan: call :func:`sparsify` on another one.

    Examples
    --------
    >>> import tempfile
    >>> from sparsact.inference import sparsify
    >>> model, x = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)), torch.randn(20, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_plan(sparsify(model, "certified", x), f"{folder}/plan.safetensors")
    ...     _ = load_plan(densify(model), f"{folder}/plan.safetensors", x)
    >>> plan_of(model).choices[0].method
    'certified'
    """
    kind, state, arrays = modelfile.read(path)
    if kind not in (KIND, QUANTIZED):
        raise ModelFileError(f"{path} must hold a plan, and holds a {kind}: pass a file that save_plan wrote.")
    densify(model)
    batch = next(batches(inputs))
    for layer in filter(is_linear, model.modules()):
        count_writes(layer)
    with being_sparsified(model):
        plan = (load_quantized if kind == QUANTIZED else _load)(model, state, arrays, batch)
    object.__setattr__(model, PLAN, plan)
    return model


def _load(model: nn.Module, state: dict[str, Any], arrays: Arrays, batch: Batch) -> Plan:
    """Make a model sparse by the state and the arrays of a file, and return its plan."""
    limits, choices = state["limits"], [block_plan(one) for one in state["choices"]]
    missing = set(limits) - {name for name, module in model.named_modules() if is_linear(module)}
    same = not missing and digest_of(model, list(limits)) == state["weights"]
    blocks = planned_blocks(model, choices, batch, same_weights=same)
    found = [blocks[one.block] for one in choices]
    planned = [(_replacement(model, block, one), one) for block, one in zip(found, choices, strict=True)]
    _fill(model, planned, limits, arrays)
    whole = None if state["whole"] is None else WholeModel(**state["whole"])
    planned = verified(model, found, apply(model, planned), batch)
    return Plan(tuple(plan for _, plan in planned), whole, tuple(state["left_dense"]))


def _replacement(model: nn.Module, block: Block, plan: BlockPlan) -> Replacement | None:
    if plan.method == "dense":
        return None
    if plan.method == "certified":  # a sample of no rows: it is of use only if the weights change
        return certified_replacement(model, block, Applicability(), torch.empty(0, block.sizes(model)[0]))
    return exact_replacement(model, block, Applicability())


def _fill(model: nn.Module, planned: Sequence[PlannedBlock], limits: dict[str, Any], arrays: Arrays) -> None:
    """Give the replacements the limits and the screens of the file."""
    for replacement, _ in planned:
        for name, (_, state) in replacement.layers.items() if replacement is not None else ():
            state.limits = limits[name]
            if f"{name}/leak" in arrays:
                parts = {part: torch.from_numpy(arrays[f"{name}/{part}"].copy()) for part in SCREEN_PARTS}
                layer: Any = model.get_submodule(name)
                screen = Screen(**parts, leak=float(arrays[f"{name}/leak"][0]))
                state.version = WeightVersion(weight_and_bias(layer))
                state.screens.set(screen, state.version)


def sparse_layers(model: nn.Module) -> list[tuple[str, SparseLinear]]:
    """The sparse layers of a model, with their names."""
    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, SparseLinear)]


SCREEN_PARTS: Final = [field.name for field in fields(Screen) if field.name != "leak"]


def _tensors(screen: Screen) -> dict[str, Tensor]:
    return {part: getattr(screen, part) for part in SCREEN_PARTS}
