"""Profiles of blocks: sample inputs, gathered while a model runs, and which methods apply, by facts of the layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median_low
from typing import Any, Final

import torch
from torch import Tensor, nn

from sparsact.inference.apply import PlannedBlock, Replacement
from sparsact.inference.batches import Inputs, batches, observe
from sparsact.inference.block import Block, BlockWeights, plain
from sparsact.inference.certified_screen import NARROW
from sparsact.inference.layer_facts import DEVICES, device_obstacle, device_type, first_reason
from sparsact.inference.methods import EXACT, block_units
from sparsact.inference.output_error import OutputQuality
from sparsact.inference.plan import BlockPlan
from sparsact.inference.roofline import ratio, roofline
from sparsact.inference.sparse_linear import MAX_SHARE
from sparsact.validation.parameters import checked_size

ALONE_NUMBERS: Final = 1 << 23  # most of a sample of a layer alone, whose rows are as wide as its units
ALONE_ROWS: Final = 64  # that it has in any case: methods are timed on as many
SCATTERED: Final = 1.5  # seconds per byte of scattered rows, over seconds per byte of a matrix read in order
SCATTERED_BATCH: Final = 3.0  # the same for several rows, which a dense product computes together
ANY_ACTIVATION: Final = 'method="approximate" and weights="int8" take any activation'
UNCERTIFIABLE: Final = (
    "its pre-activations are read elsewhere, 0 does not switch its units off, or its thresholds depend on the input"
)


@dataclass
class Reservoir:
    """A uniform sample without replacement of at most ``limit`` of a block's input rows.

    Each row draws a random number when it comes; the rows with the smallest are kept, in the order that they came.
    """

    name: str
    limit: int
    generator: torch.Generator
    rows: Tensor | None = None
    keys: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    rows_per_call: list[int] = field(default_factory=list)

    def add(self, x: Tensor) -> None:
        """Sample the input of one call of a linear layer."""
        rows = plain(x).reshape(-1, x.shape[-1])
        self.rows_per_call.append(len(rows))
        keys = torch.cat([self.keys, torch.rand(len(rows), generator=self.generator, dtype=torch.float64)])
        if self.rows is not None:
            rows = torch.cat([self.rows, rows])
        kept = keys.argsort()[: self.limit].sort().values
        self.rows, self.keys = rows[kept], keys[kept]

    @property
    def sample(self) -> Tensor:
        """The sampled rows (m, d)."""
        if self.rows is None:
            raise ValueError(
                f"block {self.name!r} did not run on these inputs; pass inputs that reach it, or leave it out."
            )
        return self.rows


def sample_inputs(
    model: nn.Module, blocks: Iterable[Block], inputs: Inputs, limit: int = 4096, *, random_state: int = 0
) -> dict[Block, Reservoir]:
    """A uniform sample of the inputs of each block while the model runs over ``inputs`` in evaluation mode.

    At most ``limit`` rows of a block, fewer of wide layers alone, in float32 or float64 on the CPU. Blocks that see the
    same number of rows keep the same ones.
    """
    checked_size(limit, "`limit`")
    found = {}
    for block in blocks:
        rows = limit if block.up else min(limit, max(ALONE_ROWS, ALONE_NUMBERS // block.sizes(model)[1]))
        found[block] = Reservoir(block.name, rows, torch.Generator().manual_seed(random_state))

    def add(name: str, args: tuple[Tensor, ...], output: Tensor) -> None:
        for block, reservoir in found.items():
            if block.reader == name:
                reservoir.add(args[0])

    observe(model, (block.reader for block in found), batches(inputs), add)
    return found


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
        weight = block.linears(model)["down"].weight
        return cls(model, block, rows.to(weight), density, rows_per_call, device or device_type(weight))

    @property
    def rows(self) -> int:
        """Median number of rows of a call, at most as many as the sample has."""
        return min(median_low(self.rows_per_call), len(self.sample))

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """Inputs, units and outputs of the block."""
        return self.block.sizes(self.model)

    def obstacle(self, method: str) -> str:
        """Why the method does not apply to the block; empty if it does."""
        dtype, device = self.sample.dtype, DEVICES[self.device]
        certified = method == "certified"
        weights = [layer.weight for layer in self.block.linears(self.model).values()]
        unread = device_obstacle(weights, self.device)
        *some, last = (str(one).removeprefix("torch.") for one in device.dtypes)
        return first_reason(
            (
                method in EXACT and not self.block.exact,
                f"its activation ({self.block.activation.name}) is never exactly zero; {ANY_ACTIVATION}",
            ),
            (
                dtype not in device.dtypes,
                f"its weights are {dtype}, kernels take {', '.join(some)} and {last}: convert the model",
            ),
            (bool(unread), unread),
            (
                method not in device.methods,
                f'its weights are on {weights[0].device}, where only "exact" runs: move the model to the CPU',
            ),
            (certified and not self.is_certifiable, UNCERTIFIABLE),
            (certified and dtype not in NARROW, f"its weights are {dtype}, proofs cover float32 and narrower"),
        )

    @cached_property
    def is_certifiable(self) -> bool:
        """Whether pre-activations of units that are off may be replaced by 0 without being computed."""
        thresholds = self.block.activation.zero_below
        positive = thresholds is not None and bool((thresholds >= 0).all())
        return positive and block_units(self.model, self.block) is not None

    def bound(self, method: str, quality: OutputQuality | None = None) -> float:
        """Bytes that the dense block reads over the fewest that an exact method, or one of some quality, can read."""
        inputs, units, outputs = self.sizes
        item, density = self.sample.itemsize, self.density if quality is None else quality.density.value
        read = roofline(inputs, units, outputs, gated=self.block.gate is not None, itemsize=item, density=density)
        if quality is None:
            return read.speedup(method) or 1.0
        return ratio(read.dense, read.dense - (1 - density) * item * units * outputs)  # of ``down`` alone

    def pays_below(self, method: str, rows: int, seconds: dict[str, float]) -> float:
        """Density up to which a method would be faster than dense, estimated from its times for that number of rows."""
        sizes, gated = self.sizes, self.block.gate is not None
        floors = [roofline(*sizes, gated=gated, itemsize=self.sample.itemsize, density=share) for share in (0.0, 1.0)]
        less, more = (getattr(floor, method) for floor in floors)
        scattered = SCATTERED if rows == 1 else SCATTERED_BATCH
        per_share = seconds["dense"] * scattered * (more - less) / floors[1].dense
        estimate = self.density + (seconds["dense"] - seconds[method]) / per_share
        return float(min(MAX_SHARE, max(0.0, estimate)))

    def dense(self, reason: str, seconds: dict[str, float] | None = None, **figures: Any) -> PlannedBlock:
        """The block left dense for a reason."""
        return self.planned(Replacement(), "dense", reason, seconds=seconds, **figures)

    def planned(
        self,
        replacement: Replacement,
        method: str,
        reason: str = "asked for",
        quality: OutputQuality | None = None,
        **figures: Any,
    ) -> PlannedBlock:
        """The replacement by a method with its plan: bound, rows, and the quality of an approximation."""
        counts = self.rows_per_call
        figures |= {"rows": (min(counts), median_low(counts), max(counts)), "bound": self.bound(method, quality)}
        return replacement, BlockPlan(self.block.name, method, reason, self.density, quality=quality, **figures)
