"""Figures of Theorem 4.1: errors and misses against buckets, errors of dense networks against operations."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows, median_of
from sparsact_papers.experiments.paper_b.theorem_4_1_claims import dense, tables
from sparsact_papers.reports.curves import curves, joined, plot_curves

LISTS = ("buckets", "sup_errors", "mean_errors", "misses")
DEVIATION, LINEAR = "standard deviation of the target", "best linear function, root mean square"


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


def whole_curves(rows: Rows) -> Rows:
    """One row for each dimension and seed, in which the lists of rows that continue each other are joined."""
    found = []
    for parts in tables(rows).groups("k", "seed").values():
        ordered = sorted(parts, key=lambda row: int(row["rows"]))
        lists = {name: [value for row in ordered for value in row[name]] for name in LISTS}
        found.append(ordered[0].with_values(**lists))
    return Rows(found)


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
    found = whole_curves(rows)
    frame = by_width(found, {"": "sup_errors"}, "buckets")
    return joined(frame, *_levels(found, frame, "buckets"))


def mean_frame(rows: Rows) -> Frame:
    """Mean error."""
    found = whole_curves(rows)
    frame = by_width(found, {"": "mean_errors"}, "buckets")
    return joined(frame, *_levels(found, frame, "buckets"))


def misses_frame(rows: Rows) -> Frame:
    """Share of misses."""
    return by_width(whole_curves(rows), {"": "misses"}, "buckets")


def operations_frame(rows: Rows) -> Frame:
    """Largest error of the better dense layer of each width, and of the finest table, against operations."""
    better = Rows(
        min(layers, key=lambda row: float(row["sup_error"]))
        for layers in dense(rows).groups("k", "seed", "operations").values()
    )
    hashed = Rows(row.with_values(sup_error=row["sup_errors"][-1]) for row in whole_curves(rows))
    return joined(
        curves(better, series=lambda row: f"dense, k = {row['k']}", x="operations", y="sup_error"),
        curves(hashed, series=lambda row: f"finest table, k = {row['k']}", x="operations", y="sup_error"),
    )


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
    """Largest error against operations."""
    return plot_curves(
        frame, x_label="multiply-adds of a forward pass", y_label="largest error", log_x=10, log_y=10, size=(5.4, 5.0)
    )


OVER = "Median over seeds with its interval; a point for each width of the hash."
CHARTS = (
    Chart("sup", "Largest error against buckets", OVER + " Theory: slope -1/k.", sup_frame, sup_plot),
    Chart("mean", "Mean error against buckets", OVER, mean_frame, mean_plot),
    Chart("misses", "Misses against buckets", OVER + " A miss goes to the nearest bucket.", misses_frame, misses_plot),
    Chart(
        "operations",
        "Largest error of dense layers against their operations",
        "Median over seeds with its interval. Dense: one hidden layer of ReLU units, trained or random (the widest "
        "only random), whichever errs less. A table's operations are those of its hash, whatever its width.",
        operations_frame,
        operations_plot,
    ),
)
