"""Figures of the statistical-query ledger."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Interval, Rows, median_of, range_of
from sparsact.experiments.paper_a.statistical_queries import LEARNED, contestants, successful_queries
from sparsact.reports.chart import Chart
from sparsact.reports.curves import plot_curves
from sparsact.reports.frame import Frame

NEEDED = "needed (Theorem 14)"


def frame(rows: Rows) -> Frame:
    """Fewest queries or examples of a learner that succeeds, for each kind of access and number of bits."""
    points: list[tuple[str, int, Interval]] = []
    for (m,), group in rows.groups("m").items():
        fewest = [min(one["queries"] for one in successful_queries(Rows([row]))) for row in group]
        points.append(("statistical queries", m, median_of(fewest)))
        for learner, unit in (("elimination", "examples"), ("heavy coefficients", "queries")):
            of = [one for one in contestants(group, learner=learner) if one["error"] <= LEARNED]
            if of:
                points.append((f"{learner}, {unit}", m, median_of([one[unit] for one in of])))
        if group[0]["needed"] >= 1:
            points.append((NEEDED, m, range_of([group[0]["needed"]])))
    points.sort(key=lambda point: point[0])
    return {
        "series": [name for name, _, _ in points],
        "m": [m for _, m, _ in points],
        "count": [one.estimate for _, _, one in points],
        "low": [one.low for _, _, one in points],
        "high": [one.high for _, _, one in points],
        "repetitions": [one.n for _, _, one in points],
    }


def plot(frame: Frame) -> Figure:
    """Counts against bits, the counts logarithmic."""
    return plot_curves(frame, x_label="bits m", y_label="queries or examples", log_y=10, lines=(NEEDED,))


CHARTS = (
    Chart(
        "queries",
        "What a learner of a lifted parity asks for",
        "Of learners with error at most 1/3: median over seeds, bars: its interval. Statistical queries are answered "
        "by an adversary at tolerance 0.1; elimination sees examples, heavy coefficients asks for values at points.",
        frame,
        plot,
    ),
)
