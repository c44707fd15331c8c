"""Figures of the lower bounds: needed widths, errors by width, and distances in the analytic family."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows, median_of
from sparsact_papers.reports.curves import curves, joined, plot_curves

DEVIATION, LINEAR = "standard deviation of the target", "best linear function, root mean square"


def _inverse(rows: Rows) -> Rows:
    """Rows of widths, with 1 / eps among their values."""
    return Rows(row.with_values(inverse=1 / row["epsilon"]) for row in rows.where(part="width"))


def needed_frame(rows: Rows) -> Frame:
    """Least width, buckets and cones against 1 / eps."""
    found = _inverse(rows)
    return joined(
        *(
            curves(_with(found, column), series=_named(name), x="inverse", y=column, y_name="number")
            for column, name in (("needed", "dense width"), ("buckets", "buckets of the hash"), ("n_cones", "cones"))
        )
    )


def _with(found: Rows, column: str) -> Rows:
    """Rows in which a goal was met."""
    return Rows(row for row in found if row[column] is not None)


def _named(name: str) -> Callable[[Row], str]:
    return lambda row: f"{name}, k = {row['k']}"


def needed_plot(frame: Frame) -> Figure:
    """Numbers against 1 / eps."""
    cones = [name for name in dict.fromkeys(frame["series"]) if name.startswith("cones")]
    return plot_curves(frame, x_label="1 / eps", y_label="number", log_x=10, log_y=10, lines=cones, size=(5.4, 4.6))


def operations_frame(rows: Rows) -> Frame:
    """Products of a forward pass at equal error."""
    found = Rows(row for row in _inverse(rows) if row["needed"])
    dense = curves(
        found,
        series=lambda row: f"dense, k = {row['k']}",
        x="inverse",
        y=lambda row: row["needed"] * row["ambient"],
        y_name="products",
    )
    hashed = curves(
        found, series=lambda row: f"hash, k = {row['k']}", x="inverse", y="hash_operations", y_name="products"
    )
    return joined(dense, hashed)


def operations_plot(frame: Frame) -> Figure:
    """Products against 1 / eps."""
    return plot_curves(frame, x_label="1 / eps", y_label="products in a forward pass", log_x=10, log_y=10)


def error_frame(rows: Rows) -> Frame:
    """Largest error over eps against width, for the least eps of each dimension."""
    found = rows.where(part="width")
    hard = Rows(
        row for group in found.groups("k").values() for row in group.where(epsilon=min(group.column("epsilon")))
    )
    unfolded = Rows(
        row.with_values(width=width, share=error / row["epsilon"])
        for row in hard
        for width, error in zip(row["widths"], row["sup_errors"], strict=True)
    )
    frame = curves(unfolded, series=lambda row: f"k = {row['k']}, eps = {row['epsilon']}", x="width", y="share")
    return joined(frame, _level(DEVIATION, hard, "deviation", frame), _level(LINEAR, hard, "linear_rmse", frame))


def _level(name: str, found: Rows, column: str, frame: Frame) -> Frame:
    """A horizontal line over the widths of a frame: the median of a column over eps."""
    ends = [min(frame["width"]), max(frame["width"])]
    height = median_of(found.array(column) / found.array("epsilon"))
    level = {"series": name, "share": height.estimate, "low": height.low, "high": height.high, "repetitions": height.n}
    return {column: ends if column == "width" else [level[column]] * len(ends) for column in frame}


def error_plot(frame: Frame) -> Figure:
    """Largest error against width."""
    return plot_curves(
        frame,
        x_label="width of the dense model",
        y_label="largest error / eps",
        log_x=10,
        log_y=10,
        lines=(DEVIATION, LINEAR),
        levels={"goal: eps / 2": 0.5},
    )


def pairs_frame(rows: Rows) -> Frame:
    """Distances of pairs over what (10) prints, by dimension."""
    found = Rows(row for row in rows.where(part="pair") if row["differing"])
    largest = curves(
        found, series=lambda _: "largest difference", x="k", y=lambda row: row["sup"] / row["printed"], y_name="ratio"
    )
    rms = curves(
        found, series=lambda _: "root mean square", x="k", y=lambda row: row["rms"] / row["printed"], y_name="ratio"
    )
    return joined(largest, rms)


def pairs_plot(frame: Frame) -> Figure:
    """Ratios against dimension."""
    return plot_curves(
        frame,
        x_label="dimension k",
        y_label="difference / inequality (10)",
        log_y=10,
        levels={"what (10) says is the least": 1.0},
    )


CHARTS = (
    Chart(
        "needed",
        "Width, buckets and cones for a largest error of eps / 2",
        "Median over seeds with its interval. Cones: members of the family differ in their signs.",
        needed_frame,
        needed_plot,
    ),
    Chart(
        "operations",
        "Products of a forward pass at equal error",
        "Dense: d w of the bottom layer; hash: d K with K = 4k directions. d = 8.",
        operations_frame,
        operations_plot,
    ),
    Chart(
        "error",
        "Largest error against width",
        "At the least eps of each dimension; the function 0 has error eps. Median over seeds with its interval.",
        error_frame,
        error_plot,
    ),
    Chart(
        "pairs",
        "Distance of two analytic members over the printed bound",
        "Median over seeds and numbers of frequencies, with its interval. Below 1 a pair contradicts inequality (10).",
        pairs_frame,
        pairs_plot,
    ),
)
