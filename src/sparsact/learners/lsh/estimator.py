"""Base of the LSH estimators: parameters, fit, and updates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sparsact.kernels.dispatch import blas_threads
from sparsact.kernels.hashing import hash_generator
from sparsact.learners.constraints import AUTO, COUNT, N_JOBS, NONNEGATIVE, POSITIVE, one_of, whole
from sparsact.learners.lsh.adaptive import Stream
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fitted import FittedLSH
from sparsact.learners.lsh.fixed_part import seen_by_table
from sparsact.learners.lsh.inputs import Features, InputRules, categorical_columns, is_plain_target
from sparsact.learners.lsh.layout import Array, differing_arrays
from sparsact.learners.lsh.leave_one_out import first_table_errors, held_out_scores
from sparsact.learners.lsh.model_choice import choose
from sparsact.learners.lsh.tuning import LSHConfig
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import Batch
from sparsact.transaction import lock_of, transaction, twin_of
from sparsact.validation.arrays import aligned, check_row_weights
from sparsact.validation.estimators import checked_sample_weight

MAX_SIZE, MIN_SIZE = 1e305, 1e-300  # of columns and targets; of the largest target
WORTH_THREADS: Final = 1 << 18  # numbers in X; with fewer, a team of threads gains little and may wait long
ENOUGH_FOR_LAYOUT: Final = 2048  # rows; a stream that began with fewer keeps them till then


@dataclass(eq=False, repr=False)
class LSHModel(FittedLSH):
    """Base of the LSH estimators; see :class:`LSHRegressor` for the parameters."""

    n_tables: int | str = 16
    n_hashes: int | str = "auto"
    bucket_width: float | str = "auto"
    degree: int | str = 1
    family: str = "pca_grid"
    fallback: str = "coarse"
    random_state: int | np.random.RandomState | None = None
    _: KW_ONLY
    alpha: float | str = "auto"
    directions: str = "auto"
    min_count: int = 1
    categorical_features: Features = "from_dtype"
    n_jobs: int | None = None
    extrapolate: str = "clip"

    n_stages: int | str = field(default=1, init=False)
    base: str = field(default="linear", init=False)
    columns: str = field(default="all", init=False)
    _first_rows: tuple[Batch, ...] = field(default=(), init=False)  # of a stream that began with few
    _n_laid_out: int = field(default=0, init=False)  # rows that the layout was chosen from
    _stream: Stream | None = field(default=None, init=False)  # all rows, where they came with ``adapt=True``
    _no_rows: ClassVar[Stream] = Stream()
    _enough_for_layout = ENOUGH_FOR_LAYOUT
    _limits: ClassVar[type[LSHConfig]] = LSHConfig

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_tables": [COUNT],
        "n_hashes": [COUNT, AUTO],
        "bucket_width": [POSITIVE, AUTO],
        "degree": [whole(0, 2)],
        "family": [one_of("pca_grid", "euclidean", "hyperplane")],
        "fallback": [one_of("coarse", "nearest", "mean", "nan", "raise")],
        "random_state": ["random_state"],
        "alpha": [NONNEGATIVE, AUTO],
        "directions": [one_of("auto", "principal", "standard", "gradients")],
        "min_count": [COUNT],
        "categorical_features": ["array-like", one_of("from_dtype"), None],
        "n_jobs": N_JOBS,
        "extrapolate": [one_of("clip", "linear", "nan")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _fork(self) -> Callable[[bool], None]:
        """A table to change; see :func:`sparsact.transaction.transaction`."""
        if "table_" not in self.__dict__:
            return lambda kept: None
        twin, finish = self.table_.copy_on_write(self._compiled)
        self.table_ = twin
        return finish

    def _begin(self, raw: Batch) -> None:
        """Choose rules for missing values and categories, and the layout, from these rows; hold no rows yet."""
        names = tuple(getattr(self, "feature_names_in_", ()))
        self._inputs = InputRules.choose(raw.X, raw.y, raw.row_weights(), self.is_categorical_, names)
        batch = self._encoded(raw)
        given = self.random_state
        seed = int(given if isinstance(given, int | np.integer) else check_random_state(given).randint(2**31))
        # Of scikit-learn's trees too: teams of threads that meet at each node wait for one another on busy cores.
        with threadpool_limits(1 if batch.X.size < WORTH_THREADS else None, "openmp"):
            choice = choose(batch.X, batch.y, batch.row_weights(), self._config(), hash_generator(seed))
        tuned, sources = choice.tuned, self._inputs.sources
        self.bucket_width_, self.alpha_, self.directions_ = tuned.bucket_width, tuned.alpha, tuned.directions
        self.trials_ = tuned.trials
        shares = np.bincount(sources, tuned.column_shares, minlength=self.n_features_in_)
        self.column_shares_ = shares.astype(np.float64)
        pairs = (tuple(sorted((int(sources[i]), int(sources[j])))) for i, j in choice.near_duplicates)
        self.near_duplicates_ = tuple(sorted({(i, j) for i, j in pairs if i != j}))
        self.table_, self._fixed = BucketTable(tuned.layout), choice.fixed
        self._forget_solution()

    def _config(self) -> LSHConfig:
        """Parameters of the layout; None stands for "auto", which is a kind of directions and of columns."""
        options: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(LSHConfig)}
        for name in options.keys() - {"directions", "columns"}:
            options[name] = None if options[name] == "auto" else options[name]
        if self.n_stages == "auto" and self.family != "pca_grid":
            options["n_stages"] = 1
        return self._limits(**options)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: a table that shares no array with this one, whatever other threads do meanwhile."""
        with lock_of(self):
            state: dict[str, Any] = super().__getstate__()
            return state | {"table_": self.table_.detached(), "_compiled": []} if "table_" in state else state

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Choose the hash functions and learn the rows.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows.
        y : array-like of shape (m,) or (m, targets)
            Targets, or labels of any kind.
        sample_weight : array-like of shape (m,), optional
            Weights of the rows, not negative; rows of weight zero are left out.
        """
        self._learn(lambda begin: self._validated(X, y, sample_weight, reset=begin), restart=True)

    def remove(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Unlearn rows that were learned, with the same targets and weights.

        Raises
        ------
        ValueError
            If a row was not learned; then nothing is removed.
        """
        if sample_weight is None and self._update_row(X, y, -1):
            return self
        return self._remove(X, y, sample_weight)

    @transaction
    def _remove(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        check_is_fitted(self)
        if not self.table_.keeps_rows:
            raise ValueError(
                "the model remembers no rows to remove: begin it with blank() instead of blank(remember_rows=False), "
                "save it with statistic=True, or call fit once instead of fitting it in parts; then fit again."
            )
        raw = self._validated(X, y, sample_weight, reset=False).positive()
        self.table_.remove(*seen_by_table(self._encoded(raw), self._fixed))
        if self._first_rows:
            self._first_rows = (Batch.joined(self._first_rows).without(raw),)
        if self._stream is not None:
            self._stream = self._stream.without(raw)
        self._forget_solution()

    def _update_row(self, X: ArrayLike, y: ArrayLike, sign: int) -> bool:
        """Learn (1) or unlearn (-1) one row in a single call; False, and nothing done, if one call is not enough."""
        if type(X) is not np.ndarray or X.shape[:1] != (1,) or type(y) is not np.ndarray or not self._updates_rows:
            return False
        with lock_of(self):
            compiled = self._compiled
            if not compiled or compiled[0].policy != self._policy:
                self._compile()
            update = compiled[0].update  # no name for the predictor: the call must find it in no other use
            return update is not None and update(compiled, self.table_, X, y, sign)

    @property
    def _updates_rows(self) -> bool:
        """Whether updates change the table alone, and rows need no check but their own numbers."""
        plain = "table_" in self.__dict__ and "feature_names_in_" not in self.__dict__
        return plain and self._single and self._stream is None and not self._first_rows and self.table_.n_rows > 1

    @transaction
    def merge(self, other: Self) -> None:
        """Add the rows of another model with the same hash functions; see :meth:`blank`.

        Raises
        ------
        ValueError
            If the hash functions, degrees, columns or classes differ; names them.
        """
        self._check_mergeable(other)
        self.table_.merge(other.table_)
        self._first_rows = ()  # the other's are not all here: the layout stands
        self._stream = self._stream and self._stream.merged(other._stream)
        self._forget_solution()

    @abstractmethod
    def _validated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool) -> Batch:
        """Checked rows (m, d) with targets (m, T) and weights (m,)."""

    def _learn(self, validated: Callable[[bool], Batch], *, restart: bool = False) -> None:
        """Learn rows: of a fit, which begins again, or of a stream; they are checked as the first of a model or not."""
        begin = restart or "table_" not in self.__dict__
        if begin:
            self._validate_params()
        self._stream = None
        self._add(validated(begin), begin=begin, streaming=not restart)

    def _checked(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool, numeric: bool = False
    ) -> tuple[Array, NDArray[Any], Array]:
        """Rows of numbers, codes and NaN, their targets (``numeric``: numbers, in columns too), and their weights."""
        if reset:
            named = categorical_columns(X, self.categorical_features)
            self.is_categorical_ = np.zeros(0, bool) if named is None else named
        rows = None if reset or sample_weight is not None else self._inputs.plain(X)
        if rows is not None and is_plain_target(y, len(rows), numeric):
            targets, weights = np.asarray(y), np.ones(len(rows))
        else:
            rows, targets = self._checked_rows(X, y, reset=reset, multi_output=numeric, y_numeric=numeric)
            weights = checked_sample_weight(sample_weight, rows)
        if not len(self.is_categorical_):
            self.is_categorical_ = np.zeros(rows.shape[1], bool)
        if np.fmax.reduce(np.abs(rows), axis=None) > MAX_SIZE:
            raise ValueError(f"`X` holds numbers beyond {MAX_SIZE:g}, whose differences may overflow; scale it down.")
        check_row_weights(weights)
        return aligned(rows), targets, aligned(weights)

    @blas_threads(0)  # products of rows and a few directions: memory is what they wait for
    def _add(self, batch: Batch, *, begin: bool, streaming: bool) -> None:
        """Learn rows. A stream that began with few chooses its layout again each time that they have doubled."""
        first = (batch,) if begin else (*self._first_rows, batch) if self._first_rows else ()
        n_rows = sum(map(len, first))
        begin = begin or (bool(first) and n_rows >= 2 * self._n_laid_out)
        if begin:
            batch = Batch.joined(first)
            self._begin(batch)
            first = (batch,) if streaming and n_rows < self._enough_for_layout else ()
            self._n_laid_out = n_rows
        self._first_rows = first
        batch = batch.positive()
        rows, names = seen_by_table(self._encoded(batch), self._fixed)
        self.table_.add(rows, names)
        if begin:
            self.table_errors_ = first_table_errors(self.table_, rows, batch.y, self.alpha_, self.min_count)
            self.table_.scores = held_out_scores(self.table_, rows, self.alpha_, self.min_count)
        self._forget_solution()

    def _check_mergeable(self, other: Self) -> None:
        if type(other) is not type(self):
            raise TypeError(f"only another {type(self).__name__} can be merged; got {type(other).__name__}.")
        check_is_fitted(self)
        check_is_fitted(other)
        if other.table_.index is self.table_.index:  # of this model, or of the one whose twin this is
            raise ValueError("a model cannot be merged into itself: its rows would count twice.")
        names = [list(getattr(model, "feature_names_in_", ())) for model in (self, other)]
        differing = differing_arrays(self.table_.layout.arrays(), other.table_.layout.arrays())
        differing += ["frozen stages"] if differing_arrays(self._fixed.arrays(), other._fixed.arrays()) else []
        differing += [] if names[0] == names[1] else ["names of columns"]
        inputs = differing_arrays(self._inputs.arrays(), other._inputs.arrays())
        differing += ["missing values or categories"] if inputs else []
        if differing:
            raise ValueError(
                f"models with different {', '.join(differing)} cannot be merged; make both from one, by "
                "`blank()`, before they see rows."
            )

    def blank(self, *, remember_rows: bool = True) -> Self:
        """A model with the same hash functions and no rows, for workers whose parts are merged later.

        Parameters
        ----------
        remember_rows : bool, default=True
            Whether rows will be remembered, at 50 to 90 bytes each, so that :meth:`remove` can take them away. Without,
            memory grows with the inhabited buckets alone.

        Returns
        -------
        blank : estimator
            Model of the same class.

        Examples
        --------
        >>> from sparsact import LSHRegressor
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> whole = LSHRegressor(random_state=0).fit(X, X[:, 0] ** 2)
        >>> parts = [whole.blank().partial_fit(X[i::2], X[i::2, 0] ** 2) for i in range(2)]
        >>> bool(np.allclose(parts[0].merge(parts[1]).predict(X), whole.predict(X)))
        True
        """
        check_is_fitted(self)
        empty = twin_of(self)
        empty.table_ = empty.table_.empty(keeps_rows=remember_rows)
        empty._first_rows, empty._stream = (), None
        empty._forget_solution()
        return empty

    def state(self) -> tuple[State, Arrays]:
        """Return the sums of the model, without its layout, as arrays."""
        return {}, self.table_.state()[1]

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore what :meth:`state` returned into a blank model of the same layout."""
        self.table_ = self.table_.empty()
        self.table_.restore(state, arrays)
