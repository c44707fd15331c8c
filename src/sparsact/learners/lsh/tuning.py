"""Choose local coordinates, width and penalty by the error on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, log2
from typing import ClassVar, Final

import numpy as np

from sparsact.kernels import hashing
from sparsact.kernels.bucket_statistics import n_features
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
)
from sparsact.learners.lsh.leave_one_out import LeftOut
from sparsact.statistics.column_scales import root_mean_square, standard_units
from sparsact.statistics.statistic import Batch

PENALTIES: Final = (1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0)
ROWS_FOR_DIRECTIONS, ROWS_FOR_WIDTH, ROWS_LEFT_OUT = 1 << 14, 1 << 17, 2048
FOLDS, ROWS_FOR_FOLDS = 8, 128  # of few rows, fewer are left out one by one; of many, one fold says enough
TABLES, MOST_TABLES = 16, 64
ROWS_FOR_STAGES: Final = 1 << 17  # from which frozen stages are learned; others meet them as new rows do
FEW_ROWS: Final = 4096  # with fewer, as many tables as there may be: the draw of the grids counts more than the time
WORTH_TWICE: Final = 0.03  # of the error, for which twice the tables are worth their time
STEP: Final = 1.25  # between widths tried
SURE: Final = 1.5  # standard errors; one row that misses in one layout alone makes a difference of exactly one
SAME: Final = 1e-9  # of the squared error: rounding
PLATEAU: Final = 1.02  # of the least error so far, up to which the search goes on: a row that misses makes steps
ROWS_IN_A_BUCKET: Final = 8.0  # where the search for a width begins
MAX_STEPS, BISECTIONS, MAX_HYPERPLANES = 12, 12, 40
MIXED: Final = 2.0  # ratio of the deviations of two columns, from which on their units are in question
MAX_SUMS: Final = 1 << 16  # of a bucket: half a megabyte
MOST_SUMMED: Final = 1 << 31  # numbers, added up in a fit, up to which degree 2 and more tables are tried
MIN_ROWS_A_COLUMN: Final = 10  # fewer rows do not tell in which direction the target moves


@dataclass(frozen=True)
class LSHConfig:
    """Parameters of the layout from the user; None means that the search chooses."""

    family: str
    degree: int | None
    n_hashes: int | None
    bucket_width: float | None
    alpha: float | None
    directions: str
    min_count: int
    n_tables: int | None = None
    n_stages: int | None = 1
    base: str | None = "linear"
    columns: str = "all"
    few_rows: ClassVar[int] = FEW_ROWS
    rows_for_stages: ClassVar[int] = ROWS_FOR_STAGES


@dataclass(frozen=True)
class Trial:
    """One layout that was tried, with its error on held-out rows."""

    directions: str
    n_hashes: int
    bucket_width: float
    alpha: float
    n_buckets: int
    rows_per_bucket: float
    error: float  # root mean squared, in standard deviations of the target
    degree: int = 1
    n_tables: int = 16
    stage: int = 1


@dataclass(frozen=True)
class Candidate:
    """Local coordinates (d, p) with their name, and the degree of the polynomials in them."""

    name: str
    local: Array
    degree: int


@dataclass(frozen=True)
class TunedLayout:
    """The layout to use, the penalty, and what was tried on the way."""

    layout: Layout
    alpha: float
    bucket_width: float
    directions: str
    trials: tuple[Trial, ...]
    column_shares: Array


Rows = tuple[Array, Array, Array]  # X (m, d), Y (m, targets), weights (m,)
Choice = tuple[tuple[float, float, float], Candidate]  # after (error, width, alpha)


class LayoutSearch:
    """The choice of a layout for distinct rows in no order, whose targets have no linear part, and the trials.

    Local coordinates are compared on a sample of the rows, then width and penalty are found on all of them. Every
    error is that of tables from which the row in question was taken away.
    """

    def __init__(self, X: Array, Y: Array, weights: Array, wish: LSHConfig, rng: np.random.Generator) -> None:
        self.X, self.Y, self.weights = X, Y, weights
        self.wish = wish
        self.rng, self.hash_seed = rng, int(rng.integers(2**63))
        self.moments = PrincipalMoments.of(X, weights)
        self.units = units = standard_units(X, weights)
        self.standard = PrincipalMoments.of(X, weights, units)
        present = units[units > 0]
        self.mixed_units = len(present) > 1 and present.max() > MIXED * present.min()
        unit = root_mean_square(Y, weights)
        self.unit = np.where(unit > 0, unit, 1.0)
        self.trials: list[Trial] = []
        self._losses: dict[tuple[str, int, float, float], Array] = {}  # of rows left out, by candidate, width, alpha
        self.n_tables = wish.n_tables or TABLES

    def quick_error(self) -> float:
        """The least error on a sample, in standard deviations of the targets."""
        return self._least(list(self._candidates()), self._some(ROWS_FOR_DIRECTIONS))[0][0]

    def best(self) -> TunedLayout:
        """The layout to use."""
        wish, candidates = self.wish, list(self._candidates())
        candidate, width = candidates[0], None
        if len(candidates) > 1 or wish.degree is None:
            (_, width, _), candidate = self._best_on_sample(candidates)
            if wish.bucket_width is None and wish.family != "hyperplane":
                n_sample = min(len(self.X), ROWS_FOR_DIRECTIONS)
                width *= self._finer(n_sample, min(len(self.X), ROWS_FOR_WIDTH), candidate)
        found = self._tuned(candidate, self._some(ROWS_FOR_WIDTH), width)
        if wish.n_tables is None:
            self._more_tables(candidate, found)
        _, width, alpha = found
        if wish.bucket_width is None and wish.family != "hyperplane":
            width *= self._finer(min(len(self.X), ROWS_FOR_WIDTH), len(self.X), candidate)
        shares = column_shares(candidate.local, self.units)
        return TunedLayout(self._layout(candidate, width), alpha, width, candidate.name, tuple(self.trials), shares)

    def _best_on_sample(self, candidates: list[Candidate]) -> Choice:
        """The best directions on a sample, and of these the better degree, after (error, width, alpha)."""
        rows = self._some(ROWS_FOR_DIRECTIONS)
        best = self._least(candidates, rows)
        squares = replace(best[1], degree=2)
        if self.wish.degree is None and self._affords(squares, self.n_tables):
            best = self._better(best, self._least([squares], rows))
        return best

    def _least(self, candidates: list[Candidate], rows: Rows) -> Choice:
        """The candidate with the least error, after (error, width, alpha); a later one must be better beyond chance."""
        return reduce(self._better, ((self._tuned(each, rows), each) for each in candidates))

    def _better(self, first: Choice, second: Choice) -> Choice:
        """The second, if its squared errors are less by more than ``SURE`` standard errors of the paired difference.

        So neither rounding nor the luck of a few rows turns a choice between layouts that are about as good.
        """
        found = [self._losses.get((one.name, one.degree, width, alpha)) for (_, width, alpha), one in (first, second)]
        before, after = found
        if before is None or after is None or not (np.isfinite(before).all() and np.isfinite(after).all()):
            return min(first, second, key=lambda found: found[0][0])
        return second if is_surely_less(after, before) else first

    def _more_tables(self, candidate: Candidate, found: tuple[float, float, float]) -> None:
        """Double the tables while that is worth their time; with few rows take the most tables."""
        error, width, alpha = found
        if len(self.X) < self.wish.few_rows and self.wish.family == "pca_grid":
            self.n_tables = MOST_TABLES
        while 2 * self.n_tables <= MOST_TABLES and self._affords(candidate, 2 * self.n_tables):
            self.n_tables *= 2
            more = next(self._trial(candidate, width, (alpha,), self._some(ROWS_FOR_WIDTH)))[0]
            if more > (1 - WORTH_TWICE) * error:
                self.n_tables //= 2
                return
            error = more

    def _affords(self, candidate: Candidate, n_tables: int) -> bool:
        """Whether products of features and targets in ``n_tables`` tables still take seconds."""
        D = n_features(candidate.local.shape[1], candidate.degree)
        summed = candidate.local.shape[1] + (D + 1) * (D / 2 + self.Y.shape[1])
        return len(self.X) * n_tables * summed <= MOST_SUMMED and self.wish.family == "pca_grid"

    def _candidates(self) -> Iterator[Candidate]:
        """Local coordinates to compare, with their names."""
        wish, moments, d = self.wish, self.moments, self.X.shape[1]
        degree = 1 if wish.degree is None else wish.degree
        rank = len(moments.deviations)
        if wish.family != "pca_grid":
            most = MAX_POSITIONS if wish.degree == 0 else MAX_LOCAL
            yield Candidate("principal", moments.leading(min(rank, most)), degree)
            return
        asked = None if wish.n_hashes is None else min(d, wish.n_hashes)
        if wish.directions in ("auto", "principal"):
            yield Candidate("principal", moments.leading(asked or moments.enough(MAX_LOCAL)), degree)
        if wish.directions == "standard" or (wish.directions == "auto" and self.mixed_units):
            local = self.standard.leading(asked or self.standard.enough(MAX_LOCAL))
            yield Candidate("standard", local, degree)
        worth_it = wish.directions == "auto" and rank > 1 and len(self.X) >= MIN_ROWS_A_COLUMN * d
        if wish.directions == "gradients" or worth_it:
            X, Y, weights = self._some(ROWS_FOR_DIRECTIONS)
            local = gradient_directions(X, Y / self.unit, weights, moments, asked or min(rank, MAX_LOCAL), self.rng)
            yield Candidate("gradients", local, degree)

    def _some(self, most: int) -> Rows:
        """The first rows, at most ``most``: a sample, since the rows have no order."""
        return self.X[:most], self.Y[:most], self.weights[:most]

    def _tuned(self, candidate: Candidate, rows: Rows, start: float | None = None) -> tuple[float, float, float]:
        """(error, width, alpha) of the best width and penalty on some rows; the search begins at ``start``."""
        wish = self.wish
        penalties = (0.0,) if candidate.degree == 0 else PENALTIES if wish.alpha is None else (wish.alpha,)
        given = wish.n_hashes if wish.family == "hyperplane" else wish.bucket_width
        if given is not None and len(penalties) == 1 and wish.directions != "auto" and wish.degree is not None:
            return 0.0, float(given), penalties[0]
        tried: dict[float, tuple[float, float, float]] = {}

        def error(width: float) -> float:
            if width not in tried:
                near = _beside(penalties, min(tried.values())[2]) if tried else penalties
                tried[width] = min(self._trial(candidate, width, near, rows))
            return tried[width][0]

        if given is not None:
            start = float(given)
        elif start is None:
            start = self._start(candidate, rows)
        error(start)
        for direction in (1, -1) if given is None else ():
            here, best = start, tried[start][0]
            for _ in range(MAX_STEPS):
                here = self._step(here, direction)
                if error(here) >= PLATEAU * best:
                    break
                best = min(best, error(here))
            if best < tried[start][0]:
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

    def _start(self, candidate: Candidate, rows: Rows) -> float:
        """A width that puts about ``ROWS_IN_A_BUCKET`` rows in a bucket, or as many as it has coefficients."""
        if self.wish.family == "hyperplane":
            return float(np.clip(round(log2(max(2.0, len(rows[0]) / ROWS_IN_A_BUCKET))), 1, MAX_HYPERPLANES))
        unit = 1.0 if self.wish.family == "pca_grid" else self.moments.scale
        wanted = max(ROWS_IN_A_BUCKET, float(n_features(candidate.local.shape[1], candidate.degree)))
        low, high = 2.0**-20, 2.0**10
        for _ in range(BISECTIONS):
            middle = float(np.sqrt(low * high))
            width = middle * unit
            found = hashing.places(rows[0][:ROWS_FOR_DIRECTIONS], self._layout(candidate, width, n_tables=1).hashes)
            thinned = min(1.0, ROWS_FOR_DIRECTIONS / len(rows[0]))
            if len(found.keys) / len(np.unique(found.keys)) < max(1.5, wanted * thinned):
                low = middle
            else:
                high = middle
        return width

    def _trial(
        self, candidate: Candidate, width: float, penalties: Iterable[float], rows: Rows
    ) -> Iterator[tuple[float, float, float]]:
        """(error, width, alpha) for each penalty."""
        X, Y, weights = rows
        layout = self._layout(candidate, width)
        table = BucketTable(layout, keeps_rows=False, with_backup=False)
        table.add(Batch(X, Y, weights))
        part = slice(0, ROWS_LEFT_OUT)
        residual, own = layout.residual(X[part], Y[part]), weights[part]
        left_out = LeftOut(table, X[part], residual, own)
        folds = 1 if len(X) > 2 * ROWS_LEFT_OUT else FOLDS if len(X) >= ROWS_FOR_FOLDS else None
        for alpha in penalties:
            values = left_out.values(alpha, self.wish.min_count, folds)
            squares = (values - residual) ** 2
            error = float(np.sqrt((own @ squares / own.sum()).mean()))
            losses = squares.mean(axis=1) * own * (len(own) / own.sum())
            self._losses[candidate.name, candidate.degree, width, alpha] = losses
            held = len(X) * layout.n_tables / len(table.index)
            cost = (len(table.index), held, error, candidate.degree, layout.n_tables)
            self.trials.append(Trial(candidate.name, layout.n_hashes, width, alpha, *cost))
            yield (error if np.isfinite(error) else inf), width, alpha

    def _finer(self, n_from: int, n_to: int, candidate: Candidate) -> float:
        """What a width is multiplied by for more rows: it falls as bandwidths of local polynomials do."""
        order = 2 * (candidate.degree + 1) if candidate.degree else 2
        return float((n_from / n_to) ** (1 / (candidate.local.shape[1] + order)))

    def _layout(self, candidate: Candidate, width: float, n_tables: int | None = None) -> Layout:
        """The layout of a width (of hyperplanes: of a number of them); every width sees the same draws."""
        wish, rng = self.wish, np.random.default_rng(self.hash_seed)
        local, n_tables = candidate.local, n_tables or self.n_tables
        centre = self.moments.centre
        if wish.family == "pca_grid":
            hashes = grid_hashes(centre, local, width, n_tables, rng)
        elif wish.family == "euclidean":
            n_hashes = wish.n_hashes or 4 * min(len(self.moments.deviations), MAX_LOCAL)
            hashes = euclidean_hashes(centre, local * self.moments.scale, width, n_hashes, n_tables, rng)
        else:
            hashes = hyperplane_hashes(centre, self.units, local, int(width), n_tables, rng)
        none = np.zeros((len(centre), len(self.unit)))
        layout = Layout(hashes, candidate.degree, none, np.zeros(len(self.unit)), self.unit)
        if layout.n_sums > MAX_SUMS:
            raise ValueError(
                f"a bucket would hold {layout.n_sums:,} sums for degree {candidate.degree} in {layout.n_local} local "
                f"coordinates, beyond {MAX_SUMS:,}; lower `degree` or `n_hashes`."
            )
        return layout


def is_surely_less(after: Array, before: Array) -> bool:
    """Whether losses (m,) are less by more than ``SURE`` standard errors of the paired difference, and by rounding."""
    gain = before - after
    spread = float(gain.std()) / np.sqrt(max(len(gain) - 1, 1))
    return bool(gain.mean() > max(SURE * spread, SAME * float(before.mean())))


def _beside(penalties: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    """A penalty and its neighbours before and after it."""
    at = penalties.index(alpha)
    return penalties[max(at - 1, 0) : at + 2]
