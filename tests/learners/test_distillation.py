"""``distil``: labels are out of fold, errors equal a count by hand, and what is worse says so."""

import warnings

import numpy as np
import pytest
from exported_models import onnx_values, values_in_c
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor

import sparsact as sa
from sparsact.learners.distillation import _drawn, _students
from sparsact.learners.small_network import SmallNetworkRegressor

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (300, 3))
Y = np.abs(X[:, 0]) + X[:, 1] ** 2 + 0.05 * RNG.normal(size=300)
SMALL = {"n_tables": 4, "degree": 1, "bucket_width": 1.5, "n_hashes": 3, "n_stages": 1, "directions": "standard"}
TABLES = {"tables": sa.LSHRegressor(random_state=0, **SMALL)}
LINE = {"line": LinearRegression()}


class Memory(RegressorMixin, BaseEstimator):
    """Repeats the targets of its own rows; says 0 elsewhere, and keeps which rows it met."""

    def fit(self, X, y):
        self.known_ = {row.tobytes(): value for row, value in zip(X, y, strict=True)}
        return self

    def predict(self, X):
        return np.array([self.known_.get(row.tobytes(), 0.0) for row in X])


def distilled(teacher, students=LINE, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return sa.distil(teacher, X, Y, students=students, random_state=0, **{"n_extra_rows": 0} | options)


def test_a_teacher_that_memorises_labels_none_of_its_rows():
    """Each label is 0, although a fit of the teacher to all rows repeats every target; the truth then teaches alone."""
    result = distilled(Memory())
    assert (result.labels == 0).all()
    assert (Memory().fit(X, Y).predict(X) == Y).all()
    assert result.truth_share == 1.0
    alone = LinearRegression().fit(np.delete(X, result.held_out, 0), np.delete(Y, result.held_out))
    np.testing.assert_allclose(result.model.coef_, alone.coef_, rtol=1e-9)


def test_labels_match_fits_without_the_row():
    """A neighbour of each row, found by hand: never the row itself, for it is the nearest to itself."""
    own = KNeighborsRegressor(1)
    result = distilled(own)
    distances = np.linalg.norm(X[:, None] - X[None], axis=-1)
    for row in range(len(X)):
        sources = np.flatnonzero(result.labels[row] == Y)
        assert len(sources) == 1
        assert sources[0] != row
    known = np.setdiff1d(np.arange(len(X)), result.held_out)  # rows held out are labelled by all the others
    for row in result.held_out:
        assert result.labels[row] == Y[known[distances[row, known].argmin()]]
    assert not np.isin(result.labels, Y[result.held_out]).any()


def test_errors_and_intervals_match_a_bootstrap():
    result = distilled(KNeighborsRegressor(4), TABLES)
    rows = result.held_out
    ours, theirs = result.predictor()(X[rows]) - Y[rows], result.labels[rows] - Y[rows]
    assert len(rows) == 60
    assert result.error.value == pytest.approx(np.sqrt(np.mean(ours**2)))
    assert result.teacher_error.value == pytest.approx(np.sqrt(np.mean(theirs**2)))
    assert result.distance.value == pytest.approx(np.sqrt(np.mean((ours - theirs) ** 2)))
    assert result.ratio.value == pytest.approx(result.error.value / result.teacher_error.value)
    draws = np.random.default_rng(0).integers(0, 60, (4_000, 60))
    ends = np.quantile(np.sqrt((ours[draws] ** 2).mean(1) / (theirs[draws] ** 2).mean(1)), [0.025, 0.975])
    assert np.log(ends / result.ratio.value) == pytest.approx(
        np.log(np.array(result.ratio[1:]) / result.ratio.value), rel=0.2
    )
    assert result.microseconds > 0
    assert result.teacher_microseconds > 0


@pytest.mark.grid
@pytest.mark.parametrize("teacher", [
    GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.01), optimizer=None, normalize_y=True),
    MLPRegressor(hidden_layer_sizes=(20,), solver="lbfgs", alpha=0.01, max_iter=80, random_state=0),
])  # fmt: skip
def test_a_smooth_teacher_helps_where_targets_are_noisy(teacher, tmp_path):
    """The best of the students that were tried is chosen; its program gives its values."""
    before = X.copy(), Y.copy(), teacher.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network is stopped early
        result = distilled(teacher, {**LINE, **TABLES}, n_extra_rows=400)
    assert (before[0] == X).all()
    assert (before[1] == Y).all()
    assert teacher.get_params() == before[2]
    assert not hasattr(teacher, "X_train_")
    tried = [(trial.student, trial.truth_share, trial.n_extra_rows > 0) for trial in result.trials]
    assert tried[:3] == [("line", 0.5, False), ("tables", 0.5, False), ("tables", 0.5, True)]
    assert [trial[:2] for trial in tried[3:]] == [("tables", 0.0), ("tables", 1.0)]
    assert result.trials[2].n_extra_rows == 50
    assert result.student == "tables"
    result.export(tmp_path / "student.c", name="f")
    rows = X[result.held_out]
    np.testing.assert_allclose(
        values_in_c(tmp_path / "student.c", "f", rows, 1)[:, 0], result.predictor()(rows), rtol=1e-9
    )
    text = str(result)
    for number in (result.error, result.teacher_error, result.ratio, result.distance):
        assert f"{number.value:.4g} [{number.low:.4g}, {number.high:.4g}]" in text
    assert text.count("tried: ") == 5
    assert result.predictor()(rows[:1])[0] == result.predictor()(rows)[0]


