"""Preprocessing: missing values and categories become numbers, by rules that a fit freezes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.learners.lsh.categories import ROUNDED, codes_of
from sparsact.learners.lsh.layout import Array
from sparsact.saving.schema import ArrayField, Arrays, read_arrays
from sparsact.statistics.column_scales import exponents_of
from sparsact.validation.arrays import aligned, is_pandas
from sparsact.validation.estimators import first_text

MOST_ONE_HOT: Final = 8  # categories that get a column each; of more, their mean targets stand for them
MOST_DIRECTIONS: Final = 3  # of mean targets, where there are several targets
Features = str | Sequence[Hashable] | NDArray[Any] | None  # columns of categories, as a user names them


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """Numbers that stand for the categories of a column.

    ``values`` (c + 2, e) has a row for each ``known`` category (c,), sorted; one for a category that the fit did not
    meet, the mean of these over its rows; one for a missing category: zeros beside an indicator, else the same mean.
    """

    column: int
    known: Array
    values: Array

    @classmethod
    def of(cls, column: int, codes: Array, Y: Array, weights: Array, *, has_gap: bool) -> Self:
        """Numbers for the codes (m,) of a column that has some value, by the targets of the rows."""
        there = ~np.isnan(codes)
        known, places = np.unique(codes[there], return_inverse=True)
        few = len(known) <= MOST_ONE_HOT
        values = np.eye(len(known)) if few else mean_targets(places, Y[there], weights[there])
        counts = np.bincount(places, weights[there])
        prior = counts @ values / counts.sum()
        return cls(column, known, np.vstack([values, prior, np.zeros_like(prior) if has_gap else prior]))

    def places(self, codes: Array) -> NDArray[np.intp]:
        """Place of each row's category among ``values``."""
        n = len(self.known)
        at = np.minimum(np.searchsorted(self.known, codes), n - 1)
        return np.where(np.isnan(codes), n + 1, np.where(self.known[at] == codes, at, n))


