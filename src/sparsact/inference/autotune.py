"""Choose a method for each block by its error and by its time on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from math import nan
from statistics import median_low
from typing import Any, Final

from torch import Tensor, nn

from sparsact.inference.activation_function import activation_constants
from sparsact.inference.apply import Applicability, PlannedBlock, Replacement
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.collect import Reservoir
from sparsact.inference.layer_facts import DEVICES, device_obstacle, device_type
from sparsact.inference.method_times import Times, block_output, time_methods
from sparsact.inference.methods import (
    certified_replacement,
    exact_replacement,
    hides_pre_activations,
    masked_replacement,
)
from sparsact.inference.output_error import OutputQuality
from sparsact.inference.plan import BlockPlan
from sparsact.inference.roofline import ratio, roofline
from sparsact.inference.small_activations import ApproximationTarget, calibrated

MAX_TIME_RATIO: Final = 0.95  # to the dense time, of a method that may be chosen
SCATTERED: Final = 1.5  # seconds for a byte of scattered rows, to those for one of a matrix read in order
SCATTERED_BATCH: Final = 3.0  # the same for several rows, which a dense product computes together
DRIFT: Final = 1.25  # times the density of the sample, up to which calls are computed by the method chosen in any case
BATCHES: Final = (1, 4, 16, 64)  # rows of a call for which methods are timed, besides the sizes of the calls shown

UNCERTIFIABLE: Final = (
    "its pre-activations are read elsewhere, 0 does not switch its units off, or its thresholds are computed as the "
    "model runs"
)


@dataclass(frozen=True, eq=False)
class BlockProfile:
    """A block of a model with sample inputs (m, d), their mean share of active units, and the rows of each call.

    ``device`` is the type of the device whose products are to compute it.
    """

    model: nn.Module
    block: Block
    sample: Tensor
    density: float
    rows_per_call: tuple[int, ...]
    device: str = "cpu"

    @classmethod
    def of(cls, model: nn.Module, block: Block, shown: Reservoir, device: str | None = None) -> BlockProfile:
        """The profile of a block whose calls were sampled."""
        rows = shown.sample
        density = float((BlockWeights.of(model, block).hidden(rows) != 0).float().mean())
        rows_per_call = tuple(count for count in shown.rows_per_call if count)
        weight = block.linears(model)["up"].weight
        return cls(model, block, rows.to(weight), density, rows_per_call, device or device_type(weight))

    @property
    def rows(self) -> int:
        """Median number of rows of a call, at most those of the sample."""
        return min(median_low(self.rows_per_call), len(self.sample))

    @property
    def exact_obstacle(self) -> str:
        """Why no exact method applies to the block; empty if one does."""
        if not self.block.exact:
            return f"its activation ({self.block.activation.name}) is never exactly zero"
        return self.kernel_obstacle("exact")

    def kernel_obstacle(self, method: str) -> str:
        """Why no kernels compute it by a method; empty if some do."""
        device = DEVICES[self.device]
        if self.sample.dtype not in device.dtypes:
            *some, last = (str(dtype).removeprefix("torch.") for dtype in device.dtypes)
            return f"its weights are {self.sample.dtype}, kernels take {', '.join(some)} and {last}: convert the model"
        weights = [layer.weight for layer in self.block.linears(self.model).values()]
        if away := device_obstacle(weights, self.device):
            return away
        if method not in device.methods:
            return f'its weights are on {weights[0].device}, where only "exact" runs: move the model to the CPU'
        if any(weight.is_inference() for weight in weights):
            return "its weights were made in inference mode, which counts no writes to them: load them outside of it"
        return ""

    @property
    def is_certifiable(self) -> bool:
        """Whether pre-activations of units that are off may be replaced by 0 without being computed."""
        thresholds = self.block.activation.zero_below
        return (
            thresholds is not None
            and bool((thresholds >= 0).all())
            and hides_pre_activations(self.model, self.block)
            and activation_constants(self.model, self.block.activation) is not None
        )

    def bound(self, method: str, quality: OutputQuality | None = None) -> float:
        """Bytes of the dense block over those that an exact method, or one of some quality, reads at best."""
        inputs, units, outputs = self.block.sizes(self.model)
        item, density = self.sample.itemsize, self.density if quality is None else quality.density.value
        read = roofline(inputs, units, outputs, gated=self.block.gate is not None, itemsize=item, density=density)
        if quality is None:
            return read.speedup(method) or 1.0
        return ratio(read.dense, read.dense - (1 - density) * item * units * outputs)  # of ``down`` alone

    def pays_below(self, method: str, rows: int, seconds: dict[str, float]) -> float:
        """Density up to which a method would be faster than dense, estimated from its times for so many rows."""
        sizes, gated = self.block.sizes(self.model), self.block.gate is not None
        floors = [roofline(*sizes, gated=gated, itemsize=self.sample.itemsize, density=share) for share in (0.0, 1.0)]
        less, more = (getattr(floor, method) for floor in floors)
        scattered = SCATTERED if rows == 1 else SCATTERED_BATCH
        per_share = seconds["dense"] * scattered * (more - less) / floors[1].dense
        estimate = self.density + (seconds["dense"] - seconds[method]) / per_share
        return float(min(Applicability().max_share, max(0.0, estimate)))

    def dense(self, reason: str, seconds: dict[str, float] | None = None, **figures: Any) -> PlannedBlock:
        """The block left dense for a reason."""
        return None, self._plan("dense", reason, seconds=seconds, **figures)

    def planned(
        self, replacement: Replacement, reason: str = "asked for", quality: OutputQuality | None = None, **figures: Any
    ) -> PlannedBlock:
        """The replacement with its plan: bound, rows, and the quality of an approximation."""
        method = replacement.method
        return replacement, self._plan(method, reason, bound=self.bound(method, quality), quality=quality, **figures)

    def _plan(self, method: str, reason: str, **figures: Any) -> BlockPlan:
        counts = self.rows_per_call
        rows = min(counts), median_low(counts), max(counts)
        return BlockPlan(self.block.name, method, reason, self.density, rows=rows, **figures)


def requested_replacement(
    profile: BlockProfile, method: str, target: ApproximationTarget | None = None
) -> PlannedBlock:
    """The block under the method that was asked for, with the target of an approximation; or dense with the reason."""
    limits = Applicability()
    model, block, max_rows = profile.model, profile.block, limits.max_rows
    if target is not None:
        if obstacle := profile.kernel_obstacle(method):
            return profile.dense(obstacle)
        if block.activation.scaled and method == "threshold":
            return profile.dense("its activations are normalised row by row, so one threshold does not fit all rows")
        rule, quality = calibrated(method, BlockWeights.of(model, block), plain(profile.sample), target)
        replacement = masked_replacement(block, limits, rule, method)
        return profile.planned(replacement, f"asked for: keeps {rule}", quality, max_rows=max_rows)
    if obstacle := profile.exact_obstacle or profile.kernel_obstacle(method):
        return profile.dense(obstacle)
    if method == "exact":
        return profile.planned(exact_replacement(model, block, limits, device=profile.device), max_rows=max_rows)
    if not profile.is_certifiable:
        return profile.dense(UNCERTIFIABLE)
    if profile.sample.dtype not in NARROW:
        return profile.dense(f"its weights are {profile.sample.dtype}, proofs cover float32 and narrower")
    return profile.planned(certified_replacement(model, block, limits, profile.sample.float()), max_rows=max_rows)


def fastest(profiles: Sequence[BlockProfile], time_limit: float) -> list[PlannedBlock]:
    """Every block by the exact method that is fastest on this machine, or densely where none is faster.

    Methods are timed on the median number of rows of the calls shown, then on 1, 4, 16 and 64 rows and on the most,
    as far as they are faster on fewer.
    """
    blocks = [TimedBlock(i, one, _exact_candidates(one)) for i, one in enumerate(profiles)]
    runs = [partial(block_output, one.model, one.block) for one in profiles]
    samples = [one.sample for one in profiles]
    kinds = kinds_of(profiles)

    def time_all(rows: Sequence[int], tried: Sequence[dict[str, Replacement]], share: float) -> None:
        alike = [(kind, m, *found) for kind, m, found in zip(kinds, rows, tried, strict=True)]
        times = time_methods(profiles[0].model, runs, tried, samples, rows, share * time_limit, alike)
        for block, m, found in zip(blocks, rows, tried, strict=True):
            if found or not block.times:
                block.times[m] = times, tuple(found)

    time_all([one.rows for one in profiles], [one.candidates for one in blocks], 1 / 3)
    most = [max(one.rows_per_call) for one in profiles]
    for batch in (*([rows] * len(blocks) for rows in BATCHES), most):
        tried = [block.to_time(m) for block, m in zip(blocks, batch, strict=True)]
        if any(tried):
            rows = [min(m, len(sample)) for m, sample in zip(batch, samples, strict=True)]
            time_all(rows, tried, 1 / 8)
    return [block.decided() for block in blocks]


@dataclass
class TimedBlock:
    """A block of number ``index``, the replacements to choose from, and times by rows with the methods timed."""

    index: int
    profile: BlockProfile
    candidates: dict[str, Replacement]
    times: dict[int, tuple[Times, tuple[str, ...]]] = field(default_factory=dict)

    def to_time(self, rows: int) -> dict[str, Replacement]:
        """What to time on so many rows: what is faster on fewer, and ``certified`` while nothing else is faster."""
        if rows in self.times or rows > len(self.profile.sample):
            return {}
        fewer = [m for m in self.times if m < rows]
        best = self.fastest(max(fewer)) if fewer else "certified"
        if best is None:
            return {}
        return {name: one for name, one in self.candidates.items() if best == "certified" or name == "exact"}

    def fastest(self, rows: int) -> str | None:
        """The fastest method for so many rows; None if none is faster than dense."""
        times, methods = self.times[rows]
        faster = [name for name in methods if times.is_faster(name, self.index, MAX_TIME_RATIO)]
        return min(faster, key=lambda name: times.ratio(name, self.index)) if faster else None

    def seconds(self, rows: int) -> dict[str, float]:
        """Median times for so many rows, by method."""
        times, methods = self.times[rows]
        return {name: times.median(name, self.index) for name in ("dense", *methods)}

    def decided(self) -> PlannedBlock:
        """The block under the method chosen, limited to the rows and the density at which it is faster."""
        profile, typical = self.profile, self.profile.rows
        seconds = self.seconds(typical)
        if profile.exact_obstacle:
            return profile.dense(profile.exact_obstacle, {"dense": seconds["dense"]})
        best = {rows: self.fastest(rows) for rows in sorted(self.times)}
        pays_below = profile.pays_below("exact", typical, seconds) if "exact" in seconds else nan
        if not any(best.values()):
            return profile.dense("no exact method is faster here", seconds, pays_below=pays_below)
        shares = [profile.pays_below(name, rows, self.seconds(rows)) for rows, name in best.items() if name]
        share = max(min(shares), DRIFT * profile.density)
        max_rows = max(rows for rows, name in best.items() if name)
        max_rows = sys.maxsize if max_rows >= BATCHES[-1] else max_rows  # seconds per row no longer change
        screened = [rows for rows, _ in takewhile(lambda one: one[1] == "certified", best.items())]
        picked = self.candidates["certified" if screened else "exact"]
        picked.set_limits(max_rows, share, max(screened, default=0))
        if typical > max_rows:
            seconds[picked.method] = seconds["dense"]  # as calls of this many rows are computed
            few = "one row" if max_rows == 1 else f"at most {max_rows} rows"
            reason = f"faster for calls of {few}"
        else:
            reason, pays_below = "fastest here", share
            if screened and typical > screened[-1]:
                seconds["certified"] = seconds["exact"]  # as they are computed
        return profile.planned(picked, reason, seconds=seconds, max_rows=max_rows, pays_below=pays_below)


def kinds_of(profiles: Sequence[BlockProfile]) -> list[int]:
    """Numbers that are equal for blocks of the same sizes, operations and dtype, with densities within a half."""
    firsts: list[tuple[Any, float]] = []
    found = []
    for one in profiles:
        shape = *one.block.sizes(one.model), one.block.gate is None, one.block.activation.name, one.sample.dtype
        alike = (
            i
            for i, (other, density) in enumerate(firsts)
            if shape == other and max(one.density, density) <= 1.5 * min(one.density, density) + 1e-3
        )
        kind = next(alike, len(firsts))
        if kind == len(firsts):
            firsts.append((shape, one.density))
        found.append(kind)
    return found


def _exact_candidates(profile: BlockProfile) -> dict[str, Replacement]:
    """The replacements to time, by method."""
    limits = Applicability(max_rows=sys.maxsize)
    model, block = profile.model, profile.block
    if profile.exact_obstacle or profile.density > Applicability().max_share:
        return {}
    found = {"exact": exact_replacement(model, block, limits, device=profile.device)}
    if not profile.kernel_obstacle("certified") and profile.is_certifiable and profile.sample.dtype in NARROW:
        found["certified"] = certified_replacement(model, block, limits, profile.sample.float())
        found["certified"].layers[block.down] = found["exact"].layers[block.down]  # one copy, not two
    return found