def test_a_student_that_is_worse_says_so_and_one_that_is_not_is_silent():
    with pytest.warns(UserWarning, match=r"the student's error to the truth is [\d.]+ \[.*\] times the teacher's"):
        result = sa.distil(KNeighborsRegressor(4), X, Y, students=LINE, n_extra_rows=0, random_state=0)
    assert result.ratio.low > 1.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sa.distil(LinearRegression(), X, Y, students=LINE, n_extra_rows=0, random_state=0).ratio.value < 1.1


@pytest.mark.grid
def test_a_student_of_a_teacher_that_knows_nothing_says_so_and_a_constant_is_silent():
    """Targets of no meaning: the student is no better than their mean, whatever the teacher."""
    noise = np.random.default_rng(3).normal(size=300)
    with pytest.warns(UserWarning, match=r"error to the truth is no less than that of the targets' mean, [\d.]+;"):
        result = sa.distil(KNeighborsRegressor(1), X, noise, students=LINE, n_extra_rows=0, random_state=0)
    assert result.ratio.value < 1 < result.error.value / noise[result.held_out].std()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for teacher, size in [(LinearRegression(), 0.1), (KNeighborsRegressor(2), 1e9), (Memory(), 0.0)]:
            students = {"line": LinearRegression(), "network": _students(X, 0)["network"]}
            constant = np.full(300, size)
            result = sa.distil(teacher, X, constant, students=students, n_extra_rows=30, random_state=0)
            assert result.error.value <= 1e-12 * size


def test_predictions_that_are_given_need_no_teacher():
    labels = np.abs(X[:, 0]) + X[:, 1] ** 2
    result = distilled(None, TABLES, out_of_fold=labels)
    assert result.labels.tolist() == labels.tolist()
    assert np.isnan(result.teacher_microseconds)
    assert "nan us per row" in str(result)