@dataclass(frozen=True, eq=False)
class InputRules:
    r"""Rows with missing values and categories as rows of numbers alone.

    Columns of numbers come first, with the median of the fitted rows where a value is missing. A column in which the
    fit met missing values has an indicator. Each of a few categories is a column of zeros and ones; of more than
    :data:`MOST_ONE_HOT`, category c stands as its mean target, drawn to the mean of all by empirical Bayes [1]_,

    .. math:: \frac{n_c}{n_c + \sigma^2 / \tau^2} (\bar y_c - \bar y),

    with the variances within categories, :math:`\sigma^2`, and between, :math:`\tau^2`: 0, so that the column says
    nothing, where categories differ by no more than chance. A category that the fit did not meet has the mean of the
    numbers that stand for known ones, over its rows: it says nothing, and is not a missing value.

    Attributes
    ----------
    fills : (d,)
        What stands for a missing number; 0 for a column of categories, and for one without any number.
    gaps : (k,)
        Columns that have an indicator, 1 where a value is missing.
    categories : tuple of CategoryCodes
        Columns of categories.
    names : tuple of str
        Names of the columns; none of rows that came as an array.

    References
    ----------
    .. [1] D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes", 2001.
    """

    fills: Array
    gaps: NDArray[np.int64]
    categories: tuple[CategoryCodes, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def choose(
        cls, X: Array, Y: Array, weights: Array, categorical: NDArray[np.bool_], names: tuple[str, ...] = ()
    ) -> Self:
        """Rules for rows (m, d), where NaN is a missing value and columns of categories hold codes."""
        there, d = weights > 0, X.shape[1]
        lacking = np.isnan(X[there]) if np.isnan(X.sum()) else np.zeros((1, d), bool)
        empty = lacking.all(axis=0)
        if empty.any():
            warnings.warn(
                f"column {int(np.argmax(empty))} of `X` holds no value in any row; the model ignores it.", stacklevel=2
            )
        fills = np.zeros(d)
        for column in np.flatnonzero(~empty & ~categorical):
            fills[column] = _median(X[there, column], weights[there])
        gaps = np.logical_and(lacking.any(axis=0), ~empty)
        codes = [
            CategoryCodes.of(i, X[there, i], Y[there], weights[there], has_gap=bool(gaps[i]))
            for i in np.flatnonzero(categorical & ~empty).tolist()
        ]
        return cls(fills, np.flatnonzero(gaps), tuple(codes), names)

    @property
    def n_columns(self) -> int:
        """Columns of rows as they come."""
        return len(self.fills)

    @property
    def is_plain(self) -> bool:
        """Whether rows without a missing value stay as they are."""
        return not len(self.gaps) and not self.categories

    @property
    def sources(self) -> NDArray[np.int64]:
        """The column of X that each encoded column comes from."""
        coded = [np.full(one.values.shape[1], one.column) for one in self.categories]
        return np.concatenate([self.numeric, self.gaps, *coded]).astype(np.int64)

    @property
    def numeric(self) -> NDArray[np.int64]:
        """Columns of numbers; they come first in encoded rows."""
        return np.delete(np.arange(self.n_columns), [one.column for one in self.categories])

    def numbers(self, X: ArrayLike) -> Array:
        """Rows (m, d), or one row (d,), as numbers: codes for categories, NaN for missing values.

        Columns of a data frame, and entries of a named row of pandas, are taken by name.
        """
        rows = self._by_name(X)
        if isinstance(X, dict):
            raise ValueError("a query is a row of numbers; got a dict: pass list(row.values()), in the order of fit.")
        if rows.shape[-1:] != (self.n_columns,) or len(rows.shape) > 2:
            raise ValueError(
                f"a query needs {self.n_columns} numbers, or an array of such rows; got shape {rows.shape}."
            )
        categorical = np.isin(np.arange(self.n_columns), [one.column for one in self.categories])
        if categorical.any() and getattr(rows, "dtype", None) != np.float64:
            rows = coded(rows, categorical) if len(rows.shape) == 2 else coded(rows[None], categorical)[0]
        if is_pandas(rows):  # which has more words for a missing value than NumPy
            rows = rows.to_numpy(np.float64, na_value=np.nan)
        numbers = np.ascontiguousarray(rows, dtype=np.float64)
        if np.isinf(numbers).any():
            raise ValueError("a query must be finite, except for NaN (a missing value); it holds an infinity.")
        return numbers

    def _by_name(self, table: ArrayLike) -> Any:
        """Rows with their columns in the order of fit, where both have names; an array if they have no columns."""
        names, wanted = names_of(table), list(self.names)
        if names is None and not is_pandas(table):
            return np.asarray(table)
        X: Any = table
        found = list(X.index) if names is None else names
        if not wanted or found == wanted or not all(isinstance(name, str) for name in found):
            return X.to_numpy(object, na_value=None) if names is None else X
        if sorted(found) != sorted(self.names):
            lost = [name for name in wanted if name not in found]
            fact = f"{lost[0]!r} is not there" if lost else f"there are {len(found)} columns for {len(wanted)} names"
            raise ValueError(f"a query needs the columns of fit by name, and {fact}; pass `feature_names_in_`.")
        if names is None:
            return X[wanted].to_numpy(object, na_value=None)
        return X.select(wanted) if hasattr(X, "select") else X[wanted]

    def plain(self, X: ArrayLike) -> Array | None:
        """Rows of an array of numbers, all finite, that need no check; None of anything else."""
        kinds = "f" if self.categories else "fiu"  # categories that are integers may be beyond floats
        if type(X) is not np.ndarray or X.dtype.kind not in kinds or X.ndim != 2 or self.names:
            return None
        if not len(X) or X.shape[1] != self.n_columns:
            return None
        numbers: Array = aligned(np.ascontiguousarray(X, dtype=np.float64))
        return numbers if np.isfinite(numbers.sum()) else None

    def encode(self, X: Array) -> Array:
        """Encoded rows (m, e), all finite; rows that need nothing are returned as they are."""
        if self.is_plain:
            return np.where(np.isnan(X), self.fills, X) if np.isnan(X.sum()) else X
        lacking, coded = np.isnan(X), []
        for one in self.categories:
            codes = X[:, one.column]
            if (np.abs(codes) >= ROUNDED).any():
                row = int(np.argmax(np.abs(codes) >= ROUNDED))
                raise ValueError(
                    f"row {row}, {self._named(one.column)}: the category {codes[row]:.17g} is a float beyond 2**53, "
                    "which stands for several integers; pass integers as such (or Int64, or texts)."
                )
            places = one.places(codes)
            new = places == len(one.known)
            if new.any():
                warnings.warn(
                    f"row {int(np.argmax(new))}, {self._named(one.column)}: a category that fit did not see, in "
                    f"{int(new.sum())} rows; it counts as the mean of the categories of fit.",
                    stacklevel=2,
                )
            coded.append(one.values[places])
        numbers = np.where(lacking, self.fills, X)[:, self.numeric]
        return np.ascontiguousarray(np.column_stack([numbers, lacking[:, self.gaps], *coded]))

    def _named(self, column: int) -> str:
        return f"column {(self.names or range(self.n_columns))[column]!r} of `X`"

    def arrays(self) -> Arrays:
        """All of it, to be saved."""
        arrays = {"fills": self.fills, "gaps": self.gaps}
        for i, code in enumerate(self.categories):
            arrays |= {f"column{i}": np.array([code.column]), f"known{i}": code.known, f"values{i}": code.values}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_columns: int, names: tuple[str, ...] = ()) -> Self:
        """What :meth:`arrays` wrote; a model of an earlier version wrote none, and had neither gaps nor categories."""
        if not arrays:
            return cls(np.zeros(n_columns), np.empty(0, np.int64), (), names)
        if len(arrays["fills"]) != n_columns or len(names) not in (0, n_columns):
            raise ValueError("the model's rules for missing values name other columns")
        n_codes = sum(name.startswith("known") for name in arrays)
        fields = {"fills": ArrayField("n", finite=True), "gaps": ArrayField("g", "int64")}
        for i in range(n_codes):
            fields |= {f"column{i}": ArrayField("1", "int64"), f"known{i}": ArrayField(f"c{i}", finite=True)}
            fields[f"values{i}"] = ArrayField(f"v{i} e{i}", finite=True)
        found = read_arrays(fields, arrays, n=n_columns)
        codes = [
            CategoryCodes(int(found[f"column{i}"][0]), found[f"known{i}"], found[f"values{i}"]) for i in range(n_codes)
        ]
        if any(len(code.values) != len(code.known) + 2 for code in codes):
            raise ValueError("categories and their numbers do not fit together")
        used = [*found["gaps"].tolist(), *(code.column for code in codes)]
        if used and not 0 <= min(used) <= max(used) < n_columns:
            raise ValueError("inputs name columns that are not there")
        return cls(found["fills"], found["gaps"], tuple(codes), names)


