"""Weight by degree of a network, with error bars where it is estimated."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sparsact.reports.figure import BLUE, INK, Frame, figure, styled
from sparsact.reports.network_summary import DegreeWeights


def frame(degrees: DegreeWeights) -> Frame:
    """A row a degree; the standard error is 0 where the weight is exact."""
    total = sum(degrees.weights) or 1.0
    return {
        "degree": list(range(len(degrees.weights))),
        "weight": list(degrees.weights),
        "standard error": list(degrees.errors or [0.0] * len(degrees.weights)),
        "share": [weight / total for weight in degrees.weights],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A bar a degree."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    errors = [2 * error for error in frame["standard error"]]
    axes.bar(
        frame["degree"],
        frame["weight"],
        width=0.7,
        color=BLUE,
        yerr=errors if any(errors) else None,
        ecolor=INK,
        capsize=3,
        label="estimated, ± 2 standard errors" if any(errors) else "exact",
    )
    axes.grid(visible=True, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_ylim(bottom=0)
    axes.margins(y=0.15)
    axes.set_xlabel("degree")
    axes.set_ylabel("weight (squared coefficients)")
    axes.legend(loc="upper right", fontsize=8.5)
    return drawing
