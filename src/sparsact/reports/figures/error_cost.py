"""Held-out error of the layouts that were tried, against what they cost."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from sparsact.reports.frame import Frame
from sparsact.reports.hash_summary import HashSummary
from sparsact.reports.style import BLUE, GREEN, INK, SKY, VERMILION, figure, styled

LOOKS = {
    "principal": (BLUE, "o", "-"),
    "standard": (GREEN, "s", "--"),
    "gradients": (VERMILION, "^", "-."),
}


def frame(summary: HashSummary) -> Frame:
    """The best penalty of each layout, by directions, rows and buckets."""
    best: dict[tuple[str, int, int], float] = {}
    for trial in summary.trials:
        key = (trial.directions, trial.n_rows, trial.n_buckets)
        best[key] = min(best.get(key, float("inf")), trial.error)
    ranked = sorted(best.items())
    return {
        "directions": [key[0] for key, _ in ranked],
        "rows": [key[1] for key, _ in ranked],
        "buckets": [key[2] for key, _ in ranked],
        "megabytes": [key[2] * summary.layout.bytes_per_bucket / 1e6 for key, _ in ranked],
        "error": [error for _, error in ranked],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A line a kind of directions and number of rows; the least error is marked."""
    drawing = figure(6.2, 3.8)
    axes = drawing.subplots()
    points = list(zip(*frame.values(), strict=True))
    most_rows = max(frame["rows"])
    for kind, n_rows in dict.fromkeys(zip(frame["directions"], frame["rows"], strict=True)):
        own = [point for point in points if point[:2] == (kind, n_rows)]
        colour, marker, line = LOOKS.get(kind, (SKY, "D", ":"))
        face = colour if n_rows == most_rows else "white"
        axes.plot(
            [point[2] for point in own],
            [point[4] for point in own],
            color=colour,
            marker=marker,
            markerfacecolor=face,
            ls=line,
            lw=1.6,
            label=f"{kind}, {n_rows:,} rows",
        )
    least = min(points, key=lambda point: point[4])
    axes.scatter([least[2]], [least[4]], s=170, facecolors="none", edgecolors=INK, lw=1.4, label="least error")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(whole))
    axes.xaxis.set_minor_formatter(FuncFormatter(whole))
    axes.tick_params(axis="x", which="both", rotation=30)
    axes.grid(visible=True)
    axes.set_xlabel("buckets that hold rows")
    axes.set_ylabel("error on rows left out\n(standard deviations of the target)")
    axes.legend(title="directions")
    return drawing


def whole(value: float, place: int | None = None) -> str:
    """A tick of a logarithmic axis, where its first digit is 1, 2 or 5."""
    return f"{value:,.0f}" if f"{value:e}"[0] in "125" else ""
