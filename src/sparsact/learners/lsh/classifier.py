"""LSHClassifier: shares of the classes in the buckets of locality-sensitive hash tables."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from sparsact.learners.lsh.estimator import LSHModel
from sparsact.saving.schema import Arrays, State, read_classes, write_classes
from sparsact.statistics.statistic import Batch
from sparsact.transaction import transaction
from sparsact.validation.estimators import class_places


class LSHClassifier(ClassifierMixin, LSHModel):  # type: ignore[misc] # scikit-learn ships no types
    """Classification by hashing: each bucket holds class probabilities as polynomials of the local coordinates.

    Parameters, updates and costs are as for :class:`LSHRegressor`, whose table it shares: a class is a target that is
    1 at its rows and 0 at others. Probabilities are clipped to [0, 1] and add up to 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> model = LSHClassifier(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.predict([[0.5, 0.5], [0.5, -0.5]])
    array([ True, False])
    """

    @transaction
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> None:
        """Learn more rows. The first call chooses the hash functions; its ``classes`` must list every label."""
        self._learn(lambda begin: self._validated(X, y, sample_weight, reset=begin, classes=classes))

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError("models of different classes cannot be merged; make both from one, by `blank()`.")

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (m, n_classes) of the classes; NaN in empty buckets if ``fallback="nan"``."""
        shares = np.clip(self._values(X), 0.0, None)
        total = shares.sum(axis=1, keepdims=True)
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.asarray(np.where(total == 0, even, shares / np.where(total == 0, 1.0, total)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class (m,) at each row."""
        probabilities = self.predict_proba(X)
        unknown = np.isnan(probabilities).any(axis=1)
        if unknown.any():
            raise ValueError(
                f"row {int(np.argmax(unknown))} falls into empty buckets and NaN is not a class; "
                'use predict_proba, or fallback="nearest".'
            )
        labels: NDArray[Any] = self.classes_[np.argmax(probabilities, axis=1)]
        return labels

    def _validated(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        classes: ArrayLike | None = None,
    ) -> Batch:
        rows, labels, weights = self._checked(X, y, sample_weight, reset=reset)
        places = class_places(self, labels, classes, reset=reset, least=1)
        indicators = np.equal(places[:, None], np.arange(len(self.classes_))).astype(np.float64)
        return Batch(rows, indicators, weights)

    def _state_of_targets(self, arrays: Arrays) -> State:
        return {"classes": write_classes(self.classes_, arrays)}

    def _set_targets(self, state: State, arrays: Arrays) -> None:
        self.classes_ = read_classes(state, arrays)
        if self.classes_.shape != (self.table_.layout.n_targets,):
            raise ValueError("classes and targets differ in number")
