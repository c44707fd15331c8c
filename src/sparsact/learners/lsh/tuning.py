"""The choice of local coordinates, width and penalty by the error on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf, log2

import numpy as np

from sparsact.kernels import bucket_statistics, hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import (
    MAX_LOCAL,
    MAX_POSITIONS,
    Array,
    Layout,
    PrincipalMoments,
    column_shares,
    euclidean_hashes,
    gradient_directions,
    grid_hashes,
    hyperplane_hashes,
    linear_trend,
    root_mean_square,
    standard_units,
)
from sparsact.statistics.statistic import Batch
from sparsact.validation.former_names import renamed

PENALTIES = (0.001, 0.01, 0.1, 1.0)
ROWS_FOR_DIRECTIONS, ROWS_FOR_WIDTH, ROWS_LEFT_OUT = 1 << 14, 1 << 17, 4096
STEP = 1.25  # between widths tried
ROWS_IN_A_BUCKET = 8.0  # where the search for a width begins
MAX_STEPS, BISECTIONS = 12, 12
MAX_HYPERPLANES = 40
MIXED = 2.0  # ratio of the deviations of two columns, from which on their units are in question
OUTLYING = 100.0  # interquartile ranges beyond the quartiles
MAX_SUMS = 1 << 16  # of a bucket: half a megabyte
MIN_ROWS_A_COLUMN = 10  # fewer rows do not tell in which direction the target moves


@dataclass(frozen=True)
class LSHConfig:
    """What the user asked for; None means: choose."""

    family: str
    degree: int
    n_tables: int
    n_hashes: int | None
    bucket_width: float | None
    alpha: float | None
    directions: str
    min_count: int


@renamed(width="bucket_width")
@dataclass(frozen=True)
class Trial:
    """One layout that was tried, and its error on rows left out."""

    directions: str
    n_hashes: int
    bucket_width: float
    alpha: float
    n_buckets: int
    rows_per_bucket: float
    error: float  # root mean squared, in standard deviations of the target


@dataclass(frozen=True)
class TunedLayout:
    """The layout to use, the penalty, and what was tried on the way."""

    layout: Layout
    alpha: float
    bucket_width: float
    directions: str
    trials: tuple[Trial, ...]
    column_shares: Array


Rows = tuple[Array, Array, Array]


def choose(X: Array, Y: Array, weights: Array, wish: LSHConfig, rng: np.random.Generator) -> TunedLayout:
    """A layout for rows like these; a ValueError if its buckets would be too large.

    Local coordinates are compared on a sample of the rows, then width and penalty are found on all of them. Every
    error is that of tables from which the row in question was taken away.
    """
    return _LayoutSearch(X, Y, weights, wish, rng).best()


class _LayoutSearch:
    """One choice: rows, their moments, what was tried."""

    def __init__(self, X: Array, Y: Array, weights: Array, wish: LSHConfig, rng: np.random.Generator) -> None:
        self.X, self.Y, self.weights = X, Y, weights = _without_outliers(*distinct(X, Y, weights))
        self.wish = wish
        self.rng, self.hash_seed = rng, int(rng.integers(2**63))
        self.moments = PrincipalMoments.of(X, weights)
        self.units = units = standard_units(X, weights)
        self.standard = PrincipalMoments.of(X, weights, units)
        present = units[units > 0]
        self.mixed_units = len(present) > 1 and present.max() > MIXED * present.min()
        self.level, trend = linear_trend(X, Y, weights, self.standard)
        self.trend = trend if wish.family == "pca_grid" and wish.degree > 0 else np.zeros_like(trend)
        residual = Y - self.level - (X - self.moments.centre) @ self.trend
        unit = root_mean_square(residual, weights)
        self.unit = np.where(unit > 0, unit, 1.0)
        self.trials: list[Trial] = []

    def best(self) -> TunedLayout:
        candidates = list(self._candidates())
        name, local = candidates[0]
        if len(candidates) > 1:
            rows = self._some(ROWS_FOR_DIRECTIONS)
            name, local = min(candidates, key=lambda candidate: self._tuned(candidate[0], candidate[1], rows)[0])
        _, width, alpha = self._tuned(name, local, self._some(ROWS_FOR_WIDTH))
        width = self._for_all_rows(width, local.shape[1])
        shares = column_shares(local, self.units)
        return TunedLayout(self._layout(local, width), alpha, width, name, tuple(self.trials), shares)

    def _candidates(self) -> Iterator[tuple[str, Array]]:
        """Local coordinates to compare, with their names."""
        wish, moments, d = self.wish, self.moments, self.X.shape[1]
        rank = len(moments.deviations)
        if wish.family != "pca_grid":
            most = MAX_POSITIONS if wish.degree == 0 else MAX_LOCAL
            yield "principal", moments.leading(min(rank, most))
            return
        asked = None if wish.n_hashes is None else min(d, wish.n_hashes)
        if wish.directions in ("auto", "principal"):
            yield "principal", moments.leading(asked or moments.enough(MAX_LOCAL))
        if wish.directions == "standard" or (wish.directions == "auto" and self.mixed_units):
            yield "standard", self.standard.leading(asked or self.standard.enough(MAX_LOCAL))
        worth_it = wish.directions == "auto" and rank > 1 and len(self.X) >= MIN_ROWS_A_COLUMN * d
        if wish.directions == "gradients" or worth_it:
            X, Y, weights = self._some(ROWS_FOR_DIRECTIONS)
            residual = self._layout(moments.leading(1), 1.0).residual(X, Y)
            p = asked or min(rank, MAX_LOCAL)
            yield "gradients", gradient_directions(X, residual, weights, moments, p, self.rng)

    def _some(self, most: int) -> Rows:
        """At most so many of the rows; they stand in no order, so the first ones are a sample."""
        return self.X[:most], self.Y[:most], self.weights[:most]

    def _tuned(self, name: str, local: Array, rows: Rows) -> tuple[float, float, float]:
        """(error, width, alpha) of the best width and penalty on some rows."""
        wish = self.wish
        penalties = (0.0,) if wish.degree == 0 else PENALTIES if wish.alpha is None else (wish.alpha,)
        given = wish.n_hashes if wish.family == "hyperplane" else wish.bucket_width
        if given is not None and len(penalties) == 1 and wish.directions != "auto":
            return 0.0, float(given), penalties[0]
        tried: dict[float, tuple[float, float, float]] = {}

        def error(width: float) -> float:
            if width not in tried:
                tried[width] = min(self._trial(name, local, width, penalties, rows))
            return tried[width][0]

        start = self._start(local, rows) if given is None else float(given)
        error(start)
        for direction in (1, -1) if given is None else ():
            here = start
            for _ in range(MAX_STEPS):
                further = self._step(here, direction)
                if error(further) >= error(here):
                    break
                here = further
            if here != start:
                break
        if given is None and wish.family != "hyperplane":
            _, best, _ = min(tried.values())
            for power in (0.5, -0.5):
                error(best * STEP**power)
        return min(tried.values())

    def _step(self, width: float, direction: int) -> float:
        """The next coarser (1) or finer (-1) width; of hyperplanes, the next number of them."""
        if self.wish.family == "hyperplane":
            return min(max(width - direction, 1.0), float(MAX_HYPERPLANES))
        return width * STEP**direction

    def _start(self, local: Array, rows: Rows) -> float:
        """A width that puts about ``ROWS_IN_A_BUCKET`` rows in a bucket."""
        if self.wish.family == "hyperplane":
            return float(np.clip(round(log2(max(2.0, len(rows[0]) / ROWS_IN_A_BUCKET))), 1, MAX_HYPERPLANES))
        unit = 1.0 if self.wish.family == "pca_grid" else self.moments.scale
        low, high = 2.0**-20, 2.0**10
        for _ in range(BISECTIONS):
            middle = float(np.sqrt(low * high))
            width = middle * unit
            found = hashing.places(rows[0][:ROWS_FOR_DIRECTIONS], self._layout(local, width, n_tables=1).hashes)
            thinned = min(1.0, ROWS_FOR_DIRECTIONS / len(rows[0]))
            if len(found.keys) / len(np.unique(found.keys)) < max(1.5, ROWS_IN_A_BUCKET * thinned):
                low = middle
            else:
                high = middle
        return width

    def _trial(
        self, name: str, local: Array, width: float, penalties: Iterable[float], rows: Rows
    ) -> Iterator[tuple[float, float, float]]:
        """(error, width, alpha) for each penalty."""
        X, Y, weights = rows
        layout = self._layout(local, width)
        table = BucketTable(layout)
        table.add(Batch(X, Y, weights))
        part = slice(0, ROWS_LEFT_OUT)
        found, residual, own = hashing.places(X[part], layout.hashes), layout.residual(X[part], Y[part]), weights[part]
        ids = table.index.find(found.keys)
        for alpha in penalties:
            values, _ = bucket_statistics.leave_one_out(
                found, ids, residual, own, layout.degree, alpha, self.wish.min_count, table.counts, table.sums
            )
            mean = own @ (values - residual) ** 2 / own.sum()
            error = float(np.sqrt(mean.mean()))
            held = len(X) * layout.n_tables / len(table.index)
            self.trials.append(Trial(name, layout.n_hashes, width, alpha, len(table.index), held, error))
            yield (error if np.isfinite(error) else inf), width, alpha

    def _for_all_rows(self, width: float, p: int) -> float:
        """The width for all rows, from that for a sample: like m**(-1 / (p + 4)), as bandwidths of local lines."""
        if self.wish.bucket_width is not None or len(self.X) <= ROWS_FOR_WIDTH or self.wish.family == "hyperplane":
            return width
        return float(width * (ROWS_FOR_WIDTH / len(self.X)) ** (1 / (p + 4)))

    def _layout(self, local: Array, width: float, n_tables: int | None = None) -> Layout:
        """The layout of a width (of hyperplanes: of a number of them); every width sees the same draws."""
        wish, rng = self.wish, np.random.default_rng(self.hash_seed)
        n_tables = n_tables or wish.n_tables
        centre = self.moments.centre
        if wish.family == "pca_grid":
            hashes = grid_hashes(centre, local, width, n_tables, rng)
        elif wish.family == "euclidean":
            n_hashes = wish.n_hashes or 4 * min(len(self.moments.deviations), MAX_LOCAL)
            hashes = euclidean_hashes(centre, local * self.moments.scale, width, n_hashes, n_tables, rng)
        else:
            hashes = hyperplane_hashes(centre, local, int(width), n_tables, rng)
        layout = Layout(hashes, wish.degree, self.trend, self.level, self.unit)
        if layout.n_sums > MAX_SUMS:
            raise ValueError(
                f"a bucket would hold {layout.n_sums:,} sums for degree {wish.degree} in {layout.n_local} local "
                f"coordinates, beyond {MAX_SUMS:,}; lower `degree` or `n_hashes`."
            )
        return layout


def distinct(X: Array, Y: Array, weights: Array) -> Rows:
    """Distinct rows with their total weights, in the order of a hash of X, those of equal X by Y.

    A choice then sees a row of weight 2 as the same row twice, never leaves one copy of a row in where another is left
    out, and depends neither on the order of the rows nor on the units of Y.
    """
    kept = weights > 0
    X, Y, weights = X[kept], Y[kept], weights[kept]
    keys = hashing.row_keys(np.ascontiguousarray(np.concatenate([X, Y], axis=1) + 0.0))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    X, Y, weights = X[first], Y[first], np.bincount(inverse, weights).astype(np.float64)
    order = np.lexsort((*Y.T[::-1], hashing.row_keys(np.ascontiguousarray(X + 0.0))))
    return X[order], Y[order], weights[order]


def _without_outliers(X: Array, Y: Array, weights: Array) -> Rows:
    """Rows of which no column lies far outside its quartiles: a sentinel such as -99999 must not set all scales.

    They are left out of the choice alone, if they are less than half. A column whose quartiles are equal, such as a
    rare indicator, has no say.
    """
    low, high = np.quantile(X[:ROWS_FOR_DIRECTIONS], (0.25, 0.75), axis=0)
    reach = np.where(high > low, OUTLYING * np.minimum(high - low, 1e300), np.inf)
    inside = ((low - reach <= X) & (high + reach >= X)).all(axis=1)
    enough = np.count_nonzero(inside) >= len(X) / 2  # else there is nothing special about the others
    if inside.all() or not enough:
        return X, Y, weights
    return X[inside], Y[inside], weights[inside]
