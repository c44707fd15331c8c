"""Figures of the networks on CIFAR-10: Figure 5, Table 2, and accuracy and loss while training."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, INK, Chart, Frame, figure, rows, styled
from sparsact_papers.experiments import Row, Rows, range_of
from sparsact_papers.experiments.paper_b.cifar10_verdicts import PRINTED, TABLE
from sparsact_papers.reports.curves import MARKERS, curves, draw_curves, joined, plot_curves

ACCURACY, LAST = "accuracy", "here, last epoch"
PERCENT = "test accuracy in %"
SEEDS = "Median over seeds; bars: least and greatest."


def accuracy_frame(found: Rows, x: str) -> Frame:
    """Accuracy of each model after the last epoch, against a column."""
    return curves(found, series="model", x=x, y="last", y_name=ACCURACY, interval=range_of)


def plot_accuracy(frame: Frame, x_label: str) -> Figure:
    """Accuracy against a number of units."""
    return plot_curves(frame, x_label=x_label, y_label=f"{PERCENT}, last epoch", log_x=2)


def epochs_frame(found: Rows, history: str, y_name: str) -> Frame:
    """A history of the models of Table 2: a row a model, number of active units and epoch."""
    frames = []
    for n_active in PRINTED[TABLE[0][0]]:
        epochs = Rows(epoch for row in found.where(n_active=n_active) for epoch in _epochs(row, history, y_name))
        frame = curves(epochs, series="model", x="epoch", y=y_name, interval=range_of)
        frames.append({"n_active": [n_active] * len(frame["epoch"]), **frame})
    return joined(*frames)


def _epochs(row: Row, history: str, y_name: str) -> list[Row]:
    """A row for each epoch of one."""
    return [row.with_values(**{"epoch": 1 + i, y_name: value}) for i, value in enumerate(row[history])]


@styled
def plot_epochs(frame: Frame, y_label: str) -> Figure:
    """A history beside another, for each number of active units."""
    drawing = figure(7.6, 4.2)
    widths = sorted(set(frame["n_active"]))
    panels = drawing.subplots(1, len(widths), sharey=True, squeeze=False)[0]
    for axes, n_active in zip(panels, widths, strict=True):
        kept = [i for i, other in enumerate(frame["n_active"]) if other == n_active]
        part: Frame = {name: [column[i] for i in kept] for name, column in frame.items() if name != "n_active"}
        draw_curves(axes, part, levels={})
        axes.set_title(f"{n_active} active units")
        axes.set_xlabel("epoch")
    panels[0].set_ylabel(y_label)
    drawing.legend(*panels[0].get_legend_handles_labels(), fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


def table_frame(found: Rows) -> Frame:
    """Table 2, a row a cell: here after the last epoch and at the best one, and printed."""
    frame: dict[str, list[object]] = {
        name: [] for name in ("model", "n_active", "last", "low", "high", "best", "printed")
    }
    for model, n_active in TABLE:
        cell = found.where(model=model, n_active=n_active)
        if cell:
            last, best = range_of(cell.array("last")), range_of(cell.array("best"))
            printed = PRINTED[model][n_active]
            values = (model, n_active, last.estimate, last.low, last.high, best.estimate, printed)
            for column, value in zip(frame.values(), values, strict=True):
                column.append(value)
    return {**frame}


@styled
def plot_table(frame: Frame) -> Figure:
    """A place for each cell of the table; measured and printed side by side."""
    drawing = figure(6.4, 4.2)
    axes = drawing.subplots()
    cells = list(rows(frame))
    places = np.arange(len(cells))
    last, low, high, best, printed = (np.array(column, dtype=float) for column in list(zip(*cells, strict=True))[2:])
    bars = [last - low, high - last]
    axes.errorbar(
        *(places - 0.15, last, bars), color=COLOURS[0], marker=MARKERS[0], ms=6, ls="none", capsize=2.5, label=LAST
    )
    axes.plot(places, best, color=COLOURS[1], marker=MARKERS[2], ms=6, ls="none", label="here, best epoch")
    axes.plot(places + 0.15, printed, color=INK, marker="D", mfc="white", ms=6, ls="none", label="printed")
    axes.set_xticks(places, [f"{model}\n{n_active}" for model, n_active, *_ in cells])
    axes.set_xlabel("model and active units")
    axes.set_ylabel(PERCENT)
    axes.grid(visible=True, axis="y")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "active-units",
        "Figure 5: accuracy against active units",
        f"{SEEDS} The paper's comparison: DSM has two or four units for each active one.",
        partial(accuracy_frame, x="n_active"),
        partial(plot_accuracy, x_label="active units"),
    ),
    Chart(
        "width",
        "Accuracy against the width of the layer",
        f"{SEEDS} The same networks by all their units: the parameters that they have.",
        partial(accuracy_frame, x="width"),
        partial(plot_accuracy, x_label="units of the penultimate layer"),
    ),
    Chart(
        "table-2",
        "Table 2: measured and printed",
        f"{SEEDS} The best epoch is the best on the test images, and so optimistic.",
        table_frame,
        plot_table,
    ),
    Chart(
        "epochs",
        "Accuracy while training",
        SEEDS,
        partial(epochs_frame, history="accuracies", y_name=ACCURACY),
        partial(plot_epochs, y_label=PERCENT),
    ),
    Chart(
        "loss",
        "Training loss",
        f"{SEEDS} Mean cross-entropy of the images as they are met in the epoch.",
        partial(epochs_frame, history="losses", y_name="loss"),
        partial(plot_epochs, y_label="cross-entropy in nats"),
    ),
)