def test_rows_are_drawn_between_neighbours_and_whole_numbers_stay_whole():
    rows = np.column_stack([X[:, :2], RNG.integers(0, 2, 300), RNG.integers(0, 9, 300)])
    new, targets = _drawn(rows, LinearRegression().fit(rows, Y), 500, np.random.default_rng(1))
    assert new.shape == (500, 4)
    assert set(np.unique(new[:, 2])) == {0.0, 1.0}
    assert (new[:, 3] == np.round(new[:, 3])).all()
    assert (np.ptp(np.concatenate([rows, new]), axis=0) == np.ptp(rows, axis=0)).all()
    scale = rows.std(axis=0)
    nearest = np.linalg.norm((new[:, None] - rows[None]) / scale, axis=-1).min(axis=1)
    apart = np.linalg.norm((rows[:, None] - rows[None]) / scale, axis=-1)
    assert 0 < np.median(nearest) < np.median(np.sort(apart, axis=1)[:, 8])
    np.testing.assert_allclose(targets, LinearRegression().fit(rows, Y).predict(new))
    steps = np.linalg.matrix_rank(new[:, :2] - rows[np.abs(new[:, None, :2] - rows[None, :, :2]).sum(2).argmin(1), :2])
    assert steps == 2


@pytest.mark.grid
def test_bits_have_polynomials_and_limits_of_time_are_kept():
    bits = RNG.integers(0, 2, (200, 5))
    y = 1.0 * (bits[:, 0] & bits[:, 1])
    students = {"polynomial": sa.LowDegreeRegressorCV()}
    options = {"students": students, "n_extra_rows": 90, "random_state": 0}
    result = sa.distil(KNeighborsRegressor(1), bits, y, max_microseconds=1e6, **options)
    assert result.error.value < 1e-9
    assert isinstance(result.model, sa.LowDegreeRegressorCV)
    with pytest.raises(ValueError, match=r"no student answers within max_microseconds=1e-09 per row; raise the lim"):
        sa.distil(KNeighborsRegressor(1), bits, y, max_microseconds=1e-9, **options)


def test_bad_calls_have_one_clear_line(tmp_path):
    class Bare:
        """Predicts, and is no estimator."""

        def predict(self, X):
            return X[:, 0]

    class Column(LinearRegression):
        """Predicts a matrix of one column."""

        def predict(self, X):
            return super().predict(X)[:, None]

    fine = LinearRegression()
    for options, message in [
        ({"teacher": Bare()}, r"`teacher` must be .* scikit-learn can clone; got Bare: pass .* as `out_of_fold`"),
        ({"teacher": None}, r"got NoneType: pass"),
        (
            {"teacher": LinearRegression().fit(X, Y), "out_of_fold": Y[:-1]},
            r"`out_of_fold` must give one value per row",
        ),
        (
            {"teacher": LinearRegression().fit(X, Y), "out_of_fold": Y, "n_extra_rows": 5},
            r"with `out_of_fold` pass n_extra_rows=0",
        ),
        ({"teacher": fine, "y": 1e-200 * Y}, r"`y` reaches a size of 2e-200, whose square overflows; write it in"),
        ({"teacher": fine, "held_out": 0.7}, r"`held_out` must be at most 0.5"),
        ({"teacher": fine, "held_out": 0.004}, r"must be at most 0.5, and 2 rows or more of 300; got 0.004"),
        ({"teacher": Column()}, r"`teacher.predict` must give one value per row, shape \(300,\); got \(300, 1\)"),
        ({"teacher": fine, "y": Y[:-1]}, r"must have shapes \(m, d\) and \(m,\), m >= 50; got \(300, 3\) and \(299,\)"),
        ({"teacher": fine, "X": X[:40], "y": Y[:40]}, r"m >= 50"),
        ({"teacher": fine, "X": np.where(X[0, 0] == X, np.nan, X)}, r"`X` must be finite; the value at \(0, 0\)"),
        ({"teacher": fine, "n_folds": 1}, r"`n_folds` must lie between 2 and 20"),
        ({"teacher": fine, "max_microseconds": 0}, r"`max_microseconds` must be a finite number above 0"),
        ({"teacher": fine, "students": {}}, r"`students` must hold at least one estimator; got none"),
    ]:
        with pytest.raises(ValueError, match=message):
            sa.distil(**{"X": X, "y": Y} | options)
    with pytest.raises(ValueError, match=r"a LinearRegression has no program; pass `students` that have"):
        distilled(clone(fine)).export(tmp_path / "model.c")


