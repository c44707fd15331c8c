"""Small inputs of every linear layer of a model left out, attention included, where that is faster than dense."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, median_low
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.apply import PlannedBlock, Replacement, applied
from sparsact.inference.batches import Batch, batches, call, evaluating
from sparsact.inference.block_weights import plain
from sparsact.inference.layer_state import DownState
from sparsact.inference.linear_layers import is_plain, weight_and_bias
from sparsact.inference.plan import BlockPlan
from sparsact.inference.predictors.collect import Reservoir, split
from sparsact.inference.predictors.magnitude import Threshold
from sparsact.inference.products import DTYPES
from sparsact.inference.quality import QualityEstimate
from sparsact.inference.sparse_linear import SparseDown
from sparsact.validation.parameters import checked_share

SAMPLE = 2048  # inputs of a layer that a threshold is calibrated and measured on
MIN_ROUNDS, MAX_ROUNDS = 5, 40
MAX_TIME_RATIO = 0.95  # to the dense time
MAX_ROWS, MAX_SHARE = 16, 1.0


@dataclass(frozen=True)
class InputThreshold:
    """Sets numbers of at most ``tau`` in absolute value to zero; what is no number stays, so that it shows."""

    tau: float

    def __call__(self, x: Tensor) -> Tensor:
        """``x`` with zeros."""
        return x.masked_fill(x.abs() <= self.tau, 0)


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """A linear layer as the second layer of a block whose activations are its inputs."""

    weight: Tensor

    def hidden(self, x: Tensor) -> Tensor:
        """Its inputs."""
        return x

    def output(self, x: Tensor) -> Tensor:
        """Its output, without the bias."""
        return F.linear(x, self.weight)


def thresholds_on_inputs(
    model: nn.Module, shown: Sequence[Batch], options: dict[str, Any], time_limit: float
) -> tuple[list[str], list[PlannedBlock]]:
    """Names of all linear layers that run, and for each the layer without its small inputs if that is faster."""
    reservoirs = _sampled(model, shown)
    layers = {name: model.get_submodule(name) for name in reservoirs}
    found = {name: _calibrated(layers[name], one, options) for name, one in reservoirs.items()}
    ready = {name: one for name, one in found.items() if not isinstance(one, str)}
    rows = {name: min(median_low(one.rows_per_call), len(one.sample)) for name, one in reservoirs.items()}
    replacements = {
        name: Replacement("inputs", {name: (SparseDown, DownState(max(MAX_ROWS, rows[name]), MAX_SHARE, rule))})
        for name, (rule, _) in ready.items()
    }
    seconds = _timed(
        model, layers, replacements, {name: one.sample for name, one in reservoirs.items()}, rows, time_limit
    )
    return list(layers), [
        _planned(name, reservoirs[name], found[name], replacements.get(name), seconds.get(name)) for name in layers
    ]


def _sampled(model: nn.Module, shown: Sequence[Batch]) -> dict[str, Reservoir]:
    """Sample inputs of each linear layer that runs."""
    found: dict[str, Reservoir] = {}
    handles = []
    for name, layer in model.named_modules():
        if is_plain(layer):
            reservoir = Reservoir(name, SAMPLE, torch.Generator().manual_seed(0))
            found[name] = reservoir
            handles.append(layer.register_forward_pre_hook(reservoir.add, with_kwargs=True))
    try:
        with evaluating(model):
            for batch in batches(shown):
                call(model, batch)
    finally:
        for handle in handles:
            handle.remove()
    return {name: one for name, one in found.items() if sum(one.rows_per_call)}


def _calibrated(
    layer: nn.Module, reservoir: Reservoir, options: dict[str, Any]
) -> tuple[InputThreshold, dict[str, Any]] | str:
    """The threshold of a layer with its quality on inputs held out, or why there is none."""
    weight = weight_and_bias(layer)[0]
    if weight.dtype not in DTYPES or not weight.is_cpu or weight.is_inference():
        return f"kernels read float32, bfloat16 and float64 on the CPU, not {weight.dtype} on {weight.device}"
    x, weights = reservoir.sample, LinearWeights(plain(weight))
    ((name, value),) = options.items()
    target = {name: checked_share(value, f"`{name}`")}
    _, sample, held_out, _ = split(x, target, fits=False, random_state=0)
    if not weights.output(sample).any():
        return "its output is 0 on every sample input"
    chosen = (Threshold.for_density if name == "density" else Threshold.for_error)(weights, sample, value)
    rule = InputThreshold(chosen.tau)
    left_out, outputs = (weights.output(one).double().square().sum(1) for one in (held_out - rule(held_out), held_out))
    quality = {
        "rows": len(held_out),
        "density": asdict(QualityEstimate.mean((rule(held_out) != 0).double().mean(1))),
        "output_error": asdict(QualityEstimate.ratio(left_out, outputs).root),
    }
    return rule, {"predictor": "inputs", "tau": rule.tau, "target": target, "quality": quality}


def _timed(
    model: nn.Module,
    layers: dict[str, nn.Module],
    replacements: dict[str, Replacement],
    samples: dict[str, Tensor],
    rows: dict[str, int],
    time_limit: float,
) -> dict[str, list[tuple[float, float]]]:
    """Dense and sparse seconds of each layer, round by round; a round runs all layers one way, then the other."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in replacements}
    inputs = {name: samples[name].to(weight_and_bias(layers[name])[0].dtype) for name in replacements}
    start = time.perf_counter()

    def one_round(turn: int) -> dict[str, float]:
        times = {}
        for name in replacements:
            first = turn * rows[name] % max(1, len(inputs[name]) - rows[name] + 1)
            x = inputs[name][first : first + rows[name]]
            begin = time.perf_counter()
            layers[name](x)
            times[name] = time.perf_counter() - begin
        return times

    with evaluating(model), torch.inference_mode():
        for turn in range(MAX_ROUNDS + 1):
            dense = one_round(turn)
            with applied(model, list(replacements.values())):
                sparse = one_round(turn)
            if turn:  # the first round makes copies of weights
                for name, times in seconds.items():
                    times.append((dense[name], sparse[name]))
            if turn >= MIN_ROUNDS and time.perf_counter() - start > time_limit:
                break
    return seconds


def _planned(
    name: str,
    reservoir: Reservoir,
    found: tuple[InputThreshold, dict[str, Any]] | str,
    replacement: Replacement | None,
    seconds: list[tuple[float, float]] | None,
) -> PlannedBlock:
    """The layer without small inputs, or dense where that is not faster, with what was measured of either."""
    counts = [count for count in reservoir.rows_per_call if count]
    rows = min(counts), median_low(counts), max(counts)
    if isinstance(found, str) or replacement is None or not seconds:
        return None, BlockPlan(name, "dense", str(found), rows=rows)
    density = found[1]["quality"]["density"]["value"]
    times = {"dense": median(one for one, _ in seconds), "inputs": median(other for _, other in seconds)}
    ratio = median(other / one for one, other in seconds)
    measured: dict[str, Any] = {"density": density, "seconds": times, "rows": rows, "quality": found[1]}
    if ratio > MAX_TIME_RATIO:
        return None, BlockPlan(name, "dense", f"without small inputs it takes {ratio:.2f} times as long", **measured)
    bound = 1 / density if density else float("inf")
    maximum = replacement.layers[name][1].max_rows
    return replacement, BlockPlan(name, "inputs", "asked for", bound=bound, max_rows=maximum, **measured)
