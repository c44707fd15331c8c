"""Small inputs of every linear layer of a model left out, attention included, where that is faster than dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median_low
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.apply import PlannedBlock, Replacement
from sparsact.inference.batches import Batch
from sparsact.inference.block_weights import plain
from sparsact.inference.layer_state import DownState
from sparsact.inference.linear_layers import is_plain, weight_and_bias
from sparsact.inference.method_times import Times, time_methods
from sparsact.inference.plan import BlockPlan
from sparsact.inference.predictors.collect import Reservoir, fill, split
from sparsact.inference.predictors.magnitude import Threshold
from sparsact.inference.products import DTYPES
from sparsact.inference.quality import QualityEstimate
from sparsact.inference.sparse_linear import SparseDown
from sparsact.validation.parameters import checked_share

METHOD: Final = "inputs"
SAMPLE: Final = 2048  # inputs of a layer that a threshold is calibrated and measured on
MAX_TIME_RATIO: Final = 0.95  # to the dense time
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
        name: Replacement(METHOD, {name: (SparseDown, DownState(max(MAX_ROWS, rows[name]), MAX_SHARE, rule))})
        for name, (rule, _) in ready.items()
    }
    samples = [reservoirs[name].sample.to(weight_and_bias(layers[name])[0].dtype) for name in ready]
    runs = [layers[name] for name in ready]
    replaced = [{METHOD: one} for one in replacements.values()]
    times = time_methods(model, runs, replaced, samples, [rows[name] for name in ready], time_limit)
    places = {name: i for i, name in enumerate(ready)}
    return list(layers), [
        _planned(name, one, found[name], replacements.get(name), times, places.get(name))
        for name, one in reservoirs.items()
    ]


def _sampled(model: nn.Module, shown: Sequence[Batch]) -> dict[str, Reservoir]:
    """Sample inputs of each linear layer that runs."""
    names = [name for name, layer in model.named_modules() if is_plain(layer)]
    found = {name: Reservoir(name, SAMPLE, torch.Generator().manual_seed(0)) for name in names}
    fill(model, found, shown)
    return {name: one for name, one in found.items() if sum(one.rows_per_call)}


def _calibrated(
    layer: nn.Module, reservoir: Reservoir, options: dict[str, Any]
) -> tuple[InputThreshold, dict[str, Any]] | str:
    """The threshold of a layer with its quality on inputs held out, or why there is none."""
    weight = weight_and_bias(layer)[0]
    if weight.dtype not in DTYPES or not weight.is_cpu or weight.is_inference():
        return f"kernels read floats on the CPU, not {weight.dtype} on {weight.device}"
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


def _planned(
    name: str,
    reservoir: Reservoir,
    found: tuple[InputThreshold, dict[str, Any]] | str,
    replacement: Replacement | None,
    times: Times,
    place: int | None,
) -> PlannedBlock:
    """The layer without small inputs, or dense where that is not faster, with what was measured of either."""
    counts = [count for count in reservoir.rows_per_call if count]
    rows = min(counts), median_low(counts), max(counts)
    if isinstance(found, str) or replacement is None or place is None:
        return None, BlockPlan(name, "dense", str(found), rows=rows)
    density = found[1]["quality"]["density"]["value"]
    seconds = {method: times.median(method, place) for method in ("dense", METHOD)}
    ratio = times.ratio(METHOD, place)
    measured: dict[str, Any] = {"density": density, "seconds": seconds, "rows": rows, "quality": found[1]}
    if ratio > MAX_TIME_RATIO:
        return None, BlockPlan(name, "dense", f"without small inputs it takes {ratio:.2f} times as long", **measured)
    bound = 1 / density if density else float("inf")
    maximum = replacement.layers[name][1].max_rows
    return replacement, BlockPlan(name, METHOD, "asked for", bound=bound, max_rows=maximum, **measured)
