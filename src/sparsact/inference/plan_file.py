"""Save the plan of a sparsified model next to its weights, and apply it to the model that is loaded again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from math import inf, nan
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from sparsact.inference.apply import Replacement, apply, verified
from sparsact.inference.batches import Batch, Inputs, batches
from sparsact.inference.block import Block
from sparsact.inference.certified_screen import Screen, offsets
from sparsact.inference.certified_top_k import BoundedOutputs
from sparsact.inference.find_blocks import blocks_or_reason
from sparsact.inference.head import LargestOutputs, Logits, apply_head, head_of, needing
from sparsact.inference.layer_facts import check_model, is_linear
from sparsact.inference.methods import certified_replacement, exact_replacement
from sparsact.inference.plan import BlockPlan, HeadPlan, LayerQuantization, Plan, WholeModel, finite
from sparsact.inference.quantizing import alone_on, candidates, drop_weights, integer_state
from sparsact.inference.selectors import BlockUnits, Everything, SwitchedOn
from sparsact.inference.sparse_linear import SparseLinear
from sparsact.inference.sparsifying import PLAN, being_sparsified, densify, plan_of
from sparsact.inference.weight_cache import count_writes
from sparsact.saving import ModelFileError, modelfile
from sparsact.validation.parameters import checked_size

Model = TypeVar("Model", bound=nn.Module)
Arrays = dict[str, NDArray[Any]]
KIND: Final = "plan"
QUANTIZED: Final = "quantized plan"  # the kind of files of quantised models, once
SAVED: Final = ("dense", "exact", "certified")  # methods of plans in files: the others are calibrated for inputs
SCREEN_PARTS: Final = [field.name for field in fields(Screen) if field.name != "leak"]


def save_plan(model: nn.Module, path: str | Path) -> None:
    """Write the plan of a sparsified model, with its screens and times, to a safetensors file.

    Parameters
    ----------
    model : nn.Module
        Model that :func:`sparsify` returned, with an exact method.
    path : str or Path

    Raises
    ------
    ValueError
        If the model has no plan, or if its plan is an approximation.

    Notes
    -----
    Holds a byte for each weight that a screen covers, integers of quantised layers and a digest of weights; no code.

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
    layers = sparse_layers(model)
    dropped = any(layer._sparse.alone is not None for layer in layers.values())
    state = finite(asdict(plan)) | {
        "digest": digest_of(model, layers, without_weights=dropped),
        "dropped": dropped,
        "limits": {name: layer._sparse.limits for name, layer in layers.items()},
        "by_units": [name for name, layer in layers.items() if isinstance(layer._sparse.selector, BlockUnits)],
    }
    arrays = {f"{name}/{part}": a for name, layer in layers.items() for part, a in _arrays(layer).items()}
    modelfile.write(path, KIND, state, arrays)


def _arrays(layer: SparseLinear) -> Arrays:
    """What was computed from the weights of a layer and is not computed again: integers, or a screen."""
    state = layer._sparse
    if state.form.rounded:
        integers: Any = layer.weights
        return dict(integers.arrays)
    version, selector = state.weight_version(layer), state.selector
    if isinstance(selector, LargestOutputs):
        screen: Screen | None = selector.bounds.get(version).screen
    else:
        screen = selector.screens.get(version) if isinstance(selector, SwitchedOn) and selector.screens else None
    if screen is None:
        return {}
    return {part: getattr(screen, part).numpy() for part in SCREEN_PARTS} | {"leak": np.array([screen.leak])}


