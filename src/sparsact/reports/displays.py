"""Pictures of spectra, interactions and variance, as scikit-learn's displays; the report's figures are these."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.reports.figure import BLUE, GREY, INK, PALE, VERMILION, list_axis, shortened, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sparsact.fourier import Anova, Interactions, Spectrum


class HasSpectrum(Protocol):
    """A fitted learner of one target on the cube."""

    @property
    def spectrum_(self) -> Spectrum:
        """Coefficients of the fitted function."""


EDGES: Final = 40  # of a network
MOST_LABELS: Final = 40  # of a heat map
MOST_TOLD: Final = 7  # degrees whose shares are written below the axis


class Drawn:
    """New axes, or the caller's; what scikit-learn calls ``ax_`` and ``figure_``."""

    ax_: Axes
    figure_: Any

    def _axes(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _label(self, x: str, y: str = "") -> None:
        """Labels of axes that have none."""
        self.ax_.set(xlabel=self.ax_.get_xlabel() or x, ylabel=self.ax_.get_ylabel() or y)


class SpectrumDisplay(Drawn):
    """Plot of the strongest coefficients or effects: a dot each, and a bar for its interval.

    Parameters
    ----------
    labels : sequence of str
        What each belongs to.
    values : array-like of shape (k,)
        Coefficients or effects.
    low, high : sequence of float or None, optional
        Intervals, each by itself; a hollow mark has none.
    joint_low, joint_high : sequence of float or None, optional
        Intervals that hold for all at once, as thin lines.
    significant : sequence of bool, optional
        The others are grey.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.

    Examples
    --------
    >>> from sparsact.fourier import Spectrum
    >>> Spectrum.of({(0,): 1.0, (1, 2): -3.0}, n=3).plot(feature_names=["a", "b", "c"]).labels
    ['b × c', 'a']
    """

    def __init__(
        self,
        *,
        labels: Sequence[str],
        values: ArrayLike,
        low: Sequence[float | None] | None = None,
        high: Sequence[float | None] | None = None,
        joint_low: Sequence[float | None] | None = None,
        joint_high: Sequence[float | None] | None = None,
        significant: Sequence[bool] | None = None,
    ) -> None:
        self.labels, self.values = list(labels), np.asarray(values, dtype=np.float64)
        none = [None] * len(self.labels)
        self.low, self.high = list(low or none), list(high or none)
        self.joint_low, self.joint_high = list(joint_low or none), list(joint_high or none)
        self.significant = list(significant or [True] * len(self.labels))

    @classmethod
    def from_estimator(
        cls,
        estimator: HasSpectrum,
        *,
        n_terms: int = 20,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the largest coefficients of a fitted learner of one target, with 95 % intervals if it has them."""
        top = estimator.spectrum_.top(n_terms, min_degree=1)
        subsets, bounds = [subset for subset, _ in top], None
        if hasattr(estimator, "confidence_intervals"):
            try:
                bounds = np.asarray(estimator.confidence_intervals(subsets)).T.tolist()
            except ValueError:  # as many parameters as rows
                bounds = None
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        low, high = bounds or (None, None)
        values = [value for _, value in top]
        return cls(labels=_labels(subsets, feature_names), values=values, low=low, high=high).plot(ax=ax)

    @classmethod
    def from_spectrum(
        cls,
        spectrum: Spectrum,
        *,
        n_terms: int = 20,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the largest coefficients of a spectrum, but for the mean."""
        subsets, values = zip(*spectrum.top(n_terms, min_degree=1), strict=True)
        return cls(labels=_labels(subsets, feature_names), values=values).plot(ax=ax)

    @styled
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw; the first is on top."""
        axes = self._axes(ax, (6.4, 0.9 + 0.27 * max(len(self.labels), 2)))
        ends = (self.low, self.high, self.joint_low, self.joint_high)
        rows = zip(self.values.tolist(), *ends, self.significant, strict=True)
        for place, (value, low, high, joint_low, joint_high, significant) in enumerate(rows):
            colour, marker = (BLUE, "o") if value > 0 else (VERMILION, "s")
            colour = colour if significant else GREY
            if joint_low is not None and joint_high is not None:
                axes.plot([joint_low, joint_high], [place, place], color=colour, lw=0.8)
            if low is not None and high is not None:
                axes.plot([low, high], [place, place], color=colour, lw=2.2, alpha=0.55, solid_capstyle="butt")
            axes.plot(value, place, marker=marker, ms=5.5, color=colour, mfc="white" if low is None else colour)
        axes.axvline(0, color=GREY, lw=1)
        self._label("coefficient" + " (bar: 95 % interval)" * (None not in self.low))
        list_axis(axes, self.labels)
        return self


class InteractionsDisplay(Drawn):
    """Plot of the effects of single columns and of pairs, as a heat map or as a network.

    Parameters
    ----------
    values : ndarray of shape (n, n)
        Of column i on the diagonal, of columns i and j beside it; symmetric, NaN where a pair is not known.
    feature_names : sequence of str, optional
        Names of the columns.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.

    Examples
    --------
    >>> from sparsact.fourier import interactions
    >>> interactions([0.0, 1.0, 1.0, 0.0]).plot(kind="network").values
    array([[ 1., -2.],
           [-2.,  1.]])
    """

    def __init__(self, *, values: ArrayLike, feature_names: Sequence[str] | None = None) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.feature_names = list(feature_names or (f"x{i}" for i in range(len(self.values))))

    @classmethod
    def from_interactions(
        cls,
        interactions: Interactions,
        *,
        feature_names: Sequence[str] | None = None,
        kind: str = "heatmap",
        ax: Axes | None = None,
    ) -> Self:
        """Plot the sets of one and two columns of :func:`sparsact.fourier.interactions`."""
        values = np.zeros((interactions.n, interactions.n))
        for subset, value in interactions.items():
            if 1 <= len(subset) <= 2:
                values[subset[0], subset[-1]] = values[subset[-1], subset[0]] = value
        return cls(values=values, feature_names=feature_names).plot(kind=kind, ax=ax)

    @classmethod
    def from_anova(cls, found: Anova, *, feature_names: Sequence[str] | None = None, ax: Axes | None = None) -> Self:
        """Plot the shares of sites and of pairs in the variance, of :func:`sparsact.fourier.anova`."""
        shares = found.variance_by_pair() / (found.variance_by_degree().sum() or 1.0)
        return cls(values=shares, feature_names=feature_names).plot(ax=ax)

    @styled
    def plot(self, *, kind: str = "heatmap", ax: Axes | None = None) -> Self:
        """Draw a ``"heatmap"``, or a ``"network"``: larger dots and thicker lines are larger values."""
        if kind not in ("heatmap", "network"):
            raise ValueError(f"`kind` is 'heatmap' or 'network'; got {kind!r}.")
        side = 3.0 + 0.22 * min(len(self.values), MOST_LABELS)
        axes = self._axes(ax, (side + 0.8, side))
        if kind == "network":
            self._network(axes)
        else:
            heat_map(axes, self.values, self.feature_names, self.feature_names)
        return self

    def _network(self, axes: Axes) -> None:
        n, values = len(self.values), np.nan_to_num(self.values)
        angle = 2 * np.pi * np.arange(n) / n
        x, y = np.sin(angle), np.cos(angle)
        size = float(np.abs(values).max()) or 1.0
        first, second = np.triu_indices(n, 1)
        strongest = np.argsort(-np.abs(values[first, second]), kind="stable")[:EDGES]
        for i, j in zip(first[strongest].tolist(), second[strongest].tolist(), strict=True):
            if value := float(values[i, j]):
                width = 5 * abs(value) / size
                axes.plot(x[[i, j]], y[[i, j]], color=BLUE if value > 0 else VERMILION, lw=width, alpha=0.6, zorder=1)
        own = np.diagonal(values)
        colours = [BLUE if value > 0 else VERMILION if value < 0 else PALE for value in own]
        axes.scatter(x, y, s=20 + 380 * np.abs(own) / size, c=colours, zorder=2, edgecolors="white")
        for i, name in enumerate(self.feature_names):
            axes.text(1.16 * x[i], 1.16 * y[i], shortened(name), ha="center", va="center", color=INK, fontsize=9)
        axes.set(xlim=(-1.4, 1.4), ylim=(-1.35, 1.35), aspect="equal")
        axes.axis("off")


class VarianceDisplay(Drawn):
    """Plot of the share of each degree in the variance and the running sum, with bands if there is a posterior.

    Parameters
    ----------
    shares : array-like of shape (d,)
        Of the degrees 1 to d.
    low, high : array-like of shape (d,), optional
        Intervals of the shares.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the last plot.

    Examples
    --------
    >>> from sparsact.fourier import Spectrum
    >>> VarianceDisplay.from_spectrum(Spectrum.of({(0,): 1.0, (1, 2): -3.0}, n=3)).shares
    array([0.1, 0.9])
    """

    def __init__(self, *, shares: ArrayLike, low: ArrayLike | None = None, high: ArrayLike | None = None) -> None:
        self.shares = np.asarray(shares, dtype=np.float64)
        self.low, self.high = (None if ends is None else np.asarray(ends, dtype=np.float64) for ends in (low, high))

    @classmethod
    def from_estimator(cls, estimator: HasSpectrum, *, ax: Axes | None = None) -> Self:
        """Plot the shares of a fitted learner; of a Gaussian process with 95 % posterior intervals."""
        if not hasattr(estimator, "variance_decomposition"):
            return cls.from_spectrum(estimator.spectrum_, ax=ax)
        shares = estimator.variance_decomposition().shares
        low, high = shares.interval().T
        shown = max(1, int(np.flatnonzero(high > 0.001).max(initial=0)) + 1)
        return cls(shares=shares.mean()[:shown], low=low[:shown], high=high[:shown]).plot(ax=ax)

    @classmethod
    def from_spectrum(cls, spectrum: Spectrum, *, ax: Axes | None = None) -> Self:
        """Plot the shares of a spectrum, over points of the cube that are equally frequent."""
        weights = spectrum.weight_by_degree()[1 : max(1, spectrum.degree()) + 1]
        return cls(shares=weights / (weights.sum() or 1.0)).plot(ax=ax)

    @classmethod
    def from_anova(cls, found: Anova, *, ax: Axes | None = None) -> Self:
        """Plot the shares of the degrees, of :func:`sparsact.fourier.anova`."""
        by_degree = found.variance_by_degree()
        return cls(shares=by_degree / (by_degree.sum() or 1.0)).plot(ax=ax)

    @styled
    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw a bar a degree."""
        axes = self._axes(ax, (4.6, 3.4))
        degree = np.arange(1, len(self.shares) + 1)
        total: list[float] = list(accumulate(self.shares.tolist()))
        top: NDArray[np.float64] = self.shares if self.high is None else self.high
        axes.bar(degree, self.shares, width=0.6, color=BLUE, label="this degree")
        if self.low is not None and self.high is not None:
            reach = np.maximum([self.shares - self.low, self.high - self.shares], 0)
            axes.errorbar(degree, self.shares, yerr=reach, fmt="none", ecolor=GREY, capsize=4)
        axes.plot(degree, total, color=VERMILION, marker="D", ms=5, lw=1.6, label="up to this degree")
        told = [f"\n{share:.1%}" if len(degree) <= MOST_TOLD else "" for share in self.shares]  # more would overlap
        axes.set_xticks(degree, [f"{d}{share}" for d, share in zip(degree, told, strict=True)])
        axes.set_xlim(0.4, len(degree) + 0.6)
        axes.set_ylim(0, 1.3 * max(*total, *top.tolist(), 1e-9))
        axes.legend(loc="upper left", ncols=2, fontsize=8.5)
        self._label("degree and its share", "share of the variance")
        return self


def heat_map(axes: Axes, values: NDArray[np.float64], columns: Sequence[str], rows: Sequence[str]) -> None:
    """Cells in blue above 0 and vermilion below, pale where a value is not known, white from 0 where none is below."""
    from matplotlib.colors import LinearSegmentedColormap

    size = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    low = -size if np.nanmin(values, initial=0.0) < 0 else 0.0
    colours = LinearSegmentedColormap.from_list("signs", [VERMILION, "white", BLUE] if low else ["white", BLUE])
    axes.set_facecolor(PALE)
    picture = axes.imshow(values, cmap=colours, vmin=low, vmax=size, aspect="equal")
    for names, set_ticks, turned in ((columns, axes.set_xticks, 90), (rows, axes.set_yticks, 0)):
        step = max(1, -(-len(names) // MOST_LABELS))  # of more than have room, every second or so is named
        labels = [shortened(name) for name in names[::step]]
        turned = turned if max(map(len, labels), default=0) > 1 else 0
        set_ticks(range(0, len(names), step), labels, rotation=turned)
    axes.figure.colorbar(picture, ax=axes, shrink=0.8)


def _labels(subsets: Sequence[tuple[int, ...]], names: Sequence[str] | None) -> list[str]:
    """Names of products."""
    return [" × ".join(f"x{i}" if names is None else str(names[i]) for i in subset) for subset in subsets]
