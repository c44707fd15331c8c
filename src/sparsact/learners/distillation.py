r"""Distillation: a slow model becomes one that answers in microseconds.

The student learns labels that the teacher gives to rows it has not seen. Labels of its own rows say little: a teacher
that fits its rows closely repeats their targets, noise included [1]_.

References
----------
.. [1] "Pocket Foundation Models: Distilling TFMs into CPU-Ready Gradient-Boosted Trees", 2026, arXiv:2605.18654.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from math import inf, nan
from statistics import NormalDist
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from sparsact.learners.distilled import Distillation, DistillationTrial, root_mean, root_ratio
from sparsact.learners.low_degree import LowDegreeRegressorCV
from sparsact.learners.lsh import LSHRegressor
from sparsact.learners.lsh.frontier import least_microseconds
from sparsact.learners.points import detect_encoding, kernel_dtype
from sparsact.learners.small_network import SmallNetworkRegressor
from sparsact.statistics.column_scales import standard_units
from sparsact.validation.arrays import checked_per_row, checked_reals
from sparsact.validation.parameters import checked_positive, checked_probability, checked_size

Array = NDArray[np.float64]
Function = Callable[[Array], Any]
Rows = tuple[Array, Array]  # X (m, d), targets (m,)

TRUTH_SHARES: Final = (0.5, 0.0, 1.0)  # of the targets themselves in the labels; the first chooses the student
N_DRAWN: Final = 16_000
WORSE: Final = 1.1  # times the teacher's error, from where a warning says so
_VALIDATION: Final = 0.2  # of the rows that are not held out: they choose the student
_ROUNDING: Final = 1e-9  # of the deviation of the targets, or a thousandth of their size: errors that do not count
_NEIGHBOURS: Final = 8
_TRIED: Final = 8  # the part of the drawn rows with which students are chosen is 1 in 8
_CLOSE: Final = 1.15  # times the least error without drawn rows: students beyond it are not tried with them
_FEWEST: Final = 50  # rows


class Teacher(Protocol):
    """A model with ``predict``."""

    def predict(self, X: Any) -> Any:
        """Values (m,) at rows (m, d)."""


def distil(
    teacher: Teacher | None,
    X: ArrayLike,
    y: ArrayLike,
    *,
    out_of_fold: ArrayLike | None = None,
    students: Mapping[str, Any] | None = None,
    n_extra_rows: int | None = None,
    held_out: float = 0.2,
    n_folds: int = 5,
    max_microseconds: float | None = None,
    confidence: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
) -> Distillation:
    r"""Replace a slow model, the teacher, by a student that answers in microseconds, and measure what that costs.

    The student learns :math:`(1 - \lambda) t_i + \lambda y_i`, where the label :math:`t_i` is the prediction of row i
    by a teacher that was not fitted to it. Errors of student g and teacher t are compared on rows held out from both,

    .. math:: r = \sqrt{\sum_i (g(x_i) - y_i)^2 \Big/ \sum_i (t(x_i) - y_i)^2}.

    Parameters
    ----------
    teacher : estimator or None
        A scikit-learn regressor, fitted or not: clones of it are fitted. With ``out_of_fold``, any object with
        ``predict``, or None.
    X, y : array-like of shape (m, d) and (m,)
        Numbers, without missing values; at least 50 rows.
    out_of_fold : array-like of shape (m,), optional
        The teacher's predictions of the rows, each by a fit without the row. Default: computed here.
    students : mapping of str to estimator, optional
        Estimators to try, by name. Default: a network of two layers of 64 ReLU units, hash tables and, for bits or
        signs, polynomials.
    n_extra_rows : int, optional
        Rows to draw about the rows, which the teacher labels, if an eighth of them helps the students. Default: 16,000;
        0 with ``out_of_fold``, since the teacher would know the rows held out.
    held_out : float, default=0.2
        Share of the rows on which errors are measured.
    n_folds : int, default=5
        Folds of the labels; the teacher is fitted ``n_folds + 2`` times.
    max_microseconds : float, optional
        Most time for a row, measured here: hash tables shrink until a single query keeps it; of other students the time
        for a row of a batch is meant.
    confidence : float, default=0.95
        Confidence of the intervals.
    random_state : int, RandomState or None, default=None
        Seed of the rows held out, of the folds and of the rows drawn.

    Returns
    -------
    result : Distillation
        ``model``, ``predictor()``, ``export(path)``; ``print(result)`` shows the errors.

    Raises
    ------
    ValueError
        If a teacher without ``out_of_fold`` cannot be cloned, if rows (or rows held out) are too few, if squares of
        targets overflow or vanish, or if no student keeps ``max_microseconds``.

    Warns
    -----
    UserWarning
        If the student's error is more than 1.1 times the teacher's, or no less than that of the mean of the targets.

    Notes
    -----
    A fifth of the rows that are not held out chooses the student, at :math:`\lambda = 1/2`, and then :math:`\lambda`
    from 0, 1/2 and 1, where 1 is the student without a teacher. Folds of the other rows label each other, and a fit to
    all of them labels this fifth, so that no label and no choice has seen the rows that judge it; ``out_of_fold`` may
    have. Intervals are normal in the logarithm. A drawn row is a row moved by up to the difference of two of its eight
    nearest in standardised columns, within the range of each column; a column of whole numbers comes from one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sparsact import LowDegreeRegressor, distil
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 6))
    >>> y = 1.0 * (X[:, 0] ^ X[:, 1]) + X[:, 2]
    >>> students = {"pairs": LowDegreeRegressor(2), "a line": LowDegreeRegressor(1)}
    >>> result = distil(KNeighborsRegressor(3), X, y, students=students, random_state=0)
    >>> result.student, result.ratio.value <= 1
    ('pairs', True)
    """
    X, y = checked_reals(X, "`X`"), checked_reals(y, "`y`")
    if X.ndim != 2 or not X.shape[1] or y.shape != X.shape[:1] or len(y) < _FEWEST:
        raise ValueError(f"`X` and `y` must have shapes (m, d) and (m,), m >= {_FEWEST}; got {X.shape} and {y.shape}.")
    if not 1e-150 < (size := np.abs(y).max()) < 1e150 and size:
        raise ValueError(f"`y` reaches a size of {size:.0e}, whose square overflows; write it in another unit.")
    if checked_probability(held_out, "`held_out`") > 0.5 or round(held_out * len(y)) < 2:
        raise ValueError(f"`held_out` must be at most 0.5, and 2 rows or more of {len(y)}; got {held_out}.")
    checked_size(n_folds, "`n_folds`", minimum=2, maximum=20)
    if students is not None and not students:
        raise ValueError("`students` must hold at least one estimator; got none: pass one, or None for the default.")
    if max_microseconds is not None:
        checked_positive(max_microseconds, "`max_microseconds`")
    if out_of_fold is not None and teacher is not None:
        try:
            teacher.predict(X[:1])
        except NotFittedError as unfitted:
            fact = "`teacher` must be fitted where `out_of_fold` holds its predictions, and it is not"
            raise ValueError(f"{fact}; call its fit first, or pass None for it.") from unfitted
    level = NormalDist().inv_cdf((1 + checked_probability(confidence, "`confidence`")) / 2)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
    seed, order = int(rng.integers(2**31)), rng.permutation(len(y))
    test, known = np.split(order, [round(held_out * len(y))])
    validation, train = np.split(known, [round(_VALIDATION * len(known))])
    n_drawn = N_DRAWN if n_extra_rows is None else checked_size(n_extra_rows, "`n_extra_rows`", minimum=0)
    if out_of_fold is None:
        folds = KFold(n_folds, shuffle=True, random_state=seed)
        labels, early, late = _labels(teacher, X, y, (train, validation, test), folds)
    elif n_extra_rows:
        raise ValueError("extra rows need a teacher that saw no held-out row; with `out_of_fold` pass n_extra_rows=0.")
    else:
        labels, early, late = checked_per_row(out_of_fold, len(y), "`out_of_fold`"), None, teacher

    def learned(rows: NDArray[np.intp], share: float, drawn: Rows) -> Rows:
        own = (1 - share) * labels[rows] + share * y[rows]
        return np.concatenate([X[rows], drawn[0]]), np.concatenate([own, drawn[1]])

    search = _Search(students or _students(X, seed), max_microseconds, X[validation], y[validation])
    none = X[:0], y[:0]
    few = none if early is None or not n_drawn else _drawn(X[train], early, -(-n_drawn // _TRIED), rng)
    for name in search.students:
        search.run(name, TRUTH_SHARES[0], 0, *learned(train, TRUTH_SHARES[0], none))
    for name, *_, error, _ in sorted(search.trials, key=lambda trial: trial.error):
        if len(few[0]) and error <= _CLOSE * search.best.error < inf:
            search.run(name, TRUTH_SHARES[0], len(few[0]), *learned(train, TRUTH_SHARES[0], few))
    name, used = search.best.student, search.best.n_extra_rows
    for share in TRUTH_SHARES[1:]:
        search.run(name, share, used, *learned(train, share, few if used else none))
    share = search.best.truth_share
    model = clone(search.students[name])
    model.fit(*learned(known, share, _drawn(X[known], late, n_drawn, rng) if used else none))
    if (answer := search.answer(model)) is None:
        raise ValueError(f"no student answers within max_microseconds={max_microseconds} per row; raise the limit.")
    values, truth = checked_per_row(answer(X[test]), len(test), "a student"), y[test]
    ours, theirs = (values - truth) ** 2, (labels[test] - truth) ** 2
    result = Distillation(
        model=model,
        student=name,
        truth_share=share,
        error=root_mean(ours, level),
        teacher_error=root_mean(theirs, level),
        ratio=root_ratio(ours, theirs, level),
        distance=root_mean((values - labels[test]) ** 2, level),
        microseconds=least_microseconds(partial(answer, X[test]), len(test)),
        teacher_microseconds=nan if late is None else least_microseconds(partial(late.predict, X[test]), len(test)),
        labels=labels,
        held_out=test,
        trials=tuple(search.trials),
        answer=answer,
    )
    worse, mean = result.ratio.value > WORSE, float(np.sqrt(np.mean((truth - y[known].mean()) ** 2)))
    counts = result.error.value > _ROUNDING * max(y.std(), np.abs(y).max() / 1_000)
    if counts and (worse or result.error.value >= mean):
        than = f"{result.ratio} times the teacher's" if worse else f"no less than that of the targets' mean, {mean:.4g}"
        warnings.warn(
            f"the student's error to the truth is {than}; pass more rows, more `n_extra_rows`, other `students`, or "
            f"{'keep the' if worse else 'another'} teacher.",
            stacklevel=2,
        )
    return result


def _labels(
    teacher: Any, X: Array, y: Array, parts: tuple[NDArray[np.intp], ...], folds: KFold
) -> tuple[Array, Teacher | None, Teacher | None]:
    """Labels (m,) of rows by fits without them; the fit to the first part, and the fit to the first two."""
    train, validation, test = parts
    known = np.concatenate([train, validation])
    try:
        early, late = (clone(teacher) for _ in range(2))
    except TypeError as error:
        raise ValueError(
            f"`teacher` must be an estimator that scikit-learn can clone; got {type(teacher).__name__}: pass its "
            "predictions of each row by a fit without the row as `out_of_fold`."
        ) from error
    early.fit(X[train], y[train])
    late.fit(X[known], y[known])
    inside = cross_val_predict(clone(teacher), X[train], y[train], cv=folds)
    found = np.concatenate([inside, early.predict(X[validation]), late.predict(X[test])])
    return checked_per_row(found[np.concatenate(parts).argsort()], len(y), "`teacher.predict`"), early, late


def _students(X: Array, seed: int) -> dict[str, Any]:
    """What may replace a teacher of such rows."""
    bits = detect_encoding(kernel_dtype(X))[0] in ("bits", "signs")
    tables = LSHRegressor(degree=1, n_stages=1, directions="gradients", random_state=seed)
    found = {"network": SmallNetworkRegressor(random_state=seed), "hash tables": tables}
    return {"polynomial": LowDegreeRegressorCV(), **found} if bits else found


class _Search:
    """Students that were fitted to some labels, and their errors to the truth at other rows."""

    def __init__(self, students: Mapping[str, Any], max_microseconds: float | None, new: Array, truth: Array) -> None:
        self.students, self.trials = students, list[DistillationTrial]()
        self._limit, self._new, self._truth = max_microseconds, new, truth

    def run(self, name: str, share: float, n_drawn: int, rows: Array, targets: Array) -> None:
        """Add a trial."""
        model = clone(self.students[name]).fit(rows, targets)
        answer, error, microseconds = self.answer(model), inf, nan
        if answer is not None:
            found = checked_per_row(answer(self._new), len(self._truth), "a student")
            error = float(np.sqrt(np.mean((found - self._truth) ** 2)))
            microseconds = self._microseconds(answer)
        self.trials.append(DistillationTrial(name, share, n_drawn, error, microseconds))

    def answer(self, model: Any) -> Function | None:
        """The quickest way to the values of a student; None if it takes more than the limit for a row."""
        answer: Function = model if isinstance(model, SmallNetworkRegressor) else model.predict
        if isinstance(model, LSHRegressor):
            try:
                return model.predictor(dtype="float32", max_microseconds=self._limit)
            except ValueError:
                if self._limit is None:
                    raise
                return None  # no size of it keeps the limit
        slow = self._limit is not None and self._microseconds(answer) > self._limit
        return None if slow else answer

    def _microseconds(self, answer: Function) -> float:
        return least_microseconds(partial(answer, self._new), len(self._new))

    @property
    def best(self) -> DistillationTrial:
        """The trial of least error."""
        return min(self.trials, key=lambda trial: trial.error)


def _drawn(X: Array, teacher: Any, n_drawn: int, rng: np.random.Generator) -> Rows:
    """Rows of X moved along differences of their neighbours, and the teacher's labels."""
    scaled = X * standard_units(X, np.ones(len(X)))
    first, place = np.unique(rng.integers(len(X), size=n_drawn), return_inverse=True)
    finder = NearestNeighbors(n_neighbors=min(_NEIGHBOURS + 1, len(X))).fit(scaled)
    near = finder.kneighbors(scaled[first], return_distance=False)[place]
    start, ends = X[first[place]], X[rng.permuted(near, axis=1)[:, :2]]
    way, whole = rng.random((n_drawn, 1)), (np.round(X) == X).all(axis=0)
    moved = np.clip(start + way * (ends[:, 0] - ends[:, 1]), X.min(axis=0), X.max(axis=0))
    drawn = np.where(whole, np.where(rng.random(moved.shape) < way, ends[:, 0], start), moved)
    return drawn, checked_per_row(teacher.predict(drawn), n_drawn, "`teacher.predict`")
