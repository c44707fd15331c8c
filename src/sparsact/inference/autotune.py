"""Choose a method for each block by its error and by its time on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, median_low, quantiles
from typing import Any

import torch
from torch import Tensor, nn

from sparsact.inference.activations import constants
from sparsact.inference.apply import (
    Applicability,
    Chosen,
    Replacement,
    applied,
    approximate,
    certified,
    exact,
    kept,
    private,
)
from sparsact.inference.batches import evaluating
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.plan import BlockPlan
from sparsact.inference.predictors import Predictor, calibrate
from sparsact.inference.predictors.collect import Reservoir
from sparsact.inference.products import DTYPES
from sparsact.inference.roofline import ratio, roofline

LEAST, MOST = 3, 40  # rounds


class Times:
    """Seconds of the blocks of a model: ``seconds[method][i]`` lists the rounds of block i.

    Every round runs all blocks under one method, one after the other as the model does, before it comes to the next
    method: so the weights lie where they lie when the model runs, in the cache or out of it.
    """

    def __init__(self, methods: Sequence[str], rows: Sequence[int]) -> None:
        self.rows = rows  # of each block
        self.seconds: dict[str, list[list[float]]] = {name: [[] for _ in rows] for name in methods}

    def median(self, method: str, block: int) -> float:
        """Median of the rounds."""
        return median(self.seconds[method][block])

    def pays(self, method: str, block: int, gain: float) -> bool:
        """Whether the method takes at most ``gain`` times the dense time in the median, and seldom more than that time.

        Ratios are taken within a round, so that a busy moment of the machine meets both sides.
        """
        rounds = zip(self.seconds[method][block], self.seconds["dense"][block], strict=True)
        ratios = [sparse / dense for sparse, dense in rounds]
        return median(ratios) <= gain and quantiles(ratios, n=4)[2] <= 1


def take(
    model: nn.Module,
    blocks: Sequence[Block],
    settings: Sequence[dict[str, Replacement]],
    samples: Sequence[Tensor],
    rows: Sequence[int],
    limit: float,
) -> Times:
    """Time every setting of every block, and the dense block, on so many rows of each block at a time.

    Parameters
    ----------
    settings : list of dict
        For each block, its settings by method; a block that lacks a method is run densely under it.
    samples : list of Tensor
        Inputs (m, d) of each block; rounds take them in turns.
    limit : float
        Seconds after which no further round is begun, once there are enough.
    """
    methods = ["dense", *dict.fromkeys(name for one in settings for name in one)]
    times = Times(methods, rows)
    start = time.perf_counter()
    with evaluating(model), torch.inference_mode():
        for turn in range(MOST + 1):
            for method in methods:
                with applied(model, [one[method] for one in settings if method in one]):
                    for i, block in enumerate(blocks):
                        seconds = _once(model, block, _rows(samples[i], turn, rows[i]))
                        if turn:  # the first round pays for first touches
                            times.seconds[method][i].append(seconds)
            if turn >= LEAST and time.perf_counter() - start > limit:
                break
    return times


def run(model: nn.Module, block: Block, x: Tensor) -> Tensor:
    """The block's output for inputs (m, d)."""
    up, down = model.get_submodule(block.up), model.get_submodule(block.down)
    if block.gate is None:
        h = block.activation.function(up(x))
    else:
        h = block.activation.function(model.get_submodule(block.gate)(x)) * up(x)
    return down(h)  # type: ignore[no-any-return] # modules return what they like


def _once(model: nn.Module, block: Block, x: Tensor) -> float:
    start = time.perf_counter()
    run(model, block, x)
    return time.perf_counter() - start


def _rows(sample: Tensor, turn: int, rows: int) -> Tensor:
    first = turn * rows % max(1, len(sample) - rows + 1)
    return sample[first : first + rows]


GAIN = 0.95  # of the dense time, that a method may take at most to be chosen
FEW = (1, 4, 16)  # rows of a call for which it is asked whether a method pays, beside those of the calls shown


UNCERTIFIABLE = (
    "its pre-activations are read elsewhere, 0 does not switch its units off, or its thresholds are computed anew"
)


