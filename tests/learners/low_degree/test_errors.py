"""Errors give the need, the fact and the remedy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sparsact import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV

rng = np.random.default_rng(0)
BITS = rng.integers(0, 2, (43, 5))
SIGNS = 1 - 2 * BITS
Y = rng.normal(size=43)
EVERY = [LowDegreeRegressor, LowDegreeRegressorCV, LowDegreeClassifier]


def target(make):
    return (Y > 0).astype(int) if make is LowDegreeClassifier else Y


@pytest.mark.parametrize("make", EVERY)
class TestPointsOfTheCube:
    @pytest.mark.parametrize("bad", [2.0, 0.5, np.nan])
    def test_a_value_that_is_no_symbol(self, make, bad):
        X = BITS.astype(float)
        X[7, 2] = bad
        with pytest.raises(ValueError, match=f"(?i){bad}.* at column 2, row 7"):
            make(domain="cube").fit(X, target(make))

    @pytest.mark.parametrize("bad", [2.0, np.nan])
    def test_a_column_with_a_name(self, make, bad):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(BITS.astype(float), columns=["a", "b", "gene", "d", "e"])
        frame.iloc[7, 2] = bad
        with pytest.raises(ValueError, match=f"(?i){bad}.* at column 'gene', row 7"):
            make(domain="cube").fit(frame, target(make))
        model = make().fit(pandas.DataFrame(BITS, columns=frame.columns), target(make))
        with pytest.raises(ValueError, match=f"(?i){bad}.* at column 'gene', row 7"):
            model.predict(frame)

    def test_the_row_counts_rows_of_no_weight(self, make):
        X, weights = BITS.astype(float), np.ones(43)
        X[30, 4], weights[:10] = 2, 0
        with pytest.raises(ValueError, match="column 4, row 30"):
            make(domain="cube").fit(X, target(make), weights)

    def test_signs_for_a_model_of_bits(self, make):
        model = make().fit(BITS, target(make))
        with pytest.raises(ValueError, match=r"-1 at column \d, row 0, where bits 0/1.*\(1 - X\) / 2"):
            model.predict(SIGNS)

    def test_bits_for_a_model_of_signs(self, make):
        model = make().fit(SIGNS, target(make))
        with pytest.raises(ValueError, match=r"0 at column \d, row 0, where signs.*1 - 2 \* X"):
            model.predict(BITS)
        with pytest.raises(ValueError, match=r"boolean.*1 - 2 \* X"):
            model.predict(BITS.astype(bool))

    def test_another_width(self, make):
        with pytest.raises(ValueError, match="expecting 5 features"):
            make().fit(BITS, target(make)).predict(BITS[:, :4])

    def test_not_fitted(self, make):
        with pytest.raises(NotFittedError):
            make().predict(BITS)

    def test_weights_that_are_all_zero(self, make):
        with pytest.raises(ValueError, match="weight"):
            make().fit(BITS, target(make), np.zeros(43))


@pytest.mark.parametrize("make", [LowDegreeRegressor, LowDegreeClassifier])
def test_more_rows_forgotten_than_seen(make):
    y = target(make)
    model = make().fit(BITS[:20], y[:20])
    with pytest.raises(ValueError, match="cannot forget 43 rows of 20"):
        model.remove(BITS, y)
    assert model.n_samples_seen_ == 20


def test_rows_that_are_not_yet_decided_cannot_be_forgotten_twice():
    model = LowDegreeRegressor().partial_fit(np.ones((1, 5)), [3.0])
    with pytest.raises(ValueError, match="cannot forget 2 rows of 1"):
        model.remove(np.ones((2, 5)), [3.0, 3.0])
    assert model.n_samples_seen_ == 1


def test_nothing_to_forget():
    model = LowDegreeRegressor()
    with pytest.raises(NotFittedError):
        model.remove(BITS, Y)
    with pytest.raises(NotFittedError):
        model.predict(BITS)


def test_folds_cannot_be_forgotten():
    with pytest.raises(ValueError, match="the fold of a row is not stored"):
        LowDegreeRegressorCV().fit(BITS, Y).remove(BITS[:3], Y[:3])


class TestMemory:
    def test_real_columns_are_refused_before_the_monomials_are_listed(self):
        X = np.random.default_rng(0).normal(size=(31, 100))
        with pytest.raises(MemoryError, match=r"1,271,427,895 monomials of 100 coordinates .* degree=\d fits"):
            LowDegreeRegressor(6).fit(X, X[:, 0])

    def test_the_degree_named_is_one_that_this_fit_can_take(self):
        X = np.random.default_rng(0).integers(0, 2, (31, 60))
        wish = {"solver": "lasso", "alpha": 0.1, "max_memory": 3e8}  # by the kernel, degree 5 would do
        with pytest.raises(MemoryError, match="degree=2 fits"):
            LowDegreeRegressor(6, **wish).fit(X, X[:, 0])
        assert LowDegreeRegressor(2, **wish).fit(X, X[:, 0]).solver_ == "lasso"

    def test_the_nearest_degree_is_named(self):
        X, y = rng.integers(0, 2, (3000, 40)), rng.normal(size=3000)
        with pytest.raises(MemoryError, match=r"102,090 monomials of 40 .* 3,000 rows .*degree=2 fits"):
            LowDegreeRegressor(4, max_memory=1e8).fit(X, y)
        LowDegreeRegressor(2, max_memory=1e8).fit(X, y)

    def test_no_degree_fits(self):
        with pytest.raises(MemoryError, match="no lower degree fits"):
            LowDegreeRegressor(2, max_memory=100).fit(BITS, Y)

    def test_a_list(self):
        with pytest.raises(MemoryError, match="fewer subsets"):
            LowDegreeRegressor(subsets=[(0,), (1, 2)], max_memory=100).fit(BITS, Y)

    def test_equations_that_are_written_out(self):
        """987 monomials need an 8 MB matrix, although 20 rows would fit in a kernel."""
        X, y = rng.integers(0, 2, (20, 18)), rng.normal(size=20)
        with pytest.raises(MemoryError, match="987 monomials"):
            LowDegreeRegressor(3, 0.1, "lasso", max_memory=1e6).fit(X, y)

    def test_cells_beyond_26(self):
        with pytest.raises(ValueError, match='26 coordinates; `X` has 27: pass solver="auto"'):
            LowDegreeRegressor(solver="cells").fit(rng.integers(0, 2, (9, 27)), np.arange(9.0))


def test_real_columns_on_a_route_of_the_cube():
    for solver in ("cells", "moments", "kernel", "correlation"):
        with pytest.raises(ValueError, match=r'real columns.*solver="auto"'):
            LowDegreeRegressor(solver=solver).fit(BITS + 0.5, Y)


@pytest.mark.parametrize("subsets", [[(0, 5)], [(-1,)], [(1, 1)]])
def test_subsets_that_are_none(subsets):
    with pytest.raises(ValueError, match=r"\d"):
        LowDegreeRegressor(subsets=subsets).fit(BITS, Y)


def test_an_unknown_subset():
    model = LowDegreeRegressor(2).fit(BITS, Y)
    for ask in (model.standard_errors, model.confidence_intervals):
        with pytest.raises(ValueError, match=r"\(0, 1, 2\) is not among the fitted"):
            ask([(0,), (2, 1, 0)])


def test_no_freedom_left():
    X = np.unpackbits(np.arange(9, dtype=np.uint8)[:, None] * 3, axis=1)[:, 3:]
    model = LowDegreeRegressor(2, solver="cells").fit(X, Y[:9])
    with pytest.raises(ValueError, match=r"9 rows do not exceed 16 parameters.*lower degree"):
        model.standard_errors()
    assert np.isnan(model.residual_variance_)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95])
def test_confidence_is_a_share(confidence):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        LowDegreeRegressor(1).fit(BITS, Y).confidence_intervals(confidence=confidence)


def test_lasso_has_no_errors():
    with pytest.raises(ValueError, match="lasso"):
        LowDegreeRegressor(1, 0.1, "lasso").fit(BITS, Y).standard_errors()


def test_rows_that_were_summed_into_moments():
    X, y = rng.integers(0, 2, (65_600, 5)), rng.normal(size=65_600)
    model = LowDegreeRegressor(2, solver="moments").fit(X, y)
    model.set_params(solver="kernel").remove(X[9:], y[9:])
    with pytest.raises(ValueError, match=r'gone.*solver="kernel"'):
        _ = model.coefficients_


class TestMerge:
    def test_another_encoding(self):
        for a, b in [(BITS, SIGNS), (SIGNS, BITS), (BITS, BITS + 0.5)]:
            mine, other = LowDegreeRegressor().fit(a, Y), LowDegreeRegressor().fit(b, Y)
            coef = mine.coefficients_.copy()
            with pytest.raises(ValueError, match="cannot merge"):
                mine.merge(other)
            np.testing.assert_array_equal(mine.coefficients_, coef)

    def test_another_width_or_number_of_targets(self):
        mine = LowDegreeRegressor().fit(BITS, Y)
        for X, y in [(BITS[:, :4], Y), (BITS, np.stack([Y, Y], axis=1))]:
            with pytest.raises(ValueError, match="cannot merge"):
                mine.merge(LowDegreeRegressor().fit(X, y))

    def test_other_columns(self):
        pandas = pytest.importorskip("pandas")
        a, b = (pandas.DataFrame(BITS, columns=list(names)) for names in ("abcde", "abced"))
        with pytest.raises(ValueError, match=r"column|feature"):
            LowDegreeRegressor().fit(a, Y).merge(LowDegreeRegressor().fit(b, Y))

    def test_other_classes(self):
        mine, other = (LowDegreeClassifier().fit(BITS, np.where(Y > 0, *pair)) for pair in [(0, 1), (1, 2)])
        with pytest.raises(ValueError, match="class"):
            mine.merge(other)

    def test_other_monomials(self):
        X, y = rng.integers(0, 2, (70_000, 4)), rng.normal(size=70_000)
        mine, other = (LowDegreeRegressor(degree, solver="moments").fit(X, y) for degree in (1, 2))
        with pytest.raises(ValueError, match=r"merge|degree|monomials"):
            mine.merge(other)

    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            LowDegreeRegressor().fit(BITS, Y).merge(LowDegreeRegressor())


class TestTargets:
    def test_another_number_of_targets(self):
        two = np.stack([Y, -Y], axis=1)
        for first, then in [(two, Y), (two, two[:, :1]), (Y, two), (two[:, :1], two)]:
            model = LowDegreeRegressor(solver="kernel").fit(BITS, first)
            with pytest.raises(ValueError, match="target"):
                model.partial_fit(BITS, then)
            assert model.coefficients_.shape == (15,) if first.ndim == 1 else (first.shape[1], 15)

    def test_not_finite(self):
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                LowDegreeRegressor().fit(BITS, np.where(Y > 1, bad, Y))

    def test_an_unknown_label(self):
        model = LowDegreeClassifier().fit(BITS, np.where(Y > 0, "a", "c"))
        for label in ("0", "b", "z"):
            with pytest.raises(ValueError, match=f"{label!r}.* is not among the classes"):
                model.partial_fit(BITS[:1], [label])
        assert model.n_samples_seen_ == 43

    def test_one_class(self):
        with pytest.raises(ValueError, match=r"at least 2 classes.*partial_fit"):
            LowDegreeClassifier().fit(BITS, np.zeros(43, int))


class TestFolds:
    def test_overlap(self):
        with pytest.raises(ValueError, match="twice"):
            LowDegreeRegressorCV(cv=[(range(20), range(20, 43)), (range(10), range(10, 43))]).fit(BITS, Y)

    def test_rows_left_out(self):
        with pytest.raises(ValueError, match="never tests"):
            LowDegreeRegressorCV(cv=[(range(20), range(20, 40)), (range(20, 40), range(20))]).fit(BITS, Y)

    def test_a_single_fold(self):
        for cv in (1, 0, [([0], range(43))]):
            with pytest.raises(ValueError, match=r"fold|cv"):
                LowDegreeRegressorCV(cv=cv).fit(BITS, Y)

    def test_a_fold_without_weight(self):
        weights = np.ones(43)
        weights[:20] = 0
        cv = [(range(20, 43), range(20)), (range(20), range(20, 43))]
        with pytest.raises(ValueError, match="fold"):
            LowDegreeRegressorCV(cv=cv).fit(BITS, Y, weights)

    def test_fewer_rows_than_folds(self):
        with pytest.raises(ValueError, match=r"5 folds .* n_samples=4"):
            LowDegreeRegressorCV().fit(BITS[:4], Y[:4])

    def test_splitters_do_not_stream(self):
        with pytest.raises(ValueError, match="number of folds to stream"):
            LowDegreeRegressorCV(cv=[(range(20, 43), range(20)), (range(20), range(20, 43))]).partial_fit(BITS, Y)

    @pytest.mark.parametrize("parameters", [{"degrees": []}, {"alphas": []}, {"degrees": [-1]}, {"alphas": [-0.1]}])
    def test_no_candidates(self, parameters):
        with pytest.raises(ValueError, match="degrees"):
            LowDegreeRegressorCV(**parameters).fit(BITS, Y)
