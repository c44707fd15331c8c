"""Checks of rows: scikit-learn's, and of masks, dates and texts, which it would take for numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any, Final, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, validate_data

_OF_A_FIT: Final = {"reset", "multi_output", "y_numeric", "dtype", "accept_sparse", "ensure_all_finite"}


def checked_rows(learner: object, X: object, y: Any = "no_validation", **checks: Any) -> Any:
    """Check X, or X and y, and return them as :func:`sklearn.utils.validation.validate_data` does.

    X may also be what exports an Arrow stream only, such as a relation of DuckDB or a reader of record batches.

    Raises
    ------
    ValueError
        Also for masked entries, dates and texts, which scikit-learn would take for numbers, and for integers to learn
        that float64 would round; says where the first NaN or infinity stands.
    """
    if _nothing_to_find(X, y, checks):
        vars(learner)["n_features_in_"] = X.shape[1]
        vars(learner).pop("feature_names_in_", None)
        return X, y
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__"):
        import pyarrow as pa  # scikit-learn reads column names from its tables

        X = pa.table(X)
    if not checks.get("reset", True):
        refuse_named_columns(learner, X)
    learns, numbers = not isinstance(y, str), checks.get("y_numeric", False)
    if getattr(X, "ndim", 2) == 1 and getattr(y, "ndim", 1) == 2:
        raise ValueError("`X` is a single column and `y` is a table: pass the rows first and the targets second.")
    _check_kinds(X, "`X`", fits=learner if checks.get("reset", True) else None, exact=learns)
    _check_kinds(y, "`y`", texts=not numbers, exact=numbers)
    with errors_name_place(X=X, y=y):
        return validate_data(learner, X, y, **checks)


def _nothing_to_find(X: object, y: object, checks: dict[str, Any]) -> TypeGuard[NDArray[np.float64]]:
    """Whether X and y are plain finite float64 arrays to fit, for which scikit-learn's slower checks are skipped."""
    fits = checks.get("reset", True) and checks.get("dtype") == "numeric" and not checks.keys() - _OF_A_FIT
    if not fits or type(X) is not np.ndarray or type(y) is not np.ndarray or not X.dtype == y.dtype == np.float64:
        return False
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is finite has no other numbers in it
        return X.ndim == 2 and X.size > 0 and y.shape == X.shape[:1] and bool(np.isfinite(X.sum() + y.sum()))


def refuse_named_columns(learner: object, X: object) -> None:
    """Raise for a data frame if ``learner`` was fitted to encoded columns, which have an order but no names.

    Such a model would take columns by their places, and numbers that are not standardised.
    """
    if hasattr(learner, "table_encoding_") and _get_feature_names(X) is not None:
        raise ValueError(
            "`X` has named columns, and this model takes the encoded columns of its table by their places: call "
            "sparsact.predict_table(model, X), or predict of the result of fit_table, which find columns by name and "
            "encode them; or pass encoded columns as an array."
        )


# scikit-learn 1.9 refuses weights that are all zero, unless it is configured not to; earlier versions take them.
_ZEROS: Final = {"allow_all_zero_weights"} & signature(_check_sample_weight).parameters.keys()


def checked_sample_weight(
    weights: object, X: NDArray[Any], *, allow_all_zero_weights: bool = False
) -> NDArray[np.float64]:
    """Return the weights (m,) of the rows of X, none negative; ones if they are None."""
    _check_kinds(weights, "`sample_weight`")
    options = {"dtype": np.float64, **dict.fromkeys(_ZEROS, True)}
    with errors_name_place(sample_weight=weights):
        found = np.asarray(_check_sample_weight(weights, X, **options))
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ValueError(f"`sample_weight` holds {found[row]:g} at row {row}: negative, and weights are 0 or more.")
        if not allow_all_zero_weights and not found.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    return found


_MOST_ROWS, _LEAST_SHARE = 1e12, 1e-100
_WHOLE: Final = 2**53  # up to which float64 holds every integer
_WORD: Final = 8  # bytes of the integers that reach beyond


