"""Figures of Theorem 4.1: errors and misses against buckets, operations against 1 / eps."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Row, Rows, median_of
from sparsact.reports.chart import Chart
from sparsact.reports.curves import joined, plot_curves
from sparsact.reports.frame import Frame

DEVIATION, LINEAR = "standard deviation of the target", "best linear function, root mean square"


def by_width(rows: Rows, columns: dict[str, str], x: str) -> Frame:
    """Medians over seeds at every width: of lists ``columns`` (name of the series: column) against the list ``x``."""
    frames: list[Frame] = []
    for name, column in columns.items():
        for (k,), group in rows.groups("k").items():
            places = range(len(group[0][x]))
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


def _levels(rows: Rows, frame: Frame, x: str) -> list[Frame]:
    """Lines across the figure: deviation of the target and error of the best linear function."""
    ends = [min(frame[x]), max(frame[x])]
    lines: list[Frame] = []
    for name, column in ((DEVIATION, "deviation"), (LINEAR, "linear_rmse")):
        one = median_of(rows.array(column))
        level = {"y": one.estimate, "low": one.low, "high": one.high, "repetitions": one.n, "series": name}
        lines.append({head: ends if head == x else [level[head]] * 2 for head in frame})
    return lines


def sup_frame(rows: Rows) -> Frame:
    """Largest error."""
    frame = by_width(rows, {"": "sup_errors"}, "buckets")
    return joined(frame, *_levels(rows, frame, "buckets"))


def mean_frame(rows: Rows) -> Frame:
    """Mean error."""
    frame = by_width(rows, {"": "mean_errors"}, "buckets")
    return joined(frame, *_levels(rows, frame, "buckets"))


def misses_frame(rows: Rows) -> Frame:
    """Share of misses."""
    return by_width(rows, {"": "misses"}, "buckets")


def operations_frame(rows: Rows) -> Frame:
    """Operations of a forward pass against the reciprocal of the measured largest error."""
    inverse = Rows(row.with_values(inverse=[1 / e for e in row["sup_errors"]]) for row in rows)
    return by_width(inverse, {"dense, ": "dense_operations", "hash, ": "operations"}, "inverse")


def _error_plot(label: str, frame: Frame) -> Figure:
    return plot_curves(frame, x_label="buckets", y_label=label, log_x=10, log_y=10, lines=(DEVIATION, LINEAR))


def sup_plot(frame: Frame) -> Figure:
    """Largest error against buckets."""
    return _error_plot("largest error", frame)


def mean_plot(frame: Frame) -> Figure:
    """Mean error against buckets."""
    return _error_plot("mean absolute error", frame)


def misses_plot(frame: Frame) -> Figure:
    """Misses against buckets."""
    return plot_curves(frame, x_label="buckets", y_label="share of points in empty buckets", log_x=10)


def operations_plot(frame: Frame) -> Figure:
    """Operations against 1 / eps."""
    return plot_curves(
        frame, x_label="1 / largest error", y_label="operations of a forward pass", log_x=10, log_y=10, size=(5.4, 4.6)
    )


OVER = "Median over seeds with its interval; a point for each width of the hash."
CHARTS = (
    Chart("sup", "Largest error against buckets", OVER + " Theory: slope -1/k.", sup_frame, sup_plot),
    Chart("mean", "Mean error against buckets", OVER, mean_frame, mean_plot),
    Chart("misses", "Misses against buckets", OVER + " A miss goes to the nearest bucket.", misses_frame, misses_plot),
    Chart(
        "operations",
        "Operations of a forward pass at equal largest error",
        OVER + " Dense: 2 d w with the width w = (sqrt(d) / eps)^k of Theorem 4.2 (its constant C is unknown, here 1).",
        operations_frame,
        operations_plot,
    ),
)
