"""Choose a method for each block by its error and by its time on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median_low
from typing import Any

from torch import Tensor, nn

from sparsact.inference.activation_function import activation_constants
from sparsact.inference.apply import (
    Applicability,
    PlannedBlock,
    Replacement,
    certified_replacement,
    exact_replacement,
    hides_pre_activations,
    masked_replacement,
    predictor_replacement,
)
from sparsact.inference.block import Block
from sparsact.inference.block_weights import BlockWeights
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.method_times import Times, block_output, time_methods
from sparsact.inference.plan import BlockPlan
from sparsact.inference.predictors import Predictor, calibrate
from sparsact.inference.predictors.collect import Reservoir
from sparsact.inference.products import DTYPES
from sparsact.inference.roofline import ratio, roofline

MAX_TIME_RATIO = 0.95  # to the dense time, of a method that may be chosen
SCATTERED = 1.5  # seconds for a byte of scattered rows, to those for one of a matrix read in order
SPARSE_ROWS = 0.2  # density up to which products of several rows pay though together they need all units
SMALL_BATCHES = (1, 4, 16)  # rows of a call for which methods are timed besides those of the calls shown

UNCERTIFIABLE = (
    "its pre-activations are read elsewhere, 0 does not switch its units off, or its thresholds are computed as the "
    "model runs"
)


@dataclass(frozen=True, eq=False)
class BlockProfile:
    """A block of a model with sample inputs (m, d), their mean share of active units, and the rows of each call."""

    model: nn.Module
    block: Block
    sample: Tensor
    density: float
    rows_per_call: tuple[int, ...]

    @classmethod
    def of(cls, model: nn.Module, block: Block, shown: Reservoir) -> BlockProfile:
        """The profile of a block whose calls were sampled."""
        rows = shown.sample
        density = float((BlockWeights.of(model, block).hidden(rows) != 0).float().mean())
        rows_per_call = tuple(count for count in shown.rows_per_call if count)
        return cls(model, block, rows.to(block.linears(model)["up"].weight), density, rows_per_call)

    @property
    def rows(self) -> int:
        """Median number of rows of a call, at most those of the sample."""
        return min(median_low(self.rows_per_call), len(self.sample))

    @property
    def exact_obstacle(self) -> str:
        """Why no exact method applies to the block; empty if one does."""
        if not self.block.exact:
            return f"its activation ({self.block.activation.name}) is never exactly zero"
        return self.kernel_obstacle

    @property
    def kernel_obstacle(self) -> str:
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
        """Whether pre-activations of units that are off may be replaced by 0 without being computed."""
        thresholds = self.block.activation.zero_below
        return (
            thresholds is not None
            and bool((thresholds >= 0).all())
            and hides_pre_activations(self.model, self.block)
            and activation_constants(self.model, self.block.activation) is not None
        )

    def bound(self, method: str, predictor: Predictor | None = None) -> float:
        """Bytes of the dense block over those that an exact method, or a calibrated one, reads at best."""
        inputs, units, outputs = self.block.sizes(self.model)
        item, density = self.sample.itemsize, self.density if predictor is None else predictor.quality.density.value
        read = roofline(inputs, units, outputs, gated=self.block.gate is not None, itemsize=item, density=density)
        if predictor is None:
            return read.speedup(method) or 1.0
        if predictor.reads == "inputs":
            return ratio(read.dense, read.oracle + predictor.nbytes)
        return ratio(read.dense, read.dense - (1 - density) * item * units * outputs)  # of ``down`` alone

    def pays_below(self, method: str, seconds: dict[str, float]) -> float:
        """Density up to which a method, timed at the density of the sample, would stay faster than dense."""
        inputs, units, outputs = self.block.sizes(self.model)
        sizes, gated = (inputs, units, outputs), self.block.gate is not None
        less, more = (
            getattr(roofline(*sizes, gated=gated, itemsize=self.sample.itemsize, density=share), method)
            for share in (0.0, 1.0)
        )
        dense = roofline(*sizes, gated=gated, itemsize=self.sample.itemsize, density=1.0).dense
        per_share = seconds["dense"] * SCATTERED * (more - less) / dense
        return float(
            min(Applicability().share_of(self.rows), self.density + (seconds["dense"] - seconds[method]) / per_share)
        )

    def dense(self, reason: str, seconds: dict[str, float] | None = None) -> PlannedBlock:
        """The block left dense for a reason."""
        return None, self._plan("dense", reason, seconds=seconds)

    def planned(
        self, replacement: Replacement, reason: str = "asked for", predictor: Predictor | None = None, **figures: Any
    ) -> PlannedBlock:
        """The replacement with its plan: bound, rows, and the quality of what was calibrated for it."""
        method = replacement.method
        quality = None if predictor is None else predictor.to_dict()
        return replacement, self._plan(method, reason, bound=self.bound(method, predictor), quality=quality, **figures)

    def _plan(self, method: str, reason: str, **figures: Any) -> BlockPlan:
        counts = self.rows_per_call
        rows = min(counts), median_low(counts), max(counts)
        return BlockPlan(self.block.name, method, reason, self.density, rows=rows, **figures)


def requested_replacement(profile: BlockProfile, method: str, options: dict[str, Any]) -> PlannedBlock:
    """The block under the method that was asked for, or dense with the reason."""
    limits = Applicability()
    model, block, max_rows = profile.model, profile.block, limits.max_rows
    if method in ("threshold", "top_k"):
        if profile.kernel_obstacle:
            return profile.dense(profile.kernel_obstacle)
        if block.activation.scaled and method == "threshold":
            return profile.dense("its activations are normalised row by row, so one threshold does not fit all rows")
        found = calibrate(BlockWeights.of(model, block), profile.sample.float(), method=method, **options)
        replacement = masked_replacement(block, limits, ActivationMask(found), method)
        return profile.planned(replacement, predictor=found, max_rows=max_rows)
    if profile.exact_obstacle:
        return profile.dense(profile.exact_obstacle)
    if method == "exact":
        return profile.planned(exact_replacement(model, block, limits), max_rows=max_rows)
    if not profile.is_certifiable:
        return profile.dense(UNCERTIFIABLE)
    if method == "certified" and profile.sample.dtype not in NARROW:
        return profile.dense(f"its weights are {profile.sample.dtype}, proofs cover float32 and narrower")
    if method == "certified":
        replacement = certified_replacement(model, block, limits, profile.sample.float())
        return profile.planned(replacement, max_rows=max_rows)
    settings: dict[str, Any] = {"recall": 0.99} if not {"recall", "density"} & set(options) else {}
    settings |= {"method" if name == "predictor" else name: value for name, value in options.items()}
    found = calibrate(BlockWeights.of(model, block), profile.sample.float(), **settings)
    replacement = predictor_replacement(model, block, limits, found)
    return profile.planned(replacement, predictor=found, max_rows=max_rows)


@dataclass(frozen=True)
class ActivationMask:
    """Sets the activations to zero that a predictor leaves out."""

    predictor: Predictor

    def __call__(self, h: Tensor) -> Tensor:
        """``h`` (..., s) with zeros."""
        mask = self.predictor.active(h.reshape(-1, h.shape[-1])).view(h.shape)
        return h.masked_fill(mask == 0, 0)


def fastest(profiles: Sequence[BlockProfile], time_limit: float) -> list[PlannedBlock]:
    """Every block by the exact method that is fastest on this machine, or densely where none is faster.

    Methods are timed on as many rows as the calls shown have. A block for which none is faster there is timed on one
    row too, and keeps the method that is faster there for calls of so few rows.
    """
    runs = [partial(block_output, one.model, one.block) for one in profiles]
    samples = [one.sample for one in profiles]
    candidates = [_exact_candidates(one) for one in profiles]

    def timed(replacements: Sequence[dict[str, Replacement]], rows: Sequence[int], share: float) -> Times:
        kinds = [(kind, m, *found) for kind, m, found in zip(kinds_of(profiles), rows, replacements, strict=True)]
        return time_methods(profiles[0].model, runs, replacements, samples, rows, share * time_limit, kinds)

    typical = [one.rows for one in profiles]
    times = timed(candidates, typical, 1 / 2)
    picked = [_fastest_of(times, i, found) for i, found in enumerate(candidates)]
    max_rows = [0 if found is None else rows for rows, found in zip(typical, picked, strict=True)]
    for rows in SMALL_BATCHES:
        untimed = [_to_time(candidates[i], picked[i], max_rows[i], rows, one) for i, one in enumerate(profiles)]
        if any(untimed):
            few = timed(untimed, [min(rows, len(sample)) for sample in samples], 1 / 6)
            for i, found in enumerate(untimed):
                best = _fastest_of(few, i, found)
                if best is not None:
                    picked[i], max_rows[i] = best, rows
    return [_decided(one, picked[i], times, i, max_rows[i]) for i, one in enumerate(profiles)]


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
    limits = Applicability(max_rows=max(*SMALL_BATCHES, profile.rows), max_share=_max_share(profile))
    model, block = profile.model, profile.block
    if profile.exact_obstacle or profile.density > Applicability().max_share:
        return {}
    found = {"exact": exact_replacement(model, block, limits)}
    if profile.is_certifiable and profile.sample.dtype in NARROW:
        found["certified"] = certified_replacement(model, block, limits, profile.sample.float())
        found["certified"].layers[block.down] = found["exact"].layers[block.down]  # one copy, not two
    return found


def _max_share(profile: BlockProfile) -> float:
    """Largest share of units, active for any row, for which a block is computed sparsely.

    Rows that each need few units may need most of them together; what counts then is how many products there are.
    """
    return 1.0 if profile.density <= SPARSE_ROWS else Applicability().max_share


def _fastest_of(times: Times, i: int, replacements: dict[str, Replacement]) -> Replacement | None:
    """The fastest replacement of block i; None if none is faster than dense."""
    faster = [name for name in replacements if times.is_faster(name, i, MAX_TIME_RATIO)]
    return replacements[min(faster, key=lambda name: times.ratio(name, i))] if faster else None


def _to_time(
    candidates: dict[str, Replacement], picked: Replacement | None, max_rows: int, rows: int, profile: BlockProfile
) -> dict[str, Replacement]:
    """What to time on this many rows: all candidates on one, then what was faster on the number before."""
    if len(profile.sample) < rows or rows <= max_rows:
        return {}
    if picked is None:
        return candidates if rows == SMALL_BATCHES[0] < profile.rows else {}
    step = SMALL_BATCHES[SMALL_BATCHES.index(rows) - 1]
    again = max_rows >= step and (max_rows >= profile.rows or rows < profile.rows)
    return {picked.method: picked} if again else {}


def _decided(profile: BlockProfile, picked: Replacement | None, times: Times, i: int, max_rows: int) -> PlannedBlock:
    seconds = {name: times.median(name, i) for name in times.seconds}
    if profile.exact_obstacle:
        return profile.dense(profile.exact_obstacle, {"dense": seconds["dense"]})
    if picked is None:
        return profile.dense("no exact method is faster here", seconds)
    picked.set_limits(max_rows, _max_share(profile))
    if max_rows >= profile.rows:
        pays_below = profile.pays_below(picked.method, seconds)
        return profile.planned(picked, "fastest here", seconds=seconds, max_rows=max_rows, pays_below=pays_below)
    seconds[picked.method] = seconds["dense"]  # as calls of this many rows are computed
    few = "one row" if max_rows == 1 else f"at most {max_rows} rows"
    return profile.planned(picked, f"faster for calls of {few}", seconds=seconds, max_rows=max_rows)
