"""Load of the routed units, balance, drops and misses, and a warning when routing collapses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.routing.array_functions import Array
from sparsact.routing.selection import EMPTY, Selection

LEAST_INPUTS: Final = 30  # with fewer, inputs that happen to be alike look like a collapse
CHOICES_PER_UNIT: Final = 10  # with fewer, chance alone leaves units without inputs: a share of exp(-10) then
MOST_DEAD, LEAST_FAIRNESS = 0.5, 0.25


class RoutingCollapseWarning(UserWarning):
    """The warning that most inputs go to few units."""


@dataclass(frozen=True, eq=False)
class RoutingStatistics:
    """Load of each unit over the inputs so far; statistics of batches can be added.

    Attributes
    ----------
    counts : ndarray of shape (n_units,), int64
        Number of inputs that chose each unit, before any was dropped.
    n_inputs, n_places : int
        Number of inputs without padding, and number of their places for units in total.
    n_dropped, n_missed : int
        Number of inputs that a full unit dropped, and of other empty places; 0 if experts choose their inputs.
    """

    counts: NDArray[np.int64]
    n_inputs: int
    n_places: int
    n_dropped: int
    n_missed: int

    @classmethod
    def of(cls, selection: Selection) -> RoutingStatistics:
        """Statistics of one batch.

        >>> from sparsact.routing import TopK
        >>> print(RoutingStatistics.of(TopK(1)([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])))
        3 inputs over 2 units: the busiest has 1.33 times the mean load, 0 % are never used, Jain index 0.90, 0 % of
        inputs dropped, 0 % of places empty
        """
        counts, empty, dropped = (_plain(a) for a in (selection.counts, selection.indices == EMPTY, selection.dropped))
        real = np.ones_like(dropped) if selection.real is None else _plain(selection.real)
        missed = 0 if selection.is_partial else int(empty[real & ~dropped].sum())
        n_places = int(real.sum()) * empty.shape[1]
        return cls(counts.astype(np.int64), int(real.sum()), n_places, int(dropped.sum()), missed)

    def __add__(self, other: RoutingStatistics) -> RoutingStatistics:
        if len(self.counts) != len(other.counts):
            raise ValueError(f"cannot add statistics of {len(self.counts)} and {len(other.counts)} units.")
        return RoutingStatistics(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def load(self) -> NDArray[np.float64]:
        """Share of all choices that went to each unit, (n_units,)."""
        return np.asarray(self.counts / max(1, int(self.counts.sum())))

    @property
    def imbalance(self) -> float:
        """Load of the busiest unit over the mean load, 1 / n_units; 1 if the load is even."""
        return float(self.load.max() * len(self.counts))

    @property
    def dead_share(self) -> float:
        """Share of units that were never chosen."""
        return float((self.counts == 0).mean())

    @property
    def jain_index(self) -> float:
        r"""Fairness :math:`(\sum_j l_j)^2 / (t \sum_j l_j^2)`: 1 when even, 1 / t when one takes all (Jain, 1984)."""
        squares = float((self.load**2).sum())
        return float(self.load.sum() ** 2 / (len(self.counts) * squares)) if squares else 1.0

    @property
    def entropy(self) -> float:
        """Entropy of the load in bits; log2(n_units) when even."""
        load = self.load[self.load > 0]
        return float(-(load * np.log2(load)).sum())

    @property
    def drop_rate(self) -> float:
        """Share of inputs that a full unit dropped."""
        return self.n_dropped / max(1, self.n_inputs)

    @property
    def miss_rate(self) -> float:
        """Share of places that are empty for a reason other than capacity."""
        return self.n_missed / max(1, self.n_places)

    @property
    def collapsed(self) -> bool:
        """Whether few units do most of the work, after 30 inputs or more.

        The Jain index is then below a quarter of its value for fair random choices, c / (c + t - 1) for c choices among
        t units, as if three quarters of the units were idle; or most units are dead after ten choices for each.
        """
        t, choices = len(self.counts), int(self.counts.sum())
        if self.n_inputs < LEAST_INPUTS or not choices:
            return False
        dead = choices >= CHOICES_PER_UNIT * t and self.dead_share > MOST_DEAD
        return dead or self.jain_index < LEAST_FAIRNESS * choices / (choices + t - 1)

    def __str__(self) -> str:
        return (
            f"{self.n_inputs:,} inputs over {len(self.counts):,} units: the busiest has {self.imbalance:.2f} times the "
            f"mean load, {self.dead_share:.0%} are never used, Jain index {self.jain_index:.2f}, "
            f"{self.drop_rate:.0%} of inputs dropped, {self.miss_rate:.0%} of places empty"
        ).replace("%", " %")


def warn_of_collapse(statistics: RoutingStatistics) -> None:
    """Issue a :class:`RoutingCollapseWarning` with figures and remedies if routing has collapsed.

    Parameters
    ----------
    statistics : RoutingStatistics
        Statistics of the batches so far.

    Examples
    --------
    >>> from sparsact.routing import TopK
    >>> everything_to_one = TopK(1)(np.eye(1, 8).repeat(100, axis=0))
    >>> with warnings.catch_warnings(action="always", record=True) as caught:
    ...     warn_of_collapse(RoutingStatistics.of(everything_to_one))
    >>> caught[0].category.__name__
    'RoutingCollapseWarning'
    """
    if statistics.collapsed:
        warnings.warn(
            f"routing has collapsed: {statistics}. Raise the weight of the auxiliary loss, lower the learning rate of "
            "the gate, or route by a hash.",
            RoutingCollapseWarning,
            stacklevel=2,
        )


def _plain(array: Array) -> NDArray[Any]:
    return array if isinstance(array, np.ndarray) else np.asarray(array.detach().cpu())
