"""Fitted LSH models: attributes, predictions, compact predictors, and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from sparsact.kernels import hashing
from sparsact.kernels.dispatch import threads
from sparsact.learners.lsh.bucket_counts import unseen_mass
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compact_predictor import CompactPredictor
from sparsact.learners.lsh.compiled import Precision
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.frontier import DTYPES, Frontier, measured_sizes, model_of
from sparsact.learners.lsh.inputs import InputRules, coded, names_of
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.predict import TablePredictor
from sparsact.learners.lsh.prediction_limits import Policy
from sparsact.learners.lsh.saving import read_model, write_model
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import Batch
from sparsact.transaction import lock_of, locked
from sparsact.validation.arrays import aligned
from sparsact.validation.estimators import checked_rows
from sparsact.validation.parameters import checked_option, checked_positive


class FittedLSH(BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """Base of fitted LSH models, without learning; see :class:`LSHRegressor` for parameters and attributes."""

    n_features_in_: int
    is_categorical_: NDArray[np.bool_]
    alpha_: float
    table_errors_: Array | None  # leave-one-out, of the first 1, 2, ... tables; None where a file has none
    table_: BucketTable
    fallback: str
    extrapolate: str
    min_count: int
    n_jobs: int | None
    _single = False  # whether targets are one column, given without its axis
    _inputs: InputRules
    _fixed: FixedPart
    _compiled: list[TablePredictor]  # all that read the table as it is; the last one asked comes first

    # ---- attributes ----

    @property
    @locked
    def n_buckets_(self) -> int:
        """Buckets that hold rows, over all tables."""
        return int(np.count_nonzero(self.table_.counts))

    @property
    @locked
    def bucket_counts_(self) -> NDArray[np.int64]:
        """Number of rows in each bucket, one entry per bucket."""
        self._tidy()
        return self.table_.counts.copy()

    @property
    def n_hashes_(self) -> int:
        """Hash functions (codes) of each table."""
        return self.table_.layout.n_hashes

    @property
    def n_tables_(self) -> int:
        """Hash tables of the last stage."""
        return self.table_.layout.n_tables

    @property
    def degree_(self) -> int:
        """Degree of the polynomials of the last stage."""
        return self.table_.layout.degree

    @property
    def n_stages_(self) -> int:
        """Number of stages of tables; updates change only the last stage."""
        return 1 + len(self._fixed.stages)

    @property
    def base_(self) -> str:
        """Model subtracted from the targets first: "trees", "linear", or "constant" if no slope is left."""
        return "trees" if self._fixed.trees is not None else "linear" if self.table_.layout.trend.any() else "constant"

    @property
    def columns_(self) -> NDArray[np.int64]:
        """Columns that the tables use, in ascending order."""
        kept, sources = self._fixed.columns, self._inputs.sources
        return np.unique(sources if kept is None else sources[kept])

    @property
    def trend_(self) -> Array:
        """Slopes (d, targets) of the linear trend; 0 for categories and for columns that the tables do not see."""
        slopes = self.table_.layout.trend
        kept, numeric = self._fixed.columns, self._inputs.numeric
        encoded = np.zeros((self._fixed.n_columns, slopes.shape[1]))
        encoded[slice(None) if kept is None else kept] = slopes
        found = np.zeros((self.n_features_in_, slopes.shape[1]))
        found[numeric] = encoded[: len(numeric)]
        return found

    @property
    @locked
    def n_samples_seen_(self) -> int:
        """Rows of positive weight held."""
        return self.table_.n_rows

    @property
    @locked
    def miss_rate_(self) -> float:
        """Share of new inputs whose bucket in a table is empty, as Good and Turing estimate it from the counts."""
        return unseen_mass(self.table_.counts)

    # ---- predictions ----

    @property
    def _policy(self) -> Policy:
        return Policy(self.fallback, self.extrapolate, self.min_count)  # which may be set between two predictions

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
            found = next((each for each in held if each.policy == policy), None)
            found = found or self._predictor_of(self.table_, self._fixed, is_live=True)
            self._compiled[:] = [found, *(each for each in held if each is not found)]
            return found

    def _predictor_of(self, table: BucketTable, fixed: FixedPart, *, is_live: bool) -> TablePredictor:
        if not table.n_rows:
            raise ValueError("the model holds no rows; call fit or partial_fit with rows.")
        options = self.alpha_, self._policy
        return TablePredictor(table, *options, self._single, fixed, self._inputs, is_live=is_live)

    def _snapshot(self) -> TablePredictor:
        """The model as it is now, which later updates do not change."""
        check_is_fitted(self)
        with lock_of(self):
            table, fixed = self.table_.detached(with_rows=False), replace(self._fixed, learned=None)
            return self._predictor_of(table, fixed, is_live=False)

    def _value(self, X: ArrayLike) -> float | None:
        """Value at an array of one row that needs no check but its own finite value; None of any other."""
        compiled = self.__dict__.get("_compiled")
        if type(X) is not np.ndarray or X.shape[:-1] != (1,) or not compiled or "feature_names_in_" in self.__dict__:
            return None
        return self._predictor.value(X)

    def _values(self, X: ArrayLike) -> Array:
        predictor = self._predictor  # an update may replace it: the whole answer comes from this one
        values = predictor.values(self._queries(X, predictor.inputs), threads(self.n_jobs))
        return predictor.ends.checked(values)

    def _queries(self, X: ArrayLike, inputs: InputRules) -> Array:
        """Rows to predict at, encoded by these rules; valid arrays are not checked twice."""
        rows = inputs.plain(X)
        if rows is None:
            return aligned(inputs.encode(self._checked_rows(X, reset=False)))
        return rows if inputs.is_plain else aligned(inputs.encode(rows))

    def _encoded(self, raw: Batch) -> Batch:
        """Rows as the tables see them."""
        X = self._inputs.encode(raw.X)
        return raw if X is raw.X else Batch(aligned(X), raw.y, raw.weights, raw.folds)

    def _checked_rows(self, X: ArrayLike, y: ArrayLike = "no_validation", **checks: bool) -> Any:
        """X, or X and y, of numbers: codes for categories, NaN for missing values."""
        has_codes = self.is_categorical_.any()
        if has_codes and not checks.get("reset", True):  # codes are made for columns by their places
            if names_of(X) is not None:
                _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
        rows = coded(X, self.is_categorical_) if has_codes else X
        return checked_rows(self, rows, y, dtype=np.float64, order="C", ensure_all_finite="allow-nan", **checks)

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

    def _tidy(self) -> None:
        """Renumber buckets, if there are any that removals have emptied."""
        tidy = self.table_.tidied()
        if tidy is not self.table_:
            self.table_ = tidy
            self._forget_solution()

    def _forget_solution(self) -> None:
        self._compiled = []

    # ---- smaller forms ----

    def predictor(
        self, dtype: str | None = None, *, max_bytes: float | None = None, max_microseconds: float | None = None
    ) -> TablePredictor | CompactPredictor:
        """The model as it is now, for single queries: ``model.predictor()(x)``; later updates do not change it.

        Parameters
        ----------
        dtype : {"float32", "float64"}, optional
            Type of the coefficients of a :class:`CompactPredictor`, which holds no sums, and can be saved and exported.
            It takes little more than its coefficients; float32 changes values by about 1e-7 of the target's deviation.
            By default the predictor uses the arrays of the model or, within limits, the type that errs least.
        max_bytes, max_microseconds : float, optional
            Limits: of the bytes of all arrays, and of the time for a single row, measured here. The size of least error
            within them is taken; see :meth:`frontier`.

        Returns
        -------
        predictor : TablePredictor or CompactPredictor
            A function of a row or of rows.

        Raises
        ------
        ValueError
            If no size of the model lies within the limits.
        """
        check_is_fitted(self)
        limits = {"max_bytes": max_bytes, "max_microseconds": max_microseconds}
        is_whole = dtype is None and set(limits.values()) == {None}
        found = self._snapshot() if is_whole else self._compact(dtype, **limits)
        _ = found._row  # made now: the first query takes no longer than others
        return found

    def _compact(self, dtype: str | None, **limits: float | None) -> CompactPredictor:
        """A predictor of coefficients alone, of the size of least error within the limits, if there are any."""
        dtypes = _dtypes(dtype)
        given = {name: checked_positive(limit, f"`{name}`") for name, limit in limits.items() if limit is not None}
        as_now = self._snapshot()
        best = measured_sizes(as_now, dtypes, None, self.table_errors_).best(**given) if given else None
        compact = as_now.model.compact(dtypes[0]) if best is None else model_of(best, as_now)
        return CompactPredictor(compact, as_now.shipped_ends(), self._inputs, self._single)

    def export(
        self, path: str | Path, *, dtype: str = "float32", name: str | None = None, description: str = "", **limits: Any
    ) -> None:
        """Write the model as a program that does not need this library: ``.c`` or ``.onnx``.

        Parameters
        ----------
        path : path-like
            ``model.c``: C99 without dependencies, a function ``void model_predict(const double *x, double *y)`` of one
            row, which several threads may call. ``model.onnx``: a graph of opset 18 from ``X`` (rows, columns) to ``Y``
            (rows, targets), both float64; with ``base="trees"`` also of ``ai.onnx.ml`` 5, whose TreeEnsemble takes
            float64 (ONNX Runtime evaluates it; tested with version 1.32).
        dtype : {"float32", "float64"}, default="float32"
            Type of the coefficients: values differ by about 1e-7 of the target's deviation, or by rounding. Hashing and
            sums are in float64.
        name : str, optional
            Name of the C function, by default that of the file and ``_predict``.
        description : str, default=""
            The first comment of the C file; the description of the graph.
        **limits : float
            ``max_bytes`` and ``max_microseconds``; see :meth:`predictor`.

        Notes
        -----
        A classifier exports the shares of its classes, before they are clipped to [0, 1] and add up to 1. Columns are
        the columns of ``fit``, in their order; a missing value is NaN, and a category a number, as
        :meth:`CompactPredictor.numbers` gives it. In C, ``model_predict_code(text, length)`` gives the number of a
        text; ONNX has no operator that hashes texts. A category that ``fit`` did not meet counts as the mean of the
        ones it met, without a warning. A row with an infinity has the value NaN. ``fallback`` and ``extrapolate`` are
        taken from the model; ``"nearest"``, which needs its sums, and ``"raise"`` are refused.
        """
        check_is_fitted(self)
        self._compact(dtype, **limits).export(path, name=name, description=description)

    def frontier(self, X: ArrayLike | None = None, y: ArrayLike | None = None, *, dtype: str | None = None) -> Frontier:
        """Error, memory and time of smaller models: fewer hash tables, fewer stages, float32.

        Parameters
        ----------
        X, y : array-like of shape (m, d) and (m,) or (m, targets), optional
            Rows that the model has not learned, to measure errors on: at most 2,048 of them are used. Without, errors
            come from leaving out rows of ``fit``.
        dtype : {"float32", "float64"}, optional
            Type of coefficients; by default both.

        Returns
        -------
        frontier : Frontier
            1, 2, 4, ... and all tables, for each number of stages and type, by bytes.

        Examples
        --------
        >>> import numpy as np
        >>> from sparsact import LSHRegressor
        >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
        >>> model = LSHRegressor(random_state=0).fit(X, np.abs(X).sum(axis=1))
        >>> small = model.frontier().best(max_bytes=20_000)
        >>> small.nbytes <= 20_000 and small.n_tables < 16
        True
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("`frontier` needs X and y, or neither; pass rows that the model has not learned.")
        held_out = None if X is None else self._encoded(self._validated(X, y, None, reset=False))
        return measured_sizes(self._snapshot(), _dtypes(dtype), held_out, self.table_errors_)

    @locked
    def save(self, path: str | Path, *, statistic: bool = True) -> None:
        """Write the model to one file: safetensors with a JSON header and a digest of everything.

        Parameters
        ----------
        path : path-like
            The file; it is replaced whole or not at all.
        statistic : bool, default=True
            Also keep what ``remove`` needs, a key and a count for each row; without it the file is smaller.
        """
        check_is_fitted(self)
        write_model(self, path, statistic=statistic)

    def _state_of_targets(self, arrays: Arrays) -> State:
        """What a file says of the targets; arrays are added to ``arrays``."""
        return {}

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The estimator that :meth:`save` wrote."""
        model: Self = read_model(cls, state, arrays)
        return model


def _dtypes(dtype: str | None) -> tuple[Precision, ...]:
    """The type of coefficients that is given, or each that there is."""
    return DTYPES if dtype is None else (checked_option(dtype, "`dtype`", DTYPES),)
