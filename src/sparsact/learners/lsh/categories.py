"""Which columns hold categories, and the number that stands for each category."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.learners.lsh.layout import Array

TEXT: Final = 1 << 52  # codes of texts lie from here to 2**53, all exact in float64
ROUNDED: Final = 1 << 53  # integers from here on have the code of their digits as a text: float64 would merge some
Features = str | Sequence[Hashable] | NDArray[Any] | None  # columns of categories, as a user names them


def categorical_columns(X: ArrayLike, features: Features) -> NDArray[np.bool_] | None:
    """Which columns of X hold categories: by their type, by these names or numbers, or by a mask.

    None if there can be none.

    Raises
    ------
    ValueError
        If a name or a number is no column's.
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
        has_text = any(isinstance(value, str | bytes) for value in table.flat)
        return table if has_text else table.astype(np.float64)
    frame: Any = X.to_pandas() if hasattr(X, "to_pandas") else X
    frame = frame.copy(deep=False)
    for name in np.array(names, dtype=object)[categorical]:
        frame[name] = codes_of(frame[name], name)
    return frame


def codes_of(column: ArrayLike, name: Hashable) -> Array:
    """Codes (m,) of a column of categories."""
    codes: dict[Hashable, float] = {}
    if hasattr(column, "cat"):  # pandas makes floats of integers among which one is missing, and rounds them
        kinds = np.array([*column.cat.categories, None], dtype=object)
        column = kinds[column.cat.codes]
    values = np.asarray(column, dtype=object)
    found = np.empty(len(values))
    for row, value in enumerate(values):
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


def _is_missing(value: object) -> bool:
    """Whether it is None, NaN, or what pandas has for them."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _code(value: object) -> float:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < ROUNDED):
        return float(value)
    digest = hashlib.blake2b(str(value).encode(), digest_size=8).digest()
    return float(TEXT | int.from_bytes(digest, "little") >> 12)
