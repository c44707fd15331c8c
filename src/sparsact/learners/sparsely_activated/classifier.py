"""SparselyActivatedClassifier: a sparsely activated network for each class, fitted to its indicator."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.label_regression import LabelRegression
from sparsact.learners.sparsely_activated.estimator import SparselyActivatedModel
from sparsact.learners.sparsely_activated.regressor import SparselyActivatedRegressor
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import Arrays, State
from sparsact.transaction import locked, transaction
from sparsact.validation.estimators import checked_rows, checked_sample_weight, class_places

_LEARNED: Final[schema.Checks] = {"n_features_in_": schema.as_count, "table_encoding_": schema.as_str}


class SparselyActivatedClassifier(LabelRegression, SparselyActivatedModel):
    r"""Classification by sparsely activated networks: least squares on labels, then the largest value.

    With two classes, ``classes_[1]`` is +1 and ``classes_[0]`` is -1. One network h is fitted to the label minus c, the
    label of the more frequent class. The prediction is the sign of :math:`c + h(x)`: the frequent class where no unit
    is on. With more classes, one network is fitted to the indicator of each, and the largest value predicts. This is
    the agnostic learner of [1]_, with networks in place of polynomials.

    Parameters
    ----------
    n_units, max_active, max_weight, max_bias, n_restarts, max_iter, tol, domain, random_state, verbose
        As in :class:`SparselyActivatedRegressor`, for each network.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    estimators_ : list of SparselyActivatedRegressor
        One for two classes, else one a class, with their networks and certificates.
    intercept_ : float
        The label c of the more frequent of two classes; 0 for more classes.
    n_features_in_ : int
        Columns.

    References
    ----------
    .. [1] A. Klivans, R. O'Donnell, R. Servedio, "Learning intersections and thresholds of halfspaces", JCSS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 5))
    >>> model = SparselyActivatedClassifier(random_state=0).fit(X, np.where(X[:, 0], X[:, 2], X[:, 3]))
    >>> model.predict([[0, 1, 1, 0, 0], [1, 1, 1, 0, 0]])
    array([0, 1])
    """

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n), labels y (m,) and weights (m,)."""
        self._validate_params()
        rows, labels = checked_rows(self, X, y, dtype="numeric", ensure_all_finite=self.domain != "cube")
        weights = checked_sample_weight(sample_weight, rows)
        targets = self._targets(class_places(self, labels, reset=True))
        self.intercept_ = 0.0
        if self._single:
            self.intercept_ = 1.0 if targets[:, 0] @ (weights / weights.max()) > 0 else -1.0
        rng = None if self.random_state is None else check_random_state(self.random_state)
        self.estimators_ = []
        for target in (targets - self.intercept_).T:
            seed = None if rng is None else int(rng.randint(2**31 - 1))
            learner = SparselyActivatedRegressor(**self.get_params() | {"random_state": seed})
            self.estimators_.append(learner.fit(X, target, sample_weight))

    @property
    def n_iter_(self) -> int:
        """Largest number of iterations for one network."""
        return max(learner.n_iter_ for learner in self.estimators_)

    def _values(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        checked_rows(self, X, reset=False, dtype="numeric", ensure_all_finite=self.estimators_[0].encoding_ is None)
        return np.column_stack([learner.predict(X) for learner in self.estimators_]) + self.intercept_

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        arrays: Arrays = {"intercept": np.array([self.intercept_])}
        state = schema.learned_state(self, _LEARNED) | {"params": schema.params_of(self)}
        state["classes"] = schema.write_classes(self.classes_, arrays)
        state["functions"] = [learner._state() for learner in self.estimators_]
        for number, learner in enumerate(self.estimators_):
            arrays |= schema.add_prefix(f"function{number}", learner._arrays())
        modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The classifier that :meth:`save` wrote."""
        model: Self = schema.rebuild(cls, state, _LEARNED, optional=("table_encoding_",))
        model.classes_ = schema.read_classes(state, arrays)
        model.estimators_ = [
            SparselyActivatedRegressor._from_file(function, schema.strip_prefix(f"function{number}", arrays))
            for number, function in enumerate(state["functions"])
        ]
        intercept = schema.read_arrays({"intercept": schema.ArrayField("1", finite=True)}, arrays)["intercept"]
        model.intercept_ = float(intercept[0])
        n_functions = len(model.classes_) if len(model.classes_) > 2 else 1
        if len(model.estimators_) != n_functions or any(
            learner.n_features_in_ != model.n_features_in_ for learner in model.estimators_
        ):
            raise ValueError("functions that do not fit the classes or the columns")
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")
