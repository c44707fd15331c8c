"""One self-contained HTML page of a model's activations: who is on, how often, and what that bounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sparsact import files
from sparsact.reports.figure import Display
from sparsact.reports.figures import (
    density_by_layer,
    density_over_rows,
    small_activations,
    speedup_bounds,
    union_density,
    unit_frequency,
)
from sparsact.reports.layer_curves import layers
from sparsact.reports.page import template

if TYPE_CHECKING:
    from sparsact.inference import Measurement

BATCHES = (1, 4, 16, 64)
WORDS = {
    "oracle": "every matrix: rows of active units alone, known for free",
    "exact": "the switch matrix whole, of the others rows of active units",
    "certified": "an 8-bit copy of the switch matrix, then rows of active units",
}

FIGURES = {
    density_by_layer: (
        "Density by layer",
        (
            "Share of units that are active for a row (a token). Dot: mean over rows; bar: from the 5 % to the 95 "
            "% quantile over rows."
        ),
    ),
    density_over_rows: ("Distribution over inputs", "Share of rows whose density is at most so much."),
    unit_frequency: (
        "Units by frequency",
        (
            "In what share of the rows each unit is active, from the most frequent down. A curve ends where the "
            "units that were never active begin; the legend counts them."
        ),
    ),
    union_density: (
        "Rows together",
        (
            "Mean share of units that are active for at least one of so many consecutive rows of a sequence: what "
            "a batch of them reads."
        ),
    ),
    small_activations: (
        "How small the others are",
        (
            "Left: share of activations within so much of zero, as a multiple of their row's root mean square "
            "(rms), exact zeros included. Right: the share of the row's squared norm that goes if they are left "
            "out, on average; it is at most the square of the multiple."
        ),
    ),
    speedup_bounds: (
        "Speed-up bounds",
        (
            "How much faster reading fewer bytes of weights can make a block at most, one row at a time, and the "
            "whole model (Amdahl's law). A bound is not drawn where it is infinite or the method does not apply."
        ),
    ),
}


def render(measurement: Measurement, name: str, versions: Sequence[tuple[str, str]], command: str) -> str:
    """The page, as HTML 5.

    Parameters
    ----------
    measurement : Measurement
    name : str
        Of the model.
    versions : sequence of pairs
        What decides the result, by name.
    command : str
        That makes the page again.
    """
    return template("measurement.html.j2").render(
        measurement=measurement,
        name=name,
        figures=figures(measurement),
        versions=versions,
        command=command,
        batches=BATCHES,
        methods=WORDS,
    )


def write(
    measurement: Measurement, name: str, versions: Sequence[tuple[str, str]], command: str, path: str | Path
) -> None:
    """Write the page."""
    files.write(path, render(measurement, name, versions, command))


def figures(measurement: Measurement) -> list[Display]:
    """All figures, with their numbers."""
    shown = []
    for figure, (title, caption) in FIGURES.items():
        name = figure.__name__.rpartition(".")[2].replace("_", "-")
        told = caption + _selection(measurement, figure)
        shown.append(Display.of(figure, name, title, told, figure.frame(measurement)))
    return shown


def _selection(measurement: Measurement, figure: object) -> str:
    """A remark on layers that a figure of curves leaves out."""
    shown = len(layers(measurement))
    by_curve = figure not in (density_by_layer, speedup_bounds)
    return f" {shown} of {len(measurement.blocks)} layers." if by_curve and shown < len(measurement.blocks) else ""
