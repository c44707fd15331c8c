"""What estimators of one function of bits share: rows as bits, the cuts of real columns, intervals, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from sparsact.hypercube import Subset, masks_of
from sparsact.learners.points import Encoding, Points, kernel_dtype, median_cuts, points_of, set_encoding, unpack
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.validation.arrays import checked_subset
from sparsact.validation.estimators import checked_rows, checked_sample_weight
from sparsact.validation.parameters import checked_probability

Array = NDArray[np.float64]

_WEIGHTS: Final = (1e-100, 1e100)  # beyond, squares of sums vanish or overflow
LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "encoding_": schema.as_encoding,
    "table_encoding_": schema.as_str,  # how the command encoded the columns of a table
}


def bits_of(points: Points) -> Array:
    """Points as rows (m, n) of 0 and 1."""
    return unpack(points, "bits").astype(np.float64)


class OnCube:
    """Base of regressors whose ``fit`` sets ``encoding_`` or ``cuts_``, the other being None, and ``_CONTENT``.

    ``_coefficients`` has the coefficients of some subsets and their standard errors, and ``_freedom`` the degrees of
    freedom of these.
    """

    _LEARNED: ClassVar[Checks] = LEARNED
    _CONTENT: ClassVar[str]  # the attribute that a fit sets last

    domain: str
    n_features_in_: int
    encoding_: Encoding | None
    cuts_: Array | None
    _freedom: float = np.inf
    _coefficients: Callable[[Iterable[Iterable[int]] | None], tuple[Array, Array]]

    def _rows_to_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, multi_output: bool = False
    ) -> tuple[Points, Array, Array]:
        """Points of the rows of positive weight, their targets and weights (m,); sets ``encoding_`` and ``cuts_``.

        A weight w counts as w rows: noise of variance v becomes v / w, whether w is below one or above. Raises a
        ValueError for what cannot be points or weights.
        """
        rows, targets = checked_rows(
            self,
            X,
            y,
            dtype="numeric",
            y_numeric=True,
            ensure_all_finite=self.domain != "cube",
            multi_output=multi_output,
        )
        weights = checked_sample_weight(sample_weight, rows)
        there = slice(None) if sample_weight is None else weights > 0
        rows, weights = kernel_dtype(rows[there]), weights[there].clip(*_WEIGHTS)
        points = set_encoding(self, rows)
        weighted = None if sample_weight is None else weights
        self.cuts_ = median_cuts(rows, weighted) if self.encoding_ is None else None
        points = self._packed(rows) if points is None else points
        return points, np.asarray(targets, dtype=np.float64)[there], weights

    def _packed(self, rows: NDArray[Any]) -> Points:
        """Rows as points of the cube."""
        return points_of(rows, self.encoding_, self.cuts_, getattr(self, "feature_names_in_", None))

    def _points(self, X: ArrayLike) -> Points:
        """Rows to predict as points of the cube."""
        check_is_fitted(self)
        finite = self.encoding_ is None  # on the cube, packing names the column and the row of a NaN
        return self._packed(kernel_dtype(checked_rows(self, X, reset=False, dtype="numeric", ensure_all_finite=finite)))

    def _bits(self, X: ArrayLike) -> Array:
        """Rows to predict as bits."""
        return bits_of(self._points(X))

    def _named(self, subsets: Iterable[Iterable[int]]) -> list[Subset]:
        """Subsets of the columns that are asked for."""
        named = [checked_subset(subset) for subset in subsets]
        masks_of(named, self.n_features_in_)  # validates the coordinates
        return named

    def standard_errors(self, subsets: Iterable[Iterable[int]] | None = None) -> Array:
        """Standard errors, or posterior deviations, of the coefficients of ``subsets``, (N,); by default of all."""
        check_is_fitted(self)
        return self._coefficients(subsets)[1]

    def confidence_intervals(
        self, subsets: Iterable[Iterable[int]] | None = None, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Intervals (N, 2) of the coefficients of ``subsets``; by default of all, in the order of ``spectrum_``."""
        check_is_fitted(self)
        level = (1 + checked_probability(confidence, "`confidence`")) / 2
        values, errors = self._coefficients(subsets)
        return values[..., None] + errors[..., None] * (float(t.ppf(level, self._freedom)) * np.array([-1, 1]))

    def _write(self, path: str | Path, arrays: Arrays, **changed: State) -> None:
        """Write a file of the learned state, with parts of it changed or added, the cuts, and further arrays."""
        check_is_fitted(self)
        state = schema.learned_state(self, self._LEARNED) | {"params": schema.params_of(self)}
        state |= {part: state.get(part, {}) | values for part, values in changed.items()}
        cuts = {} if self.cuts_ is None else {"cuts": self.cuts_}
        modelfile.write(path, type(self).__name__, state, arrays | cuts)

    @classmethod
    def _read(cls, state: State, arrays: Arrays, fields: Mapping[str, ArrayField]) -> tuple[Self, Arrays]:
        """Restore the estimator from such a file and its arrays."""
        learner: Self = schema.rebuild(cls, state, cls._LEARNED, optional=("table_encoding_",))
        fields = {"cuts": ArrayField("n", finite=True, optional=True), **fields}
        read = schema.read_arrays(fields, arrays, n=learner.n_features_in_)
        learner.cuts_ = read.get("cuts")
        if (learner.cuts_ is None) == (learner.encoding_ is None):
            raise ValueError("columns that are neither cut nor points of the cube, or both")
        return learner, read

    def _fork(self) -> Callable[[bool], None]:
        """For :func:`.transaction`: a fit changes nothing in place."""
        return lambda done: None

    def __sklearn_tags__(self) -> Any:
        """Real columns are cut at their medians: too coarse for scikit-learn's check of R squared."""
        tags = super().__sklearn_tags__()  # type: ignore[misc] # of the estimator
        tags.regressor_tags.poor_score = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return self._CONTENT in self.__dict__
