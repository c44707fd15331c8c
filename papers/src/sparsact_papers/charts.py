"""Curves with error bars, alone or in panels: the frames and drawings that most experiments need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sparsact.reports.figure import COLOURS, GREY, INK, Frame, figure, rows, scale, styled
from sparsact_papers.intervals import Interval, median_of
from sparsact_papers.results import Row, Rows

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def curves(
    found: Rows,
    *,
    series: str | Callable[[Row], str],
    x: str,
    y: str | Callable[[Row], float],
    y_name: str = "",
    interval: Callable[[Any], Interval] = median_of,
) -> Frame:
    """One row for each series and x: the estimate of y over the repetitions, with its limits.

    Parameters
    ----------
    found : Rows
    series : str or callable
        A column, or what a row belongs to.
    x : str
        A column.
    y : str or callable
        A column, or what is computed from a row.
    y_name : str
        Heading of y; the column's name if empty.
    interval : callable
        From values to an :class:`~sparsact_papers.experiments.Interval`.
    """
    values: dict[tuple[str, Any], list[float]] = {}
    for row in found:
        key = (str(row[series]) if isinstance(series, str) else series(row), row[x])
        values.setdefault(key, []).append(float(row[y]) if isinstance(y, str) else y(row))
    order = list(dict.fromkeys(name for name, _ in values))  # as the rows tell them
    keys = sorted(values, key=lambda key: (order.index(key[0]), key[1]))
    over = [interval(values[key]) for key in keys]
    return {
        "series": [name for name, _ in keys],
        x: [at for _, at in keys],
        y_name or (y if isinstance(y, str) else "y"): [one.estimate for one in over],
        "low": [one.low for one in over],
        "high": [one.high for one in over],
        "repetitions": [one.n for one in over],
    }


def joined(*frames: Frame) -> Frame:
    """Frames with the same columns, one below the other."""
    return {name: [value for frame in frames for value in frame[name]] for name in frames[0]}


def by_width(rows: Rows, columns: dict[str, str], x: str) -> Frame:
    """Medians over seeds at every width: of lists ``columns`` (name of the series: column) against the list ``x``."""
    frames: list[Frame] = []
    for name, column in columns.items():
        for (k,), group in rows.groups("k").items():
            places = range(min(len(row[x]) for row in group))
            at = [median_of([row[x][i] for row in group]).estimate for i in places]
            found = [median_of([_entry(row, column, i) for row in group]) for i in places]
            frames.append(
                {
                    "series": [f"{name}k = {k}"] * len(at),
                    x: at,
                    "y": [one.estimate for one in found],
                    "low": [one.low for one in found],
                    "high": [one.high for one in found],
                    "repetitions": [one.n for one in found],
                }
            )
    return joined(*frames)


def _entry(row: Row, column: str, i: int) -> float:
    value = row[column]
    return float(value[i] if isinstance(value, list) else value)


@styled
def plot_curves(
    frame: Frame,
    *,
    x_label: str,
    y_label: str,
    log_x: float = 0,
    log_y: float = 0,
    lines: Sequence[str] = (),
    levels: Mapping[str, float] | None = None,
    size: tuple[float, float] = (5.4, 4.2),
) -> Figure:
    """Draw a frame of :func:`curves`.

    Parameters
    ----------
    frame : dict
    x_label, y_label : str
        With units.
    log_x, log_y : float
        Base of a logarithmic axis; 0 for a linear one.
    lines : sequence of str
        Series that are references (a theory, a baseline): drawn as a thin line without marks and bars.
    levels : mapping of str to float
        Horizontal references.
    size : pair of float
        Inches.
    """
    drawing = figure(*size)
    axes = drawing.subplots()
    draw_curves(axes, frame, lines=lines, levels=levels or {})
    scale(axes, log_x=log_x, log_y=log_y)
    if not log_x and all(isinstance(at, int) for at in list(frame.values())[1]):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing


def draw_curves(axes: Axes, frame: Frame, *, lines: Sequence[str] = (), levels: Mapping[str, float]) -> None:
    """Draw a frame of :func:`curves` on axes; ``plot_curves`` is this with a frame around it."""
    points: dict[str, list[tuple[Any, ...]]] = {}
    for name, *point in rows(frame):
        points.setdefault(name, []).append(tuple(point))
    marked = [name for name in points if name not in lines]
    for i, (name, curve) in enumerate((name, points[name]) for name in marked):
        x, y, low, high, *_ = (np.asarray(column, dtype=float) for column in zip(*curve, strict=True))
        bars = np.clip([y - low, high - y], 0, None)
        bars[~np.isfinite(bars)] = 0  # one repetition: its interval has no end
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        axes.errorbar(x, y, bars, color=colour, marker=marker, ms=5, lw=1.5, capsize=2.5, label=name)
    dashes = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
    for i, (name, curve) in enumerate((name, points[name]) for name in points if name in lines):
        axes.plot(
            [point[0] for point in curve],
            [point[1] for point in curve],
            color=GREY,
            lw=1.3,
            ls=dashes[i % len(dashes)],
            label=name,
        )
    for i, (name, level) in enumerate(levels.items()):
        axes.axhline(level, color=INK, lw=0.9, ls=dashes[(i + 1) % len(dashes)], label=name)
    axes.grid(visible=True)


COLUMNS = 2


def panelled(frames: Mapping[str, Frame]) -> Frame:
    """Frames of curves as one, with a first column that names the panel."""
    names = next(iter(frames.values()))
    return {
        "panel": [panel for panel, frame in frames.items() for _ in frame["series"]],
        **{name: [value for frame in frames.values() for value in frame[name]] for name in names},
    }


@styled
def plot_panels(frame: Frame, *, x_label: str, y_label: str, log_y: float = 0) -> Figure:
    """Draw a frame of :func:`panelled`."""
    names = list(dict.fromkeys(frame["panel"]))
    lines = -(-len(names) // COLUMNS)
    drawing = figure(6.4, 0.8 + 2.9 * lines)
    panels = drawing.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(panels.flat, names, strict=False):
        kept = [i for i, other in enumerate(frame["panel"]) if other == panel]
        part: Frame = {name: [column[i] for i in kept] for name, column in frame.items() if name != "panel"}
        draw_curves(axes, part, levels={})
        axes.set_title(panel)
    for axes in panels.flat:  # which share their limits, known by now
        scale(axes, log_x=0, log_y=log_y)
    for axes in panels[-1]:
        axes.set_xlabel(x_label)
    for axes in panels[:, 0]:
        axes.set_ylabel(y_label)
    drawing.legend(*panels[0, 0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=4)
    return drawing
