"""What stands before the tables: missing values and categories become numbers, by rules that a fit freezes."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.layout import Array
from sparsact.saving.schema import ArrayField, Arrays, read_arrays

MOST_ONE_HOT: Final = 8  # categories that get a column each; of more, their mean targets stand for them
MOST_DIRECTIONS: Final = 3  # of mean targets, where there are several targets
TEXT: Final = 1 << 52  # codes of texts lie from here to 2**53, all exact in float64


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """Numbers that stand for the categories of a column: ``values`` (c, e) for ``known`` (c,), sorted; else zeros."""

    column: int
    known: Array
    values: Array

    def places(self, codes: Array) -> NDArray[np.intp]:
        """Place of each row's category; -1 where it is missing, or was not seen."""
        at = np.minimum(np.searchsorted(self.known, codes), len(self.known) - 1)
        return np.where(self.known[at] == codes, at, -1)

    def encode(self, places: NDArray[np.intp]) -> Array:
        """Numbers (m, e) for the categories at these places."""
        return np.where(places[:, None] >= 0, self.values[places], 0.0)


@dataclass(frozen=True, eq=False)
class InputRules:
    r"""Rows with missing values and categories as rows of numbers alone.

    Columns of numbers come first, with the median of the fitted rows where a value is missing. A column in which the
    fit met missing values has an indicator. Each of a few categories is a column of zeros and ones; of more than
    :data:`MOST_ONE_HOT`, category c stands as its mean target, drawn to the mean of all by empirical Bayes [1]_,

    .. math:: \frac{n_c}{n_c + \sigma^2 / \tau^2} (\bar y_c - \bar y),

    with the variances within categories, :math:`\sigma^2`, and between, :math:`\tau^2`: 0, so that the column says
    nothing, where categories differ by no more than chance. A category that the fit did not meet counts as missing.

    Attributes
    ----------
    fills : (d,)
        What stands for a missing number; 0 for a column of categories, and for one without any number.
    gaps : (k,)
        Columns that have an indicator, 1 where a value is missing.
    categories : tuple of CategoryCodes
        Columns of categories.

    References
    ----------
    .. [1] D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes", 2001.
    """

    fills: Array
    gaps: NDArray[np.int64]
    categories: tuple[CategoryCodes, ...] = ()

    @classmethod
    def choose(cls, X: Array, Y: Array, weights: Array, categorical: NDArray[np.bool_]) -> Self:
        """Rules for rows (m, d), where NaN is a missing value and columns of categories hold codes."""
        there, d = weights > 0, X.shape[1]
        lacking = np.isnan(X[there]) if np.isnan(X.sum()) else np.zeros((1, d), bool)
        empty = lacking.all(axis=0)
        if empty.any():
            warnings.warn(
                f"column {int(np.argmax(empty))} of `X` holds no value in any row; it has no say in the model.",
                stacklevel=2,
            )
        fills = np.zeros(d)
        for column in np.flatnonzero(~empty & ~categorical):
            fills[column] = np.nanmedian(X[there, column])
        codes = [
            category_codes(i, X[there, i], Y[there], weights[there]) for i in range(d) if (categorical & ~empty)[i]
        ]
        return cls(fills, np.flatnonzero(lacking.any(axis=0) & ~empty), tuple(codes))

    @property
    def n_columns(self) -> int:
        """Columns of rows as they come."""
        return len(self.fills)

    @property
    def is_plain(self) -> bool:
        """Whether rows without a missing value stay as they are."""
        return not len(self.gaps) and not self.categories

    def equals(self, other: InputRules) -> bool:
        """Whether rows become the same numbers."""
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    @property
    def sources(self) -> NDArray[np.int64]:
        """The column of X that each encoded column comes from."""
        coded = [np.full(one.values.shape[1], one.column) for one in self.categories]
        return np.concatenate([self.numeric, self.gaps, *coded]).astype(np.int64)

    @property
    def numeric(self) -> NDArray[np.int64]:
        """Columns of numbers; they come first in encoded rows."""
        return np.delete(np.arange(self.n_columns), [one.column for one in self.categories])

    def numbers(self, X: Any) -> Array:
        """Rows (m, d), or one row (d,), as numbers: codes for categories, NaN for missing values.

        Raises
        ------
        ValueError
            If a row has another number of columns, or an infinity.
        """
        X = X if _names(X) is not None else np.asarray(X)
        if X.shape[-1:] != (self.n_columns,) or len(X.shape) > 2:
            raise ValueError(f"a query has {self.n_columns} numbers, or is an array of such rows; got shape {X.shape}.")
        categorical = np.isin(np.arange(self.n_columns), [one.column for one in self.categories])
        if categorical.any() and getattr(X, "dtype", None) != np.float64:
            X = coded(X, categorical) if len(X.shape) == 2 else coded(X[None], categorical)[0]
        numbers = np.ascontiguousarray(X, dtype=np.float64)
        if np.isinf(numbers).any():
            raise ValueError("a query must be finite, but for NaN, a missing value; it holds an infinity.")
        return numbers

    def encode(self, X: Array) -> Array:
        """Encoded rows (m, e), all finite; rows that need nothing are returned as they are."""
        if self.is_plain:
            return np.where(np.isnan(X), self.fills, X) if np.isnan(X.sum()) else X
        lacking, coded = np.isnan(X), []
        for one in self.categories:
            places = one.places(X[:, one.column])
            new = (places < 0) & ~lacking[:, one.column]
            if new.any():
                warnings.warn(
                    f"row {int(np.argmax(new))}, column {one.column} of `X`: a category that was not there in fit, in "
                    f"{int(new.sum())} rows; it counts as a missing value.",
                    stacklevel=2,
                )
            lacking[:, one.column] |= new
            coded.append(one.encode(places))
        numbers = np.where(lacking, self.fills, X)[:, self.numeric]
        return np.ascontiguousarray(np.column_stack([numbers, lacking[:, self.gaps], *coded]))

    def arrays(self) -> Arrays:
        """All of it, to be saved."""
        one = {f"{name}{i}": each for i, code in enumerate(self.categories) for name, each in _arrays_of(code).items()}
        return {"fills": self.fills, "gaps": self.gaps, **one}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_columns: int) -> Self:
        """What :meth:`arrays` wrote; a model of an earlier version wrote none, and had neither gaps nor categories."""
        if not arrays:
            return cls(np.zeros(n_columns), np.empty(0, np.int64))
        if len(arrays["fills"]) != n_columns:
            raise ValueError("the model's rules for missing values are of other columns")
        found = read_arrays(
            {"fills": ArrayField("n", finite=True), "gaps": ArrayField("g", "int64")}, arrays, n=n_columns
        )
        codes = []
        for i in range(sum(name.startswith("known") for name in arrays)):
            fields = {f"column{i}": ArrayField("1", "int64")}
            fields |= {
                f"known{i}": ArrayField(f"c{i}", finite=True),
                f"values{i}": ArrayField(f"c{i} e{i}", finite=True),
            }
            read = read_arrays(fields, arrays)
            codes.append(CategoryCodes(int(read[f"column{i}"][0]), read[f"known{i}"], read[f"values{i}"]))
        used = [*found["gaps"].tolist(), *(code.column for code in codes)]
        if used and not 0 <= min(used) <= max(used) < n_columns:
            raise ValueError("inputs name columns that are not there")
        return cls(found["fills"], found["gaps"], tuple(codes))


