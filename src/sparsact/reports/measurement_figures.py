"""Figures of a model's activations: who is on, how often, and what that bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.axes import Axes

from sparsact.reports.figure import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    SKY,
    VERMILION,
    Display,
    Frame,
    chart,
    legend_above,
    list_axis,
    panel,
    panels,
    rows,
    scale,
    shortened,
    width_for,
)

if TYPE_CHECKING:
    from sparsact.inference import BlockMeasurement, Measurement


LAYERS_SHOWN: Final = 6
MAX_POINTS: Final = 200  # of a curve
DASHES: Final = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))


def layers(measurement: Measurement) -> list[BlockMeasurement]:
    """The first and the last layer and some evenly between."""
    blocks = measurement.blocks
    places = np.linspace(0, len(blocks) - 1, min(LAYERS_SHOWN, len(blocks))).round().astype(int)
    return [blocks[place] for place in places]


def label(block: BlockMeasurement) -> str:
    """A block's name; the whole model has none."""
    return block.name or "(the model)"


def _draw(axes: Axes, frame: Frame, x: str, y: str, **style: Any) -> None:
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


def _curves(frame: Frame, x: str, y: str, labels: tuple[str, str], *, percent: str, **style: Any) -> Axes:
    """A new figure of one line for each layer, with ``percent``, one of the two columns, in per cent."""
    axes = panel(5.4, 4.2, x=labels[0], y=labels[1])
    _draw(axes, {**frame, percent: [100 * share for share in frame[percent]]}, x, y, **style)
    legend_above(axes)
    return axes


def density_by_layer_frame(measurement: Measurement) -> Frame:
    """A row for each layer, in the order of the model."""
    blocks = measurement.blocks
    return {
        "layer": [label(block) for block in blocks],
        "mean density": [block.density for block in blocks],
        "5 % of rows below": [block.density_quantile(0.05) for block in blocks],
        "95 % of rows below": [block.density_quantile(0.95) for block in blocks],
    }


@chart(
    "density-by-layer",
    "Density by layer",
    density_by_layer_frame,
    "Share of units that are active in a row (a token). The dot is the mean over rows; the bar holds the middle "
    "90 % of rows.",
)
def density_by_layer_chart(frame: Frame) -> Axes:
    """A dot and a bar a layer."""
    names = [str(name) for name in frame["layer"]]
    axes = panel(width_for(names), 1.2 + 0.25 * max(len(names), 3), x="active units, % of all in the layer")
    low, high = ([100 * value for value in frame[f"{q} % of rows below"]] for q in (5, 95))
    places = range(len(names))
    axes.hlines(places, low, high, color=SKY, lw=5, label="5 % to 95 % of rows")
    axes.plot(
        [100 * mean for mean in frame["mean density"]], places, "o", color=BLUE, ms=6, clip_on=False, label="mean"
    )
    list_axis(axes, names)
    axes.set_xlim(0, 1.05 * max(*high, *(100 * mean for mean in frame["mean density"]), 1))
    legend_above(axes)
    return axes


def density_over_rows_frame(measurement: Measurement) -> Frame:
    """Steps of the distribution function of each layer, from the density of the sparsest row to that of the densest."""
    names: list[str] = []
    densities: list[float] = []
    shares: list[float] = []
    for block in layers(measurement):
        occurring = np.flatnonzero(block.rows_by_active)
        at = np.arange(max(occurring[0] - 1, 0), occurring[-1] + 1)
        at = at[np.unique(np.linspace(0, len(at) - 1, MAX_POINTS).round().astype(int))]
        names += [label(block)] * len(at)
        densities += (at / block.n_units).tolist()
        shares += (block.rows_by_active.cumsum()[at] / block.n_rows).tolist()
    return {"layer": names, "density": densities, "share of rows": shares}


@chart(
    "density-over-rows",
    "Distribution over inputs",
    density_over_rows_frame,
    "Share of rows in which at most this share of the units is active.",
)
def density_over_rows_chart(frame: Frame) -> Axes:
    """A step function a layer."""
    labels = ("active units, % of all in the layer", "share of rows with at most this share")
    axes = _curves(frame, "density", "share of rows", labels, percent="density", drawstyle="steps-post")
    axes.set(xlim=(0, None), ylim=(0, 1.02))
    return axes


def unit_frequency_frame(measurement: Measurement) -> Frame:
    """Units of each layer from the most frequent down, some of them where they are many; dead units end a curve."""
    names: list[str] = []
    ranks: list[float] = []
    shares: list[float | None] = []
    for block in layers(measurement):
        sorted_down = np.sort(block.frequency)[::-1]
        alive = block.n_units - block.n_dead
        at = np.unique(np.linspace(0, max(alive - 1, 0), MAX_POINTS).round().astype(int))
        names += [f"{label(block)}: {block.n_dead:,} dead of {block.n_units:,}"] * len(at)
        ranks += ((at + 1) / block.n_units).tolist()
        shares += sorted_down[at].tolist() if alive else [None]
    return {"layer": names, "rank, as a share of units": ranks, "share of rows": shares}


