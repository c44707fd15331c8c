"""Figures of Theorem C.1: errors against buckets, table sizes measured and printed, what pruning loses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows, median_of
from sparsact_papers.experiments.paper_b.theorem_c_1_claims import FEW
from sparsact_papers.reports.curves import joined, plot_curves
from sparsact_papers.reports.paper_b.theorem_4_1 import by_width

DEVIATION = "standard deviation of the target"
SIZES = {"printed_sizes": "statement, ", "proof_sizes": "proof, "}


def _with(rows: Rows, name: str, of: Callable[[Row], Any]) -> Rows:
    """Rows with one more value."""
    return Rows(row.with_values(**{name: of(row)}) for row in rows)


def _manifolds(rows: Rows, columns: dict[str, str], x: str) -> Frame:
    """The columns of each manifold, in the least ambient dimension."""
    least = rows.where(ambient=min(rows.distinct("ambient")))
    return joined(
        *(
            by_width(group, {f"{manifold}, {name}": column for name, column in columns.items()}, x)
            for (manifold,), group in least.groups("manifold").items()
        )
    )


def _share_frame(rows: Rows, column: str) -> Frame:
    """An error as a share of the target's deviation, with that of the best linear function as lines."""
    shares = _with(rows, "share", lambda row: [e / row["deviation"] for e in row[column]])
    frame = _manifolds(shares, {"": "share"}, "buckets")
    ends = [min(frame["buckets"]), max(frame["buckets"])]
    lines: list[Frame] = []
    for (manifold,), group in rows.groups("manifold").items():
        one = median_of([row["linear_rmse"] / row["deviation"] for row in group])
        level = {"series": f"best linear, {manifold}", "repetitions": one.n}
        level |= {"y": one.estimate, "low": one.low, "high": one.high}
        lines.append({head: ends if head == "buckets" else [level[head]] * 2 for head in frame})
    return joined(frame, *lines)


def mean_frame(rows: Rows) -> Frame:
    """Mean error."""
    return _share_frame(rows, "mean_errors")


def sup_frame(rows: Rows) -> Frame:
    """Largest error."""
    return _share_frame(rows, "sup_errors")


def sizes_frame(rows: Rows) -> Frame:
    """Buckets of a table and both printed sizes, against the reciprocal of the largest error."""
    inverse = _with(rows, "inverse", lambda row: [1 / e for e in row["sup_errors"]])
    printed = inverse.where(ambient=min(rows.distinct("ambient")))
    printed = Rows(row for row in printed if row["manifold"] != "swiss roll")  # as the sphere's: k is the same
    return joined(
        _manifolds(inverse, {"": "buckets"}, "inverse"),
        by_width(printed, {name: column for column, name in SIZES.items()}, "inverse"),
    )


def pruning_frame(rows: Rows) -> Frame:
    """Shares of a table's buckets that are pruned."""
    return _manifolds(rows, {"": "pruned_buckets"}, "buckets")


def lost_frame(rows: Rows) -> Frame:
    """Shares of points without a kept bucket in one table, and in all."""
    return _manifolds(rows, {"one table, ": "pruned_points", "all tables, ": "pruned_by_all"}, "buckets")


def misses_frame(rows: Rows) -> Frame:
    """Shares of points in empty buckets of one table."""
    return _manifolds(rows, {"": "misses"}, "buckets")


def ambient_frame(rows: Rows) -> Frame:
    """Buckets of a table against d / width, in each ambient dimension."""
    gaps = _with(rows, "gaps", lambda row: [row["ambient"] / width for width in row["widths"]])
    return joined(
        *(
            by_width(group, {f"{manifold}, d = {ambient}, ": "buckets"}, "gaps")
            for (manifold, ambient), group in gaps.groups("manifold", "ambient").items()
        )
    )


def _share_plot(label: str, frame: Frame) -> Figure:
    lines = [name for name in dict.fromkeys(frame["series"]) if name.startswith("best linear")]
    return plot_curves(
        frame,
        x_label="buckets of a table",
        y_label=label,
        log_x=10,
        log_y=10,
        lines=lines,
        levels={DEVIATION: 1.0},
        size=(5.6, 4.8),
    )


def mean_plot(frame: Frame) -> Figure:
    """Mean error against buckets."""
    return _share_plot("mean absolute error / standard deviation", frame)


def sup_plot(frame: Frame) -> Figure:
    """Largest error against buckets."""
    return _share_plot("largest error / standard deviation", frame)


def sizes_plot(frame: Frame) -> Figure:
    """Measured and printed sizes."""
    lines = [name for name in dict.fromkeys(frame["series"]) if name.startswith(tuple(SIZES.values()))]
    return plot_curves(
        frame,
        x_label="1 / largest error",
        y_label="buckets of a table",
        log_x=10,
        log_y=10,
        lines=lines,
        size=(5.6, 4.8),
    )


def _shares_plot(label: str, frame: Frame) -> Figure:
    return plot_curves(frame, x_label="buckets of a table", y_label=label, log_x=10, size=(5.6, 4.6))


def pruning_plot(frame: Frame) -> Figure:
    """Pruned buckets against buckets."""
    return _shares_plot("share of buckets pruned", frame)


def lost_plot(frame: Frame) -> Figure:
    """Lost points against buckets."""
    return _shares_plot("share of points without a kept bucket", frame)


def misses_plot(frame: Frame) -> Figure:
    """Misses against buckets."""
    return _shares_plot("share of points in empty buckets of a table", frame)


def ambient_plot(frame: Frame) -> Figure:
    """Buckets against d / width."""
    return plot_curves(
        frame, x_label="ambient dimension d / width", y_label="buckets of a table", log_x=10, log_y=10, size=(5.6, 4.8)
    )


OVER = "Median over seeds with its interval; a point for each width. "
LEAST = OVER + "Ambient dimension 8. "
CHARTS = (
    Chart("mean", "Mean error against buckets", LEAST + "Theory: slope -1/k.", mean_frame, mean_plot),
    Chart("sup", "Largest error against buckets", LEAST + "Theory: slope -1/k.", sup_frame, sup_plot),
    Chart(
        "sizes",
        "Buckets at equal largest error, and the printed table sizes",
        LEAST + "Lines: (sqrt(dk) / eps)^k of the statement and (d^2 sqrt(k) / eps)^k of the proof, constants 1.",
        sizes_frame,
        sizes_plot,
    ),
    Chart("misses", "Misses against buckets", LEAST + "Of one table.", misses_frame, misses_plot),
    Chart(
        "pruning",
        "Buckets lost by pruning",
        LEAST + f"Pruned: buckets of fewer than {FEW} rows.",
        pruning_frame,
        pruning_plot,
    ),
    Chart(
        "lost",
        "Points lost by pruning",
        LEAST + f"Points whose buckets hold fewer than {FEW} rows: in one table (mean over tables) and in all.",
        lost_frame,
        lost_plot,
    ),
    Chart(
        "ambient",
        "Buckets in two ambient dimensions",
        OVER + "D = d directions; curves of one manifold that coincide mean (d / width)^k buckets.",
        ambient_frame,
        ambient_plot,
    ),
)