@pytest.mark.grid
def test_a_network_takes_the_place_of_a_smooth_teacher(tmp_path):
    """It errs less than half as much as tables; its program, a row alone and a batch give what ``predict`` gives."""
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2]
    teacher = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(1e-6), optimizer=None, normalize_y=True)
    students = {"network": SmallNetworkRegressor((16, 8), random_state=0), **TABLES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = sa.distil(teacher, X, y, students=students, n_extra_rows=1_600, random_state=0)
    assert result.student == "network"
    of_tables = min(trial.error for trial in result.trials if trial.student == "tables")
    assert result.error.value < of_tables / 2
    rows = X[result.held_out]
    expected = result.model.predict(rows)
    assert (result.predictor()(rows) == expected).all()
    assert result.predictor()(rows[3]) == pytest.approx(expected[3], rel=1e-12)
    strange = np.concatenate([rows, [[np.nan, 0, 0], [0, np.inf, 0], [1e3, -1e3, 1e3]]])
    for kind in ("c", "onnx"):
        result.export(path := tmp_path / f"student.{kind}", name="f")
        found = (values_in_c(path, "f", strange, 1) if kind == "c" else onnx_values(path, strange))[:, 0]
        np.testing.assert_allclose(found[:60], expected, rtol=0, atol=1e-13)
        assert np.isnan(found[60:62]).all()
        assert found[62] in result.model.limits_


def test_a_network_is_the_same_in_all_units_and_keeps_its_limits():
    """Columns and targets of other units and origins, and one that is constant, change values by rounding alone."""
    model = SmallNetworkRegressor((9, 7), random_state=0)
    before = X.copy(), Y.copy()
    plain = clone(model).fit(X, Y)
    wide = np.column_stack([X * [1e-3, 1.0, 1e5] + [0.0, 1e3, -1e6], np.full(300, 0.1)])
    moved = clone(model).fit(X * [2.0**-9, 1.0, 2.0**20], 2.0**40 * Y)
    np.testing.assert_allclose(moved.predict(X * [2.0**-9, 1.0, 2.0**20]), 2.0**40 * plain.predict(X), rtol=1e-12)
    other = clone(model).fit(wide, 1e6 * Y - 1e7)
    assert np.isfinite(other.predict(wide)).all()
    assert np.std(other.predict(wide) - (1e6 * Y - 1e7)) < 0.2 * 1e6 * np.std(Y)
    far = plain.predict(1e6 * X)
    assert Y.min() <= far.min()
    assert far.max() <= Y.max()
    assert (before[0] == X).all()
    assert (before[1] == Y).all()


@pytest.mark.parametrize("level", [0.1, -1e60, 1e300])
def test_a_network_of_a_constant_is_the_constant(level):
    """A constant of any size: float32 must not fit the rounding errors about its mean."""
    assert (SmallNetworkRegressor((3,), random_state=0).fit(X, np.full(300, level)).predict(X) == level).all()


def test_a_network_takes_rows_of_its_columns_alone():
    """NumPy would stretch one column to three."""
    model = SmallNetworkRegressor((3,), random_state=0).fit(X, Y)
    for rows in (X[:, :1], X[0, :1], X[0, 0], X.T):
        with pytest.raises(ValueError, match=r"a row has 3 columns; got shape \("):
            model(rows)
    assert model(X[:0]).shape == (0,)


class Counted(LinearRegression):
    """Counts its fits."""

    n_fits = 0

    def fit(self, X, y):
        type(self).n_fits += 1
        return super().fit(X, y)


def test_a_teacher_of_given_predictions_must_be_fitted_and_is_asked_first():
    with pytest.raises(ValueError, match=r"`teacher` must be fitted where `out_of_fold` .*; call its fit first"):
        distilled(KNeighborsRegressor(), {"line": Counted()}, out_of_fold=Y)
    assert Counted.n_fits == 0
    assert distilled(KNeighborsRegressor().fit(X, Y), {"line": Counted()}, out_of_fold=Y).student == "line"
