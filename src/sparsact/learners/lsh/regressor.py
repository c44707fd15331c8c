"""LSHRegressor: local polynomials in the buckets of locality-sensitive hash tables."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsact.kernels import hashing
from sparsact.kernels.dispatch import threads
from sparsact.learners.constraints import AUTO, COUNT, one_of, whole
from sparsact.learners.lsh.adaptive import Stream
from sparsact.learners.lsh.drift import Drift, drift_of
from sparsact.learners.lsh.estimator import MAX_SIZE, MIN_SIZE, LSHModel
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.leave_one_out import reach as reach_of
from sparsact.learners.lsh.nearest import mean_positions
from sparsact.saving.schema import Arrays, State, as_bool
from sparsact.statistics.statistic import Batch
from sparsact.transaction import locked, transaction, twin_of
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_probability


@dataclass(eq=False, repr=False)
class LSHRegressor(RegressorMixin, LSHModel):  # type: ignore[misc] # scikit-learn ships no types
    r"""Regression by hashing: a polynomial in each bucket of several tables, averaged (Sections 2.2 and 4 of [B]_).

    .. math:: g(x) = \frac{\sum_t n_{b_t(x)}\, \hat g_{b_t(x)}(x)}{\sum_t n_{b_t(x)}},

    where :math:`b_t(x)` is the bucket of x in table t and :math:`n_b` the weight of its rows. A query costs T look-ups,
    whatever the number of rows; rows can be added, removed and merged, because a bucket holds only sums.

    Parameters
    ----------
    n_tables : int or "auto", default="auto"
        Number of hash tables T per stage. More tables are more accurate and slower. ``"auto"`` starts with 16 and
        doubles the number as long as that lowers the held-out error by 3 %. For few rows it takes 64.
    n_hashes : int or "auto", default="auto"
        Number of codes per table. For grids it is their dimension p, by default the number of principal directions with
        99 % of the variance, at most 8. Euclidean hashes take 4 codes per dimension. For hyperplanes the held-out error
        decides.
    bucket_width : float or "auto", default="auto"
        Side of a cell: for grids in standard deviations of the leading direction, for ``"euclidean"`` in units of X.
        ``"auto"`` takes the width with the least held-out error.
    degree : {0, 1, 2} or "auto", default="auto"
        Degree of the polynomial in a bucket, in at most 8 local coordinates. ``"auto"``: 1 or 2, by held-out error.
    family : {"pca_grid", "euclidean", "hyperplane"}, default="pca_grid"
        ``"pca_grid"``: randomly rotated and shifted grids in directions that suit the data. ``"euclidean"``:
        :math:`\lfloor (\langle a, x \rangle + b) / \text{width} \rfloor` with normal a, literally Theorem 4.1 at
        ``degree=0, n_tables=1``. ``"hyperplane"``: sign patterns about the mean.
    fallback : {"coarse", "nearest", "mean", "nan", "raise"}, default="coarse"
        Prediction for inputs whose buckets are all empty. ``"coarse"`` looks into cells 2, 4, 8, ... times as wide, and
        takes the mean residual from the linear trend in the first cell with rows. ``"nearest"`` takes the mean of the
        nearest bucket, by the mean position of its rows in local coordinates (degree 0: in up to 64 principal
        coordinates). Theorem 4.1 uses the nearest row, which tables do not store. After an update, the first such input
        builds an index of all buckets. The others return the mean of all rows, NaN, or an error.
    random_state : int, RandomState or None, default=None
        Seed of the hash functions; its stream always differs from ``numpy.random.default_rng`` of the same seed.
    alpha : float or "auto", default="auto"
        Ridge penalty on the polynomial without its constant, in units of rows whose features have size one.
    directions : {"auto", "principal", "standard", "gradients"}, default="auto"
        Directions of the grids. ``"principal"``: of the rows; ``"standard"``: of columns scaled to deviation 1;
        ``"gradients"``: where the target changes, by local slopes; ``"auto"``: the directions with the least error.
    min_count : int, default=1
        Buckets with fewer rows count as empty (Theorem C.1 keeps only buckets of a least volume).
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        Categorical columns: names, numbers or a mask; ``"from_dtype"``: columns with a categorical type in a data
        frame. Up to 8 categories are one-hot encoded; more are encoded as their mean targets, shrunk to the overall
        mean. A category that ``fit`` did not see counts as the mean of the known categories, with a warning.
    n_jobs : int or None, default=None
        Threads of prediction; see :func:`sparsact.kernels.dispatch.threads`.
    n_stages : int or "auto", default="auto"
        Number of stages of tables. Each learns the out-of-sample residuals of the earlier stages. ``"auto"`` adds
        up to 4 stages that lower the held-out error by 2 % or more. Families other than ``"pca_grid"`` have one stage.
    base : {"linear", "constant", "trees", "auto"}, default="linear"
        Model that is subtracted from the targets first: a linear trend, the mean, or boosted trees with the trend of
        their out-of-fold residuals. The better of LightGBM and CatBoost fits the trees, or scikit-learn if neither is
        installed. ``"auto"`` takes trees if they clearly lower the held-out error, else the trend.
    columns : {"auto", "all"}, default="auto"
        Columns that the tables use: ``"auto"`` drops the columns that trees use least, if that lowers the error.
    extrapolate : {"clip", "linear", "nan"}, default="clip"
        What to return for predictions outside the range of the targets seen: the nearest end of the range, the
        prediction itself (far away, the linear trend), or NaN.

    Attributes
    ----------
    n_tables_, degree_, n_stages_ : int
        Number of tables and degree of the last stage, and number of stages.
    columns_ : ndarray of int
        Columns that the tables use.
    near_duplicates_ : tuple of (int, int)
        Pairs of columns that correlate by more than 0.999.
    bucket_width_, n_hashes_, alpha_, directions_, base_ : float, int, float, str, str
        The values chosen.
    trials_ : tuple of Trial
        Layouts that were tried, with their cost and held-out error, in standard deviations of the target.
    column_shares_ : ndarray of shape (d,)
        Share of each column in the local directions, in units of its standard deviation; the shares sum to 1.
    n_buckets_, bucket_counts_, miss_rate_, n_samples_seen_ : int, ndarray, float, int
        Number of buckets with rows, rows in each, estimated share of new inputs in an empty bucket, and all rows.
    is_categorical_ : ndarray of shape (d,)
        Which columns hold categories.
    n_features_in_ : int
        Columns.

    Notes
    -----
    The hash functions, a linear trend, and the units of the target are chosen from the rows of ``fit``, or from the
    first 2,048 rows of ``partial_fit``, and then kept. A row costs T hashes of p projections and a look-up. A bucket of
    degree 1 holds about :math:`p^2/2` sums. Removing a row undoes adding it, up to rounding. Rows with a column more
    than 100 interquartile ranges off do not influence the choice; rows more than 2^50 cells off raise an error.

    NaN in X is a missing value. It is replaced by the column's median, with an indicator if ``fit`` saw missing values
    in this column. These rules are kept too, so that rows with missing values or categories are removed exactly.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Sections 2.2, 4 and Theorems 4.1, C.1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> model = LSHRegressor(random_state=0).fit(X, np.abs(X).sum(axis=1))
    >>> bool(abs(model.predict([[0.5, -0.25]])[0] - 0.75) < 0.02)
    True
    """

    n_tables: int | str = "auto"
    degree: int | str = "auto"
    _: KW_ONLY
    n_stages: int | str = "auto"
    base: str = "linear"
    columns: str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LSHModel._parameter_constraints,
        "n_tables": [COUNT, AUTO],
        "degree": [whole(0, 2), AUTO],
        "n_stages": [COUNT, AUTO],
        "base": [one_of("linear", "constant", "trees"), AUTO],
        "columns": [one_of("auto", "all")],
    }

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, adapt: bool = False
    ) -> Self:
        """Learn more rows with the present hash functions.

        Where there are none, they are chosen from these rows, and once more each time that the rows have doubled, until
        there are 2,048 of them: a stream may begin with a single row.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in :meth:`fit`.
        adapt : bool, default=False
            Choose all that ``fit`` chooses again, where new rows are then predicted better. Every row is predicted
            before it is learned. When as many rows have come as the model held, or while the squared error of the
            newest 2,048 is a tenth above that of the first, a fit to the older rows predicts these too (ever more
            rarely if in vain). It is taken, fitted to all rows, if its error is lower by 2 % and by two standard
            errors. Rows are kept for this, at 8 bytes a number, so every row of the model must have come with
            ``adapt=True``; a file does not hold them. ``n_adaptations_`` counts such changes.
        """
        if sample_weight is None and not adapt and self._update_row(X, y, 1):
            return self
        return self._partial_fit(X, y, sample_weight, adapt)

    @transaction
    def _partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, adapt: bool) -> None:
        if not adapt:
            self._learn(lambda begin: self._validated(X, y, sample_weight, reset=begin))
            return
        begin = "table_" not in self.__dict__
        if begin:
            self._validate_params()
        elif self._stream is None and self.table_.n_rows:
            raise ValueError(
                "adapt=True needs all rows of the model, and it does not hold them: a file does not hold rows, and "
                "rows learned without adapt=True are not kept. Begin a model by partial_fit(X, y, adapt=True)."
            )
        batch = self._validated(X, y, sample_weight, reset=begin)
        stream, errors = self._stream or self._no_rows, np.zeros(0)
        if not begin and self.table_.n_rows:
            errors = self._squared_errors(batch, self.table_.layout.unit)
        self._add(batch, begin=begin, streaming=True)
        self._stream = self._adapted(stream.with_rows(batch, errors))

    def _adapted(self, stream: Stream) -> Stream:
        """Take the layout that a fit of all rows chooses if it predicts new rows better, where a comparison is due.

        The rival learns the older rows and predicts the newest; the model has predicted each of them before it learned
        it, with all rows that came before.
        """
        if not stream.is_due(self._n_laid_out):
            return stream
        older, new = stream.split()
        rival = twin_of(self)
        rival._add(older, begin=True, streaming=False)
        if not stream.is_beaten(rival._squared_errors(new, self.table_.layout.unit)):
            return stream.compared()
        self._add(stream.held(Batch.joined(stream.added)), begin=True, streaming=False)
        return type(stream)(stream.added, stream.removed, n_compared=stream.n_rows, n_adopted=stream.n_adopted + 1)

    def _squared_errors(self, batch: Batch, unit: Array) -> Array:
        """Squared errors (m,) at rows, mean over the targets in their units; the level replaces missing values."""
        values = self._predictor.values(self._encoded(batch).X)
        values = np.where(np.isfinite(values), values, self.table_.layout.level)
        return np.asarray((((values - batch.y) / unit) ** 2).mean(axis=1))

    @property
    def n_adaptations_(self) -> int:
        """Number of times that ``partial_fit(adapt=True)`` chose new hash functions."""
        return self._stream.n_adopted if self._stream is not None else 0

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values (m,), or (m, targets), at rows (m, d)."""
        value = self._value(X)
        if value is not None:
            return np.array([value])
        values = self._values(X)
        return values[:, 0] if self._single else values

    def predict_interval(self, X: ArrayLike, confidence: float = 0.9) -> NDArray[np.float64]:
        """Prediction intervals (m, 2), or (m, targets, 2), that contain a new target with this probability.

        About :meth:`predict`, with the variances that targets have about the polynomials of their buckets, so that
        noise may differ from place to place; where every bucket is empty, about the mean of the first coarse cell that
        holds rows, or of all rows. The error of the polynomial itself is in it only as far as its own rows show it.
        Of 3 to 511 rows, its size is that of errors at rows of ``fit`` held out, in predicted deviations: at least the
        stated share of new rows, if they come from where these do; of more it is normal. Beyond the largest of these
        errors, and where ``fit`` saw many rows and few are left, Student's quantiles serve; infinite for a single row.
        NaN where :meth:`predict` is, by ``fallback`` or ``extrapolate``, and only there.
        """
        checked_probability(confidence, "`confidence`")
        predictor = self._predictor
        rows = self._queries(X, predictor.inputs)
        values = predictor.values(rows, threads(self.n_jobs))
        with np.errstate(over="ignore"):
            reach = reach_of(predictor.table, confidence) * predictor.deviations(rows, threads(self.n_jobs))
        intervals = np.stack([values - reach, values + reach], axis=-1)
        return intervals[:, 0] if self._single else intervals

    @locked
    def drift(self, X: ArrayLike, y: ArrayLike | None = None) -> Drift:
        """Test whether rows differ from the rows of the model and, with targets, whether predictions are biased.

        Parameters
        ----------
        X : array-like of shape (m, d)
            A batch of at least 20 rows that the model has not learned.
        y : array-like of shape (m,) or (m, targets), optional
            Their targets.

        Returns
        -------
        drift : Drift
            Numbers with p-values; ``print(drift)`` is a line for a log.
        """
        check_is_fitted(self)
        rows = self._queries(X, self._inputs)
        residuals: tuple[Array, ...] = ()
        if y is not None:
            predicted = self._predictor.values(rows, threads(self.n_jobs))
            targets = checked_reals(y, "`y`")
            targets = targets[:, None] if targets.ndim == 1 else targets
            if targets.shape != predicted.shape:
                raise ValueError(f"`y` has shape {targets.shape}; drift needs {predicted.shape}, one target per row.")
            if not np.isfinite(predicted).all():
                row = int(np.argmin(np.isfinite(predicted).all(axis=1)))
                raise ValueError(
                    f"drift compares `y` with predictions, and that of row {row} is no number; leave out `y`, or call "
                    'set_params(fallback="coarse", extrapolate="clip") first.'
                )
            deviations = self._predictor.deviations(rows, threads(self.n_jobs))
            residuals = targets - predicted, reach_of(self.table_, 0.9) * deviations
        self._tidy()
        found = hashing.places(self._fixed.selected(rows), self.table_.layout.hashes)
        ids = self.table_.index.find(found.keys).astype(np.int64)
        positions = mean_positions(self.table_.sums, self.table_.layout.n_local)
        return drift_of(found, ids, self.table_.counts, positions, *residuals)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = self.degree == 0  # constants in buckets need many rows
        return tags

    def _validated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool) -> Batch:
        rows, targets, weights = self._checked(X, y, sample_weight, reset=reset, numeric=True)
        Y = np.ascontiguousarray(targets, dtype=np.float64).reshape(len(rows), -1)
        if np.abs(Y).max() > MAX_SIZE:
            raise ValueError(f"`y` holds numbers beyond {MAX_SIZE:g}, whose sums may overflow; scale it down.")
        largest = np.abs(Y).max(axis=0)
        if reset and ((largest > 0) & (largest < MIN_SIZE)).any():
            raise ValueError(f"`y` holds no number above {MIN_SIZE:g} in size, too small to divide by; scale it up.")
        if reset:
            self._single = targets.ndim == 1
        if not reset and Y.shape[1] != self.table_.layout.n_targets:
            raise ValueError(f"`y` has {Y.shape[1]} targets; the model has {self.table_.layout.n_targets}.")
        return Batch(rows, Y, weights)

    def _set_targets(self, state: State, arrays: Arrays) -> None:
        self._single = as_bool(state["single"], "single")
        if self._single and self.table_.layout.n_targets != 1:
            raise ValueError(f"{self.table_.layout.n_targets} targets where there is one")
