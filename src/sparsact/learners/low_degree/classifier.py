"""LowDegreeClassifier: least squares on the labels' indicators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.learners.label_regression import LabelRegression
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.saving import schema
from sparsact.saving.schema import Arrays, State
from sparsact.transaction import transaction
from sparsact.validation.estimators import class_places


class LowDegreeClassifier(LabelRegression, LowDegree):
    r"""Classification by the low-degree algorithm: polynomial regression on labels, then the largest value.

    Two classes are regressed as one Boolean-valued function, ``classes_[1]`` as +1 and ``classes_[0]`` as -1, and
    predicted by its sign; more classes as one 0/1 indicator each, and predicted by the largest. This is the agnostic
    learner of Klivans, O'Donnell and Servedio [1]_ with squared in place of absolute loss.

    Parameters
    ----------
    degree, alpha, solver, fit_intercept, domain, min_degree, subsets, max_memory, n_jobs, verbose
        As in :class:`LowDegreeRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    coefficients_, intercept_, spectrum_ : as in :class:`LowDegreeRegressor`
        For one function (two classes) or one a class.
    subsets_, alpha_, solver_, solver_reason_, n_samples_seen_ : as in :class:`LowDegreeRegressor`

    References
    ----------
    .. [1] A. Klivans, R. O'Donnell, R. Servedio, "Learning intersections and thresholds of halfspaces", JCSS 2004.

    Examples
    --------
    >>> from sparsact import LowDegreeClassifier
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> LowDegreeClassifier(degree=2).fit(X, ["even", "odd", "odd", "even"]).predict([[1, 0]])
    array(['odd'], dtype='<U4')
    """

    @transaction
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> None:
        """Add rows. The first call must name all ``classes``, unless its rows hold them all."""
        self._partial_fit(X, y, sample_weight, reset=not self._begun(), classes=classes)

    def _validated(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        rows, labels = self._checked_with_targets(X, y, reset=reset)
        return rows, self._targets(class_places(self, labels, classes, reset=reset))

    def _known(self) -> tuple[State, Arrays]:
        state, arrays = super()._known()
        if (labels := schema.write_classes(self.classes_, arrays)) is not None:
            state["classes"] = labels
        return state, arrays

    def _restore_known(self, state: State, arrays: Arrays, n_targets: int) -> None:
        self.classes_ = schema.read_classes(state, arrays)
        if n_targets != (1 if self._single else len(self.classes_)):
            raise ValueError(f"{n_targets} functions of {len(self.classes_)} classes")
        super()._restore_known(state, arrays, n_targets)
