"""What a plan file holds of a quantised model: its integers, and which layers read them in which way."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from math import inf, nan
from typing import Any, Final

import torch
from torch import nn

from sparsact.inference.apply import Replacement, apply
from sparsact.inference.batches import Batch
from sparsact.inference.block import Block
from sparsact.inference.find_blocks import find_blocks
from sparsact.inference.integer_weights import KINDS, Arrays
from sparsact.inference.linear_layers import is_linear
from sparsact.inference.plan import BlockPlan, WholeModel, check_not_removed, finite
from sparsact.inference.quantized import QuantizedGate, QuantizedGatedUp, QuantizedLinear, drop_weights
from sparsact.inference.quantizing import LayerQuantization, QuantizedPlan, alone_on, candidates
from sparsact.saving import ModelFileError

QUANTIZED: Final = "quantized plan"
SAVED: Final = ("dense", "exact", "certified")  # methods of plans in files: the others are calibrated for inputs
CLASSES: Final = {kind.__name__: kind for kind in (QuantizedLinear, QuantizedGate, QuantizedGatedUp)}


def quantized_state(model: nn.Module, plan: QuantizedPlan) -> tuple[dict[str, Any], Arrays]:
    """State and arrays of the file of a quantised model."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, QuantizedLinear)}
    dropped = any(layer._sparse.dropped is not None for layer in layers.values())
    arrays = {f"{name}/{part}": a for name, layer in layers.items() for part, a in layer.integers.arrays.items()}
    state = {
        "weights": plan.weights,
        "dropped": dropped,
        "digest": digest_of(model, list(layers), without_weights=dropped),
        "classes": {name: _class_name(layer) for name, layer in layers.items()},
        "choices": [finite(asdict(one)) for one in plan.choices],
        "layers": [finite(asdict(one)) for one in plan.layers],
        "whole": None if plan.whole is None else finite(asdict(plan.whole)),
        "block_errors": [finite(error) for error in plan.block_errors],
        "output_error": plan.output_error,
    }
    return finite(state), arrays


def _class_name(layer: QuantizedLinear) -> str:
    """The name of the layer's class among ``CLASSES``; the class of a ``Conv1D`` is a subclass of one of them."""
    return next(kind.__name__ for kind in type(layer).__mro__ if kind.__name__ in CLASSES)


def load_quantized(model: nn.Module, state: dict[str, Any], arrays: Arrays, batch: Batch) -> QuantizedPlan:
    """Quantise a model by the state and the arrays of a file, and return its plan."""
    classes, choices = state["classes"], [block_plan(one) for one in state["choices"]]
    linears = {name for name, module in model.named_modules() if is_linear(module)}
    missing = set(classes) - linears
    same = not missing and digest_of(model, list(classes), without_weights=state["dropped"]) == state["digest"]
    blocks = planned_blocks(model, choices, batch, same_weights=same)
    planned: list[tuple[Replacement | None, BlockPlan]] = []
    for one in choices:
        block, found = blocks[one.block], None
        if set(block.names) <= set(classes):
            found = candidates(model, block, state["weights"])["exact" if one.method == "exact" else "whole"]
            found.layers = {name: (CLASSES[classes[name]], layer) for name, (_, layer) in found.layers.items()}
        planned.append((found, one))
    planned = apply(model, planned)
    in_blocks = {name for replacement, _ in planned if replacement is not None for name in replacement.layers}
    alone_on(model, [name for name in classes if name not in in_blocks], state["weights"]).apply(model)
    for name in classes:
        layer: Any = model.get_submodule(name)
        parts = {key.rpartition("/")[2]: array for key, array in arrays.items() if key.rpartition("/")[0] == name}
        if "smoothing" in parts:
            layer._sparse.smooth(torch.tensor(parts["smoothing"]))
        integers = KINDS[state["weights"]](parts, layer._sparse.by_input)
        layer._sparse.integers.set(integers, layer._sparse.weight_version(layer))
    if state["dropped"]:
        drop_weights(model, classes)
    layers = [LayerQuantization(**one | {"error": _number(one["error"])}) for one in state["layers"]]
    return QuantizedPlan(
        tuple(plan for _, plan in planned),
        None if state["whole"] is None else WholeModel(**state["whole"]),
        weights=state["weights"],
        layers=tuple(layers),
        block_errors=tuple(map(_number, state["block_errors"])),
        output_error=_number(state["output_error"]),
    )


def planned_blocks(
    model: nn.Module, choices: Sequence[BlockPlan], batch: Batch, *, same_weights: bool
) -> dict[str, Block]:
    """The model's blocks by name; a ValueError if the plan was made for other weights or for blocks that it lacks."""
    if not same_weights:
        raise ValueError(
            "a plan belongs to the weights that it was made for, and this model has others: load those weights first, "
            "or call sparsact.sparsify."
        )
    blocks = {block.name: block for block in find_blocks(model, batch)}
    if not {one.block for one in choices} <= set(blocks):
        raise ValueError(
            "a plan belongs to the blocks that it was made for, and this model has others on these inputs: pass inputs "
            "as at that time, or call sparsact.sparsify."
        )
    return blocks


def digest_of(model: nn.Module, names: Sequence[str], *, without_weights: bool = False) -> str:
    """SHA-256 of dtypes, shapes and numbers of the layers of these names."""
    hashed = hashlib.sha256()
    for name in sorted(names):
        for part, tensor in model.get_submodule(name).named_parameters(recurse=False):
            if not (without_weights and part == "weight"):
                hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
                hashed.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return hashed.hexdigest()


def block_plan(state: dict[str, Any]) -> BlockPlan:
    """The plan of a block, of a method that is still there; JSON holds no NaN and no infinity."""
    name, method = state["block"], state["method"]
    check_not_removed(method, f"the plan computes block {name!r}", "call sparsact.sparsify again with")
    if method not in SAVED:
        raise ModelFileError(f"the plan of block {name!r} must be one of {', '.join(SAVED)}; got {method!r}.")
    rows, bound, seconds = state["rows"], state["bound"], state["seconds"]
    replaced = {
        "rows": None if rows is None else tuple(rows),
        "bound": inf if bound is None else bound,
        "seconds": None if seconds is None else {method: _number(value) for method, value in seconds.items()},
    } | {name: _number(state[name]) for name in ("density", "pays_below")}
    return BlockPlan(**state | replaced)


def _number(value: float | None) -> float:
    return nan if value is None else value
