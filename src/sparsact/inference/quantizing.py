"""Quantise the linear layers of a model, read only active units of its blocks, and report the error that this makes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import nan
from statistics import median_high
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.apply import PlannedBlock, Replacement, apply, become, with_sparse_shares
from sparsact.inference.batches import Batch, call, evaluating, observe, tensors_in
from sparsact.inference.block import Block, BlockWeights, plain
from sparsact.inference.block_profile import BlockProfile
from sparsact.inference.layer_facts import DEVICES, LayerFacts, WeightRows, device_type, setting
from sparsact.inference.method_times import block_output, time_methods
from sparsact.inference.methods import SparsifyOptions, block_units, gated_layers
from sparsact.inference.output_error import row_errors
from sparsact.inference.plan import LayerQuantization, Plan
from sparsact.inference.plan_check import measured
from sparsact.inference.roofline import ratio, roofline
from sparsact.inference.selectors import ActiveInputs, BlockUnits, Everything, WhereGateIsOn
from sparsact.inference.smoothing import layer_errors, smooth, warn_of_errors
from sparsact.inference.sparse_linear import MAX_ROWS, IntegerLayer, LayerState, Selector
from sparsact.inference.split_experts import SplitExperts
from sparsact.inference.weight_cache import WeightCache
from sparsact.inference.weights import INTEGERS

MAX_DENSITY: Final = 0.5  # share of codes that are not that of 0, up to which reading their weights alone is tried
ROWS_COMPARED: Final = 32


def quantize(
    model: nn.Module,
    profiles: Sequence[BlockProfile],
    shown: Sequence[Batch],
    options: SparsifyOptions,
    device: str | None = None,
) -> Plan:
    """Quantise all linear layers of the model, its blocks by the method ``"auto"`` or ``"exact"``.

    With the products of that type of device, by default the one where each layer is.
    """
    weights, time_limit = options.weights, options.time_limit
    float_outputs = _logits(model, shown)
    blocks = [one.block for one in profiles]
    samples = [one.sample[:ROWS_COMPARED] for one in profiles]
    float_blocks = [_block_outputs(model, *pair) for pair in zip(blocks, samples, strict=True)]
    facts = {name: LayerFacts.of(module) for name, module in model.named_modules()}
    linears = {name: one for name, one in facts.items() if one.role == "linear"}
    called: set[str] = set()
    observe(model, linears, shown[:1], lambda name, args, output: called.add(name))
    reasons = {
        name: one.quantizing_obstacle(weights, device) or ("" if name in called else "no sample call reached it")
        for name, one in linears.items()
    }
    planned = apply(model, _planned_blocks(model, profiles, reasons, options))
    in_blocks = {name for replacement, _ in planned for name in replacement.layers}
    others = [name for name, reason in reasons.items() if not reason and name not in in_blocks]
    alone_on(model, others, weights, device).apply(model)
    _check_gates(model, planned, shown[0])
    errors = layer_errors(model, [name for name, reason in reasons.items() if not reason], shown)
    smoothed = smooth(model, errors, weights, shown)
    choices = with_sparse_shares(model, [block.down for block in blocks], planned, shown)
    whole, _ = measured(model, [one for one, _ in planned], shown, time_limit / 8)
    if not options.keep_weights:
        drop_weights(model, errors)
    output_error, worst_output_error = row_errors(float_outputs, _logits(model, shown))
    warn_of_errors(weights, errors, output_error)
    return Plan(
        choices,
        whole,
        weights=weights,
        layers=tuple(
            LayerQuantization(name, errors.get(name, nan), reason, name in smoothed) for name, reason in reasons.items()
        ),
        block_errors=tuple(
            row_errors(before, _block_outputs(model, block, sample))[0]
            for before, block, sample in zip(float_blocks, blocks, samples, strict=True)
        ),
        output_error=output_error,
        worst_output_error=worst_output_error,
        timed_on=setting(model.parameters()),
    )


def _planned_blocks(
    model: nn.Module, profiles: Sequence[BlockProfile], reasons: dict[str, str], options: SparsifyOptions
) -> list[PlannedBlock]:
    """A replacement for each block, or none where a layer of it keeps its float weights."""
    weights, is_timed = options.weights, options.method == "auto"
    kept = [next(filter(None, (reasons[name] for name in one.block.names)), "") for one in profiles]
    possible = [
        {} if reason else candidates(model, one.block, weights, one.device)
        for one, reason in zip(profiles, kept, strict=True)
    ]
    densities = [_code_density(one, weights) for one in profiles]
    if is_timed:
        tried = [found if p <= MAX_DENSITY else {} for found, p in zip(possible, densities, strict=True)]
        runs = [partial(block_output, model, one.block) for one in profiles]
        samples, rows = [one.sample for one in profiles], [one.rows for one in profiles]
        times = time_methods(model, runs, tried, samples, rows, options.time_limit)
    found: list[PlannedBlock] = []
    for i, (profile, density) in enumerate(zip(profiles, densities, strict=True)):
        if kept[i]:
            found.append(profile.dense(f"float weights: {kept[i]}"))
            continue
        method, reason, seconds = "exact", "asked for", None
        if is_timed:
            timed = {"float": "dense", "dense": "whole", "exact": "exact"}
            seconds = {key: times.median(one, i) if tried[i] else nan for key, one in timed.items()}
            if density > MAX_DENSITY:
                method, reason = "dense", f"{density:.0%} of the units have a nonzero code"
            elif median_high(times.ratios("exact", i, "whole")) < 1:
                reason = "fastest here"
            else:
                method, reason = "dense", "reading all weights is faster on this machine"
        replacement = possible[i]["exact" if method == "exact" else "whole"]
        gated = any(isinstance(state.selector, WhereGateIsOn) for state in replacement.layers.values())
        read = roofline(*profile.sizes, gated=gated, itemsize=1, density=density)
        bound = ratio(read.dense, read.exact or read.dense) if method == "exact" else 1.0
        _, plan = profile.dense(reason, seconds)
        found.append((replacement, replace(plan, method=method, density=density, bound=bound, max_rows=MAX_ROWS)))
    return found


def alone_on(model: nn.Module, names: Iterable[str], weights: str, device: str | None = None) -> Replacement:
    """Linear layers in integers that are read whole, by the products of that type of device or where they are."""
    found = Replacement()
    for name in names:
        on = device or device_type(WeightRows().of(model.get_submodule(name))[0])
        on = on if weights in DEVICES[on].integers else "cpu"
        found.layers[name] = integer_state(weights, Everything(), on)
    return found


def integer_state(weights: str, selector: Selector, device: str, max_rows: int = sys.maxsize) -> LayerState:
    """The state of a layer in integers, for any share of active units."""
    return LayerState(INTEGERS[weights], selector, max_rows, 1.0, device=device)


def candidates(model: nn.Module, block: Block, weights: str, device: str | None = None) -> dict[str, Replacement]:
    """The block in integers: all of them are read (``"whole"``), or only of units that are not 0 (``"exact"``)."""
    whole = alone_on(model, block.names, weights, device)
    on = whole.layers[block.down].device
    exact = Replacement(whole.layers | {block.down: integer_state(weights, ActiveInputs(), on)})
    units = block_units(model, block) if on == "cpu" and block.gate and block.exact else None
    if units is not None:
        exact.layers |= gated_layers(model, block, units, lambda one: integer_state(weights, one, on, MAX_ROWS))
    return {"whole": whole, "exact": exact}


def _code_density(profile: BlockProfile, weights: str) -> float:
    """Share of the sample's activations whose code is not that of 0, each row quantised on its own."""
    rows = plain(profile.sample)
    hidden = BlockWeights.of(profile.model, profile.block).hidden(rows).float()
    return INTEGERS[weights].n_active(hidden) / max(1, hidden.numel())


