"""The report of a network: what it says, as plain frozen data, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sparsact.network import WeightScale
from sparsact.reports.figure import BLUE, INK, Display, Frame, chart, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class DegreeWeights:
    """Weight by degree, from degree 0 up: exact, or estimated with standard errors; ``how`` says which, in words."""

    weights: tuple[float, ...]
    errors: tuple[float, ...] | None
    how: str

    @property
    def exact(self) -> bool:
        """Whether the weights are exact up to rounding."""
        return self.errors is None


@dataclass(frozen=True)
class Activity:
    """Share of the points at which 0, 1, 2, ... units are active; ``how`` says which points."""

    shares: tuple[float, ...]
    how: str


@dataclass(frozen=True)
class NetworkSummary:
    """Everything that the report of one network says."""

    name: str
    n_units: int
    n_inputs: int
    storage: str
    scale: WeightScale
    n_dead: int
    n_constant: int
    verdict: str  # of the certificate, in a sentence
    proved: bool
    fewest: int  # the most units on at a point that is known
    upper: int  # a proved upper bound of that number
    activity: Activity
    degrees: DegreeWeights
    average_sensitivity: float
    sensitivity_error: float | None  # None: exact
    versions: tuple[tuple[str, str], ...]
    command: str

    @property
    def most_active(self) -> str:
        """The most units that any point switches on, or the interval in which that number lies."""
        return str(self.upper) if self.fewest == self.upper else f"{self.fewest} to {self.upper}"

    @property
    def sensitivity_bound(self) -> float:
        """The worst average sensitivity of a network of this scale and sparsity, 4 k^2 W^2."""
        return 4 * self.upper**2 * self.scale.W**2

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Findings by name."""
        error = "" if self.sensitivity_error is None else f" ± {self.sensitivity_error:.2g} (standard error)"
        return (
            ("certificate", self.verdict),
            ("scale", f"W = {self.scale.W:.6g}, B = {self.scale.B:.6g}"),
            ("dead units", f"{self.n_dead or 'none'} (no point of the cube switches such a unit on)"),
            ("constant units", f"{self.n_constant or 'none'} (every point of the cube switches such a unit on)"),
            ("spectrum", self.degrees.how),
            ("average sensitivity", f"{self.average_sensitivity:.6g}{error}; 4k²W² = {self.sensitivity_bound:.6g}"),
        )


MAX_LABELS: Final = 12


def activity_frame(activity: Activity) -> Frame:
    """A row for each number of active units that occurs, and for those below it."""
    return {"active units": list(range(len(activity.shares))), "share of points": list(activity.shares)}


@chart("activity", "Units on at once", activity_frame, "")
def activity_chart(frame: Frame) -> Axes:
    """A bar a number."""
    axes = panel(4.6, 3.4, x="active units", y="share of points", grid="y")
    bars = axes.bar(frame["active units"], frame["share of points"], width=0.7, color=BLUE)
    if len(bars) <= MAX_LABELS:
        axes.bar_label(bars, fmt="{:.3g}", padding=3, fontsize=9)
        axes.set_xticks(list(frame["active units"]))
    axes.margins(y=0.12)
    return axes


def weights_frame(degrees: DegreeWeights) -> Frame:
    """A row a degree; the standard error is 0 where the weight is exact."""
    total = sum(degrees.weights) or 1.0
    return {
        "degree": list(range(len(degrees.weights))),
        "weight": list(degrees.weights),
        "standard error": list(degrees.errors or [0.0] * len(degrees.weights)),
        "share": [weight / total for weight in degrees.weights],
    }


@chart("degrees", "Weight by degree", weights_frame, "")
def weights_chart(frame: Frame) -> Axes:
    """A bar a degree."""
    axes = panel(4.6, 3.4, x="degree", y="weight (squared coefficients)", grid="y")
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
    from matplotlib.ticker import MaxNLocator  # here: the terminal reads summaries without it

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_ylim(bottom=0)
    axes.margins(y=0.15)
    axes.legend(loc="upper right", fontsize=8.5)
    return axes


FOLDED: Final = (
    "Estimated: inputs with random signs were put into random groups, and every grouping has an exact spectrum. A "
    "product of d inputs keeps its degree unless two of them meet in a group. Bars: ± two standard errors."
)
EXACT: Final = "Sum of the squared Fourier coefficients of all products of this many inputs, exact up to rounding."


def network_figures(summary: NetworkSummary) -> list[Display]:
    """Activity, and weight by degree."""
    note = EXACT if summary.degrees.exact else FOLDED
    return [
        activity_chart.display(summary.activity, note=summary.activity.how),
        weights_chart.display(summary.degrees, note=note),
    ]
