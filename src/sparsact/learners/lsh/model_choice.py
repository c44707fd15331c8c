"""Choose an LSH model: trees, columns, linear part, and stages of tables, each by the error on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart, FixedStage, LearnedRows
from sparsact.learners.lsh.layout import Array, PrincipalMoments, linear_trend
from sparsact.learners.lsh.leave_one_out import LeftOut
from sparsact.learners.lsh.trees import learn_trees
from sparsact.learners.lsh.tuning import LayoutSearch, LSHConfig, Rows, TunedLayout, is_surely_less
from sparsact.learners.lsh.updates import row_keys
from sparsact.statistics.centred import about_mean
from sparsact.statistics.column_scales import SMALLEST, deviations, exponents_of, standard_units
from sparsact.statistics.statistic import Batch

MIN_ROWS_FOR_COLUMNS, MIN_COLUMNS = 500, 3  # fewer are not enough
ROWS: Final = 1 << 13
SHARES: Final = (1e-4, 1e-3, 1e-2, 5e-2)  # of the largest importance, below which columns drop out
COLUMN_GAIN: Final = 0.01  # of the error, by which fewer columns must be better
SAME: Final = 0.999  # correlation of columns that say the same
MOST_COMPARED: Final = 2000  # columns: their correlations are a square matrix
HELD_OUT, MOST_HELD_OUT = 8, 4096  # one row in 8, and 4,096 at most, stop the stages
MIN_ROWS_FOR_STAGES: Final = 512  # fewer have one stage
MOST_STAGES: Final = 4
STAGE_GAIN: Final = 0.02  # of the held-out error, for which one more stage is worth its time
ONE_BY_ONE, FOLDS = 4096, 8  # up to 4,096 rows are left out one by one, more by 8 folds
OUTLYING: Final = 100.0  # interquartile ranges beyond the quartiles
ROWS_FOR_QUARTILES: Final = 1 << 14  # they are a sample
ORDER_STEP: Final = 2.0**-16  # of a column's deviation: coarse beside rounding, and few rows share all steps


def kept_columns(
    X: Array, Y: Array, weights: Array, error: Callable[[Array], float], seed: int
) -> NDArray[np.int64] | None:
    """Columns for the tables, in ascending order; None for all.

    Columns are ordered by what shuffling them costs small boosted trees on held-out rows; how many of them are kept is
    decided by ``error``, that of tables of some columns X on rows left out.
    """
    if len(X) < MIN_ROWS_FOR_COLUMNS or X.shape[1] < MIN_COLUMNS:
        return None
    importance = _importances(X[:ROWS], Y[:ROWS], weights[:ROWS], seed)
    kept = [np.flatnonzero(importance > share * importance.max()) for share in SHARES]
    subsets = {len(columns): columns for columns in kept if 0 < len(columns) < X.shape[1]}
    if not subsets:
        return None
    errors = {n: error(np.ascontiguousarray(X[:, columns])) for n, columns in subsets.items()}
    best = min(errors, key=lambda n: errors[n])
    return subsets[best] if errors[best] < (1 - COLUMN_GAIN) * error(X) else None


def _importances(X: Array, Y: Array, weights: Array, seed: int) -> Array:
    """How much the squared error of boosted trees on the last quarter grows as each column (d,) is shuffled there."""
    learned, held = slice(0, 3 * len(X) // 4), slice(3 * len(X) // 4, len(X))
    total = np.zeros(X.shape[1])
    some = None if np.ptp(weights) == 0 else weights[learned]  # weights slow down the binning of columns
    unit = Y.std(axis=0)
    for y in (Y / np.where(unit > 0, unit, 1.0)).T:
        trees = HistGradientBoostingRegressor(early_stopping=False, random_state=seed % 2**31)
        trees.fit(X[learned], y[learned], some)
        rows, share = X[held].copy(), weights[held] / weights[held].sum()
        least = share @ (trees.predict(rows) - y[held]) ** 2
        for j, column in enumerate(X[held].T):
            rows[:, j] = np.roll(column, len(rows) // 2)  # rows stand in no order
            total[j] += max(float(share @ (trees.predict(rows) - y[held]) ** 2 - least), 0.0)
            rows[:, j] = column
    return total


def near_duplicates(X: Array, weights: Array) -> tuple[tuple[int, int], ...]:
    """Pairs of columns (i < j) that correlate by more than ``SAME``, up to their sign."""
    units = standard_units(X[:ROWS], weights[:ROWS])
    moving = np.flatnonzero(units)
    if len(moving) > MOST_COMPARED:
        return ()
    share = weights[:ROWS] / weights[:ROWS].sum()
    rows = X[:ROWS, moving]
    rows = (rows - share @ rows) * units[moving]
    pairs = np.argwhere(np.triu(np.abs((rows * share[:, None]).T @ rows) > SAME, k=1))
    return tuple((int(moving[i]), int(moving[j])) for i, j in pairs)


@dataclass(frozen=True)
class ModelChoice:
    """The part that updates do not change, the layout of the table on it, and nearly equal columns."""

    fixed: FixedPart
    tuned: TunedLayout
    near_duplicates: tuple[tuple[int, int], ...]


def choose(X: Array, Y: Array, weights: Array, wish: LSHConfig, rng: np.random.Generator) -> ModelChoice:
    """A model for rows like these; a ValueError if its buckets would be too large.

    Every error that something is chosen by is that of rows that were left out, and it depends neither on the order of
    the rows nor on whether one of weight 2 stands there twice.
    """
    rows = in_order(*without_outliers(*distinct(X, Y, weights)))
    if wish.base is not None:
        return _on_base(rows, wish, rng)[0]
    bases = (replace(wish, base=base) for base in ("linear", "trees"))
    (plain, before), (trees, after) = (_on_base(rows, each, deepcopy(rng)) for each in bases)
    return trees if is_surely_less(after(), before()) else plain


def _on_base(rows: Rows, wish: LSHConfig, rng: np.random.Generator) -> tuple[ModelChoice, Callable[[], Array]]:
    """A model on the base that is wished for, and a call for its squared errors (m,) at rows left out."""
    X, Y, weights = rows
    seed = int(rng.integers(2**31))
    trees, out_of_fold = learn_trees(X, Y, weights, seed) if wish.base == "trees" else (None, np.zeros_like(Y))
    residual = Y - out_of_fold
    columns = _columns(X, residual, weights, wish, seed) if wish.columns == "auto" else None
    fixed = FixedPart(columns, (), trees, X.shape[1])
    seen = fixed.selected(X)
    level, trend, centre = _linear_part(seen, residual, weights, wish)
    residual = residual - level - (seen - centre) @ trend
    chosen = _chosen_stages((seen, residual, weights), wish, rng)
    sample, values = slice(0, wish.rows_for_stages), out_of_fold
    for each in chosen[:-1]:
        stage, left_out = _learned(each, (seen[sample], residual[sample], weights[sample]), wish.min_count)
        added = np.concatenate([left_out, stage.values(seen[wish.rows_for_stages :])])
        residual, values = residual - added, values + added
        stage = replace(stage, error=_in_deviations(residual[sample], Y[sample], weights[sample]))
        fixed = replace(fixed, stages=(*fixed.stages, stage))
    last, shares = chosen[-1], np.zeros(X.shape[1])
    moved = last.layout.hashes.centre - centre
    shares[slice(None) if columns is None else columns] = last.column_shares
    trials = tuple(replace(trial, stage=i) for i, each in enumerate(chosen, start=1) for trial in each.trials)
    layout = replace(last.layout, level=level + moved @ trend, trend=trend)
    tuned = replace(last, layout=layout, trials=trials, column_shares=shares)
    learned = LearnedRows(row_keys(X, Y), values) if fixed.adds else None

    def losses() -> Array:
        inside, unit = (seen[sample], residual[sample], weights[sample]), deviations(Y, weights)
        left = (inside[1] - _learned(last, inside, wish.min_count)[1]) / np.where(unit > 0, unit, np.inf)
        return np.asarray((left**2).mean(axis=1) * inside[2])

    return ModelChoice(replace(fixed, learned=learned), tuned, near_duplicates(X, weights)), losses


def _in_deviations(residual: Array, Y: Array, weights: Array) -> float:
    """Root mean square of residuals (m, targets), in standard deviations of the targets."""
    unit = np.maximum(np.abs(Y).max(axis=0), SMALLEST)
    share, scaled = weights / weights.sum(), Y / unit
    variance = np.maximum(share @ (scaled - share @ scaled) ** 2, SMALLEST)
    return float(np.sqrt((share @ (residual / unit) ** 2 / variance).mean()))


def _columns(X: Array, Y: Array, weights: Array, wish: LSHConfig, seed: int) -> NDArray[np.int64] | None:
    if wish.family != "pca_grid" or wish.bucket_width is not None:
        return None
    quick, Y = replace(wish, n_tables=8, n_hashes=None), np.ldexp(Y, -exponents_of(Y))

    def error(some: Array) -> float:
        level, trend, centre = _linear_part(some, Y, weights, wish)
        left = Y - level - (some - centre) @ trend
        search = LayoutSearch(some, left, weights, quick, np.random.default_rng(seed))
        return search.quick_error() * float(np.sqrt((search.unit**2 / Y.var(axis=0).clip(1e-300)).mean()))

    return kept_columns(X, Y, weights, error, seed)


def _linear_part(X: Array, Y: Array, weights: Array, wish: LSHConfig) -> tuple[Array, Array, Array]:
    """Level (targets,), slopes (d, targets) and the centre (d,) that they turn about."""
    moments = PrincipalMoments.of(X, weights, standard_units(X, weights))
    level, trend = linear_trend(X, Y, weights, moments)
    straight = wish.base != "constant" and wish.family == "pca_grid" and wish.degree != 0
    return level, trend if straight else np.zeros_like(trend), moments.centre


def _chosen_stages(rows: Rows, wish: LSHConfig, rng: np.random.Generator) -> list[TunedLayout]:
    """Layouts of stages, each for the residuals of the stages before; held-out errors say when to stop."""
    X, residual, weights = rows
    chosen = [LayoutSearch(*rows, wish, rng).best()]
    n, most = min(len(X), wish.rows_for_stages), MOST_STAGES if wish.n_stages is None else wish.n_stages
    n_learned = n - min(n // HELD_OUT, MOST_HELD_OUT)
    if most == 1 or (n < MIN_ROWS_FOR_STAGES and wish.n_stages is None):
        return chosen
    learned, held = slice(0, n_learned), slice(n_learned, n)
    inside, outside = residual[learned], residual[held]

    def after(layout: TunedLayout) -> tuple[Array, Array]:
        stage, left_out = _learned(layout, (X[learned], inside, weights[learned]), wish.min_count)
        return inside - left_out, outside - stage.values(X[held])

    def error(left: Array) -> float:
        return float(np.sqrt((weights[held] @ (left / chosen[0].layout.unit) ** 2).mean()))

    inside, outside = after(chosen[0])
    while len(chosen) < most:
        further = LayoutSearch(X[learned], inside, weights[learned], wish, rng).best()
        left = after(further)
        if wish.n_stages is None and not error(left[1]) < (1 - STAGE_GAIN) * error(outside):
            break
        chosen.append(further)
        inside, outside = left
    return chosen


def _learned(chosen: TunedLayout, rows: Rows, min_count: int) -> tuple[FixedStage, Array]:
    """A stage learned from rows, and its values (m, targets) at them as if it had not seen them."""
    X, residual, weights = rows
    layout = chosen.layout
    table = BucketTable(layout, keeps_rows=False, with_backup=False)
    table.add(Batch(X, residual, weights))
    folds = FOLDS if len(X) > ONE_BY_ONE else None
    left_out = LeftOut(table, X, layout.residual(X, residual), weights).values(chosen.alpha, min_count, folds)
    return FixedStage(layout, table.compiled(chosen.alpha, min_count, is_live=False)), left_out * layout.unit


def distinct(X: Array, Y: Array, weights: Array) -> Rows:
    """Distinct rows with their total weights, in the order of a hash of X; rows of equal X are ordered by Y.

    A choice then sees a row of weight 2 as the same row twice, never leaves one copy of a row in where another is left
    out, and depends neither on the order of the rows nor on the units of Y.
    """
    kept = weights > 0
    X, Y, weights = X[kept], Y[kept], weights[kept]
    _, first, inverse = np.unique(row_keys(X, Y), return_index=True, return_inverse=True)
    X, Y, weights = X[first], Y[first], np.bincount(inverse, weights).astype(np.float64)
    return _ordered(X, X, Y, weights)


def in_order(X: Array, Y: Array, weights: Array) -> Rows:
    """Distinct rows in the order of a hash of their columns in small steps of these columns' deviations.

    So rounding, an offset or a unit of X leave samples and folds as they are.
    """
    _, centred = about_mean(X, weights / weights.sum(), 1.0)
    steps = np.floor(centred * standard_units(X, weights) / ORDER_STEP)
    return _ordered(steps, X, Y, weights)


def _ordered(hashed: Array, X: Array, Y: Array, weights: Array) -> Rows:
    order = np.lexsort((*Y.T[::-1], row_keys(hashed)))
    return X[order], Y[order], weights[order]


def without_outliers(X: Array, Y: Array, weights: Array) -> Rows:
    """Rows without a value far outside the quartiles of its column: a sentinel such as -99999 must not set all scales.

    They are left out of the choice alone, if they are less than half. A column whose quartiles are equal, such as a
    rare indicator, has no say.
    """
    low, high = np.quantile(X[:ROWS_FOR_QUARTILES], (0.25, 0.75), axis=0)
    reach = np.where(high > low, OUTLYING * np.minimum(high - low, 1e300), np.inf)
    inside = ((low - reach <= X) & (high + reach >= X)).all(axis=1)
    enough = np.count_nonzero(inside) >= len(X) / 2  # else there is nothing special about the others
    if inside.all() or not enough:
        return X, Y, weights
    return X[inside], Y[inside], weights[inside]