def _arrays_of(code: CategoryCodes) -> Arrays:
    return {"column": np.array([code.column]), "known": code.known, "values": code.values}


def category_codes(column: int, codes: Array, Y: Array, weights: Array) -> CategoryCodes:
    """Numbers for the categories of a column of which some value is there."""
    there = ~np.isnan(codes)
    known, places = np.unique(codes[there], return_inverse=True)
    if len(known) <= MOST_ONE_HOT:
        return CategoryCodes(column, known, np.eye(len(known)))
    return CategoryCodes(column, known, mean_targets(places, Y[there], weights[there]))


def mean_targets(places: NDArray[np.intp], Y: Array, weights: Array) -> Array:
    """Mean targets (c, e) of categories, drawn to the mean of all by empirical Bayes, in its standard deviations.

    Variances between categories by the method of moments, as in a one-way analysis of variance with unequal groups.
    """
    counts, total = np.bincount(places, weights), weights.sum()
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


def categorical_columns(X: Any, features: str | Sequence[Any] | None) -> NDArray[np.bool_] | None:
    """Which columns of X hold categories: those of a categorical type, of these names or numbers, or of a mask.

    None if there can be none.

    Raises
    ------
    ValueError
        If a name or a number is no column's.
    """
    names = _names(X)
    if features is None or (isinstance(features, str) and names is None):
        return None
    if isinstance(features, str):
        return np.array([_is_categorical(X, name) for name in names or ()], dtype=bool)
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


def _names(X: Any) -> list[Any] | None:
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") and hasattr(X, "dtypes") else None


def _is_categorical(X: Any, name: Any) -> bool:
    """Whether a column of a data frame is of a type of categories: of pandas, polars or Arrow."""
    kind = X.schema.field(name).type if hasattr(X, "column_names") else X[name].dtype
    return str(kind).startswith(("category", "Categorical", "Enum", "dictionary"))


def coded(X: Any, categorical: NDArray[np.bool_]) -> Any:
    """X with codes for its categories: numbers as they are, a digest of 52 bits for a text, NaN where it is missing."""
    names = _names(X)
    if names is None:
        X = np.asarray(X, dtype=object)
        columns = [codes_of(X[:, i], i) if here else X[:, i] for i, here in enumerate(categorical)]
        return np.column_stack(columns).astype(object if _has_text(columns) else np.float64)
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X.copy(deep=False)
    for name in np.array(names, dtype=object)[categorical]:
        frame[name] = codes_of(frame[name], name)
    return frame


def _has_text(columns: Iterable[NDArray[Any]]) -> bool:
    return any(isinstance(value, str | bytes) for column in columns if column.dtype == object for value in column)


def codes_of(column: Any, name: Any) -> Array:
    """Codes (m,) of a column of categories."""
    codes: dict[Any, float] = {}
    found = np.empty(len(column))
    for row, value in enumerate(np.asarray(column, dtype=object)):
        number = value.item() if isinstance(value, np.generic) else value
        if _is_missing(number):
            found[row] = np.nan
            continue
        if number not in codes:
            codes[number] = _code(number)
        found[row] = codes[number]
    if len({isinstance(value, int | float) for value in codes}) > 1:
        raise ValueError(f"column {name!r} of `X` mixes numbers and other categories; make them all texts.")
    return found


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what pandas has for them."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _code(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    digest = hashlib.blake2b(str(value).encode(), digest_size=8).digest()
    return float(TEXT | int.from_bytes(digest, "little") >> 12)