def _median(values: Array, weights: Array) -> float:
    """Median of the values that are there; a row of weight 2 counts as two rows."""
    if weights.min() == weights.max():
        return float(np.nanmedian(values))
    order = np.argsort(values)[: np.count_nonzero(~np.isnan(values))]  # NaN comes last
    reached = np.cumsum(weights[order])
    middle = [np.searchsorted(reached, reached[-1] / 2, side) for side in ("left", "right")]
    return float(np.mean(values[order[middle]]))


def is_plain_target(y: ArrayLike, n_rows: int, multi_output: bool) -> bool:
    """Whether targets are an array of finite numbers, one a row, that no check would change."""
    if type(y) is not np.ndarray or y.dtype.kind not in "fiu" or len(y.shape) not in (1, 1 + multi_output):
        return False
    return len(y) == n_rows and bool(np.isfinite(y.sum()))


def mean_targets(places: NDArray[np.intp], Y: Array, weights: Array) -> Array:
    """Mean targets (c, e) of categories, drawn to the mean of all by empirical Bayes, in its standard deviations.

    Variances between categories by the method of moments, as in a one-way analysis of variance with unequal groups.
    """
    counts, total = np.bincount(places, weights), weights.sum()
    Y = np.ldexp(Y, -exponents_of(Y))
    deviation = np.sqrt(np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    Z = (Y - np.average(Y, axis=0, weights=weights)) / np.where(deviation > 0, deviation, 1.0)
    means = np.stack([np.bincount(places, weights * z) for z in Z.T], axis=1) / counts[:, None]
    within = (weights[:, None] * (Z - means[places]) ** 2).sum(axis=0) / max(total - len(counts), 1.0)
    between = (counts[:, None] * means**2).sum(axis=0) - (len(counts) - 1) * within
    between = np.maximum(between / (total - (counts**2).sum() / total), 0.0)
    drawn = means * counts[:, None] * between / np.maximum(counts[:, None] * between + within, 1e-300)
    if Y.shape[1] <= MOST_DIRECTIONS:
        return np.ascontiguousarray(drawn)
    directions = np.linalg.svd(drawn * np.sqrt(counts)[:, None], full_matrices=False)[2][:MOST_DIRECTIONS]
    return np.ascontiguousarray(drawn @ directions.T)


def categorical_columns(X: ArrayLike, features: Features) -> NDArray[np.bool_] | None:
    """Which columns of X hold categories: by their type, by these names or numbers, or by a mask.

    None if there can be none.
    """
    names = names_of(X)
    if features is None or (isinstance(features, str) and names is None):
        return None
    if isinstance(features, str):
        kinds = X.schema.types if hasattr(X, "schema") and hasattr(X, "column_names") else getattr(X, "dtypes", ())
        return np.array([str(kind).startswith(("category", "Categorical", "Enum", "dictionary")) for kind in kinds])
    d = len(names) if names is not None else np.shape(X)[1]
    wanted = np.asarray(features)
    if wanted.dtype == bool and wanted.shape == (d,):
        return wanted
    known = names if names is not None and wanted.dtype.kind in "OU" else list(range(d))
    missing = [each for each in wanted.tolist() if each not in known]
    if missing or wanted.dtype == bool:
        fact = repr(missing[0]) if missing else f"a mask of {len(wanted)}"
        raise ValueError(
            f"`categorical_features` has {fact}, but `X` has {d} columns: {', '.join(map(repr, known[:4]))}, ...; "
            "give names or numbers of columns."
        )
    return np.isin(np.arange(d), [known.index(each) for each in wanted.tolist()])


def names_of(X: ArrayLike) -> list[Any] | None:
    """Names of the columns of a data frame; None of anything else."""
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None


def coded(X: ArrayLike, categorical: NDArray[np.bool_]) -> Any:
    """X with codes for its categories: numbers as they are, a digest of 52 bits for a text, NaN where it is missing."""
    names = names_of(X)
    if names is None:
        table = np.array(X, dtype=object)
        for i in np.flatnonzero(categorical).tolist():
            table[:, i] = codes_of(table[:, i], i)
        return table.astype(np.float64) if first_text(table) is None else table
    frame: Any = X.to_pandas() if hasattr(X, "to_pandas") else X
    frame = frame.copy(deep=False)
    for name in np.array(names, dtype=object)[categorical]:
        frame[name] = codes_of(frame[name], name)
    return frame
