"""Figures of the real tables."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from sparsact.reports.figure import COLOURS, INK, Chart, Frame, figure, list_axis, scale, styled
from sparsact_papers.experiments import Rows, mean_of
from sparsact_papers.experiments.paper_a.real_tables import LEAST_ERROR, MODELS, SPARSE
from sparsact_papers.reports.curves import MARKERS, curves, joined

PLACES = {"train": "rows fitted", "test": "fresh rows", "uniform": "uniform points"}
ACROSS = 3  # panels side by side; the last is left to the legend


def error_frame(rows: Rows) -> Frame:
    """Error of each model on each table against the size of its training set: the mean over folds."""
    frames = []
    for (table,), group in rows.groups("table").items():
        found = curves(group, series="model", x="n_train", y=lambda row: max(row["mse"], LEAST_ERROR), y_name="error")
        frames.append({"table": [table] * len(found["error"])} | found)
    names = ("table", "series", "n_train", "error", "low", "high", "repetitions")
    return joined(*frames) if frames else {name: [] for name in names}


@styled
def plot_errors(frame: Frame) -> Figure:
    """A panel a table, a curve a model."""
    tables = list(dict.fromkeys(frame["table"]))
    n_lines = -(-(len(tables) + 1) // ACROSS)
    drawing = figure(3.4 * ACROSS, 3.3 * n_lines)
    panels = drawing.subplots(n_lines, ACROSS, squeeze=False).ravel()
    for axes, table in zip(panels, tables, strict=False):
        for i, model in enumerate(MODELS):
            at = [
                j for j, pair in enumerate(zip(frame["table"], frame["series"], strict=True)) if pair == (table, model)
            ]
            m, error, low, high = ([frame[name][j] for j in at] for name in ("n_train", "error", "low", "high"))
            style = {"color": COLOURS[i], "ls": "-" if model in SPARSE else (0, (4, 2))}
            axes.plot(m, error, marker=MARKERS[i], ms=5, lw=1.3, label=model, **style)
            axes.vlines(m, low, high, color=COLOURS[i], lw=1)
        axes.axhline(1, color=INK, lw=0.8, label="variance")
        scale(axes, log_x=2, log_y=10)
        axes.set_xticks(sorted({m for t, m in zip(frame["table"], frame["n_train"], strict=True) if t == table}))
        axes.set_title(table)
        axes.set_xlabel("training rows")
        axes.grid(visible=True)
    for axes in panels[::ACROSS][: -(-len(tables) // ACROSS)]:
        axes.set_ylabel("mean squared error / variance")
    for axes in panels[len(tables) :]:
        axes.set_axis_off()
    panels[len(tables)].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9.5)
    return drawing


def firing_frame(rows: Rows) -> Frame:
    """The most units on at any point and the mean number, of each sparse network, table and kind of points."""
    names = ("network", "points", "most", "mean", "share_above_k", "units")
    frame: dict[str, list[Any]] = {name: [] for name in names}
    sparse = Rows(row for row in rows if row["model"] in SPARSE)
    for (table, model), group in sparse.groups("table", "model").items():
        for place, called in PLACES.items():
            found = (
                f"{table}, k = {SPARSE[model]}",
                called,
                *(mean_of(group.array(f"{name}_{place}")).estimate for name in ("most", "mean", "above_k")),
                mean_of(group.array("n_units")).estimate,
            )
            for name, value in zip(names, found, strict=True):
                frame[name].append(value)
    return {**frame}


@styled
def plot_firing(frame: Frame) -> Figure:
    """A line a network: filled marks the most, hollow marks the mean."""
    networks = list(dict.fromkeys(frame["network"]))
    drawing = figure(6.4, 1.4 + 0.36 * len(networks))
    axes = drawing.subplots()
    for i, place in enumerate(PLACES.values()):
        at = [j for j, each in enumerate(frame["points"]) if each == place]
        lines = [networks.index(frame["network"][j]) + 0.2 * (i - 1) for j in at]
        for name, face, says in (("most", COLOURS[i], "most"), ("mean", "white", "mean")):
            axes.plot(
                [frame[name][j] for j in at],
                lines,
                lw=0,
                marker=MARKERS[i],
                ms=5.5,
                color=COLOURS[i],
                markerfacecolor=face,
                label=f"{says}, {place}",
            )
    list_axis(axes, networks)
    axes.set_xlim(left=0)
    axes.set_xlabel("active units")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=3)
    return drawing


CHARTS = (
    Chart(
        "errors",
        "Error against training rows",
        "Marks: median over folds; bars: least and greatest. Errors below 1e-6 of the variance are drawn there.",
        error_frame,
        plot_errors,
    ),
    Chart(
        "firing",
        "How many units of the sparse networks fire",
        "Means over folds and sizes. The class bounds the number on the rows fitted only.",
        firing_frame,
        plot_firing,
    ),
)
