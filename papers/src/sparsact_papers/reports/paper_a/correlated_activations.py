"""Figures of correlated activations: sensitivity and bounds, errors, recovery."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.experiments.paper_a.correlated_activations import DEGREE, INDEPENDENT, OPPOSED, SAME
from sparsact_papers.reports.curves import curves, joined, plot_curves

CORRELATION = "correlation rho of the linear functions of a pair"
KINDS = (SAME, OPPOSED)
LEARNERS = {f"degree {DEGREE}": "error", "ERM": "erm_error"}
LEAST = 1e-6  # smaller errors are drawn here


def _level(rows: Rows, of: str, over: str | None, name: str, y_name: str) -> Frame:
    """What independent trees give, as a horizontal line over all correlations."""
    one = curves(
        rows.where(kind=INDEPENDENT),
        series=lambda _: name,
        x="rho",
        y=lambda row: row[of] / row[over] if over else row[of],
        y_name=y_name,
    )
    wide = rows.distinct("rho")
    return (
        one if not one["rho"] else {column: list(values) * len(wide) for column, values in one.items()} | {"rho": wide}
    )


def bound_frame(rows: Rows) -> Frame:
    """Median over seeds of AS and of the bound by activity, in units of 4 k^2 W^2."""
    parts = [
        curves(
            rows.where(kind=kind),
            series=lambda row: f"AS, {row['kind']}",
            x="rho",
            y=lambda row: row["sensitivity"] / row["bound"],
            y_name="share",
        )
        for kind in KINDS
    ]
    activity = curves(
        rows.where(kind=SAME),
        series=lambda _: "4 W^2 E[active^2]",
        x="rho",
        y=lambda row: row["bound_by_activity"] / row["bound"],
        y_name="share",
    )
    return joined(*parts, _level(rows, "sensitivity", "bound", f"AS, {INDEPENDENT}", "share"), activity)


def plot_bound(frame: Frame) -> Figure:
    """Shares of the bound against the correlation."""
    return plot_curves(
        frame,
        x_label=CORRELATION,
        y_label="share of the bound 4 k^2 W^2",
        log_y=10,
        lines=(f"AS, {INDEPENDENT}", "4 W^2 E[active^2]"),
        levels={"4 k^2 W^2": 1.0},
    )


def error_frame(rows: Rows) -> Frame:
    """Median over seeds of error / variance of least squares and of ERM."""
    parts, levels = [], []
    for learner, column in LEARNERS.items():
        for kind in KINDS:
            name, own = f"{learner}, {kind}", rows.where(kind=kind)
            parts.append(curves(own, series=_called(name), x="rho", y=_share(column), y_name="error / variance"))
        levels.append(_level(rows, column, "variance", f"{learner}, {INDEPENDENT}", "error / variance"))
    return joined(*parts, *levels)


def _called(name: str) -> Callable[[Row], str]:
    return lambda _: name


def _share(column: str) -> Callable[[Row], float]:
    return lambda row: float(max(row[column] / row["variance"], LEAST))


def plot_error(frame: Frame) -> Figure:
    """Errors against the correlation."""
    lines = tuple(f"{learner}, {INDEPENDENT}" for learner in LEARNERS)
    return plot_curves(frame, x_label=CORRELATION, y_label="squared error / variance", log_y=10, lines=lines)


def overlap_frame(rows: Rows) -> Frame:
    """Median over seeds of the overlap of learned and planted units, and of the units of a pair."""
    parts = [
        curves(rows.where(kind=kind), series=lambda row: f"learned, {row['kind']}", x="rho", y="overlap")
        for kind in KINDS
    ]
    pair = curves(
        rows.where(kind=SAME), series=lambda _: "the two units of a pair", x="rho", y="together", y_name="overlap"
    )
    return joined(*parts, _level(rows, "overlap", None, f"learned, {INDEPENDENT}", "overlap"), pair)


def plot_overlap(frame: Frame) -> Figure:
    """Overlaps against the correlation."""
    return plot_curves(
        frame,
        x_label=CORRELATION,
        y_label="mean overlap of active sets (Jaccard)",
        lines=(f"learned, {INDEPENDENT}", "the two units of a pair"),
    )


CHARTS = (
    Chart(
        "sensitivity",
        "Average sensitivity and its bounds against correlation",
        "Median over seeds and its interval, exact over the cube, in units of 4 k^2 W^2; dashed: independent trees, "
        "and the bound by activity of pairs of the same sign.",
        bound_frame,
        plot_bound,
    ),
    Chart(
        "errors",
        "Errors against correlation",
        "Median over seeds and its interval, exact over the cube; errors below a millionth of the variance are drawn "
        "there.",
        error_frame,
        plot_error,
    ),
    Chart(
        "overlap",
        "Recovery of the units against correlation",
        "Median over seeds and its interval: learned units matched one to one with planted ones. Dashed: independent "
        "trees; and how far the active sets of the two units of a pair agree.",
        overlap_frame,
        plot_overlap,
    ),
)
