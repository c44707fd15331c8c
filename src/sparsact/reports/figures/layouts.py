"""Error against cost: every layout that was tried, by the memory of its tables."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sparsact.reports.figure import BLUE, GREEN, GREY, INK, VERMILION, Frame, figure, rows, styled
from sparsact.reports.lsh_summary import LSHSummary

COLOURS = {"gradients": BLUE, "standard": VERMILION, "principal": GREEN}
NEAR_TREND = 0.7  # errors from which on the trend's own is worth a line
WIDE = 8.0  # range of costs with fewer labels
MARKERS = {"gradients": "o", "standard": "s", "principal": "^"}


def frame(tables: LSHSummary) -> Frame:
    """One row a layout, the best penalty of each; errors are over that of the linear trend."""
    best = {}
    for trial in sorted(tables.trials, key=lambda trial: -trial.error):
        best[trial.directions, trial.n_rows, trial.width] = trial
    shown = sorted(best.values(), key=lambda trial: (trial.directions, trial.n_rows, trial.n_bytes))
    names = ("directions", "n_rows", "width", "alpha", "n_buckets", "n_bytes", "error", "chosen")
    heads = ("directions", "rows", "width", "ridge penalty", "buckets", "bytes", "error", "chosen")
    return {head: [getattr(trial, name) for trial in shown] for head, name in zip(heads, names, strict=True)}


@styled
def plot(frame: Frame) -> Figure:
    """A line for each kind of directions and number of rows; a ring about the chosen layout."""
    drawing = figure(4.6, 4.2)
    axes = drawing.subplots()
    tried = list(rows(frame))
    most = max(row[1] for row in tried)
    for kind, n_rows in sorted({(row[0], row[1]) for row in tried}, key=lambda pair: (-pair[1], pair[0])):
        line = [(row[5] / 1e6, row[6]) for row in tried if (row[0], row[1]) == (kind, n_rows)]
        whole = n_rows == most
        axes.plot(
            *zip(*line, strict=True),
            color=COLOURS.get(kind, INK),
            marker=MARKERS.get(kind, "D"),
            markerfacecolor=None if whole else "white",
            ls="-" if whole else (0, (3, 2)),
            ms=5,
            lw=1.6 if whole else 1.1,
            label=f"{kind}, {n_rows:,} rows",
        )
    for row in tried:
        if row[7]:
            axes.plot(row[5] / 1e6, row[6], "o", ms=13, mfc="none", mec=INK, mew=1.6, ls="none", label="chosen")
    if max(row[6] for row in tried) > NEAR_TREND:
        axes.axhline(1, color=GREY, lw=1, ls="--", label="linear trend alone")
    axes.set_xscale("log")
    wide = max(row[5] for row in tried) > WIDE * min(row[5] for row in tried)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if wide else (1, 1.5, 2, 3, 5, 7), numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.grid(visible=True)
    axes.margins(x=0.08, y=0.1)
    axes.set_xlabel("cost: memory of the tables / MB")
    axes.set_ylabel("error left out / error of the linear trend")
    drawing.legend(fontsize=8.5, loc="outside upper center", ncols=2)
    return drawing
