"""A measurement in words: a line for each block, and what the whole model could gain."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sparsact.inference.roofline import METHODS

if TYPE_CHECKING:
    from sparsact.inference.block_measurement import BlockMeasurement
    from sparsact.inference.measurement import Measurement

HEADINGS = ("block", "units", "density", "5-95 %", "dead", "union of 16", "|h| <= 1 %", *METHODS)


def table(measurement: Measurement) -> str:
    """The table as text, with columns as wide as they need to be."""
    lines = [HEADINGS, *(_cells(block) for block in measurement.blocks)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "\n".join("  ".join(_aligned(line, widths)) for line in lines)
    bounds = ", ".join(f"{method} {times(measurement.bound(method))}" for method in METHODS)
    rows = [count for block in measurement.blocks for count in block.rows]
    few = sum(block.share_few * block.calls for block in measurement.blocks)
    return (
        f"{text}\n|h| <= 1 %: share of activations within 1 % of their row's root mean square, zeros included.\n"
        f"{', '.join(METHODS)}: how much faster a block that reads fewer weights can be at most, one row at a time.\n"
        f"Calls have {min(rows):,} to {max(rows):,} rows; {few / sum(b.calls for b in measurement.blocks):.0%} have at "
        "most 16, which switch on at most half of the units: these alone can sparsify make faster by exact methods.\n"
        f"Whole model, {measurement.model_bytes:,} bytes of parameters a row: {bounds}."
    )


def times(speedup: float | None) -> str:
    """A speed-up, for people.

    >>> times(1.9417), times(None), times(math.inf)
    ('1.94x', '-', 'unbounded')
    """
    if speedup is None:
        return "-"
    return f"{speedup:.2f}x" if math.isfinite(speedup) else "unbounded"


def _cells(block: BlockMeasurement) -> tuple[str, ...]:
    found, union = block.roofline(), block.unions[16]
    return (
        block.name or "(the model)",
        f"{block.n_units:,}",
        f"{block.density:.2%}",
        f"{block.density_quantile(0.05):.2%}-{block.density_quantile(0.95):.2%}",
        f"{block.n_dead:,}",
        "-" if union is None else f"{union:.2%}",
        f"{block.share_small:.2%}",
        *(times(found.speedup(method) if found else None) for method in METHODS),
    )


def _aligned(line: Iterable[str], widths: Iterable[int]) -> list[str]:
    """The first cell to the left, numbers to the right."""
    cells = zip(line, widths, strict=True)
    return [cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(cells)]
