"""Rows as they come to an LSH estimator, checked and encoded: numbers, missing values, categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.categories import categorical_columns, coded
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array
from sparsact.statistics.statistic import Batch
from sparsact.validation.arrays import aligned, check_row_weights
from sparsact.validation.estimators import checked_rows, checked_sample_weight

MAX_SIZE, MIN_SIZE = 1e305, 1e-300  # of columns and targets; of the largest target


class CheckedInputs:
    """Checks of an :class:`~sparsact.learners.lsh.estimator.LSHModel`."""

    _inputs: InputRules
    is_categorical_: NDArray[np.bool_]
    n_features_in_: int
    categorical_features: Any

    def _encoded(self, raw: Batch) -> Batch:
        """Rows as the tables see them."""
        X = self._inputs.encode(raw.X)
        return raw if X is raw.X else Batch(aligned(X), raw.y, raw.weights, raw.folds)

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **options: Any) -> tuple[Array, Any, Array]:
        if reset:
            named = categorical_columns(X, self.categorical_features)
            self.is_categorical_ = np.zeros(0, bool) if named is None else named
        plain = None if reset or sample_weight is not None else self._plain(X)
        if plain is not None and _is_plain_target(y, len(plain), options.get("multi_output", False)):
            X, weights = plain, np.ones(len(plain))
        else:
            X, y = self._checked_rows(X, y, reset=reset, **options)
            weights = checked_sample_weight(sample_weight, X)
        if not len(self.is_categorical_):
            self.is_categorical_ = np.zeros(X.shape[1], bool)
        if reset and not (weights > 0).any():
            raise ValueError("every row has weight zero; give some row a positive weight.")
        if np.fmax.reduce(np.abs(X), axis=None) > MAX_SIZE:
            raise ValueError(f"`X` holds numbers beyond {MAX_SIZE:g}, whose differences may overflow; scale it down.")
        check_row_weights(weights)
        return aligned(X), y, aligned(weights)

    def _checked_rows(self, X: Any, y: Any = "no_validation", **options: Any) -> Any:
        """X, or X and y, of numbers: codes for categories, NaN for missing values."""
        if self.is_categorical_.any():
            X = coded(X, self.is_categorical_)
        return checked_rows(self, X, y, dtype=np.float64, order="C", ensure_all_finite="allow-nan", **options)

    def _plain(self, X: Any) -> Array | None:
        """The rows of an array of numbers, all finite, of as many columns as were fitted; None of anything else."""
        kinds = "f" if self.is_categorical_.any() else "fiu"  # categories that are integers may be beyond floats
        plain = type(X) is np.ndarray and X.dtype.kind in kinds and X.ndim == 2
        if not plain or "feature_names_in_" in self.__dict__ or not len(X) or X.shape[1] != self.n_features_in_:
            return None
        numbers: Array = aligned(np.ascontiguousarray(X, dtype=np.float64))
        return numbers if np.isfinite(numbers.sum()) else None

    def _queries(self, X: Any, inputs: InputRules) -> Array:
        """Rows to predict at, encoded by these rules; valid arrays are not checked twice."""
        rows = self._plain(X)
        if rows is None:
            return aligned(inputs.encode(self._checked_rows(X, reset=False)))
        return rows if inputs.is_plain else aligned(inputs.encode(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _is_plain_target(y: Any, n_rows: int, multi_output: bool) -> bool:
    """Whether targets are an array of finite numbers, one a row, that no check would change."""
    if type(y) is not np.ndarray or y.dtype.kind not in "fiu" or len(y.shape) not in (1, 1 + multi_output):
        return False
    return len(y) == n_rows and bool(np.isfinite(y.sum()))
