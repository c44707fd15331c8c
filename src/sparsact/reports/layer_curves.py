"""Curves of a model's layers: which layers are drawn, and how they are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from sparsact.reports.figure import COLOURS, Frame, rows, shortened

if TYPE_CHECKING:
    from sparsact.inference import BlockMeasurement, Measurement

SHOWN = 6
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))


def layers(measurement: Measurement) -> list[BlockMeasurement]:
    """The first and the last layer and some evenly between."""
    blocks = measurement.blocks
    places = np.linspace(0, len(blocks) - 1, min(SHOWN, len(blocks))).round().astype(int)
    return [blocks[place] for place in places]


def label(block: BlockMeasurement) -> str:
    """A block's name; the whole model has none."""
    return block.name or "(the model)"


def draw(axes: Axes, frame: Frame, x: str, y: str, **style: Any) -> None:
    """One line for each layer of a frame, through its rows in order."""
    names = list(dict.fromkeys(frame["layer"]))
    columns = {name: place for place, name in enumerate(frame)}
    for i, name in enumerate(names):
        marks: dict[str, Any] = {"marker": "o", "ms": 4}  # a single point has no line
        of_layer = [row for row in rows(frame) if row[0] == name]
        axes.plot(
            [row[columns[x]] for row in of_layer],
            [row[columns[y]] for row in of_layer],
            color=COLOURS[i % len(COLOURS)],
            ls=DASHES[i % len(DASHES)],
            lw=1.6,
            label=shortened(name),
            **(marks if len(of_layer) == 1 else {}) | style,
        )
    axes.grid(visible=True)
