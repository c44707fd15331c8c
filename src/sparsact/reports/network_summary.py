"""What reports say of a network, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from sparsact.network import WeightScale


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
