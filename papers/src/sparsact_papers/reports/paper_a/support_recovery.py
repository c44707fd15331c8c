"""Figures of support recovery: overlap against samples, and against the error."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, Chart, Frame, figure, scale, styled
from sparsact_papers.experiments import Rows
from sparsact_papers.reports.curves import MARKERS, curves, joined, plot_curves

CHANCE = "an unrelated network"
LEAST = 1e-6  # smaller errors are drawn here


def frame(rows: Rows) -> Frame:
    """Median over seeds of the mean overlap, a row a noise and number of samples."""
    found = curves(rows, series=lambda row: f"noise {row['noise']:g} variances", x="m", y="overlap")
    chance = curves(rows, series=lambda _: CHANCE, x="m", y="chance", y_name="overlap")
    return joined(found, chance)


def plot(frame: Frame) -> Figure:
    """Overlap against samples."""
    return plot_curves(
        frame, x_label="samples m", y_label="mean overlap of active sets (Jaccard)", log_x=2, lines=(CHANCE,)
    )


def error_frame(rows: Rows) -> Frame:
    """Error and overlap of every row."""
    return {
        "noise": rows.column("noise"),
        "m": rows.column("m"),
        "error / variance": [max(row["error"] / row["variance"], LEAST) for row in rows],
        "overlap": rows.column("overlap"),
    }


@styled
def plot_error(frame: Frame) -> Figure:
    """Overlap against the exact error, a point a task."""
    drawing = figure(5.4, 4.2)
    axes = drawing.subplots()
    for i, noise in enumerate(sorted(set(frame["noise"]))):
        own = [j for j, each in enumerate(frame["noise"]) if each == noise]
        x, y = ([frame[name][j] for j in own] for name in ("error / variance", "overlap"))
        axes.plot(
            x, y, color=COLOURS[i], marker=MARKERS[i], ls="", ms=5, mfc="none", label=f"noise {noise:g} variances"
        )
    scale(axes, log_x=10, log_y=0)
    axes.set_xlabel("squared error / variance")
    axes.set_ylabel("mean overlap of active sets (Jaccard)")
    axes.grid(visible=True)
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "samples",
        "Overlap with the planted units against samples",
        "Median over seeds and its interval. Learned and planted units are matched one to one; dashed: the same "
        "learned units matched with those of another network of the kind.",
        frame,
        plot,
    ),
    Chart(
        "error",
        "Overlap against error",
        "A point a fit. The error is exact over the cube, against the network without noise; errors below a millionth "
        "of the variance are drawn there.",
        error_frame,
        plot_error,
    ),
)
