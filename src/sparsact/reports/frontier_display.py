"""Error against bytes and microseconds of the sizes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from sparsact.reports.displays import Drawn
from sparsact.reports.figure import BLUE, VERMILION, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsact.learners import Frontier

MARKS: Final = {"float32": ("o", BLUE), "float64": ("s", VERMILION)}
COSTS: Final = {"nbytes": "bytes", "microseconds": "microseconds a row"}


class FrontierDisplay(Drawn):
    """Error against what it costs, a mark each size; the numbers beside the marks count hash tables.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import LSHRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> frontier = LSHRegressor(random_state=0).fit(X, np.abs(X).sum(axis=1)).frontier()
    >>> frontier.plot(cost="nbytes").ax_.get_xlabel()
    'bytes'
    """

    @classmethod
    @styled
    def from_frontier(cls, frontier: Frontier, *, cost: str = "nbytes", ax: Axes | None = None) -> Self:
        """Plot the points of ``model.frontier()`` by ``"nbytes"`` or ``"microseconds"``; both axes are logarithmic."""
        if cost not in COSTS:
            raise ValueError(f"`cost` must be one of {', '.join(COSTS)}; got {cost!r}.")
        drawn = cls()
        axes = drawn._axes(ax, (6.4, 4.0))
        for dtype, (marker, colour) in MARKS.items():
            points = [point for point in frontier.points if point.dtype == dtype]
            costs, errors = [getattr(point, cost) for point in points], [point.error for point in points]
            if points:
                axes.plot(costs, errors, marker, color=colour, ms=5.5, label=dtype)
            for point, at in zip(points, costs, strict=True):
                axes.annotate(str(point.n_tables), (at, point.error), (4, 4), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", yscale="log")
        axes.legend()
        drawn._label(COSTS[cost], "error (standard deviations)")
        return drawn