def _check_gates(model: nn.Module, planned: Sequence[PlannedBlock], batch: Batch) -> None:
    """Compute gated blocks whole if something besides them reads what is left out of their up-projections."""
    states = [state for replacement, _ in planned for state in replacement.layers.values()]
    gated = [(state, state.selector) for state in states if isinstance(state.selector, BlockUnits)]
    if not gated:
        return
    _outputs(model, [batch])  # the layers learn in which order they are called
    sparse = _outputs(model, [batch])
    for state, _ in gated:
        state.selector = Everything()
    whole = _outputs(model, [batch])
    if len(whole) == len(sparse) and all(torch.equal(one, two) for one, two in zip(whole, sparse, strict=True)):
        for state, selector in gated:
            state.selector, state.direct = selector, None


def drop_weights(model: nn.Module, names: Iterable[str]) -> None:
    """Free the float weights of quantised layers, whose ``weight`` is computed from the integers from now on.

    Weights that are tied to another module, which needs them, stay.
    """
    held = Counter(id(one) for module in model.modules() for one in module._parameters.values())
    for name in names:
        layer: Any = model.get_submodule(name)
        sparse = layer._sparse
        if held[id(layer.weight)] == 1:
            sparse.alone, sparse.place = layer.weights, layer.weight.device
            sparse.weights, sparse.version = WeightCache(sparse.weights.make), None  # they hold the float weight
            del layer._parameters["weight"]
            become(layer, IntegerLayer)
    for module in model.modules():
        if isinstance(module, SplitExperts):
            module.release()


def _outputs(model: nn.Module, shown: Sequence[Batch]) -> list[Tensor]:
    """Copies of the tensors of floats that the model returns for the batches."""
    with evaluating(model):
        found = [tensor for batch in shown for tensor in tensors_in(call(model, batch))]
        return [tensor.clone() for tensor in found if tensor.is_floating_point()]


def _logits(model: nn.Module, shown: Sequence[Batch]) -> list[Tensor]:
    """Copies of the logits that the model returns for the batches; of all its tensors of floats if it names none."""
    found: list[Tensor] = []
    with evaluating(model):
        for batch in shown:
            output = call(model, batch)
            logits = getattr(output, "logits", None)
            tensors = tensors_in(output if logits is None else logits)
            found += [tensor.clone() for tensor in tensors if tensor.is_floating_point()]
    return found


def _block_outputs(model: nn.Module, block: Block, sample: Tensor) -> list[Tensor]:
    with evaluating(model):
        return [block_output(model, block, row[None]) for row in sample.unbind()]
