"""Quantise the linear layers of a model, read only active units of its blocks, and report the error that this makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import nan
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from sparsact.inference.activation_function import activation_constants
from sparsact.inference.apply import Replacement, apply, become, hides_pre_activations, with_sparse_shares
from sparsact.inference.autotune import BlockProfile
from sparsact.inference.batches import Batch, call, evaluating, observed
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.gate_memo import GateMemo
from sparsact.inference.integer_weights import KINDS, MAX_ROWS
from sparsact.inference.layer_state import Readers
from sparsact.inference.linear_layers import is_linear, weight_and_bias
from sparsact.inference.method_times import Times, block_output, time_methods
from sparsact.inference.plan import BlockPlan, Plan, finite
from sparsact.inference.products import DEVICES, device_type
from sparsact.inference.quantized import (
    QuantizedGate,
    QuantizedGatedUp,
    QuantizedLinear,
    QuantizedState,
    drop_weights,
    quantizing_obstacle,
)
from sparsact.inference.roofline import ratio, roofline
from sparsact.inference.smoothing import layer_errors, smooth, warn_of_errors
from sparsact.inference.whole_model import measured

MAX_DENSITY: Final = 0.5  # share of codes that are not that of 0, up to which reading their weights alone is tried
ROWS_COMPARED: Final = 32


@dataclass(frozen=True)
class LayerQuantization:
    r"""What quantisation does to one linear layer.

    Attributes
    ----------
    layer : str
        Its name.
    error : float
        :math:`\|y - y'\| / \|y\|` of its outputs over the inputs shown, y' quantised; NaN if it was not.
    reason : str
        Why it keeps its float weights; empty if it was quantised.
    smoothed : bool
        Whether its inputs are scaled by powers of two before they are quantised, and its weights by their inverses,
        because a few inputs are much larger than the rest.

    Examples
    --------
    >>> import sparsact as sa
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> plan = sa.plan_of(sa.sparsify(model, "exact", torch.randn(20, 8), weights="int8"))
    >>> [(one.layer, 0 < one.error < 0.1) for one in plan.layers]
    [('0', True), ('2', True)]
    """

    layer: str
    error: float = nan
    reason: str = ""
    smoothed: bool = False


@dataclass(frozen=True)
class QuantizedPlan(Plan):
    """The plans of all blocks of a quantised model, and the error that quantisation makes on the inputs shown.

    In the plans of blocks ``"dense"`` reads all integers, ``"exact"`` those of units whose code is not that of 0, with
    the same output but for the groups of int4 weights, which then hold outputs of a unit in the second layer.
    ``density`` is the share of such units, and ``seconds["float"]`` the time before quantisation.

    Attributes
    ----------
    weights : {"int8", "int4"}
        The kind of the integers.
    layers : tuple of LayerQuantization
        Every linear layer.
    block_errors : tuple of float
        Relative error of each block's output for up to 32 single inputs.
    output_error : float
        Relative error of all that the model returns for the batches shown.

    Examples
    --------
    >>> import sparsact as sa
    >>> model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    >>> plan = sa.plan_of(sa.sparsify(model, "exact", torch.randn(20, 8), weights="int8"))
    >>> plan.weights, 0 < plan.output_error < 0.1
    ('int8', True)
    """

    weights: str = "int8"
    layers: tuple[LayerQuantization, ...] = ()
    block_errors: tuple[float, ...] = ()
    output_error: float = nan

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON holds them; those that were not measured are None."""
        found = super().to_dict()
        for row, error in zip(found["blocks"], self.block_errors, strict=True):
            row["error"] = finite(error)
        layers = [finite(asdict(one)) for one in self.layers]
        return found | {"weights": self.weights, "layers": layers, "output_error": finite(self.output_error)}

    def __str__(self) -> str:
        """The table of the blocks, then the errors."""
        errors = [one.error for one in self.layers if not one.reason]
        kept: dict[str, list[str]] = {}
        for one in self.layers:
            kept.setdefault(one.reason, []).append(one.layer)
        kept.pop("", None)
        summary = f"{self.weights} weights in {len(errors)} of {len(self.layers)} linear layers"
        if errors:
            summary += (
                f"; relative error of outputs: a layer's at most {max(errors):.2%}, "
                f"a block's at most {max(self.block_errors, default=nan):.2%}, the model's {self.output_error:.2%}"
            )
        floats = [f"float weights in {', '.join(names)}: {reason}" for reason, names in kept.items()]
        scaled = [one.layer for one in self.layers if one.smoothed]
        floats += [f"inputs scaled before they are quantised in {', '.join(scaled)}"] if scaled else []
        return "\n".join([super().__str__(), summary, *floats])


