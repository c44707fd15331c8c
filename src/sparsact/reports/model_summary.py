"""What reports say of an LSH model and of a network, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass

from sparsact.network import WeightScale


@dataclass(frozen=True)
class TriedLayout:
    """A layout that was tried: its cost, and its error on rows left out.

    ``error`` is the root mean squared error over that of the linear trend; 1 is no better than the trend.
    """

    directions: str
    n_rows: int
    bucket_width: float
    alpha: float
    n_buckets: int
    n_bytes: int
    error: float
    chosen: bool = False


@dataclass(frozen=True)
class ColumnWeight:
    """What a column does: its slope in the linear trend, and its share in the local directions.

    ``trend`` is in standard deviations of the target for one of the column (a root mean square over several targets);
    ``shares`` are, direction by direction, parts of the squared distance that says which rows are near. All columns
    and directions add up to 1.
    """

    column: str
    trend: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class LSHSummary:
    """Everything that the report says of the hash tables of one fit."""

    directions: str
    n_tables: int
    n_local: int
    degree: int
    bucket_width: float
    alpha: float
    n_buckets: int
    n_bytes: int
    load: tuple[tuple[int, int], ...]  # (rows in a bucket, buckets that hold so many), by rows
    miss_rate: float
    trials: tuple[TriedLayout, ...]
    columns: tuple[ColumnWeight, ...]
    rows_laid_out: int | None = None
    missed_everywhere: float | None = None  # share of held-out rows
    coverage: tuple[tuple[float, float], ...] = ()  # (probability, share of held-out targets inside)

    @property
    def median_load(self) -> int:
        """Rows in the bucket of a row that is drawn at random: half of all rows lie in buckets of no more."""
        half, seen = sum(rows * buckets for rows, buckets in self.load) / 2, 0
        for rows, buckets in self.load:
            seen += rows * buckets
            if seen >= half:
                return rows
        return 0

    @property
    def layout(self) -> str:
        """How the buckets are made, in words."""
        kinds = {
            "gradients": "directions along which the target moves",
            "standard": "principal directions of the standardised columns",
            "principal": "principal directions of the columns",
        }
        parts = {0: "a constant", 1: "a linear function", 2: "a quadratic"}
        return (
            f"{self.n_tables} hash tables, grids of width {self.bucket_width:.3g} (standard deviations) "
            f"in {self.n_local} {kinds[self.directions]}, "
            f"{parts[self.degree]} in each bucket (ridge penalty {self.alpha:g})"
        )

    @property
    def fill(self) -> str:
        """How full the buckets are, in words."""
        everywhere = self.missed_everywhere
        return (
            f"{self.n_buckets:,} buckets ({self.n_bytes / 1e6:,.1f} MB), half of the rows in buckets of at most "
            f"{self.median_load:,}; a new row misses {self.miss_rate:.1%} of its buckets"
            + ("" if everywhere is None else f", and all of them in {everywhere:.2%} of cases")
        )

    @property
    def alone(self) -> float:
        """Share of the buckets that hold one row."""
        return dict(self.load).get(1, 0) / max(1, self.n_buckets)


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
