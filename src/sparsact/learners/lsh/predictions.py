"""Predictions of an LSH estimator: checks of queries, and the predictor of its table while that stays as it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sparsact.kernels import hashing
from sparsact.kernels.dispatch import threads
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.ends import Policy
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.predictor import TablePredictor, separate_solution
from sparsact.transaction import lock_of


class PredictingLSH:
    """Predictions of an :class:`~sparsact.learners.lsh.estimator.LSHModel`."""

    table_: BucketTable
    _fixed: FixedPart
    _inputs: InputRules
    _queries: Callable[[Any, InputRules], Array]
    fallback: str
    extrapolate: str
    min_count: int
    n_jobs: int | None
    alpha_: float
    n_features_in_: int

    def _tidy(self) -> None:
        """Renumber buckets, if there are any that removals have emptied."""
        tidy = self.table_.tidied()
        if tidy is not self.table_:
            self.table_ = tidy
            self._forget_solution()

    def _forget_solution(self) -> None:
        self._compiled: list[TablePredictor] = []  # all that read the table as it is; the last one asked comes first

    @property
    def _predictor(self) -> TablePredictor:
        """The compiled table, made when it is first needed."""
        # One step takes the entry, or finds none: an update in another thread may empty the list between any two.
        if "table_" not in self.__dict__:
            check_is_fitted(self)
        held = self._compiled[:1]
        return held[0] if held and held[0].policy == self._policy else self._compile()

    def _compile(self) -> TablePredictor:
        """The predictor of the present policy, first in the list: an update must know of all that read the table."""
        with lock_of(self):
            policy, held = self._policy, self._compiled[:]
            found = next((each for each in held if each.policy == policy), None) or self._compiled_anew(policy)
            self._compiled[:] = [found, *(each for each in held if each is not found)]
            return found

    @property
    def _policy(self) -> Policy:
        return Policy(self.fallback, self.extrapolate, self.min_count)  # which may be set between two predictions

    def _compiled_anew(self, policy: Policy) -> TablePredictor:
        self._check_rows()
        solution = self.table_.solution(self.alpha_, self.min_count)
        return TablePredictor(self.table_, solution, policy, self._single, self._fixed, self._inputs)

    def _check_rows(self) -> None:
        if not self.table_.n_rows:
            raise ValueError("the model holds no rows; call fit or partial_fit with some.")

    @property
    @abstractmethod
    def _single(self) -> bool: ...

    def _value(self, X: Any) -> float | None:
        """Value at an array of one row that needs no check but its own finite value; None of any other."""
        compiled = self.__dict__.get("_compiled")
        if type(X) is not np.ndarray or len(X.shape) != 2 or not compiled or "feature_names_in_" in self.__dict__:
            return None
        return self._predictor.value(X)

    def _values(self, X: Any) -> Array:
        predictor = self._predictor  # an update may replace it: the whole answer comes from this one
        values: Array = predictor.values(self._queries(X, predictor.inputs), threads(self.n_jobs))
        return predictor.ends.checked(values)

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Number of the bucket of each row in each table, (m, n_tables); -1 where there is none.

        Numbers are places in :attr:`bucket_counts_`, over all tables together.
        """
        check_is_fitted(self)
        with lock_of(self):
            self._tidy()
            rows = self._fixed.selected(self._queries(X, self._inputs))
            found = hashing.places(rows, self.table_.layout.hashes)
            return self.table_.index.find(found.keys).astype(np.int64)

    def _snapshot(self) -> TablePredictor:
        """The model as it is now, which later updates do not change."""
        check_is_fitted(self)
        with lock_of(self):
            self._check_rows()
            table = self.table_.detached(with_rows=False)
            solution = separate_solution(table, self.alpha_, self.min_count)
            return TablePredictor(table, solution, self._policy, self._single, self._fixed, self._inputs)