@chart(
    "unit-frequency",
    "Units by frequency",
    unit_frequency_frame,
    "Share of rows in which each unit is active, most frequent units first. A curve ends where the units that were "
    "never active (dead) begin; the legend counts them.",
)
def unit_frequency_chart(frame: Frame) -> Axes:
    """A falling curve a layer."""
    labels = ("units, % of all in the layer, most frequent first", "share of rows in which the unit is active")
    rank = "rank, as a share of units"
    axes = _curves(frame, rank, "share of rows", labels, percent=rank)
    scale(axes, log_x=0, log_y=10)
    axes.set_xlim(0, 100)
    return axes


def union_density_frame(measurement: Measurement) -> Frame:
    """A row for each layer and number of rows, as far as sequences are long enough."""
    found = [
        (label(block), rows, density)
        for block in layers(measurement)
        for rows, density in ((1, block.density), *block.unions.items())
        if density is not None
    ]
    names, rows, densities = zip(*found, strict=True)
    return {"layer": names, "consecutive rows": rows, "density of the union": densities}


@chart(
    "union-density",
    "Rows together",
    union_density_frame,
    "Mean share of units that are active in at least one of several consecutive rows of a sequence. A batch of "
    "these rows reads the weights of all these units.",
)
def union_density_chart(frame: Frame) -> Axes:
    """A rising curve a layer."""
    labels = ("consecutive rows of a sequence", "units active for any of them, %")
    union = "density of the union"
    axes = _curves(frame, "consecutive rows", union, labels, percent=union, marker="o", ms=4)
    axes.set_xscale("log", base=4)
    ticks = sorted(set(frame["consecutive rows"]))
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(bottom=0)
    return axes


def small_activations_frame(measurement: Measurement) -> Frame:
    """A row for each layer and level."""
    shown = layers(measurement)
    return {
        "layer": [label(block) for block in shown for _ in block.levels],
        "multiple of the rms": [level for block in shown for level in block.levels],
        "share of activations": [float(share) for block in shown for share in block.share_within],
        "share of the squared norm": [float(share) for block in shown for share in block.energy_within],
    }


@chart(
    "small-activations",
    "Small activations",
    small_activations_frame,
    "Left: share of activations that are at most this multiple of the root mean square (rms) of their row, exact "
    "zeros included. Right: the mean share of the row's squared norm that is lost if they are left out; it is at "
    "most the square of the multiple.",
)
def small_activations_chart(frame: Frame) -> Axes:
    """Left, how many lie below a level; right, how much of the norm they hold."""
    axes = panels(8.4, 4.2, 1, 2)
    above = [i for i, level in enumerate(frame["multiple of the rms"]) if level > 0]  # a logarithmic axis has no zero
    shown: Frame = {name: [values[i] for i in above] for name, values in frame.items()}
    for one, column in zip(axes, ("share of activations", "share of the squared norm"), strict=True):
        _draw(one, shown, "multiple of the rms", column)
        scale(one, log_x=10, log_y=0)
        one.set_ylim(-0.02, 1.02)
        one.set_xlabel("|activation| at most, as a multiple of the row's rms")
        one.set_ylabel(column)
    legend_above(axes[0])
    return axes[0]


METHODS: Final = {"oracle": ("s", GREY), "certified": ("D", VERMILION), "exact": ("o", BLUE)}
WHOLE: Final = "whole model"


def speedup_bounds_frame(measurement: Measurement) -> Frame:
    """A row for each layer, and one for the whole model; where a method does not apply, None."""
    found = [block.roofline() for block in measurement.blocks]
    return {
        "layer": [*map(label, measurement.blocks), WHOLE],
        **{method: [*(one and one.speedup(method) for one in found), measurement.bound(method)] for method in METHODS},
    }


@chart(
    "speedup-bounds",
    "Speed-up bounds",
    speedup_bounds_frame,
    "Upper bounds on how much faster each block, and the whole model, becomes by reading fewer bytes of weights, "
    "one row at a time. A bound is missing if it is infinite or the method does not apply.",
)
def speedup_bounds_chart(frame: Frame) -> Axes:
    """A mark for each method, a line of marks for each layer."""
    names = [str(name) for name in frame["layer"]]
    axes = panel(width_for(names), 1.3 + 0.25 * max(len(names), 3), x="times as fast as dense, at most")
    for method, (marker, colour) in METHODS.items():
        drawn = [(x, y) for y, x in enumerate(frame[method]) if x is not None and math.isfinite(x)]
        axes.plot([x for x, _ in drawn], [y for _, y in drawn], marker, color=colour, ms=6, alpha=0.9, label=method)
    list_axis(axes, names)
    axes.axhline(len(names) - 1.5, color=INK, lw=0.8)
    axes.axvline(1, color=INK, lw=0.8)
    scale(axes, log_x=10, log_y=0)
    axes.set_xlim(left=min(0.95, axes.get_xlim()[0]))
    legend_above(axes, ncols=3)
    return axes


CHARTS: Final = (
    density_by_layer_chart,
    density_over_rows_chart,
    unit_frequency_chart,
    union_density_chart,
    small_activations_chart,
    speedup_bounds_chart,
)
WHOLE_MODEL: Final = ("density-by-layer", "speedup-bounds")  # the others draw a curve for each of some layers


def measurement_figures(measurement: Measurement) -> list[Display]:
    """All figures, with a remark on layers that figures of curves leave out."""
    shown, n_layers = len(layers(measurement)), len(measurement.blocks)
    note = f"{shown} of {n_layers} layers." if shown < n_layers else ""
    return [chart.display(measurement, note="" if chart.name in WHOLE_MODEL else note) for chart in CHARTS]
