"""A figure of an experiment: how rows become a frame, and a frame a drawing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from sparsact.reports.figure import Frame
from sparsact_papers.experiments import Rows


@dataclass(frozen=True)
class Chart:
    """One figure.

    Attributes
    ----------
    name : str
        Unique within the experiment; becomes part of the names of saved files.
    title, caption : str
        What is shown; what the marks and bars mean.
    frame : callable
        Rows of the experiment to the figure's numbers. No numbers (columns of length 0): no figure.
    plot : callable
        Draws the numbers.
    """

    name: str
    title: str
    caption: str
    frame: Callable[[Rows], Frame]
    plot: Callable[[Frame], Figure]
