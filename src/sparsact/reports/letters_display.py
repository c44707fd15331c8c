"""Effects of the letters of each site as a heat map, in scikit-learn's style; the report's figure is this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.reports.displays import MOST_LABELS, Drawn, heat_map
from sparsact.reports.figure import INK, shortened, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsact.fourier import Anova
    from sparsact.learners import LettersRegressor

FILLED: Final = 0.5  # share of the cells that have a letter, above which a column is a letter
LONGEST_IN_CELL: Final = 6


class LettersDisplay(Drawn):
    """Heat map of the mean effect of each letter at each site: a row per site, and a column per letter.

    Where sites have few letters in common, as categories have, letters stand in their cells.

    Parameters
    ----------
    effects : sequence of array-like of shape (q_i,)
        Of the letters of each site.
    letters : sequence of sequence of str, optional
        Letters of each site; by default their numbers.
    feature_names : sequence of str, optional
        Names of the sites.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.

    Examples
    --------
    >>> from sparsact.fourier import anova
    >>> anova([[0.0, 3.0], [0.0, 1.0]]).plot(letters=["AB", "AB"]).effects
    [array([ 0.5, -0.5]), array([-1.,  1.])]
    """

    def __init__(
        self,
        *,
        effects: Sequence[ArrayLike],
        letters: Sequence[Sequence[str]] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.effects = [np.asarray(one, dtype=np.float64) for one in effects]
        numbers = [list(map(str, range(len(one)))) for one in self.effects]
        self.letters = [list(map(str, one)) for one in letters] if letters else numbers
        self.feature_names = list(feature_names or (f"x{i}" for i in range(len(self.effects))))
        sizes, named = [len(one) for one in self.effects], [len(one) for one in self.letters]
        if named != sizes or len(self.feature_names) != len(sizes):
            raise ValueError(
                f"{len(self.feature_names)} sites of {named} letters are named, but effects have {sizes} letters; "
                "pass a name for each."
            )

    @classmethod
    def from_anova(
        cls,
        found: Anova,
        *,
        letters: Sequence[Sequence[str]] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the components of single sites, of :func:`sparsact.fourier.anova`."""
        effects = [found.component((site,)) for site in range(found.n_sites)]
        return cls(effects=effects, letters=letters, feature_names=feature_names).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: LettersRegressor, *, feature_names: Sequence[str] | None = None, ax: Axes | None = None
    ) -> Self:
        """Plot the effects in a fitted :class:`~sparsact.LettersRegressor`, all letters equally frequent."""
        names = feature_names if feature_names is not None else getattr(estimator, "feature_names_in_", None)
        return cls.from_anova(estimator.anova(), letters=estimator.letters_, feature_names=names, ax=ax)

    @styled
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; blue raises the function, vermilion lowers it, and grey cells have no letter."""
        columns, values = self.table()
        axes = self._axes(ax, self.size)
        heat_map(axes, values, columns, self.feature_names)
        if not columns:
            axes.set_xticks([])
            for row, letters in enumerate(self.letters):
                for place, letter in enumerate(letters):
                    axes.text(place, row, letter[:LONGEST_IN_CELL], ha="center", va="center", color=INK, fontsize=7)
        return self

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that suit the table, in inches."""
        n_rows, n_columns = self.table()[1].shape
        longest = max(len(shortened(name)) for name in self.feature_names)
        return 2.0 + 0.08 * longest + 0.3 * min(n_columns, MOST_LABELS), 1.2 + 0.3 * min(n_rows, MOST_LABELS)

    def table(self) -> tuple[list[str], NDArray[np.float64]]:
        """Effects (sites, columns), NaN where a site lacks the letter, and the columns' letters, if they share them."""
        every = list(dict.fromkeys(letter for letters in self.letters for letter in letters))
        every = sorted(every) if all(len(letter) == 1 for letter in every) else every
        shared = sum(map(len, self.letters)) > FILLED * len(every) * len(self.letters)
        width = len(every) if shared else max(map(len, self.letters))
        values = np.full((len(self.letters), width), np.nan)
        for row, letters, effects in zip(values, self.letters, self.effects, strict=True):
            row[[every.index(letter) for letter in letters] if shared else range(len(letters))] = effects
        return every if shared else [], values
