"""Classification by least squares on labels: targets of the regressions, and labels by the largest value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

Array = NDArray[np.float64]


class LabelRegression(ClassifierMixin):  # type: ignore[misc] # untyped scikit-learn
    """Base of classifiers that regress two classes as one function with values +1 and -1, more as indicators."""

    classes_: NDArray[Any]
    _values: Callable[[ArrayLike], Array]  # (m, functions) at rows

    @property
    def _single(self) -> bool:
        return len(self.classes_) == 2

    def _targets(self, place: NDArray[np.intp]) -> Array:
        """Targets (m, functions) of labels by their places among the classes."""
        if self._single:
            return np.where(place[:, None] == 1, 1.0, -1.0)
        return np.equal(place[:, None], np.arange(len(self.classes_)), dtype=bool).astype(np.float64)

    def decision_function(self, X: ArrayLike) -> Array:
        """Values of the regressed functions: (m,), positive for ``classes_[1]``, or (m, n_classes)."""
        values = self._values(X)
        return values[:, 0] if self._single else values

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predicted labels, (m,)."""
        values = self._values(X)
        return np.asarray(self.classes_[(values[:, 0] > 0).astype(np.intp) if self._single else values.argmax(axis=1)])

    def predict_proba(self, X: ArrayLike) -> Array:
        """Least-squares estimates of the class probabilities, clipped to [0, 1] and scaled to sum 1, (m, n_classes).

        Where every estimate of a row is at most 0, the classes of the largest share it.
        """
        values = self._values(X)
        if self._single:
            share = np.clip((1 + values[:, 0]) / 2, 0.0, 1.0)
            return np.column_stack([1 - share, share])
        best = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
        shares = np.clip(values, 0.0, 1.0)
        shares = np.where(shares.any(axis=1, keepdims=True), shares, best)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))