def load_plan(model: Model, path: str | Path, inputs: Inputs) -> Model:
    """Make a model sparse with a saved plan, without measuring anything or computing screens.

    Parameters
    ----------
    model : nn.Module
        Model with the weights that the plan was made for, to change in place. Weights that were dropped
        (``keep_weights=False``) come from the file, and this model's are dropped too.
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
    Integers are mapped from the file: processes share it, and it must not change while the model is in use. Times were
    measured where the plan was made, as ``plan.timed_on`` says: call :func:`sparsify` again on another machine.

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
    check_model(model)
    if not isinstance(path, str | Path):
        raise TypeError(f"`path` must be a str or a Path; got a {type(path).__name__}: load_plan(model, path, inputs).")
    try:
        kind, state, arrays = modelfile.read(path)
    except ModelFileError as error:
        raise ModelFileError(f"{error} load_plan needs a file that save_plan wrote.") from error
    if kind not in (KIND, QUANTIZED):
        raise ModelFileError(f"{path} must hold a plan, and holds a {kind}: pass a file that save_plan wrote.")
    densify(model)
    batch = next(batches(inputs))
    for layer in filter(is_linear, model.modules()):
        count_writes(layer)
    with being_sparsified(model):
        plan = _load(model, _as_written_now(state), arrays, batch)
    object.__setattr__(model, PLAN, plan)
    return model


def _as_written_now(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a file, also of one of version 0.1, in which quantised models and others had a form each."""
    if "by_units" in state:
        return state
    if "classes" in state:
        gated = ("QuantizedGate", "QuantizedGatedUp")
        by_units = [name for name, kind in state["classes"].items() if kind in gated]
        return state | {"limits": {name: {} for name in state["classes"]}, "by_units": by_units, "left_dense": []}
    nothing: dict[str, Any] = {"layers": [], "block_errors": [], "output_error": None}
    form = {"weights": "keep", "digest": state["weights"], "dropped": False, "by_units": list(state["limits"])}
    return state | form | nothing


def _load(model: nn.Module, state: dict[str, Any], arrays: Arrays, batch: Batch) -> Plan:
    """Make a model sparse by the state and the arrays of a file, and return its plan."""
    weights, limits, choices = state["weights"], state["limits"], [block_plan(one) for one in state["choices"]]
    missing = set(limits) - {name for name, module in model.named_modules() if is_linear(module)}
    if missing:
        raise ValueError(
            f"a plan belongs to the model that it was made for, and this one has no linear layer {min(missing)!r}: "
            "pass a model with the same layers, or call sparsact.sparsify."
        )
    if digest_of(model, limits, without_weights=state["dropped"]) != state["digest"]:
        raise ValueError(
            "a plan belongs to the weights that it was made for, and this model has others: load those weights first, "
            "or call sparsact.sparsify."
        )
    blocks = {block.name: block for block in blocks_or_reason(model, batch)[0]} if choices else {}
    alone = {one.block for one in choices} & {name for name, module in model.named_modules() if is_linear(module)}
    blocks |= {name: Block.of_zeros(name) for name in alone}  # whose input may be denser in this batch
    if not {one.block for one in choices} <= set(blocks):
        raise ValueError(
            "a plan belongs to the blocks that it was made for, and this model has others on these inputs: pass inputs "
            "as at that time, or call sparsact.sparsify."
        )
    found = [blocks[one.block] for one in choices]
    planned = [(_replacement(model, block, one, state), one) for block, one in zip(found, choices, strict=True)]
    planned = apply(model, planned)
    in_blocks = {name for replacement, _ in planned for name in replacement.layers}
    if weights != "keep":
        alone_on(model, [name for name in limits if name not in in_blocks], weights).apply(model)
    head = None if state.get("head") is None else HeadPlan(**state["head"])
    if head is not None:
        if head_of(model, (batch,))[0] != head.layer:
            raise ValueError(
                f"a plan belongs to its head, {head.layer}, and this model returns another layer's outputs: call "
                "sparsact.sparsify."
            )
        layer: Any = model.get_submodule(head.layer)
        apply_head(model, head.layer, checked_size(head.k, "`k` of the head", maximum=layer.out_features), batch)
    for name, sparse in sparse_layers(model).items():
        parts = {key.rpartition("/")[2]: array for key, array in arrays.items() if key.rpartition("/")[0] == name}
        _fill(sparse, limits[name], parts)
    for block in found:
        _take_thresholds(model, block)
    if weights == "keep":
        with needing(Logits.ALL):
            planned = verified(model, found, planned, batch)
    if state["dropped"]:
        drop_weights(model, limits)
    times: dict[str, Any] = {name: _number(one) for name, one in (state["whole"] or {}).items()}
    return Plan(
        tuple(plan for _, plan in planned),
        None if state["whole"] is None else WholeModel(**times),
        tuple(state["left_dense"]),
        weights,
        tuple(LayerQuantization(**one | {"error": _number(one["error"])}) for one in state["layers"]),
        tuple(map(_number, state["block_errors"])),
        _number(state["output_error"]),
        _number(state.get("worst_output_error")),
        head,
        state.get("timed_on", ""),
    )


