"""The same rows in any spelling give the same model; classes are regressed as functions."""

from __future__ import annotations

import numpy as np
import pytest
from explicit import least_norm, monomials
from numpy.testing import assert_allclose, assert_array_equal

from sparsact import LowDegreeClassifier, LowDegreeRegressor

FLOATS, INTEGERS = ["f2", "f4", "f8", ">f8"], ["i1", "i2", "i4", "i8", ">i4"]


class TestEncodings:
    rng = np.random.default_rng(15)
    bits = rng.integers(0, 2, (67, 5))
    y = rng.normal(size=67)
    model = LowDegreeRegressor(3).fit(bits, y)

    def same(self, X, encoding):
        other = LowDegreeRegressor(3).fit(X, self.y)
        assert other.encoding_ == encoding
        assert other.domain_ == "cube"
        assert_array_equal(other.coefficients_, self.model.coefficients_)
        assert_array_equal(other.predict(X), self.model.predict(self.bits))

    @pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "u1", "u2", "u4", "u8", "?", "O"])
    def test_every_dtype_of_bits(self, dtype):
        self.same(self.bits.astype(dtype), "bits")

    @pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "O"])
    def test_every_dtype_of_signs(self, dtype):
        self.same((1 - 2 * self.bits).astype(dtype), "signs")

    @pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u1", "?"])
    def test_every_layout(self, dtype):
        X = self.bits.astype(dtype)
        wide = np.zeros((134, 11), dtype=dtype)
        wide[::2, 1::2] = X
        for layout in (np.asfortranarray(X), wide[::2, 1::2], X[::-1][::-1], X[:, ::-1].copy()[:, ::-1], X.tolist()):
            self.same(layout, "bits")

    def test_data_frames(self):
        pandas = pytest.importorskip("pandas")
        self.same(pandas.DataFrame(self.bits, columns=list("vwxyz")), "bits")
        self.same(pandas.DataFrame(self.bits.astype(bool), columns=list("vwxyz")), "bits")

    def test_read_only(self):
        X, y = self.bits.copy(), self.y.copy()
        X.flags.writeable = y.flags.writeable = False
        self.same(X, "bits")

    def test_bit_1_is_sign_minus_1(self):
        model = LowDegreeRegressor(1).fit([[0], [1]], [5.0, 1.0])
        assert_allclose([model.intercept_, *model.coefficients_], [3.0, 2.0])

    def test_real_columns_use_the_same_monomials(self):
        """domain="real" on signs is the same regression; on bits it is that of products of bits."""
        signs = 1 - 2 * self.bits
        real = LowDegreeRegressor(3, domain="real").fit(signs, self.y)
        assert (real.domain_, real.encoding_, real.solver_) == ("real", None, "dense")
        assert_allclose(real.coefficients_, self.model.coefficients_, atol=1e-9)
        products = LowDegreeRegressor(2, domain="real").fit(self.bits, self.y[:, None])
        expected = least_norm(monomials(self.bits, products.subsets_), self.y[:, None])
        assert_allclose(products.coefficients_, expected[0].T, atol=1e-9)
        assert_allclose(
            products.predict(self.bits), monomials(self.bits, products.subsets_) @ expected[0] + expected[1]
        )

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("alpha", [0.0, 0.8])
    def test_real_columns(self, alpha, fit_intercept):
        rng = np.random.default_rng(16)
        X, y, weights = rng.normal(size=(79, 4)) + 1, rng.normal(size=(79, 2)), rng.random(79)
        model = LowDegreeRegressor(3, alpha, fit_intercept=fit_intercept).fit(X, y, weights)
        features = monomials(X, model.subsets_)
        coef, intercept = least_norm(features, y, weights, alpha=alpha, fit_intercept=fit_intercept)
        assert_allclose(model.coefficients_, coef.T, atol=1e-8)
        assert_allclose(model.predict(X), features @ coef + intercept, atol=1e-8)


class TestClassifier:
    def test_two_classes_are_one_regression(self):
        rng = np.random.default_rng(17)
        X = rng.integers(0, 2, (111, 6))
        labels = np.where(X[:, 0] ^ X[:, 3] ^ (rng.random(111) < 0.1), "yes", "no")
        model = LowDegreeClassifier(2).fit(X, labels)
        regression = LowDegreeRegressor(2).fit(X, np.where(labels == "yes", 1.0, -1.0))
        assert_array_equal(model.coefficients_, regression.coefficients_)
        assert_array_equal(model.decision_function(X), regression.predict(X))
        assert_array_equal(model.predict(X), np.where(regression.predict(X) > 0, "yes", "no"))
        share = model.predict_proba(X)
        assert_allclose(share.sum(axis=1), 1)
        assert_allclose(share[:, 1], np.clip((1 + regression.predict(X)) / 2, 0, 1))
        assert model.score(X, labels) > 0.8

    def test_more_classes_are_one_indicator_each(self):
        rng = np.random.default_rng(18)
        X, labels = rng.integers(0, 2, (211, 5)), rng.integers(3, 7, 211)
        weights = rng.random(211)
        model = LowDegreeClassifier(2, 0.3).fit(X, labels, weights)
        regression = LowDegreeRegressor(2, 0.3).fit(X, np.eye(4)[labels - 3], weights)
        assert_array_equal(model.coefficients_, regression.coefficients_)
        assert_array_equal(model.predict(X), 3 + regression.predict(X).argmax(axis=1))
        assert len(model.spectrum_) == 4
        share = model.predict_proba(X)
        assert_allclose(share.sum(axis=1), 1)
        assert (share >= 0).all()
