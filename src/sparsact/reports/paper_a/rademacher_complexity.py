"""Figures of the Rademacher complexities."""

from __future__ import annotations

from matplotlib.figure import Figure

from sparsact.experiments import Interval, Rows, mean_of, range_of
from sparsact.experiments.paper_a.rademacher_complexity import MOST_GROWTH, USUAL
from sparsact.reports.chart import Chart
from sparsact.reports.curves import joined, plot_curves
from sparsact.reports.frame import Frame

CONJECTURE, BOUND = "Conjecture 20, k = 1", "equation (15), k = 1"
COLUMNS = {"sparse": "k = 1", "dense": "dense", "conjecture": CONJECTURE, "sparse_bound": BOUND}
REACHED, ALLOWED = "reached by two units", "Conjecture 20"


def frame(rows: Rows) -> Frame:
    """Complexity for every number of units: exact on the 3-cube (or the 2-cube), and of drawn signs on the largest."""
    cubes = rows.where(sample="cube", B=USUAL)
    exact = [row for row in cubes if row["n_draws"] is None]
    n = max((row["n"] for row in exact), default=0)
    parts = []
    for row in exact:
        if row["n"] == n and row["k"] == 1:
            parts += [_curve(f"{name}, n = {n}", row["units"], _exact(row[c])) for c, name in list(COLUMNS.items())[:2]]
            parts += [_curve(name, row["units"], _exact(row[c])) for c, name in list(COLUMNS.items())[2:]]
        elif row["n"] == n:
            parts.append(_curve(f"k = {row['k']}, n = {n}", row["units"], _exact(row["sparse"])))
    for (size,), blocks in cubes.where(k=1).groups("n").items():
        drawn = [row["sparse"] for row in blocks if row["n_draws"] is not None]
        if len(drawn) > 1:
            means = [mean_of(values) for values in zip(*drawn, strict=True)]
            parts.append(_curve(f"k = 1, n = {size}, drawn signs", blocks[0]["units"], means))
    return joined(*parts) if parts else _curve("", [], [])


def plot(frame: Frame) -> Figure:
    """Complexity against units, both logarithmic."""
    return plot_curves(
        frame,
        x_label="units s",
        y_label="empirical Rademacher complexity",
        log_x=2,
        log_y=10,
        lines=(CONJECTURE, BOUND),
        size=(5.4, 4.8),
    )


def orthogonal_frame(rows: Rows) -> Frame:
    """What is reached and what is allowed on orthogonal points, over W R / sqrt(m), for every number of points."""
    found = sorted(rows.where(sample="orthogonal"), key=lambda row: row["n"])
    sizes = [row["n"] for row in found]
    return joined(
        *(
            _curve(name, sizes, _exact([row[column] for row in found]), "points")
            for name, column in ((REACHED, "reached"), (ALLOWED, "allowed"))
        )
    )


def plot_orthogonal(frame: Frame) -> Figure:
    """Both against the number of points."""
    return plot_curves(
        frame,
        x_label="orthogonal points m = n",
        y_label="complexity (W = 1, R = square root of m)",
        log_x=2,
        lines=(ALLOWED,),
    )


def _curve(name: str, x: list[int], y: list[Interval], heading: str = "units") -> Frame:
    return {
        "series": [name] * len(x),
        heading: list(x),
        "complexity": [one.estimate for one in y],
        "low": [one.low for one in y],
        "high": [one.high for one in y],
        "repetitions": [one.n for one in y],
    }


def _exact(values: list[float]) -> list[Interval]:
    return [range_of([value]) for value in values]


def growth_frame(rows: Rows) -> Frame:
    """Exact complexity over that of one unit, on the largest cube with all signs, a curve for each B."""
    exact = rows.where(sample="cube", k=1, n_draws=None)
    n = max((row["n"] for row in exact), default=0)
    parts = [
        _curve(f"B = {row['B']:g}", row["units"], _exact([one / row["sparse"][0] for one in row["sparse"]]))
        for row in exact
        if row["n"] == n
    ]
    return joined(*parts) if parts else _curve("", [], [])


def plot_growth(frame: Frame) -> Figure:
    """The growth against the units."""
    return plot_curves(
        frame, x_label="units s", y_label="complexity / that of one unit", levels={"limit of the claim": MOST_GROWTH}
    )


CHARTS = (
    Chart(
        "units",
        "Rademacher complexity against units",
        "All points of the cube, W = B = 1. Without bars: exact, over all sign vectors; with bars: mean over blocks of "
        "drawn sign vectors and its 95 % interval. The dense class grows as s.",
        frame,
        plot,
    ),
    Chart(
        "growth",
        "Growth of the one-sparse class for several bounds of the bias",
        "All points of the largest cube with all sign vectors, exact; W = 1, k = 1.",
        growth_frame,
        plot_growth,
    ),
    Chart(
        "orthogonal",
        "Where Conjecture 20 with constant 1 fails",
        "Rows of a Hadamard matrix: a network of two units, one active at each point, lies above what is allowed from "
        "m = 8 on. It is a lower bound on the complexity.",
        orthogonal_frame,
        plot_orthogonal,
    ),
)