def quantize(
    model: nn.Module,
    weights: str,
    method: str,
    profiles: Sequence[BlockProfile],
    shown: Sequence[Batch],
    *,
    keep_weights: bool,
    time_limit: float,
    device: str | None = None,
) -> QuantizedPlan:
    """Quantise all linear layers of the model to ``weights``, its blocks by ``method`` ``"auto"`` or ``"exact"``.

    With the products of that type of device, by default the one where each layer is.
    """
    float_outputs = _outputs(model, shown)
    blocks = [one.block for one in profiles]
    samples = [one.sample[:ROWS_COMPARED] for one in profiles]
    float_blocks = [_block_outputs(model, *pair) for pair in zip(blocks, samples, strict=True)]
    linears = {name: module for name, module in model.named_modules() if is_linear(module)}
    reasons = {name: quantizing_obstacle(layer, weights, device) for name, layer in linears.items()}
    called = _called(model, linears, shown)
    reasons |= {name: "no call shown reached it" for name in linears if not reasons[name] and name not in called}
    planned = _planned_blocks(model, weights, method, profiles, reasons, time_limit)
    in_blocks = {name for replacement, _ in planned if replacement is not None for name in replacement.layers}
    planned = apply(model, planned)
    others = [name for name, reason in reasons.items() if not reason and name not in in_blocks]
    alone_on(model, others, weights, device).apply(model)
    _check_gates(model, blocks, planned, shown[0])
    errors = layer_errors(model, [name for name, reason in reasons.items() if not reason], shown)
    smoothed = smooth(model, errors, weights, shown)
    choices = with_sparse_shares(model, [block.down for block in blocks], planned, shown)
    whole, _ = measured(model, [one for one, _ in planned if one is not None], shown, time_limit / 8)
    if not keep_weights:
        drop_weights(model, errors)
    output_error = _relative_error(float_outputs, _outputs(model, shown))
    warn_of_errors(weights, errors, output_error)
    return QuantizedPlan(
        choices,
        whole,
        weights=weights,
        layers=tuple(
            LayerQuantization(name, errors.get(name, nan), reason, name in smoothed) for name, reason in reasons.items()
        ),
        block_errors=tuple(
            _relative_error(before, _block_outputs(model, block, sample))
            for before, block, sample in zip(float_blocks, blocks, samples, strict=True)
        ),
        output_error=output_error,
    )


def _planned_blocks(
    model: nn.Module,
    weights: str,
    method: str,
    profiles: Sequence[BlockProfile],
    reasons: dict[str, str],
    time_limit: float,
) -> list[tuple[Replacement | None, BlockPlan]]:
    """A replacement for each block, or none where a layer of it keeps its float weights."""
    free = [not any(reasons[name] for name in one.block.names) for one in profiles]
    possible = [
        candidates(model, one.block, weights, one.device) if ok else {} for one, ok in zip(profiles, free, strict=True)
    ]
    densities = [_code_density(one, weights) for one in profiles]
    rows = [one.rows for one in profiles]
    if method == "auto":
        blocks, samples = [one.block for one in profiles], [one.sample for one in profiles]
        tried = [found if p <= MAX_DENSITY else {} for found, p in zip(possible, densities, strict=True)]
        runs = [partial(block_output, model, block) for block in blocks]
        times = time_methods(model, runs, tried, samples, rows, time_limit)
    found: list[tuple[Replacement | None, BlockPlan]] = []
    for i, (profile, density) in enumerate(zip(profiles, densities, strict=True)):
        if not free[i]:
            reason = next(reasons[name] for name in profile.block.names if reasons[name])
            found.append(profile.dense(f"float weights: {reason}"))
        elif method == "exact":
            found.append(_plan(profile, possible[i]["exact"], density, "asked for", None))
        else:
            name, reason = _choice(times, i, density)
            seconds = {key: times.median(key, i) for key in times.seconds} if tried[i] else {"dense": nan}
            seconds = {
                "float": seconds["dense"],
                "dense": seconds.get("whole", nan),
                "exact": seconds.get("exact", nan),
            }
            found.append(_plan(profile, possible[i][name], density, reason, seconds))
    return found


