"""Layout of hash tables, chosen from the first rows and then kept: hashes, local coordinates, trend, units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.kernels.bucket_statistics import n_features, n_sums, n_target_sums, products
from sparsact.kernels.hashing import Hashes
from sparsact.saving.schema import ArrayField, Arrays, check_array, read_arrays
from sparsact.statistics.column_scales import SMALLEST, root_mean_square, standard_units

Array = NDArray[np.float64]
MAX_POSITIONS: Final = 64  # coordinates of the mean position of a bucket's rows, where its polynomial is a constant
MAX_LOCAL: Final = 8  # local coordinates: a cube of p sides has 2**p corners, and rows to fill them grow with it

_HASHES: Final = {
    "centre": ArrayField("d", finite=True),
    "local": ArrayField("d p", finite=True),
    "directions": ArrayField("side codes", finite=True),
    "offsets": ArrayField("codes", finite=True),
    "seeds": ArrayField("tables", np.uint64),
}
_ARRAYS: Final = {
    "trend": ArrayField("d T", finite=True),
    "level": ArrayField("T", finite=True),
    "unit": ArrayField("T", finite=True),
}
RANK: Final = 1e-10  # of the largest variance: below it, a direction is rounding
NEGLIGIBLE: Final = 0.01  # of the variance: what principal directions may leave out
SHRINKAGES: Final = 10.0 ** np.arange(-3, 3)  # of the mean variance, in the linear trend
ANCHORS, ROUNDS = 1500, 2
MAX_COLUMNS: Final = 100  # principal ones, in which gradients are looked for: a slope costs their number cubed
LEAST_GRADIENT: Final = 1e-3  # of the largest: directions along which the target hardly moves keep this share
LARGE: Final = 0.6  # of the largest; no ratio of entries that symmetric tables give
EVEN: Final = 1e-6  # of all gradients: where the target moves alike along two directions, the wider one comes first


@dataclass(frozen=True)
class Layout:
    """The frozen part of a table of buckets: two tables can be merged if and only if their layouts are the same.

    Attributes
    ----------
    hashes : Hashes
        Centre, local coordinates, directions, offsets and seeds of the hash functions.
    degree : int
        Degree of the polynomial in each bucket.
    trend : (d, targets)
        Slopes of the linear function that is taken off the targets first.
    level, unit : (targets,)
        Targets are stored as ``(y - level - (x - centre) @ trend) / unit``.
    """

    hashes: Hashes
    degree: int
    trend: Array
    level: Array
    unit: Array

    @property
    def n_tables(self) -> int:
        """Number of hash tables."""
        return len(self.hashes.seeds)

    @property
    def n_hashes(self) -> int:
        """Codes of one table."""
        return int(self.hashes.directions.shape[1]) // self.n_tables

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.hashes.centre)

    @property
    def n_local(self) -> int:
        """Local coordinates."""
        return int(self.hashes.local.shape[1])

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return len(self.level)

    @property
    def n_features(self) -> int:
        """Coefficients of a bucket's polynomial."""
        return n_features(self.n_local, self.degree)

    @property
    def n_sums(self) -> int:
        """Sums of a bucket."""
        return n_sums(self.n_local, self.degree, self.n_targets)

    def residual(self, X: Array, Y: Array) -> Array:
        """Targets in the table's own units: without level and trend."""
        return np.ascontiguousarray((Y - self.level - (X - self.hashes.centre) @ self.trend) / self.unit)

    @property
    def n_target_sums(self) -> int:
        """Sums of a bucket that targets are in, which are two words each."""
        return n_target_sums(self.n_local, self.degree, self.n_targets)

    def sums_of_file(self, sums: NDArray[Any]) -> NDArray[Any]:
        """Sums of buckets; files of earlier versions hold each product of two features, or no low words."""
        p, D, end = self.n_local, self.n_features, self.n_target_sums
        if self.degree == 2 and sums.ndim == 2 and sums.shape[1] == p + D * (D + 1) // 2 + end:
            _, first = np.unique(products(p, self.degree), return_index=True)
            columns = np.concatenate([np.arange(p), p + first, np.arange(sums.shape[1] - end, sums.shape[1])])
            sums = sums[:, columns]
        if sums.ndim == 2 and sums.shape[1] == self.n_sums - end:
            sums = np.concatenate([sums, np.zeros((len(sums), end))], axis=1)
        return np.ascontiguousarray(sums)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every part as an array, for files and comparison."""
        plain = {"grid": self.hashes.grid, "signs": self.hashes.signs, "degree": self.degree}
        parts = {name: np.asarray(part) for name, part in self.hashes._asdict().items() if name not in plain}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("hashes", "degree")}
        return parts | own | {name: np.array([value], dtype=np.int64) for name, value in plain.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Layout:
        """The layout that :meth:`arrays` took apart."""
        grid, signs, degree = (
            int(check_array(arrays, name, np.int64, (1,))[0]) for name in ("grid", "signs", "degree")
        )
        hashes = read_hashes(arrays, grid=bool(grid), signs=bool(signs))
        read = read_arrays(_ARRAYS, arrays, d=len(hashes.centre))
        if degree not in (0, 1, 2):
            raise ValueError(f"the degree is {degree}")
        if n_sums(hashes.local.shape[1], degree, len(read["level"])) > 2**24:
            raise ValueError("a bucket holds too many sums")
        return cls(hashes, degree, **read)


def differing_arrays(mine: Arrays, theirs: Arrays) -> list[str]:
    """Names of the arrays that two parts of models do not share."""
    shared = mine.keys() & theirs.keys()
    names = dict.fromkeys([*mine, *theirs])
    return [name for name in names if name not in shared or not np.array_equal(mine[name], theirs[name])]


def read_hashes(arrays: Arrays, *, grid: bool, signs: bool) -> Hashes:
    """The hash functions of a file."""
    d, p = arrays["local"].shape
    read = read_arrays(_HASHES, arrays, d=d, p=p, side=p if grid else d)
    n_tables, codes = len(read["seeds"]), len(read["offsets"])
    if not n_tables or codes % n_tables or not codes or (grid and codes != p * n_tables):
        raise ValueError("the hash functions do not fit together")
    return Hashes(**read, grid=grid, signs=signs)


def random_rotation(p: int, rng: np.random.Generator) -> Array:
    """A rotation or reflection of R^p, uniform (Haar)."""
    Q, R = np.linalg.qr(rng.normal(size=(p, p)))
    rotation: Array = Q * np.sign(np.diag(R))
    return rotation


def grid_hashes(centre: Array, local: Array, width: float, n_tables: int, rng: np.random.Generator) -> Hashes:
    """Randomly rotated and shifted grids of cubes of side ``width`` in the local coordinates."""
    p = local.shape[1]
    rotations = np.concatenate([random_rotation(p, rng) for _ in range(n_tables)], axis=1)
    return Hashes(
        centre, local, _scaled(rotations, width), rng.random(n_tables * p), _seeds(n_tables, rng), True, False
    )


def euclidean_hashes(
    centre: Array, local: Array, width: float, n_hashes: int, n_tables: int, rng: np.random.Generator
) -> Hashes:
    """Codes floor((<a, x> + b) / width), a standard normal in R^d and b uniform on [0, width] (Datar et al., 2004).

    Codes are codes of x - centre: the centre's share joins b, which is uniform modulo the width all the same.
    """
    directions = _scaled(rng.normal(size=(len(centre), n_tables * n_hashes)), width)
    offsets = rng.random(n_tables * n_hashes)
    return Hashes(centre, _scaled(local, width), directions, offsets, _seeds(n_tables, rng), False, False)


def hyperplane_hashes(
    centre: Array, units: Array, local: Array, n_hashes: int, n_tables: int, rng: np.random.Generator
) -> Hashes:
    """Sign patterns of standard normal directions: hyperplanes through the mean of the rows (Section 2.2).

    Each column has a unit of its own, ``units`` (d,); the paper's rows lie about the origin, in one unit.
    """
    directions = units[:, None] * rng.normal(size=(len(centre), n_tables * n_hashes))
    return Hashes(centre, local, directions, np.zeros(n_tables * n_hashes), _seeds(n_tables, rng), False, True)


def _scaled(directions: Array, width: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: Array = directions / width
    if not np.isfinite(scaled).all():
        raise ValueError(f"`bucket_width`={width:g} is so small that its inverse overflows; raise it.")
    return scaled


def _seeds(n_tables: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(0, 2**64, n_tables, dtype=np.uint64)


@dataclass(frozen=True)
class PrincipalMoments:
    """Centre, principal directions (d, r) and the standard deviations (r,) along them, r the rank.

    With columns in other units, directions still act on ``x - centre``: the units are in them.
    """

    centre: Array
    components: Array
    deviations: Array

    @classmethod
    def of(cls, X: Array, weights: Array, units: Array | None = None) -> PrincipalMoments:
        """Weighted moments of rows, with columns multiplied by ``units`` (d,); constant columns are in no direction."""
        share = weights / weights.sum()
        centre = share @ X
        units = (np.ptp(X, axis=0) > 0).astype(np.float64) if units is None else units
        spread = (X - centre) * units
        scale = max(float(np.abs(spread).max(initial=0.0)), SMALLEST)
        spread /= scale
        variances, components = np.linalg.eigh((spread * share[:, None]).T @ spread)
        real = variances[::-1] > max(RANK * variances[-1], 1e-300)
        order = np.flatnonzero(real) if real.any() else np.array([0])
        directions = units[:, None] * signed(components[:, ::-1][:, order])
        return cls(centre, directions, np.sqrt(np.maximum(variances[::-1][order], 0.0)) * scale)

    @property
    def scale(self) -> float:
        """Standard deviation along the first principal direction; 1 where the rows are all alike."""
        largest = float(self.deviations[0])
        return largest if largest >= SMALLEST else 1.0

    def leading(self, p: int) -> Array:
        """The first p principal directions in units of :attr:`scale`, (d, p)."""
        leading: Array = self.components[:, :p] / self.scale
        return leading

    def enough(self, most: int) -> int:
        """Directions that leave at most ``NEGLIGIBLE`` of the variance, at most ``most``."""
        variances = (self.deviations / self.scale) ** 2
        left = 1.0 - np.cumsum(variances) / max(float(variances.sum()), 1e-300)
        return min(most, len(variances), 1 + int(np.count_nonzero(left > NEGLIGIBLE)))


def column_shares(local: Array, units: Array) -> Array:
    """How much each column (d,) takes part in local directions, each in its own standard deviation; they sum to 1."""
    deviations = np.where(units > 0, 1.0 / np.where(units > 0, units, 1.0), 0.0)
    steps = local * deviations[:, None]
    squares = (steps / (np.abs(steps).max() or 1.0)) ** 2
    shares: Array = squares.sum(axis=1) / (squares.sum() or 1.0)
    return shares


def linear_trend(X: Array, Y: Array, weights: Array, moments: PrincipalMoments) -> tuple[Array, Array]:
    """Level (targets,) and slopes (d, targets) of a ridge regression, its penalty by generalised cross-validation.

    The widest penalty is no slope at all: with as many columns as rows, any other line may be noise.
    """
    share = weights / weights.sum()
    level = share @ Y
    largest = np.abs(Y - level).max(axis=0)
    unit = np.where(largest > SMALLEST, largest, 1.0)
    centred = (Y - level) / unit
    units, variances = moments.components / moments.scale, (moments.deviations / moments.scale) ** 2
    products = ((X - moments.centre) @ units * share[:, None]).T @ centred
    n_rows, total = 1.0 / (share @ share), share @ centred**2
    best, slopes = np.full(len(level), np.inf), np.zeros(products.shape)
    for penalty in (np.inf, *(SHRINKAGES * variances.mean() + 1e-300)):
        shrunk = products / (variances + penalty)[:, None]
        left = total - (shrunk * (2 * products - variances[:, None] * shrunk)).sum(axis=0)
        free = 1.0 - (1.0 + (variances / (variances + penalty)).sum()) / n_rows
        score = left / free**2 if free > 0 else np.full(len(level), np.inf)
        better = score < best
        best, slopes = np.where(better, score, best), np.where(better, shrunk, slopes)
    with np.errstate(over="ignore", invalid="ignore"):  # slopes too steep for a float are left to the buckets
        slopes = units @ slopes * unit
    return level, np.where(np.isfinite(slopes).all(axis=0), slopes, 0.0)


def gradient_directions(
    X: Array, residual: Array, weights: Array, moments: PrincipalMoments, p: int, rng: np.random.Generator
) -> Array:
    r"""Directions (d, p) along which the target moves most, each in proportion to how much.

    The leading eigenvectors of :math:`\mathbb{E}[\nabla f\, \nabla f^T]`, times the square roots of their eigenvalues.
    Gradients are slopes of ridge regressions on the nearest rows of some anchors; near is measured first along standard
    columns and then along the directions found [1]_.

    References
    ----------
    .. [1] M. Hristache, A. Juditsky, J. Polzehl, V. Spokoiny, "Structure adaptive approach for dimension reduction",
       Annals of Statistics 29(6), 2001.
    """
    standard = standard_units(X, weights)
    rows = (X - moments.centre) * standard
    variances, basis = np.linalg.eigh(rows.T @ rows)
    spanned = np.flatnonzero(variances >= RANK * variances[-1])[-MAX_COLUMNS:]  # gradients only where rows lie
    basis, shares = signed(basis[:, spanned]), variances[spanned] / max(float(variances[-1]), 1e-300)
    rows = rows @ basis
    metric = np.eye(rows.shape[1])
    anchors = rng.choice(len(rows), min(ANCHORS, len(rows)), replace=False)
    for _ in range(ROUNDS):
        products = _gradient_products(rows, residual, metric, anchors)
        products += EVEN * (np.trace(products) or 1.0) * np.diag(shares)  # else their order is that of rounding
        values, vectors = np.linalg.eigh(products)
        vectors = signed(vectors)
        top = max(float(values[-1]), 1e-300)
        metric = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0) / top + LEAST_GRADIENT)
    directions: Array = standard[:, None] * (basis @ metric[:, :p])
    unit = float(root_mean_square((X - moments.centre) @ directions[:, :1], weights)[0])
    return directions / (unit or 1.0)


def signed(directions: Array) -> Array:
    """Columns (d, p) times 1 or -1, a sign that eigenvectors leave to rounding: the first large entry is positive.

    Large is ``LARGE`` of the largest, because two standardised columns have eigenvectors (1, 1) and (1, -1).
    """
    first = (np.abs(directions) >= LARGE * np.abs(directions).max(axis=0, initial=0.0)).argmax(axis=0)
    return directions * np.where(directions[first, np.arange(directions.shape[1])] < 0, -1.0, 1.0)


def _gradient_products(rows: Array, residual: Array, metric: Array, anchors: NDArray[np.int64]) -> Array:
    """Mean outer product (d, d) of local gradients, over anchors and targets."""
    d = rows.shape[1]
    places = rows @ metric
    n_near = min(len(rows), max(4 * d, 40))
    _, near = cKDTree(places).query(places[anchors], n_near)
    total = np.zeros((d, d))
    for neighbours in near.reshape(len(anchors), n_near):
        local = rows[neighbours] - rows[neighbours].mean(axis=0)
        values = residual[neighbours] - residual[neighbours].mean(axis=0)
        slopes = np.linalg.solve(local.T @ local + 0.01 * n_near * np.eye(d), local.T @ values)
        total += slopes @ slopes.T
    return total / len(anchors)
