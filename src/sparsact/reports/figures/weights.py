"""Weight by degree: how much of the variance each degree carries."""

from __future__ import annotations

from itertools import accumulate

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, VERMILION, Frame, figure, styled
from sparsact.reports.summary import TargetSummary


def frame(target: TargetSummary) -> Frame:
    """Sum of squared coefficients of each degree, itself and as a share of the target's variance."""
    shares = [weight / target.variance for weight in target.weights]
    return {
        "degree": list(range(1, len(target.weights) + 1)),
        "weight": list(target.weights),
        "share of variance": shares,
        "cumulative share": list(accumulate(shares)),
    }


@styled
def plot(frame: Frame) -> Figure:
    """A bar a degree, and the running sum."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    degree, share, total = frame["degree"], frame["share of variance"], frame["cumulative share"]
    axes.bar(degree, share, width=0.6, color=BLUE, label="this degree")
    axes.plot(degree, total, color=VERMILION, marker="D", ms=5, lw=1.6, label="up to this degree")
    axes.set_xticks(degree, [f"{d}\n{s:.1%}" for d, s in zip(degree, share, strict=True)])
    axes.set_xlim(0.4, max(degree) + 0.6)
    axes.set_ylim(0, 1.3 * max(*total, 1e-9))
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree and its share")
    axes.set_ylabel("share of the target's variance")
    axes.legend(loc="upper left", ncols=2, fontsize=8.5)
    return drawing