@dataclass(frozen=True, eq=False)
class BlockProfile:
    """A block of the model, its typical inputs (m, d), the share of units that these switch on, and rows by call."""

    model: nn.Module
    block: Block
    sample: Tensor
    density: float
    calls: tuple[int, ...]

    @classmethod
    def of(cls, model: nn.Module, block: Block, shown: Reservoir) -> BlockProfile:
        """The candidate, with its density measured on the rows shown."""
        assert shown.rows is not None  # noqa: S101 # the caller has seen to it
        weights = BlockWeights.of(model, block)
        density = float((weights.hidden(shown.rows) != 0).float().mean())
        calls = tuple(rows for rows in shown.calls if rows)
        return cls(model, block, shown.rows.to(block.linears(model)["up"].weight), density, calls)

    @property
    def rows(self) -> int:
        """Rows of a typical call, of which the sample has as many."""
        return min(median_low(self.calls), len(self.sample))

    @property
    def obstacle(self) -> str:
        """Why no exact method applies to the block; empty if one does."""
        if not self.block.exact:
            return f"its activation ({self.block.activation.name}) is never exactly zero"
        return self.unreadable

    @property
    def unreadable(self) -> str:
        """Why kernels cannot read its weights; empty if they can."""
        if self.sample.dtype not in DTYPES:
            return f"its weights are {self.sample.dtype}, kernels take float32, bfloat16 and float64: convert the model"
        weights = [layer.weight for layer in self.block.linears(self.model).values()]
        away = {str(weight.device) for weight in weights if not weight.is_cpu}
        if away:
            return f"its weights are on {', '.join(sorted(away))}, kernels run on the CPU: move the model"
        if any(weight.is_inference() for weight in weights):
            return "its weights were made in inference mode, which counts no writes to them: load them outside of it"
        return ""

    @property
    def is_certifiable(self) -> bool:
        """Whether units may be left out before their pre-activations are known, which are 0 then."""
        thresholds = self.block.activation.zero_below
        return (
            thresholds is not None
            and bool((thresholds >= 0).all())
            and private(self.model, self.block)
            and constants(self.model, self.block.activation) is not None
        )

    def bound(self, method: str, found: Predictor | None = None) -> float:
        """Bytes of the dense block over those that an exact method, or a calibrated one, reads at best."""
        inputs, units, outputs = self.block.sizes(self.model)
        item, density = self.sample.itemsize, self.density if found is None else found.quality.density.value
        read = roofline(inputs, units, outputs, gated=self.block.gate is not None, itemsize=item, density=density)
        if found is None:
            return read.speedup(method) or 1.0
        if found.reads == "inputs":
            return ratio(read.dense, read.oracle + found.nbytes)
        return ratio(read.dense, read.dense - (1 - density) * item * units * outputs)  # of ``down`` alone

    def choice(self, method: str, reason: str, found: Predictor | None = None, **figures: Any) -> BlockPlan:
        """The choice of a method, and of what was calibrated for it."""
        bound = 1.0 if method == "dense" else self.bound(method, found)
        quality = None if found is None else found.to_dict()
        rows = min(self.calls), median_low(self.calls), max(self.calls)
        return BlockPlan(
            self.block.name, method, reason, self.density, bound=bound, quality=quality, rows=rows, **figures
        )


def requested_setting(one: BlockProfile, method: str, options: dict[str, Any]) -> Chosen:
    """The block under the method that was asked for, or dense with the reason."""
    limits = Applicability()
    if method in ("threshold", "top_k"):
        if one.unreadable:
            return None, one.choice("dense", one.unreadable)
        found = calibrate(BlockWeights.of(one.model, one.block), one.sample.float(), method=method, **options)
        setting = kept(one.block, limits, ActivationMask(found), method)
        return setting, one.choice(method, "asked for", found, max_rows=limits.max_rows)
    if one.obstacle:
        return None, one.choice("dense", one.obstacle)
    if method == "exact":
        return exact(one.model, one.block, limits), one.choice("exact", "asked for", max_rows=limits.max_rows)
    if not one.is_certifiable:
        return None, one.choice("dense", UNCERTIFIABLE)
    if method == "certified" and one.sample.dtype not in NARROW:
        return None, one.choice("dense", f"its weights are {one.sample.dtype}, proofs cover float32 and narrower")
    if method == "certified":
        setting = certified(one.model, one.block, limits, one.sample.float())
        return setting, one.choice("certified", "asked for", max_rows=limits.max_rows)
    told: dict[str, Any] = {"method": options.get("predictor", "sketch")}
    told |= {name: value for name, value in options.items() if name != "predictor"}
    if not {"recall", "density"} & set(told):
        told["recall"] = 0.99
    found = calibrate(BlockWeights.of(one.model, one.block), one.sample.float(), **told)
    setting = approximate(one.model, one.block, limits, found)
    return setting, one.choice("predictor", "asked for", found, max_rows=limits.max_rows)


