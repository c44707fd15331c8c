import copy
import pickle

import numpy as np
import pytest

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.fourier.spectrum import spectrum_of
from sparsact.hypercube import masks_of, points


@pytest.fixture
def values():
    return np.random.default_rng(3).normal(size=32)


class TestOf:
    def test_a_table(self, values):
        before = values.copy()
        f = Spectrum.of(values)
        np.testing.assert_allclose(f.coefficients, walsh_hadamard(values))
        np.testing.assert_array_equal(values, before)

    def test_integers_and_lists(self):
        assert Spectrum.of([3, 1]) == Spectrum.of(np.array([3, 1], dtype=np.int32)) == Spectrum.of((3.0, 1.0))

    def test_a_spectrum_is_itself(self, values):
        f = Spectrum.of(values)
        assert Spectrum.of(f) is f

    def test_a_mapping(self):
        f = Spectrum.of({(2, 0): 1.5, (): -2}, n=3)
        assert (f[0, 2], f[()], f[1,]) == (1.5, -2.0, 0.0)

    def test_a_fitted_learner(self, values):
        class Learner:
            spectrum_ = Spectrum.of(values)

        assert Spectrum.of(Learner()) is Learner.spectrum_

    def test_an_unfitted_learner_says_so_itself(self):
        class Learner:
            @property
            def spectrum_(self):
                raise AttributeError("call `fit` first")

        with pytest.raises(AttributeError, match="call `fit` first"):
            Spectrum.of(Learner())

    def test_a_type_that_a_module_adds(self, values):
        class Table:
            pass

        @spectrum_of.register
        def spectrum_of_table(table: Table) -> Spectrum:
            return Spectrum.of(values)

        class Narrower(Table):
            pass

        assert Spectrum.of(Narrower(), n=5) == Spectrum.of(values)

    @pytest.mark.parametrize(
        ("thing", "n", "error", "message"),
        [
            ([1, 2, 3], None, ValueError, r"length 2\*\*n; got shape \(3,\)"),
            ([], None, ValueError, r"length 2\*\*n; got shape \(0,\)"),
            ([[1, 2], [3, 4]], None, ValueError, r"one axis .* got shape \(2, 2\)"),
            ([1, 2, np.nan, 4], None, ValueError, r"finite; the value at \(2,\) is nan"),
            ([1, 1j], None, ValueError, "must be real"),
            ([1, 2, 3, 4], 3, ValueError, "n = 3, but the function has 2 coordinates"),
            ({(0,): 1.0}, None, ValueError, "pass `n`"),
            ({(5,): 1.0}, 5, ValueError, "names coordinate 5; there are 5"),
            ({(1, 1): 1.0}, 5, ValueError, "names a coordinate twice"),
            ({(0, 1): 1.0, (1, 0): 2.0}, 5, ValueError, "names a subset twice"),
            ({3: 1.0}, 5, TypeError, r"a subset is a tuple of coordinates; got 3: .* \(i,\)"),
            ({(0.5,): 1.0}, 5, TypeError, "integer"),
            ({(0,): np.inf}, 5, ValueError, "coefficients must be finite"),
            (np.sin, None, TypeError, "the spectrum of a ufunc is not known"),
            ("index.sparsact", None, TypeError, r"sparsact\.load\(path\)"),
        ],
    )
    def test_refusals(self, thing, n, error, message):
        with pytest.raises(error, match=message):
            Spectrum.of(thing, n)


class TestFromCoefficients:
    def test_a_table(self, values):
        f = Spectrum.from_coefficients(values)
        assert f[1, 3] == values[2 + 8]
        values[:] = 0  # the spectrum holds its own copy
        assert f[1, 3] != 0

    def test_masks_are_as_good_as_tuples(self):
        subsets, coefficients = [(69,), (), (3, 64)], np.array([1.0, 2.0, 3.0])
        masks = masks_of(subsets, 70)
        f = Spectrum.from_coefficients(coefficients, masks, n=70)
        assert f == Spectrum.from_coefficients(coefficients, subsets, n=70)
        assert f.subsets == [(), (69,), (3, 64)]
        assert masks.flags.writeable
        assert coefficients.flags.writeable

    def test_no_subsets_is_zero(self):
        zero = Spectrum.from_coefficients([], [], n=90)
        assert zero.norm() == zero.degree() == 0
        assert zero.top(4) == []
        assert zero == Spectrum.of({(): 0.0}, n=90)
        assert repr(zero) == "<Spectrum on 90 coordinates, degree 0: 0>"
        np.testing.assert_array_equal(zero(np.ones((3, 90))), np.zeros(3))

    @pytest.mark.parametrize(
        ("coefficients", "subsets", "n", "message"),
        [
            ([1.0, 2.0], None, 5, "5 coordinates have 32 coefficients; got 2"),
            ([1.0, 2.0], [(0,), (1,)], None, "pass `n`"),
            ([1.0, 2.0], [(0,)], 5, "1 subsets need as many coefficients"),
            ([1.0], np.zeros((1, 2), np.uint64), 5, r"shape \(N, 1\); got \(1, 2\)"),
            ([1.0], np.array([[32]], np.uint64), 5, r"outside range\(5\)"),
        ],
    )
    def test_refusals(self, coefficients, subsets, n, message):
        with pytest.raises(ValueError, match=message):
            Spectrum.from_coefficients(coefficients, subsets, n)


