"""Figure of the noise sensitivity."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.reports.curves import curves, joined, plot_curves

LEMMA, OURS = "Lemma 10, k = 1, constant 1", "2(1−ρ)k²W², k = 1"
NOISE = "1 - rho"
COLUMNS = ("sensitivity", "lemma_10", "sharper")


def frame(rows: Rows) -> Frame:
    """Median over seeds of the noise sensitivity at every noise, at the largest n, and both bounds for k = 1."""
    largest = rows.where(n=max(rows.distinct("n")))
    points = Rows([*_points(largest.where(model="sparse")), *_points(largest.where(model="copies", k=1))])
    one = Rows(row for row in points if row["k"] == 1 and row["model"] == "sparse")
    parts = [
        curves(points, series=_name, x=NOISE, y="at_sensitivity", y_name="NS"),
        curves(one, series=lambda _: OURS, x=NOISE, y="at_sharper", y_name="NS"),
        curves(one, series=lambda _: LEMMA, x=NOISE, y="at_lemma_10", y_name="NS"),
    ]
    return joined(*parts)


def _points(rows: Rows) -> Iterator[Row]:
    for row in rows:
        for i, noise in enumerate(row["noise"]):
            yield row.with_values(**{NOISE: noise}, **{f"at_{name}": row[name][i] for name in COLUMNS})


def _name(row: Row) -> str:
    return f"{row['k']}-sparse, random" if row["model"] == "sparse" else "2x₁, 1-sparse"


def plot(frame: Frame) -> Figure:
    """Noise sensitivity against the noise, both logarithmic."""
    return plot_curves(
        frame,
        x_label="noise 1 − ρ",
        y_label="noise sensitivity, W = 1",
        log_x=10,
        log_y=10,
        lines=(OURS, LEMMA),
    )


CHARTS = (
    Chart(
        "against-noise",
        "Noise sensitivity against the noise",
        "Points: median over seeds at the largest n; bars: its interval. The curve of 2x₁ lies on our bound.",
        frame,
        plot,
    ),
)