@dataclass(frozen=True)
class ActivationMask:
    """Makes the activations zero that a rule leaves out."""

    rule: Predictor

    def __call__(self, h: Tensor) -> Tensor:
        """``h`` (..., s) with zeros."""
        mask = self.rule.active(h.reshape(-1, h.shape[-1])).view(h.shape)
        return h.masked_fill(mask == 0, 0)


def fastest(candidates: Sequence[BlockProfile], time_limit: float) -> list[Chosen]:
    """Every block by the exact method that is fastest on this machine, or densely where none is faster.

    Methods are timed on as many rows as the calls shown have. A block for which none pays is timed on one row too, and
    keeps the method that pays there for calls of so few rows.
    """
    blocks = [one.block for one in candidates]
    samples = [one.sample for one in candidates]
    settings: list[dict[str, Replacement]] = [_exact_settings(one) for one in candidates]

    def timed(settings: Sequence[dict[str, Replacement]], rows: Sequence[int], share: float) -> Times:
        return take(candidates[0].model, blocks, settings, samples, rows, share * time_limit)

    shown = [one.rows for one in candidates]
    times = timed(settings, shown, 1 / 2)
    picked = [_best(times, i, found) for i, found in enumerate(settings)]
    most = [rows if found else 0 for rows, found in zip(shown, picked, strict=True)]
    for rows in FEW:
        left = [_left(settings[i], picked[i], most[i], rows, one) for i, one in enumerate(candidates)]
        if any(left):
            few = timed(left, [min(rows, len(sample)) for sample in samples], 1 / 6)
            for i, found in enumerate(left):
                best = _best(few, i, found)
                if best:
                    picked[i], most[i] = best, rows
    return [_chosen(one, picked[i], times, i, most[i]) for i, one in enumerate(candidates)]


def _best(times: Times, i: int, settings: dict[str, Replacement]) -> dict[str, Replacement]:
    """The fastest of the settings that pay, by its method; empty if none does."""
    paying = [name for name in settings if times.pays(name, i, GAIN)]
    if not paying:
        return {}
    best = min(paying, key=lambda name: times.median(name, i))
    return {best: settings[best]}


def _left(
    settings: dict[str, Replacement], picked: dict[str, Replacement], most: int, rows: int, one: BlockProfile
) -> dict[str, Replacement]:
    """The settings that are still to be timed on so many rows: all on one, afterwards what paid on the step before."""
    if len(one.sample) < rows or rows <= most:
        return {}
    if not picked:
        return settings if rows == FEW[0] < one.rows else {}
    step = FEW[FEW.index(rows) - 1]
    return picked if most >= step and (most >= one.rows or rows < one.rows) else {}


def _exact_settings(one: BlockProfile) -> dict[str, Replacement]:
    limits = Applicability(max_rows=max(*FEW, one.rows))
    if one.obstacle or one.density > limits.max_share:
        return {}
    found = {"exact": exact(one.model, one.block, limits)}
    if one.is_certifiable and one.sample.dtype in NARROW:
        found["certified"] = certified(one.model, one.block, limits, one.sample.float())
        found["certified"].layers[one.block.down] = found["exact"].layers[one.block.down]  # one copy, not two
    return found


def _chosen(one: BlockProfile, picked: dict[str, Replacement], times: Times, i: int, most: int) -> Chosen:
    seconds = {name: times.median(name, i) for name in times.seconds}
    if one.obstacle:
        return None, one.choice("dense", one.obstacle, seconds={"dense": seconds["dense"]})
    if not picked:
        return None, one.choice("dense", "no exact method is faster here", seconds=seconds)
    ((method, setting),) = picked.items()
    setting.limit(most, Applicability().max_share)
    if most >= one.rows:
        return setting, one.choice(method, "fastest here", seconds=seconds, max_rows=most)
    seconds[method] = seconds["dense"]  # which is how calls of so many rows are computed
    few = "one row" if most == 1 else f"at most {most} rows"
    return setting, one.choice(method, f"faster for calls of {few}", seconds=seconds, max_rows=most)