class TestValue:
    def test_frozen(self, values):
        f = Spectrum.of(values)
        for array in (f.coefficients, f.values(), f.to_sparse().coefficients, f.to_sparse().masks):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        with pytest.raises(AttributeError):
            f.storage = None

    def test_equality_is_of_functions(self, values):
        f = Spectrum.of(values)
        assert f == f.to_sparse() == Spectrum.of(dict(f.items()), n=5)
        assert f != 2 * f
        assert f != Spectrum.of(values[:16])
        assert f != "f"
        assert f - f == Spectrum.of({}, n=5)

    @pytest.mark.parametrize("twin", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
    def test_copies_are_equal(self, values, twin):
        f = Spectrum.of(values)
        assert twin(f) == f
        assert twin(f.to_sparse()) == f

    def test_sums_of_different_cubes_are_refused(self, values):
        with pytest.raises(ValueError, match="5 and 4 coordinates"):
            Spectrum.of(values) + Spectrum.of(values[:16])

    def test_only_functions_add_and_only_numbers_multiply(self, values):
        with pytest.raises(TypeError):
            Spectrum.of(values) + 1.0
        with pytest.raises(TypeError):
            Spectrum.of(values) * Spectrum.of(values)

    def test_iteration_is_refused(self, values):
        with pytest.raises(TypeError, match="tuple of coordinates"):
            list(Spectrum.of(values))

    @pytest.mark.parametrize(
        ("coefficients", "formula"),
        [
            ({(0,): -1.0}, "-1 x0"),
            ({(): 0.25, (1, 3): -2.0}, "-2 x1 x3 + 0.25"),
            ({(i,): 1.0 + i for i in range(5)}, "5 x4 + 4 x3 + 3 x2 + 2 x1 + ..."),
        ],
    )
    def test_repr(self, coefficients, formula):
        assert repr(Spectrum.of(coefficients, n=6)).endswith(f": {formula}>")


@pytest.mark.parametrize("store", [Spectrum.to_dense, Spectrum.to_sparse])
class TestPoints:
    def test_any_dtype(self, values, store):
        f, X = store(Spectrum.of(values)), points(5)[[3, 30, 7]]
        before = X.copy()
        for dtype in (np.int8, np.int64, np.float32):
            np.testing.assert_allclose(f(X.astype(dtype)), values[[3, 30, 7]], atol=1e-12)
        np.testing.assert_allclose(f(np.asfortranarray(X)), values[[3, 30, 7]], atol=1e-12)
        np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.ones((3, 4)), r"5 columns; got shape \(3, 4\)"),
            (np.ones(5), r"5 columns; got shape \(5,\)"),
            ([[1, 1, -1, 1, 1], [1, 1, 1, 0, 1]], r"row 1, column 3 holds 0. For bits 0/1 pass"),
            ([[1, 1, -1, np.nan, 1]], "row 0, column 3 holds nan"),
            (np.ones((2, 5), dtype=bool), "holds bits"),
        ],
    )
    def test_refusals(self, values, store, X, message):
        with pytest.raises(ValueError, match=message):
            store(Spectrum.of(values))(X)

    @pytest.mark.parametrize("rho", [1.01, -2, np.nan])
    def test_noise_is_a_probability(self, values, store, rho):
        f = store(Spectrum.of(values))
        for method in (f.noise, f.noise_stability, f.noise_sensitivity):
            with pytest.raises(ValueError, match=r"must lie in \[-1, 1\]"):
                method(rho)

    @pytest.mark.parametrize(
        ("signs", "message"),
        [({5: 1}, "cannot fix coordinate 5"), ({-1: 1}, "cannot fix"), ({2: 0}, "to [+]1 or -1; got 0")],
    )
    def test_restrictions_are_checked(self, values, store, signs, message):
        with pytest.raises(ValueError, match=message):
            store(Spectrum.of(values)).restrict(signs)

    def test_coefficients_are_checked(self, values, store):
        with pytest.raises(ValueError, match="names coordinate 9"):
            store(Spectrum.of(values)).coefficient((0, 9))


def test_a_table_may_be_too_large():
    wide = Spectrum.of({(0, 26): 1.0}, n=27)
    for method in (wide.to_dense, wide.values):
        with pytest.raises(ValueError, match=r"2\*\*27 numbers is too large"):
            method()


def test_the_tail_is_above_a_whole_degree():
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        Spectrum.of([1, 2]).tail(0.5)
