"""Curves with error bars, alone or in panels: the frames and drawings that most experiments need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sparsact.reports.figure import COLOURS, GREY, INK, Chart, Frame, figure, rows, scale, styled
from sparsact_papers.intervals import Interval, median_of
from sparsact_papers.results import Row, Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "MARKERS",
    "Chart",
    "Frame",
    "by_width",
    "curve_frame",
    "curve_plot",
    "curves",
    "draw_curves",
    "frame_of",
    "joined",
]
__all__ += ["legend", "level", "panel_plot", "panelled", "panels_of", "plot_curves", "plot_panels"]
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")


def curves(
    found: Rows,
    series: str | Callable[[Row], str],
    x: str,
    y: str | Callable[[Row], float],
    y_name: str = "",
    interval: Callable[[Any], Interval] = median_of,
) -> Frame:
    """One row for each series and x: the estimate of y over the repetitions, with its limits.

    ``series`` names the series of a row; columns stand in braces, as in ``"degree {degree}"``. ``y`` is a column, a
    ratio of two (``"error / variance"``), or what is computed from a row; ``y_name`` is its heading, if it is not the
    column's.
    """
    values: dict[tuple[str, Any], list[float]] = {}
    for row in found:
        name = series.format_map(row) if isinstance(series, str) else series(row)
        values.setdefault((name, row[x]), []).append(float(row[y]) if isinstance(y, str) else y(row))
    order = list(dict.fromkeys(name for name, _ in values))  # as the rows tell them
    keys = sorted(values, key=lambda key: (order.index(key[0]), key[1]))
    return curve_frame([(*key, interval(values[key])) for key in keys], x, y_name or (y if isinstance(y, str) else "y"))


def frame_of(lines: Iterable[Sequence[Any]], *names: str) -> Frame:
    """The frame of lines, which have a value for each name."""
    found = list(lines)
    return {name: [line[i] for line in found] for i, name in enumerate(names)}


def curve_frame(points: Iterable[tuple[str, Any, Interval]], x: str, y: str) -> Frame:
    """The frame of intervals, each with its series and its x."""
    lines = ((name, at, one.estimate, one.low, one.high, one.n) for name, at, one in points)
    return frame_of(lines, "series", x, y, "low", "high", "repetitions")


def level(name: str, height: Interval, frame: Frame) -> Frame:
    """A horizontal line across a frame of curves."""
    x, y = list(frame)[1:3]
    return curve_frame([(name, at, height) for at in (min(frame[x]), max(frame[x]))], x, y)


def joined(*frames: Frame) -> Frame:
    """Frames with the same columns, one below the other."""
    return {name: [value for frame in frames for value in frame[name]] for name in (frames[0] if frames else {})}


def by_width(rows: Rows, columns: dict[str, str], x: str) -> Frame:
    """Medians over seeds at every width: of lists ``columns`` (name of the series: column) against the list ``x``."""
    points = [
        (
            f"{name}k = {k}",
            median_of([row[x][i] for row in group]).estimate,
            median_of([_entry(row, column, i) for row in group]),
        )
        for name, column in columns.items()
        for (k,), group in rows.groups("k").items()
        for i in range(min(len(row[x]) for row in group))
    ]
    return curve_frame(points, x, "y")


def _entry(row: Row, column: str, i: int) -> float:
    value = row[column]
    return float(value[i] if isinstance(value, list) else value)


def curve_plot(x_label: str, y_label: str, **options: Any) -> Callable[[Frame], Figure]:
    """The plot of a chart by :func:`plot_curves`."""
    return partial(plot_curves, x_label=x_label, y_label=y_label, **options)


@styled
def plot_curves(
    frame: Frame,
    x_label: str,
    y_label: str,
    *,
    log: tuple[float, float] = (0, 0),
    lines: Sequence[str] | Callable[[str], bool] = (),
    levels: Mapping[str, float] | None = None,
    size: tuple[float, float] = (5.4, 4.2),
    ticks: bool = False,
    bottom: float | None = None,
) -> Figure:
    """Draw a frame of :func:`curves`.

    ``log`` has the bases of logarithmic axes, x and y, 0 of linear ones. ``lines`` are the series that are
    references (a theory, a baseline), drawn as a thin line without marks and bars; ``levels`` are horizontal
    references. The size is in inches. With ``ticks`` every x that occurs has its tick; ``bottom`` is the lower end of
    the y axis.
    """
    drawing = figure(*size)
    axes = drawing.subplots()
    x = list(frame.values())[1]
    draw_curves(axes, frame, lines=lines, levels=levels or {})
    scale(axes, log_x=log[0], log_y=log[1])
    if not log[0] and all(isinstance(at, int) for at in x):
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if ticks:
        axes.set_xticks(sorted(set(x)), [f"{at:g}" for at in sorted(set(x))])
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing


def draw_curves(
    axes: Axes,
    frame: Frame,
    *,
    lines: Sequence[str] | Callable[[str], bool] = (),
    levels: Mapping[str, float] | None = None,
) -> None:
    """Draw a frame of :func:`curves` on axes; ``plot_curves`` is this with a frame around it."""
    is_line = lines if callable(lines) else lines.__contains__
    points: dict[str, list[tuple[Any, ...]]] = {}
    for name, *point in rows(frame):
        points.setdefault(name, []).append(tuple(point))
    marked = [name for name in points if not is_line(name)]
    for i, (name, curve) in enumerate((name, points[name]) for name in marked):
        x, y, low, high, *_ = (np.asarray(column, dtype=float) for column in zip(*curve, strict=True))
        bars = np.clip([y - low, high - y], 0, None)
        bars[~np.isfinite(bars)] = 0  # one repetition: its interval has no end
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]
        axes.errorbar(x, y, bars, color=colour, marker=marker, ms=5, lw=1.5, capsize=2.5, label=name)
    dashes = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
    for i, (name, curve) in enumerate((name, points[name]) for name in points if is_line(name)):
        axes.plot(*list(zip(*curve, strict=True))[:2], color=GREY, lw=1.3, ls=dashes[i % len(dashes)], label=name)
    for i, (name, level) in enumerate((levels or {}).items()):
        axes.axhline(level, color=INK, lw=0.9, ls=dashes[(i + 1) % len(dashes)], label=name)
    axes.grid(visible=True)


def panelled(frames: Mapping[Any, Frame], heading: str = "panel") -> Frame:
    """Frames of curves as one, with a first column that names the panel."""
    named = ({heading: [panel] * len(frame["series"])} | frame for panel, frame in frames.items())
    return joined(*named)


def panels_of(frame: Frame) -> dict[Any, Frame]:
    """The frames that :func:`panelled` has put together."""
    heading, panels = next(iter(frame.items()))
    kept = {panel: [i for i, other in enumerate(panels) if other == panel] for panel in dict.fromkeys(panels)}
    return {
        panel: {name: [column[i] for i in places] for name, column in frame.items() if name != heading}
        for panel, places in kept.items()
    }


def panel_plot(x_label: str, y_label: str, **options: Any) -> Callable[[Frame], Figure]:
    """The plot of a chart by :func:`plot_panels`."""
    return partial(plot_panels, x_label=x_label, y_label=y_label, **options)


@styled
def plot_panels(
    frame: Frame,
    x_label: str,
    y_label: str,
    *,
    log: tuple[float, float] = (0, 0),
    lines: Sequence[str] = (),
    levels: Mapping[str, float] | None = None,
    columns: int = 2,
    panel: tuple[float, float] = (3.2, 2.9),
    limits: tuple[float, float] | None = None,
    title: str = "{}",
) -> Figure:
    """Draw a frame of :func:`panelled`, in panels of a size in inches that share their axes.

    Series named in ``lines`` have no marks; ``levels`` are horizontal lines by name, ``limits`` the ends of the y axis.
    """
    parts = panels_of(frame)
    n_lines = -(-len(parts) // columns)
    drawing = figure(panel[0] * columns, 0.8 + panel[1] * n_lines)
    panels = drawing.subplots(n_lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, (name, part) in zip(panels.flat, parts.items(), strict=False):
        draw_curves(axes, part, lines=lines, levels=levels)
        axes.set_title(title.format(name))
    for axes in panels.flat:  # which share their limits, known by now
        scale(axes, log_x=log[0], log_y=log[1])
    if limits:
        panels[0, 0].set_ylim(limits)
    for axes in panels[-1]:
        axes.set_xlabel(x_label)
    for axes in panels[:, 0]:
        axes.set_ylabel(y_label)
    legend(drawing, columns=2 * columns if columns < 3 else columns)
    return drawing


def legend(drawing: Figure, *, columns: int) -> None:
    """One legend above all panels, with each label once."""
    marks = {name: mark for axes in drawing.axes for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    drawing.legend(marks.values(), marks.keys(), fontsize=8.5, loc="outside upper center", ncols=columns)
