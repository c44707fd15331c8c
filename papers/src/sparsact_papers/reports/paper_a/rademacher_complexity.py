"""Figures of the Rademacher complexity."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure

from sparsact.reports.figure import Chart, Frame
from sparsact_papers.experiments import Interval, Rows, mean_of, range_of
from sparsact_papers.experiments.paper_a.rademacher_complexity import CUBE, DENSE, ORTHOGONAL, USUAL
from sparsact_papers.experiments.paper_a.rademacher_verdicts import cases, complexities, maxima_of, shares
from sparsact_papers.reports.curves import plot_curves

SPARSE, PAIR, TOGETHER = "1-sparse class", "2-sparse class", "dense class"
UNITS_ALONE, BOUND, CONJECTURE = "s × one unit", "(15), constant 1", "Conjecture 20"
REACHED, LIMIT = "networks of two units", "limit √2"
Point = tuple[str, int, Interval]


def _frame(points: list[Point], x: str, y: str) -> Frame:
    names = ("estimate", "low", "high", "n")
    columns = {name: [getattr(interval, name) for _, _, interval in points] for name in names}
    return {
        "series": [name for name, _, _ in points],
        x: [at for _, at, _ in points],
        y: columns["estimate"],
        "low": columns["low"],
        "high": columns["high"],
        "repetitions": columns["n"],
    }


def _line(name: str, values: list[float]) -> list[Point]:
    return [(name, s, range_of([value])) for s, value in enumerate(values, start=1)]


def frame(rows: Rows, n: int) -> Frame:
    """Complexity on the n-cube with B = WR for each number of units, and the bounds for k = 1."""
    on_cube = rows.where(n=n, bias=USUAL)
    found = cases(on_cube) if on_cube.where(sample=CUBE) else {}
    points: list[Point] = []
    for (_, k, _), group in found.items():
        over = complexities(group)
        points += [(SPARSE if k == 1 else PAIR, s, over[s - 1]) for s in range(k, len(over) + 1)]
    for (s,), group in on_cube.where(sample=DENSE).groups("s").items():
        points.append((TOGETHER, s, mean_of(maxima_of(group))))
    for (_, k, _), group in found.items():
        if k == 1:
            one = complexities(group)[0].estimate
            points += _line(UNITS_ALONE, [one * s for s in range(1, len(group[0]["bound"]) + 1)])
            for name, column in ((CONJECTURE, "conjecture"), (BOUND, "bound")):
                points += _line(name, group[0][column])
    return _frame(points, "units s", "Rademacher complexity")


def plot(frame: Frame) -> Figure:
    """Complexity against the number of units."""
    return plot_curves(
        frame,
        x_label="units s",
        y_label="Rademacher complexity, W = 1",
        log_y=10,
        lines=(UNITS_ALONE, CONJECTURE, BOUND),
    )


def share_frame(rows: Rows) -> Frame:
    """Complexity over the conjecture for every cube, k and B."""
    found = shares(rows, "conjecture") if rows.where(sample=CUBE) else {}
    points = [(f"n = {n}, k = {k}, B = {bias:g} WR", s, share) for ((n, k, bias), s), share in found.items() if n > 2]
    return _frame(points, "units s", "complexity / Conjecture 20")


def plot_share(frame: Frame) -> Figure:
    """The share against the number of units."""
    return plot_curves(
        frame, x_label="units s", y_label="complexity / Conjecture 20", levels={"the conjecture": 1.0}, size=(5.4, 4.6)
    )


def orthogonal_frame(rows: Rows) -> Frame:
    """What networks reach on orthogonal points over the conjecture."""
    found = sorted(rows.where(sample=ORTHOGONAL), key=lambda row: row["n"])
    points = [(REACHED, row["n"], range_of(np.array(row["reached"]) / row["conjecture"])) for row in found]
    exact = [row for row in found if row["exact"]]
    points += [("exact maximum", row["n"], mean_of(np.array(row["exact"]) / row["conjecture"])) for row in exact]
    return _frame(points, "orthogonal points m", "complexity / Conjecture 20")


def plot_orthogonal(frame: Frame) -> Figure:
    """The ratio against the number of points."""
    return plot_curves(
        frame,
        x_label="orthogonal points m",
        y_label="complexity / Conjecture 20, s = 2",
        log_x=2,
        levels={"the conjecture": 1.0, LIMIT: float(np.sqrt(2))},
    )


CAPTION = (
    "Points: over all vectors of signs where n is below 4, else over drawn ones with the 95 % interval of the mean, as "
    "for the dense class, whose units are searched for together. Lines: the bounds of 1-sparse networks, and s times "
    "one unit, which the dense class equals. B = WR."
)
CHARTS = (
    *(
        Chart(f"units-{n}", f"Complexity against units, all points of the {n}-cube", CAPTION, partial(frame, n=n), plot)
        for n in (2, 3, 4)
    ),
    Chart(
        "conjecture",
        "Complexity as a share of Conjecture 20 on the cube",
        "Over all vectors of signs for n = 3, over drawn ones with the 95 % interval for n = 4. Constant 1.",
        share_frame,
        plot_share,
    ),
    Chart(
        "orthogonal",
        "Two units on orthogonal points, as a multiple of Conjecture 20",
        "What 1-sparse networks of two units reach on rows of a Hadamard matrix, with the least and the greatest over "
        "drawn signs; the exact maximum of the class with its 95 % interval, where it can be found.",
        orthogonal_frame,
        plot_orthogonal,
    ),
)