def weights_as_counts(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale weights to act as numbers of rows: a mean below one, over positive weights, becomes one.

    So that squares of sums neither overflow nor vanish, a mean is at most ``_MOST_ROWS`` and no weight less than
    ``_LEAST_SHARE`` of it: neither shows in a fit.
    """
    there = weights > 0
    largest = float(weights.max())
    shares = weights / largest  # sums of these do not overflow
    share = float(shares[there].mean())
    mean = min(max(share * largest, 1.0), _MOST_ROWS)
    counts = weights if mean == share * largest else shares * (mean / share)
    return np.where(there, np.maximum(counts, _LEAST_SHARE * mean), 0.0)


_MOST_REPEATED: Final = 1e9  # no table repeats more rows: larger weights are precisions


def are_counts(weights: NDArray[np.float64]) -> bool:
    """Whether weights are whole numbers of rows, not precisions in some unit."""
    return bool((weights == np.floor(weights)).all()) and float(weights.sum()) <= _MOST_REPEATED


class OfClasses(Protocol):
    """A classifier."""

    classes_: NDArray[Any]


def class_places(
    learner: OfClasses, labels: NDArray[Any], classes: object = None, *, reset: bool, least: int = 2
) -> NDArray[np.intp]:
    """Return the places (m,) of labels in the sorted ``classes_``, which the first ``fit`` or ``partial_fit`` sets.

    Raises a ValueError for fewer classes than ``least``, for a label that is none of them, and where a later call names
    other ones.
    """
    check_classification_targets(labels)
    named = None if classes is None else np.unique(np.asarray(classes))
    if reset:
        learner.classes_ = np.unique(labels) if named is None else named
    known = learner.classes_
    if not len(known):
        raise ValueError("`classes` is empty; list every label that will come.")
    if len(known) < least:
        raise ValueError(
            f"classification needs at least {least} classes; `y` holds 1 class, {known.tolist()[0]!r}. Pass rows of "
            "another class, or name all of them in a first partial_fit(classes=), if there is one."
        )
    if named is not None and not np.array_equal(named, known):
        raise ValueError(
            f"`classes` must be {known.tolist()}, as in the first call, or be left out; weights of rows are passed as "
            "sample_weight=."
        )
    places = np.searchsorted(known, labels)
    unknown = known[np.minimum(places, len(known) - 1)] != labels
    if unknown.any():
        raise ValueError(
            f"label {labels[unknown].tolist()[0]!r} is not among the classes {known.tolist()}; name all classes in "
            "the first partial_fit."
        )
    return places


def _check_kinds(values: object, what: str, *, texts: bool = False, fits: object = None, exact: bool = False) -> None:
    """Raise for masked entries, dates, texts (unless ``texts``), and strings of bits read as integers to fit.

    Where ``exact``, also integers that float64 would round. ``fits`` is the learner that is to be fitted to X.
    """
    if values is None or isinstance(values, str) or hasattr(values, "tocsr"):
        return
    if np.ma.is_masked(values):
        raise ValueError(f"{what} has masked entries, which have no value; fill or drop them first.")
    for name, column in _columns(values):
        where = what if name is None else f"column {name!r} of {what}"
        if column.dtype.kind in "mM":
            raise ValueError(
                f"{where} holds dates or times ({column.dtype}); pass numbers, such as days since a start."
            )
        text = None if texts else first_text(column)
        if text is not None:
            named = "numbers of these columns" if name is None else repr(name)
            as_type = "" if name is None else f"X[{name!r}].astype('category') or "
            remedy = f"; for categories pass {as_type}categorical_features=[{named}]"
            raise ValueError(
                f"{where} holds texts, such as {text!r}; pass numbers: astype(float) if the texts are numbers, or "
                "[list(text) for text in column] as integers if they are strings of bits"
                f"{remedy if hasattr(fits, 'categorical_features') else ''}."
            )
        if fits is not None and _lost_zeros(column):
            raise ValueError(
                f"{where} holds integers of digits 0 and 1 only, such as {column.max()}: strings of bits that lost "
                "their leading zeros; read them as text (dtype=str) and pass a column for each bit, or, if they are "
                "numbers, pass them as floats."
            )
        row = _first_rounded(column) if exact else None
        if row is not None:
            raise ValueError(
                f"{where} holds {column.flat[row]}, an integer beyond 2**53 that float64 rounds; subtract a constant "
                "from the column first, or pass floats if what rounding changes does not matter."
            )


def _columns(values: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Columns of a data frame with their names; anything else as one array."""
    if hasattr(values, "dtypes") and hasattr(values, "items") and values.ndim == 2:
        for name, column in values.items():
            kind = getattr(column.dtype, "kind", "O")  # pandas has more types than NumPy
            yield name, np.empty(0, kind + "8[s]") if kind in "mM" else np.asarray(column)
        return
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        return  # scikit-learn says what is wrong
    yield None, array


def first_text(column: NDArray[Any]) -> str | None:
    """The first text in an array of any shape and type, None without one."""
    if column.dtype.kind in "US":
        return str(column.flat[0]) if column.size else None
    kinds = set(map(type, column.ravel())) if column.dtype == object else ()
    texts = tuple(kind for kind in kinds if issubclass(kind, str | bytes))  # a fifth of the time of a look at each cell
    return next(str(value) for value in column.flat if isinstance(value, texts)) if texts else None


def _first_rounded(column: NDArray[Any]) -> int | None:
    """Place of the first integer that float64 would round."""
    if column.dtype == object:
        large = [i for i, v in enumerate(column.flat) if isinstance(v, int | np.integer) and abs(int(v)) > _WHOLE]
    elif column.dtype.kind in "iu" and column.dtype.itemsize == _WORD:
        large = np.flatnonzero((column > _WHOLE) | (column < -_WHOLE)).tolist()
    else:
        return None
    return next((i for i in large if int(float(column.flat[i])) != int(column.flat[i])), None)


def _lost_zeros(column: NDArray[Any]) -> bool:
    """Whether one column looks like bit strings read as integers: four or more of them, some with two ones."""
    if column.dtype.kind not in "iu" or column.size != len(column) or not column.size or column.max() < 11:
        return False
    if not set("".join(map(str, column[:64].ravel().tolist()))) <= {"0", "1"}:
        return False
    texts = [str(value) for value in np.unique(column).tolist()]
    return len(texts) > 3 and set("".join(texts)) <= {"0", "1"} and any(text.count("1") > 1 for text in texts)


@contextmanager
def errors_name_place(**tables: object) -> Iterator[None]:
    """Say in scikit-learn's errors that X has no columns, or where the first NaN or infinity stands."""
    try:
        yield
    except ValueError as error:
        if "0 feature(s)" in str(error):
            raise ValueError(f"`X` has no columns; pass one or more for each row. {error}") from error
        if "NaN" not in str(error) and "infinity" not in str(error):
            raise
        for name, values in tables.items():
            place = _first_not_finite(values)
            if place is not None:
                row, *column = place
                where = f"row {row}" + "".join(f", column {_label(values, i)}" for i in column)
                raise ValueError(f"`{name}` holds {np.asarray(values)[place]} at {where}. {error}") from error
        raise


def _label(values: object, column: int) -> str:
    """A column of a frame by its name, of an array by its number."""
    return repr(str(list(values.columns)[column])) if hasattr(values, "columns") else str(column)


def _first_not_finite(values: object) -> tuple[int, ...] | None:
    """Place of the first NaN or infinity of a table or a column; None where there is none, or it cannot be found."""
    try:
        strange = ~np.isfinite(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):  # as of pandas.NA
        strange = _is_missing(values)
    return _first_place(strange)


def _first_place(strange: NDArray[np.bool_]) -> tuple[int, ...] | None:
    return tuple(int(i) for i in np.argwhere(strange)[0]) if strange.ndim and strange.any() else None


def _is_missing(values: Any) -> NDArray[np.bool_]:
    """Which entries are None, NaN, or no value of pandas."""
    array = values if hasattr(values, "tocsr") else np.asarray(values)
    if array.dtype != object:
        return np.zeros(0, dtype=bool) if array.dtype.kind not in "fc" else np.isnan(np.asarray(values))
    found = np.array([one is None or not _equals_itself(one) for one in array.flat], dtype=bool)
    return found.reshape(array.shape)


def _equals_itself(value: object) -> bool:
    """False for NaN, and for pandas.NA, whose comparisons have no truth."""
    same = value == value
    return isinstance(same, bool | np.bool_) and bool(same)
