"""Held-out R² that each degree adds."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparsact.reports.figure import BLUE, GREY, Frame, figure, styled
from sparsact.reports.summary import CVCandidate, gains


def frame(candidates: Sequence[CVCandidate], degree: int) -> Frame:
    """R² added by each degree to the lower ones, with its 95 % interval."""
    found = gains(candidates, degree)
    return {
        "degree": [gain.degree for gain in found],
        "R² added": [gain.r2 for gain in found],
        "low (95 %)": [gain.low for gain in found],
        "high (95 %)": [gain.high for gain in found],
    }


@styled
def plot(frame: Frame) -> Figure:
    """A bar and its interval for each degree."""
    drawing = figure(4.6, 3.4)
    axes = drawing.subplots()
    degree, added = frame["degree"], frame["R² added"]
    reach = [high - value for high, value in zip(frame["high (95 %)"], added, strict=True)]
    axes.bar(degree, added, width=0.6, color=BLUE, yerr=reach, ecolor=GREY, capsize=4)
    axes.axhline(0, color=GREY, lw=1)
    axes.set_xticks(degree, [f"{d}\n{r2:.1%}" for d, r2 in zip(degree, added, strict=True)])
    axes.set_xlim(min(degree) - 0.6, max(degree) + 0.6)
    axes.grid(visible=True, axis="y")
    axes.set_xlabel("degree and what it adds")
    axes.set_ylabel("held-out R² added")
    return drawing
