"""What scikit-learn checks of rows, with errors that also say where the first NaN or infinity stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data


def validated(learner: Any, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
    """X, or X and y, as :func:`sklearn.utils.validation.validate_data` returns them."""
    with _telling_where(X=X, y=y):
        return validate_data(learner, X, y, **checks)


def row_weights(weights: Any, X: NDArray[Any], **checks: Any) -> NDArray[np.float64]:
    """Weights (m,) of the rows of X, none negative; ones if they are None."""
    with _telling_where(sample_weight=weights):
        return np.asarray(_check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True, **checks))


def check_classes(named: Any, known: NDArray[Any]) -> None:
    """Refuse classes that a later call of ``partial_fit`` names otherwise than the first."""
    if named is not None and not np.array_equal(np.unique(np.asarray(named)), known):
        raise ValueError(
            f"`classes` must be {known.tolist()}, as in the first call, or be left out; weights of rows are passed as "
            "sample_weight=."
        )


@contextmanager
def _telling_where(**tables: Any) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        if "NaN" not in str(error) and "infinity" not in str(error):
            raise
        for name, values in tables.items():
            place = _first_not_finite(values)
            if place is not None:
                row, *column = place
                where = f"row {row}, column {column[0]}" if column else f"row {row}"
                raise ValueError(f"`{name}` holds {np.asarray(values)[place]} at {where}. {error}") from error
        raise


def _first_not_finite(values: Any) -> tuple[int, ...] | None:
    """Place of the first NaN or infinity of a table or a column; None where there is none, or it cannot be told."""
    try:
        strange = ~np.isfinite(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        return None
    return tuple(int(i) for i in np.argwhere(strange)[0]) if strange.ndim and strange.any() else None
