"""Feed-forward blocks that compute only the units that are on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.table.cells import Line, Rows, starting, times, verdict

SIZES: Final = ((2048, 8192), (4096, 16384))
GATHER: Final = (("float32", 3, "0.75"), ("float32", 10, "0.75"), ("float32", 30, "0.80"), ("bfloat16", 3, "0.6"))


def blocks(rows: Rows) -> Iterator[Line]:
    """Blocks with known units, and exact ones."""
    for dtype, density, bar in GATHER:
        work = [f"{d}-{s}-{d} {dtype} active={density}%" for d, s in SIZES]
        shares = [starting(rows, "gather, of its", one)[one] for one in work]
        shown = " / ".join(
            f"{share['value']:.2f} of the bound: {times(rows[one, 'gather, times as fast'])}"
            for one, share in zip(work, shares, strict=True)
        )
        name = f"block with known active units, {dtype}, {density} % of them (d = 2,048 / 4,096, s = 4 d)"
        yield (name, "dense PyTorch", f"{bar} of 1 / density", shown)
    for name, bar in (("exact ReLU", "1.7x"), ("exact ReGLU", "2.4x")):
        found = [rows[f"{d}-{s}-{d} float32 active=3%", f"{name}, times as fast"] for d, s in SIZES]
        shown = " / ".join(map(times, found))
        yield (f"{name}, float32, 3 % active", "dense PyTorch", bar, shown)


def screen(rows: Rows) -> Iterator[Line]:
    """The certified block."""
    for spread in ("spread", "Gaussian"):
        works = [f"{d}x{s} bfloat16 {spread}" for d, s in SIZES]
        found = [rows[work, "block, times as fast"] for work in works]
        survivors = " / ".join(f"{100 * rows[work, 'survivors']['value']:.1f} %" for work in works)
        shown = " / ".join(map(times, found))
        name = f"certified block, bfloat16, 3 % active, {spread} weights and inputs"
        yield (name, "dense PyTorch", "2.2x", f"{shown} (not proved off: {survivors})")
    difference = max(row["value"] for row in starting(rows, "output, relative difference").values())
    yield ("the same, output against float64", "-", "2e-6", f"{difference:.1e} at most")


def auto(rows: Rows) -> Iterator[Line]:
    """Auto over all sizes and densities, and the cost of a call."""
    autos = starting(rows, "auto (")
    least = min(autos, key=lambda work: autos[work]["value"])
    most = max(autos, key=lambda work: autos[work]["value"])
    missed = sum(row["met"] is False for row in autos.values())
    shown = f"{autos[least]['value']:.2f}x ({least}) to {autos[most]['value']:.2f}x ({most})"
    yield (
        f"sparsify, auto, {len(autos)} sizes, dtypes and densities from 0 to 100 %",
        "the dense model",
        "never below 0.97x",
        shown + (f", missed at {missed}" if missed else ""),
    )
    for method in ("exact", "certified"):
        row = rows["16-32 float32", f"{method}, overhead of a call"]
        name, shown = f"overhead of a call of a block, {method}", f"{row['value']:.1f} us{verdict(row)}"
        yield (name, "nn.Linear", f"{row['most']:g} us", shown)


def trained(rows: Rows) -> Iterator[Line]:
    """The small transformer, end to end."""
    work = next((work for work, quantity in reversed(rows) if quantity == "share of the bound"), "")
    faster, bound, share = (
        rows[work, quantity]
        for quantity in ("auto, times as fast", "Amdahl bound of the methods chosen", "share of the bound")
    )
    name = f"tokens/s of a transformer trained here ({work})"
    shown = f"{times(faster)}, {share['value']:.2f} of its bound {bound['value']:.2f}x{verdict(share)}"
    yield (name, "the dense model", "0.7 of the Amdahl bound", shown)


SECTIONS: Final = (blocks, screen, auto, trained)
