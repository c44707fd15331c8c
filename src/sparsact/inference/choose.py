"""From a method to a setting for each block, with the figures that speak for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from sparsact.inference.block import Block
from sparsact.inference.constants import constants
from sparsact.inference.plan import Choice
from sparsact.inference.predictors import Predictor, calibrate
from sparsact.inference.products import DTYPES
from sparsact.inference.roofline import roofline
from sparsact.inference.screen import NARROW
from sparsact.inference.settings import Limits, Setting, approximate, certified, exact, kept, private
from sparsact.inference.timing import Times, take
from sparsact.inference.verify import Chosen
from sparsact.inference.weights import BlockWeights

GAIN = 0.95  # of the dense time, that a method may take at most to be chosen
ROWS = (4, 16)  # of an input, beyond one, for which it is asked whether the method still pays


UNPROVABLE = (
    "its pre-activations are read elsewhere, 0 does not switch its units off, or its thresholds are computed anew"
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A block of the model, its typical inputs (m, d), and how many of its units these switch on."""

    model: nn.Module
    block: Block
    sample: Tensor
    density: float

    @classmethod
    def of(cls, model: nn.Module, block: Block, sample: Tensor) -> Candidate:
        """The candidate, with its density measured on the sample."""
        weights = BlockWeights.of(model, block)
        density = float((weights.hidden(sample) != 0).float().mean())
        return cls(model, block, sample.to(block.linears(model)["up"].weight), density)

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
    def provable(self) -> bool:
        """Whether units may be left out before their pre-activations are known, which are 0 then."""
        thresholds = self.block.activation.zero_below
        return (
            thresholds is not None
            and bool((thresholds >= 0).all())
            and private(self.model, self.block)
            and constants(self.model, self.block.activation) is not None
        )

    def bound(self, method: str) -> float:
        """Bytes of the dense block over those that the method reads at best."""
        inputs, units, outputs = self.block.sizes(self.model)
        gated, item = self.block.gate is not None, self.sample.itemsize
        found = roofline(inputs, units, outputs, gated=gated, itemsize=item, density=self.density)
        return found.speedup(method if method in ("exact", "certified") else "oracle") or 1.0

    def choice(self, method: str, reason: str, **figures: Any) -> Choice:
        """The choice of a method."""
        bound = 1.0 if method == "dense" else self.bound(method)
        return Choice(self.block.name, method, reason, self.density, bound=bound, **figures)


def as_told(one: Candidate, method: str, options: dict[str, Any]) -> Chosen:
    """The block under the method that was asked for, or dense with the reason."""
    limits = Limits()
    if method in ("threshold", "top_k"):
        if one.unreadable:
            return None, one.choice("dense", one.unreadable)
        found = calibrate(BlockWeights.of(one.model, one.block), one.sample.float(), method=method, **options)
        setting = kept(one.block, limits, Kept(found), method)
        return setting, _told(one, method, found)
    if one.obstacle:
        return None, one.choice("dense", one.obstacle)
    if method == "exact":
        return exact(one.model, one.block, limits), _told(one, "exact")
    if not one.provable:
        return None, one.choice("dense", UNPROVABLE)
    if method == "certified" and one.sample.dtype not in NARROW:
        return None, one.choice("dense", f"its weights are {one.sample.dtype}, proofs cover float32 and narrower")
    if method == "certified":
        return certified(one.model, one.block, limits, one.sample.float()), _told(one, "certified")
    told: dict[str, Any] = {"method": options.get("predictor", "sketch")}
    told |= {name: value for name, value in options.items() if name != "predictor"}
    if not {"recall", "density"} & set(told):
        told["recall"] = 0.99
    found = calibrate(BlockWeights.of(one.model, one.block), one.sample.float(), **told)
    return approximate(one.model, one.block, limits, found), _told(one, "predictor", found)


def _told(one: Candidate, method: str, found: Predictor | None = None) -> Choice:
    quality = None if found is None else found.to_dict()
    return one.choice(method, "asked for", max_rows=Limits().max_rows, quality=quality)


@dataclass(frozen=True)
class Kept:
    """Makes the activations zero that a rule leaves out."""

    rule: Predictor

    def __call__(self, h: Tensor) -> Tensor:
        """``h`` (..., s) with zeros."""
        mask = self.rule.active(h.reshape(-1, h.shape[-1])).view(h.shape)
        return h.masked_fill(mask == 0, 0)


def fastest(candidates: Sequence[Candidate], time_limit: float) -> list[Chosen]:
    """Every block by the exact method that is fastest on this machine, or densely where none is faster."""
    model = candidates[0].model
    blocks = [one.block for one in candidates]
    settings: list[dict[str, Setting]] = [_exact_settings(one) for one in candidates]
    samples = [one.sample for one in candidates]
    times = take(model, blocks, settings, samples, 1, time_limit / 2)
    picked: list[dict[str, Setting]] = [{} for _ in candidates]
    for i, found in enumerate(settings):
        paying = [name for name in found if times.pays(name, i, GAIN)]
        if paying:
            best = min(paying, key=lambda name: times.median(name, i))
            picked[i] = {best: found[best]}
    most = [1] * len(candidates)
    for rows in ROWS:
        seen = [found if len(sample) >= rows else {} for found, sample in zip(picked, samples, strict=True)]
        if not any(seen):
            break
        wide = take(model, blocks, seen, samples, rows, time_limit / 4)
        for i, found in enumerate(seen):
            if found and most[i] == _before(rows) and wide.pays(next(iter(found)), i, GAIN):
                most[i] = rows
    return [_chosen(one, picked[i], times, i, most[i]) for i, one in enumerate(candidates)]


def _exact_settings(one: Candidate) -> dict[str, Setting]:
    if one.obstacle:
        return {}
    limits = Limits(max_rows=max(ROWS))
    found = {"exact": exact(one.model, one.block, limits)}
    if one.provable and one.sample.dtype in NARROW:
        found["certified"] = certified(one.model, one.block, limits, one.sample.float())
        found["certified"].layers[one.block.down] = found["exact"].layers[one.block.down]  # one copy, not two
    return found


def _before(rows: int) -> int:
    ladder = (1, *ROWS)
    return ladder[ladder.index(rows) - 1]


def _chosen(one: Candidate, picked: dict[str, Setting], times: Times, i: int, rows: int) -> Chosen:
    seconds = {name: times.median(name, i) for name in times.seconds}
    if one.obstacle:
        return None, one.choice("dense", one.obstacle, seconds={"dense": seconds["dense"]})
    if not picked:
        return None, one.choice("dense", "no exact method is faster here", seconds=seconds)
    ((method, setting),) = picked.items()
    setting.limit(rows, Limits().max_share)
    return setting, one.choice(method, "fastest here", seconds=seconds, max_rows=rows)
