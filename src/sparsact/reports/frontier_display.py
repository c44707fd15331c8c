"""Error against bytes and microseconds of the sizes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from sparsact.reports.displays import Drawn
from sparsact.reports.figure import BLUE, VERMILION, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsact.learners import Frontier, FrontierPoint

MARKS: Final = {"float32": ("o", BLUE), "float64": ("s", VERMILION)}
COSTS: Final = {"nbytes": "bytes", "microseconds": "microseconds a row"}


class FrontierDisplay(Drawn):
    """Error against what it costs, a mark each size; the numbers beside the marks count hash tables.

    Parameters
    ----------
    points : sequence of FrontierPoint
        Sizes of a model.
    cost : {"nbytes", "microseconds"}, default="nbytes"
        The horizontal axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import LSHRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> frontier = LSHRegressor(random_state=0).fit(X, np.abs(X).sum(axis=1)).frontier()
    >>> frontier.plot(cost="nbytes").ax_.get_xlabel()
    'bytes'
    """

    def __init__(self, *, points: Sequence[FrontierPoint], cost: str = "nbytes") -> None:
        if cost not in COSTS:
            raise ValueError(f"`cost` must be one of {', '.join(COSTS)}; got {cost!r}.")
        self.points, self.cost = list(points), cost

    @classmethod
    def from_frontier(cls, frontier: Frontier, *, cost: str = "nbytes", ax: Axes | None = None) -> Self:
        """Plot the points of ``model.frontier()``."""
        return cls(points=frontier.points, cost=cost).plot(ax=ax)

    @styled
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; both axes are logarithmic."""
        axes = self._axes(ax, (6.4, 4.0))
        for dtype, (marker, colour) in MARKS.items():
            points = [point for point in self.points if point.dtype == dtype]
            if not points:
                continue
            costs, errors = [getattr(point, self.cost) for point in points], [point.error for point in points]
            axes.plot(costs, errors, marker, color=colour, ms=5.5, label=dtype)
            for point, cost in zip(points, costs, strict=True):
                axes.annotate(str(point.n_tables), (cost, point.error), (4, 4), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", yscale="log")
        axes.legend()
        self._label(COSTS[self.cost], "error (standard deviations)")
        return self