def _choice(times: Times, i: int, density: float) -> tuple[str, str]:
    """Which replacement of block i, by name, and why."""
    if density > MAX_DENSITY:
        return "whole", f"{density:.0%} of the units have another code than 0"
    rounds = zip(times.seconds["exact"][i], times.seconds["whole"][i], strict=True)
    if sorted(a / b for a, b in rounds)[len(times.seconds["whole"][i]) // 2] < 1:
        return "exact", "fastest here"
    return "whole", "reading all weights is faster here"


def _plan(
    profile: BlockProfile, replacement: Replacement, density: float, reason: str, seconds: dict[str, float] | None
) -> tuple[Replacement, BlockPlan]:
    exact = replacement.method == "exact"
    inputs, units, outputs = profile.block.sizes(profile.model)
    gated = QuantizedGatedUp in (kind for kind, _ in replacement.layers.values())
    read = roofline(inputs, units, outputs, gated=gated, itemsize=1, density=density)
    _, plan = profile.dense(reason, seconds)
    bound = ratio(read.dense, read.exact or read.dense) if exact else 1.0
    method = "exact" if exact else "dense"
    return replacement, replace(plan, method=method, density=density, bound=bound, max_rows=MAX_ROWS)


def alone_on(model: nn.Module, names: Iterable[str], weights: str, device: str | None = None) -> Replacement:
    """Linear layers in integers, all of which are read, by the products of that type of device or where they are."""
    found = Replacement("dense")
    for name in names:
        on = device or device_type(weight_and_bias(model.get_submodule(name))[0])
        on = on if weights in DEVICES[on].integers else "cpu"
        found.layers[name] = QuantizedLinear, QuantizedState(MAX_ROWS, 1.0, weights, device=on)
    return found


def candidates(model: nn.Module, block: Block, weights: str, device: str | None = None) -> dict[str, Replacement]:
    """The block in integers: all of them are read (``"whole"``), or those of units that are not 0 (``"exact"``)."""
    whole = alone_on(model, block.names, weights, device)
    on = whole.layers[block.down][1].device

    def state(**fields: Any) -> QuantizedState:
        return QuantizedState(MAX_ROWS, 1.0, weights, device=on, **fields)

    exact = Replacement("exact", {**whole.layers, block.down: (QuantizedLinear, state(by_input=True))})
    constants, thresholds = activation_constants(model, block.activation), block.activation.zero_below
    if (
        on == "cpu"
        and block.gate
        and thresholds is not None
        and constants is not None
        and hides_pre_activations(model, block)
    ):
        gate: Any = model.get_submodule(block.gate)
        memo = GateMemo(thresholds.to(gate.weight.dtype))
        shared = {
            "memo": memo,
            "constants": constants,
            "readers": Readers(model, (*block.readers, block.up, block.gate)),
        }
        exact.layers[block.gate] = (QuantizedGate, state(**shared))
        exact.layers[block.up] = (QuantizedGatedUp, state(gate=gate, **shared))
    return {"whole": whole, "exact": exact}


def _code_density(profile: BlockProfile, weights: str) -> float:
    """Share of the sample's activations whose code is not that of 0, each row quantised on its own."""
    rows = plain(profile.sample)
    hidden = BlockWeights.of(profile.model, profile.block).hidden(rows).float()
    return KINDS[weights].n_active(hidden) / max(1, hidden.numel())


def _check_gates(
    model: nn.Module, blocks: Sequence[Block], planned: Sequence[tuple[Replacement | None, BlockPlan]], batch: Batch
) -> None:
    """Compute gated blocks whole if something besides them reads what is left out of their up-projections."""
    gates: list[tuple[Any, Any]] = []
    for block, (replacement, _) in zip(blocks, planned, strict=True):
        if replacement is not None and block.gate and replacement.layers[block.up][0] is QuantizedGatedUp:
            gates.append((model.get_submodule(block.gate), model.get_submodule(block.up)))
    if not gates:
        return
    _outputs(model, [batch])  # the layers learn in which order they are called
    sparse = _outputs(model, [batch])
    for pair in gates:
        for layer in pair:
            become(layer, QuantizedLinear)
    whole = _outputs(model, [batch])
    if len(whole) == len(sparse) and all(torch.equal(one, two) for one, two in zip(whole, sparse, strict=True)):
        for gate, up in gates:
            become(gate, QuantizedGate)
            become(up, QuantizedGatedUp)


def _called(model: nn.Module, names: Iterable[str], shown: Sequence[Batch]) -> set[str]:
    seen: set[str] = set()
    with observed(model, names, lambda name, args, output: seen.add(name)):
        _outputs(model, shown[:1])
    return seen


def _outputs(model: nn.Module, shown: Sequence[Batch]) -> list[Tensor]:
    """Copies of the tensors of floats that the model returns for the batches."""
    with evaluating(model):
        leaves = [leaf for batch in shown for leaf in tree_leaves(call(model, batch))]
        return [leaf.clone() for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def _block_outputs(model: nn.Module, block: Block, sample: Tensor) -> list[Tensor]:
    with evaluating(model):
        return [block_output(model, block, row[None]) for row in sample.unbind()]


def _relative_error(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """Norm of the difference over that of what was before."""
    error = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(before, after, strict=True))
    size = sum(float(a.double().square().sum()) for a in before)
    return (error / size) ** 0.5 if size else 0.0