def _replacement(model: nn.Module, block: Block, plan: BlockPlan, state: dict[str, Any]) -> Replacement:
    """The states of the layers of a block, not yet filled; none if they are to compute as before."""
    if state["weights"] != "keep":
        if not set(block.names) <= set(state["limits"]):
            return Replacement()
        found = candidates(model, block, state["weights"])["exact" if plan.method == "exact" else "whole"]
        for name, one in found.layers.items():
            if isinstance(one.selector, BlockUnits) and name not in state["by_units"]:
                found.layers[name] = integer_state(state["weights"], Everything(), one.device)
        return found
    if plan.method == "dense":
        return Replacement()
    thresholds = block.activation.zero_below  # 0 need not switch off what was certified with others
    certified = plan.method == "certified" and block.up and (thresholds is None or bool((thresholds >= 0).all()))
    if certified:  # an empty sample: it matters only if the weights change
        return certified_replacement(model, block, torch.empty(0, block.sizes(model)[0]))
    return exact_replacement(model, block)


def _fill(layer: SparseLinear, limits: dict[str, float], parts: Arrays) -> None:
    """Give a layer the limits of the file, and its integers or its screen."""
    state: Any = layer._sparse
    state.limits = limits
    if "smoothing" in parts:
        state.smooth(torch.tensor(parts["smoothing"]))
    if "leak" in parts:
        tensors = {part: torch.from_numpy(parts[part].copy()) for part in SCREEN_PARTS}
        screen = Screen(**tensors, leak=float(parts["leak"][0]))
        version = state.weight_version(layer)
        if isinstance(state.selector, LargestOutputs):
            weight, bias = version.tensors
            state.selector.bounds.set(BoundedOutputs(weight, bias, screen=screen), version)
        else:
            state.selector.screens.set(screen, version)
    elif parts:
        integers = state.form(parts, state.selector.by_input, state.device)
        state.weights.set(integers, state.weight_version(layer))


def _take_thresholds(model: nn.Module, block: Block) -> None:
    """Give the screen of a block the thresholds of this model, which other numbers than the layers' may have moved."""
    layer = model.get_submodule(block.reader)
    if not isinstance(layer, SparseLinear) or not isinstance(layer._sparse.selector, SwitchedOn):
        return
    screens, version = layer._sparse.selector.screens, layer._sparse.weight_version(layer)
    screen = None if screens is None else screens.get(version)
    if screens is not None and screen is not None:
        _, bias = block.weight_and_bias(model, "gate" if block.gate else "up")
        offset = offsets(bias, block.activation.zero_below, len(screen.a))
        screens.set(replace(screen, offset=offset), version)


def sparse_layers(model: nn.Module) -> dict[str, SparseLinear]:
    """The sparse layers of a model, by name."""
    return {name: layer for name, layer in model.named_modules() if isinstance(layer, SparseLinear)}


def digest_of(model: nn.Module, names: Iterable[str], *, without_weights: bool = False) -> str:
    """SHA-256 of dtypes, shapes and numbers of the layers of these names."""
    hashed = hashlib.sha256()
    for name in sorted(names):
        for part, tensor in model.get_submodule(name).named_parameters(recurse=False):
            if not (without_weights and part == "weight"):
                hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
                hashed.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return hashed.hexdigest()


def block_plan(state: dict[str, Any]) -> BlockPlan:
    """The plan of a block; JSON holds no NaN and no infinity."""
    if state["method"] not in SAVED:
        raise ModelFileError(
            f"the plan of block {state['block']!r} must be one of {', '.join(SAVED)}; got {state['method']!r}: call "
            "sparsact.sparsify again."
        )
    rows, bound, seconds = state["rows"], state["bound"], state["seconds"]
    replaced = {
        "rows": None if rows is None else tuple(rows),
        "bound": inf if bound is None else bound,
        "seconds": None if seconds is None else {method: _number(value) for method, value in seconds.items()},
    } | {name: _number(state[name]) for name in ("density", "pays_below")}
    return BlockPlan(**state | replaced)


def _number(value: float | None) -> float:
    return nan if value is None else value
