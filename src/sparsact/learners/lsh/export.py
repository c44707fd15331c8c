"""LSH models as they ship: predictors of coefficients alone, C, ONNX, and the choice of their size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compact import CompactModel
from sparsact.learners.lsh.compact_predictor import CompactPredictor
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.frontier import (
    DTYPES,
    ROWS,
    Frontier,
    FrontierPoint,
    first_table_errors,
    microseconds,
    resized,
    sizes,
    typical_rows,
)
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.predictor import TablePredictor
from sparsact.statistics.statistic import Batch
from sparsact.statistics.units import SMALLEST, exponents_of
from sparsact.validation.parameters import checked_option, checked_positive


class ShippedLSH:
    """Predictors and exports of an :class:`~sparsact.learners.lsh.estimator.LSHModel`."""

    table_: BucketTable
    _fixed: FixedPart
    table_errors_: Array | None  # leave-one-out, of the first 1, 2, ... tables; None where a file has none

    def predictor(
        self: Any,
        dtype: str | None = None,
        *,
        max_bytes: float | None = None,
        max_microseconds: float | None = None,
    ) -> TablePredictor | CompactPredictor:
        """The model as it is now, for single queries: ``model.predictor()(x)``; later updates do not change it.

        Parameters
        ----------
        dtype : {"float32", "float64"}, optional
            Of coefficients: a :class:`CompactPredictor`, which holds no sums, is saved and exported. It takes little
            more than the bytes of its coefficients; float32 changes values by about 1e-7 of the target's deviation.
            By default the arrays of the model serve, or, within limits, whichever type errs least.
        max_bytes, max_microseconds : float, optional
            Limits: of the bytes of all arrays, and of the time for a row of a batch on one thread, measured here. The
            size of least error within them is taken; see :meth:`frontier`.

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
        if dtype is not None:
            checked_option(dtype, "`dtype`", DTYPES)
        if dtype is None and max_bytes is None and max_microseconds is None:
            as_it_is: TablePredictor = self._snapshot()
            return as_it_is
        as_now = self._snapshot()
        compiled, table, ends = as_now.compiled, as_now.table, as_now.shipped_ends()
        if max_bytes is None and max_microseconds is None:
            return _shipped(self, resized(compiled, ends, len(compiled.tables), None, dtype))
        for limit, name in ((max_bytes, "`max_bytes`"), (max_microseconds, "`max_microseconds`")):
            if limit is not None:
                checked_positive(limit, name)
        frontier = self.frontier(dtype=dtype)
        best = frontier.best(max_bytes=max_bytes, max_microseconds=max_microseconds)
        for n_stages, n_tables, choice in sizes(compiled, table):
            if (n_stages, n_tables) == (best.n_stages, best.n_tables):
                return _shipped(self, resized(compiled, ends, n_stages, choice, best.dtype))
        raise AssertionError("the point is of this model")

    def export(self: Any, path: str | Path, *, dtype: str = "float32", name: str | None = None, **limits: Any) -> None:
        """Write the model as a function that needs nothing of this library: ``.c`` or ``.onnx``.

        Parameters
        ----------
        path : path-like
            ``model.c``: C99 without dependencies, a function ``void model_predict(const double *x, double *y)`` of one
            row, which several threads may call. ``model.onnx``: a graph of opset 18 from ``X`` (rows, columns) to ``Y``
            (rows, targets), both float64; with ``base="trees"`` also of ``ai.onnx.ml`` 5, whose TreeEnsemble takes
            float64 (ONNX Runtime evaluates it; tested with version 1.32).
        dtype : {"float32", "float64"}, default="float32"
            Of the coefficients: values differ by about 1e-7 of the target's deviation, or by rounding. Hashing and sums
            are in float64.
        name : str, optional
            Name of the C function, by default that of the file and ``_predict``.
        **limits : float
            ``max_bytes`` and ``max_microseconds``; see :meth:`predictor`.

        Notes
        -----
        A classifier exports the shares of its classes, before they are clipped to [0, 1] and add up to 1. Columns are
        those of ``fit``, in their order; a missing value is NaN, and a category a number, as
        :meth:`CompactPredictor.numbers` gives it. In C, ``model_predict_code(text, length)`` gives the number of a
        text; ONNX has no operator that hashes texts. A category that ``fit`` did not meet counts as the mean of those
        it met, without a warning. A row with an infinity has the value NaN. ``fallback`` and ``extrapolate`` are taken
        from the model; ``"nearest"``, which needs its sums, and ``"raise"`` are refused.
        """
        self.predictor(checked_option(dtype, "`dtype`", DTYPES), **limits).export(path, name=name)

    def frontier(
        self: Any, X: ArrayLike | None = None, y: ArrayLike | None = None, *, dtype: str | None = None
    ) -> Frontier:
        """What fewer hash tables, fewer stages and float32 would cost and save: error, bytes, microseconds.

        Parameters
        ----------
        X, y : array-like of shape (m, d) and (m,) or (m, targets), optional
            Rows that the model has not learned, to measure errors on: at most 2,048 of them are used. Without, errors
            are those of leaving out rows of ``fit``.
        dtype : {"float32", "float64"}, optional
            Of coefficients; by default both.

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
        as_now = self._snapshot()
        compiled, table = as_now.compiled, as_now.table
        ends = replace(as_now.shipped_ends(), beyond="clip", start=None, refuses=False)  # every row has a value
        if held_out is None:
            rows = typical_rows(table, compiled.columns, len(self._inputs.sources))
        else:
            chosen = np.random.default_rng(0).permutation(len(held_out))[:ROWS]
            held_out = Batch(held_out.X[chosen], held_out.y[chosen], None)
            rows = held_out.X
        points = []
        for n_stages, n_tables, choice in sizes(compiled, table):
            for each in DTYPES if dtype is None else (checked_option(dtype, "`dtype`", DTYPES),):
                model = resized(compiled, ends, n_stages, choice, each)
                error = self._size_error(n_stages, n_tables) if held_out is None else _error(model, held_out)
                points.append(FrontierPoint(n_stages, n_tables, each, error, model.nbytes, microseconds(model, rows)))
        return Frontier(tuple(sorted(points, key=lambda point: point.nbytes)))

    def _measure_tables(self: Any, rows: Batch, targets: Array) -> None:
        """Errors of the first tables at their own rows, whose targets are ``targets`` (m, T) less the fixed part."""
        self.table_errors_ = first_table_errors(self.table_, rows, targets, self.alpha_, self.min_count)

    def _size_error(self, n_stages: int, n_tables: int) -> float:
        """Error of the first stages or tables at rows left out of fit; NaN where it was not measured."""
        if n_stages <= len(self._fixed.stages):
            return self._fixed.stages[n_stages - 1].error
        errors = self.table_errors_
        return float("nan") if errors is None else float(errors[n_tables - 1])


def _shipped(learner: Any, model: CompactModel) -> CompactPredictor:
    return CompactPredictor(model, learner._inputs, learner._single)


def _error(model: CompactModel, held_out: Batch) -> float:
    """Root mean square error in standard deviations of the targets."""
    exponents = -exponents_of(held_out.y)
    values, y = (np.ldexp(each, exponents) for each in (model.values(held_out.X), held_out.y))
    return float(np.sqrt(np.mean((values - y) ** 2 / np.maximum(y.var(axis=0), SMALLEST))))
