"""SparselyActivatedNetwork: its values, which units are on, of what it consists, its file and its torch twin."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from grids import grid
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sparsact as sa
from sparsact.exact_sign import exact_signs, is_exact
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork

FORMS = {"dense": np.asarray, "csr": sp.csr_array, "coo": sp.coo_array, "matrix": sp.csr_matrix}


def random_network(rng, s=7, n=5, integers=True, form=np.asarray):
    W = rng.integers(-3, 4, size=(s, n)) if integers else rng.normal(size=(s, n))
    b = rng.integers(-3, 6, size=s) if integers else rng.normal(size=s)
    return SparselyActivatedNetwork(rng.normal(size=s), form(W), b)


def weights_of(net):
    return net.W.toarray() if sp.issparse(net.W) else net.W


def by_definition(net, X):
    """Values and active units, unit by unit, in rational arithmetic."""
    W, active, values = weights_of(net), [], []
    for x in X:
        z = [
            sum(Fraction(float(w)) * Fraction(float(v)) for w, v in zip(row, x, strict=True)) - Fraction(float(b))
            for row, b in zip(W, net.b, strict=True)
        ]
        active.append([value > 0 for value in z])
        values.append(float(sum(Fraction(float(u)) * max(value, 0) for u, value in zip(net.u, z, strict=True))))
    return np.array(values), np.array(active)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("integers", [True, False])
def test_values_and_active_units_are_those_of_the_definition(form, integers):
    net = random_network(np.random.default_rng(0), integers=integers, form=form)
    X = points(5)
    before = X.copy()
    values, active = by_definition(net, X)
    np.testing.assert_allclose(net(X), values, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(net.active(X), active)
    np.testing.assert_array_equal(net.n_active(X), active.sum(axis=1))
    np.testing.assert_array_equal(X, before)


def test_real_inputs_are_legal():
    rng = np.random.default_rng(1)
    net = random_network(rng, integers=False)
    X = rng.normal(size=(13, 5))
    values, active = by_definition(net, X)
    np.testing.assert_allclose(net(X), values, rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(net.active(X), active)


DYADIC = st.integers(-(2**20), 2**20).map(lambda i: i / 2**10)
REALS = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(st.data(), st.sampled_from([DYADIC, REALS, st.sampled_from([0.1, 0.2, 0.3, 0.7, -0.1, 1e16, 1.0])]))
def test_signs_are_exact(data, entries):
    """Also where rounding alone would decide: sums of tenths, and of a huge and a small number."""
    n, s, m = 4, 3, 6
    W = data.draw(arrays(np.float64, (s, n), elements=entries))
    b = data.draw(arrays(np.float64, s, elements=entries))
    X = data.draw(arrays(np.float64, (m, n), elements=st.sampled_from([-1.0, 1.0]) | entries))
    _, active = by_definition(SparselyActivatedNetwork(np.ones(s), W, b), X)
    for form in (np.asarray, sp.csr_array):
        np.testing.assert_array_equal(exact_signs(X, form(W), b) > 0, active)
        flipped = exact_signs(-X, form(W), -b)
        np.testing.assert_array_equal(flipped < 0, active)


def test_a_tie_is_off():
    net = SparselyActivatedNetwork([1.0, 1.0], [[0.1, 0.2, -0.3], [1.0, 1.0, 1.0]], [0.0, 3.0])
    exact = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert exact > 0  # the numbers stored are not tenths
    np.testing.assert_array_equal(net.active([[1, 1, 1]]), [[True, False]])
    np.testing.assert_array_equal(net.has_exact_weights(), [False, True])


@given(arrays(np.float64, 5, elements=DYADIC | REALS))
def test_exact_units_are_summed_without_rounding(weights):
    """Whatever the order of the sum."""
    W, b = weights[None, :4], weights[4:]
    if is_exact(W, b)[0]:
        for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
            for signs in points(4):
                exact = sum(Fraction(w) * int(x) for w, x in zip(W[0], signs, strict=True)) - Fraction(b[0])
                assert Fraction(float(sum(W[0, i] * signs[i] for i in order) - b[0])) == exact


def test_a_wide_range_of_magnitudes_is_not_exact():
    W = np.array([[2.0**52, 0.5], [2.0**51, 0.5], [0, 0]])
    np.testing.assert_array_equal(is_exact(W, np.zeros(3)), [False, True, True])
    np.testing.assert_array_equal(is_exact(sp.csr_array(W), np.zeros(3)), [False, True, True])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_linear_piece_is_the_network_where_the_same_units_are_on(form):
    net = random_network(np.random.default_rng(2), s=9, n=6, integers=False, form=form)
    X = points(6)
    active = net.active(X)
    for x, on in zip(X, active, strict=True):
        piece = net.linear_piece(x)
        assert piece.units == tuple(np.flatnonzero(on))
        alike = X[(active == on).all(axis=1)]
        np.testing.assert_allclose(piece(alike), net(alike), atol=1e-12)
        # The norms that the proof of Lemma 9 asks of a piece.
        W, B = net.scale()
        assert np.linalg.norm(piece.weights) <= len(piece.units) * W + 1e-12
        assert abs(piece.bias) <= len(piece.units) * B + 1e-12


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_scale_is_that_of_definition_2(form):
    net = SparselyActivatedNetwork(
        [1.0, -3.0, 0.5], form(np.array([[3, 4, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])), [1, 0, 2]
    )
    assert net.scale() == (15.0, 6.0)
    assert net.scale().W == 15.0
    assert (net.s, net.n) == (3, 4)


def test_dead_and_constant_units_are_those_that_brute_force_finds():
    rng = np.random.default_rng(3)
    found = np.zeros(3, dtype=int)
    for _ in range(40):
        net = random_network(rng, s=11, n=3, form=sp.csr_array)
        active = net.active(points(3))
        np.testing.assert_array_equal(net.dead_units(), ~active.any(axis=0))
        np.testing.assert_array_equal(net.constant_units(), active.all(axis=0))
        alive = net.without_dead_units()
        np.testing.assert_allclose(alive(points(3)), net(points(3)), atol=1e-12)
        assert not alive.dead_units().any()
        found += [net.dead_units().sum(), net.constant_units().sum(), alive.s]
    assert (found > 0).all()


def test_a_network_without_units_is_zero():
    net = SparselyActivatedNetwork([], np.zeros((0, 4)), [])
    np.testing.assert_array_equal(net(points(4)), np.zeros(16))
    np.testing.assert_array_equal(net.n_active(points(4)), np.zeros(16))
    assert net.active(points(4)).shape == (16, 0)
    assert net.scale() == (0.0, 0.0)


def test_no_rows_give_no_values():
    net = random_network(np.random.default_rng(4))
    empty = np.zeros((0, 5))
    assert net(empty).shape == net.n_active(empty).shape == (0,)
    assert net.active(empty).shape == (0, 7)


def test_many_rows_are_worked_through_in_blocks():
    net = random_network(np.random.default_rng(5), s=300, n=12, form=sp.csr_array)
    X = points(12)
    np.testing.assert_array_equal(net.n_active(X), (net.preactivations(X) > 0).sum(axis=1))
    np.testing.assert_allclose(net(X), np.maximum(net.preactivations(X), 0) @ net.u, atol=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_file_gives_the_network_back_to_the_bit(form, tmp_path):
    net = random_network(np.random.default_rng(6), integers=False, form=form)
    net.save(tmp_path / "net.sparsact")
    back = sa.load(tmp_path / "net.sparsact")
    assert type(back.W) is type(net.W)
    for one, other in ((back.u, net.u), (weights_of(back), weights_of(net)), (back.b, net.b)):
        np.testing.assert_array_equal(one, other)


def test_a_file_with_weights_that_do_not_fit_is_refused(tmp_path):
    path = tmp_path / "net.sparsact"
    sparse = {"W.data": np.ones(2), "W.indices": np.array([0, 9]), "W.indptr": np.array([0, 1, 2])}
    for W in ({"W": np.ones((2, 3))}, sparse):
        arrays_ = {"u": np.ones(2), "b": np.ones(2), **W}
        sa.saving.modelfile.write(path, "SparselyActivatedNetwork", {"shape": [2, 4]}, arrays_)
        with pytest.raises(sa.saving.ModelFileError, match="lacks something"):
            sa.load(path)


def test_torch_computes_the_same():
    import torch

    rng = np.random.default_rng(7)
    for form in (np.asarray, sp.csr_array):
        net = random_network(rng, integers=False, form=form)
        X = rng.normal(size=(17, 5))
        with torch.no_grad():
            values = net.to_torch()(torch.tensor(X)).numpy()
        np.testing.assert_allclose(values, net(X), rtol=1e-12, atol=1e-12)


def test_a_network_is_a_value():
    u, W, b = np.ones(2), np.ones((2, 3)), np.zeros(2)
    net = SparselyActivatedNetwork(u, W, b)
    u[0], W[0, 0], b[0] = 7, 7, 7
    assert net.u[0] == net.W[0, 0] == 1
    assert net.b[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        net.W[0, 0] = 2
    sparse = SparselyActivatedNetwork(u, sp.csr_array(W), b)
    with pytest.raises(ValueError, match="read-only"):
        sparse.W.data[0] = 2
    with pytest.raises(AttributeError):
        net.u = u


@pytest.mark.parametrize(
    ("u", "W", "b", "complaint"),
    [
        ([1], [[1, 2]], [1, 2], r"agree on s; got shapes \(1,\), \(1, 2\) and \(2,\)"),
        ([1, 2], [[1, 2]], [1], "agree on s"),
        ([1], [1, 2], [1], "agree on s"),
        ([[1]], [[1, 2]], [1], "agree on s"),
        ([1], [[1, np.nan]], [1], r"`W` must be finite; the value at \(0, 1\) is nan"),
        ([np.inf], [[1, 2]], [1], "`u` must be finite"),
        ([1], [[1, 2]], [np.nan], "`b` must be finite"),
        ([1], sp.csr_array([[1, np.inf]]), [1], "weights of `W` must be finite"),
        ([1], np.zeros((1, 0)), [1], "at least one input"),
        ([1j], [[1, 2]], [1], "must be real"),
    ],
)
def test_bad_parts_are_refused(u, W, b, complaint):
    with pytest.raises(ValueError, match=complaint):
        SparselyActivatedNetwork(u, W, b)


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        (np.ones((2, 4)), "5 columns; got shape"),
        (np.ones(5), "one row a point"),
        (np.full((2, 5), np.nan), "must be finite"),
        (np.ones((2, 5), dtype=bool), "bits_to_signs"),
    ],
)
def test_bad_points_are_refused(X, complaint):
    net = random_network(np.random.default_rng(8))
    for method in (net, net.active, net.n_active, net.preactivations):
        with pytest.raises(ValueError, match=complaint):
            method(X)


def test_its_name_tells_its_size():
    assert repr(SparselyActivatedNetwork([2.0], sp.csr_array([[3.0, 0, 4.0]]), [1.0])) == (
        "<SparselyActivatedNetwork of 1 units on 3 inputs (sparse, 2 weights), W = 10, B = 2>"
    )


HUGE = 3e307


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("tenth", [0.1, 1.0])
def test_sums_that_overflow_on_the_way_are_decided_exactly(form, tenth):
    """Real inputs can carry the pre-activations of finite weights beyond every float64."""
    net = SparselyActivatedNetwork([1.0, 1.0], form(np.array([[HUGE, tenth * HUGE, HUGE, HUGE], [0, 0, 0, 0]])), [0, 1])
    X = np.array([[1, 1, -1, -1], [1, 1, -1, 1], [8, 1, -8, 0], [8, 8, 8, 8], [-8, -8, -8, -8], [8, -8, -8, 8]])
    W, b = weights_of(net), net.b
    z = [
        [sum(Fraction(p) * int(q) for p, q in zip((*w, -t), (*x, 1), strict=True)) for w, t in zip(W, b, strict=True)]
        for x in X
    ]
    active = np.array(z) > 0
    np.testing.assert_array_equal(net.active(X), active)
    for dtype in (np.int8, np.float64):
        np.testing.assert_array_equal(net.n_active(X.astype(dtype)), active.sum(axis=1))
    assert active.any()


def test_sums_that_overflow_on_the_cube_are_refused():
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(ValueError, match="unit 1 overflow: divide row 1"):
            SparselyActivatedNetwork([1, 1], form(np.array([[1, 1], [1e308, 1e308]])), [0, 0])
    with pytest.raises(ValueError, match="unit 0 overflow"):
        SparselyActivatedNetwork([1], [[1e308]], [-1e308])
    assert not is_exact(np.full((1, 4), 1e308), np.zeros(1)).any()


@grid(form=[np.asarray, sp.csr_array], one=[1e-300, 1e-200, 1.0, 1e200, 1e307])
def test_the_scale_of_very_small_and_very_large_weights(form, one):
    net = SparselyActivatedNetwork([1.0], form(one * np.array([[3.0, 4.0]])), [one])
    assert net.scale() == pytest.approx((5 * one, one), rel=1e-14)


def test_units_without_weights_are_exact_at_real_points(monkeypatch):
    """A fraction for each of their zeros would be slow and decide nothing."""
    monkeypatch.setattr("sparsact.exact_sign._sign", None)
    W = np.zeros((3, 50))
    X = np.random.default_rng(9).normal(size=(7, 50))
    for form in (np.asarray, sp.csr_array):
        net = SparselyActivatedNetwork(np.ones(3), form(W), [-1.0, 0.0, 1.0])
        np.testing.assert_array_equal(net.active(X), np.tile([True, False, False], (7, 1)))


def test_torch_draws_nothing():
    import torch

    state = torch.get_rng_state()
    random_network(np.random.default_rng(10)).to_torch()
    assert torch.equal(torch.get_rng_state(), state)


def test_complex_sparse_weights_are_refused():
    with pytest.raises(ValueError, match="`W` must hold real numbers; got a sparse matrix of complex128"):
        SparselyActivatedNetwork([1], sp.csr_array([[1j, 1]]), [0])


@pytest.mark.parametrize("last", [0, -5, -(2**31)])
def test_rows_of_a_file_that_end_before_they_begin(tmp_path, last):
    """A difference of 32-bit numbers would overflow to one that looks right, and SciPy would read beyond its arrays."""
    sparse = {
        "W.data": np.ones(3),
        "W.indices": np.array([0, 1, 0], dtype=np.int32),
        "W.indptr": np.array([0, 2, 3, last], dtype=np.int32),
    }
    path = tmp_path / "net.sparsact"
    sa.saving.modelfile.write(
        path, "SparselyActivatedNetwork", {"shape": [3, 2]}, {"u": np.ones(3), "b": np.ones(3)} | sparse
    )
    with pytest.raises(sa.saving.ModelFileError):
        sa.load(path)


@pytest.mark.parametrize(
    "wrap", [np.array, lambda W: sp.csr_array(np.array(W)), list, lambda W: np.array(W, dtype=object)]
)
def test_integers_that_floats_cannot_hold_are_refused(wrap):
    """As floats, the weight would equal the threshold, and a certificate would prove that the unit is never on."""
    with pytest.raises(ValueError, match="9007199254740993 would become 9007199254740992"):
        SparselyActivatedNetwork([1.0], wrap([[2**53 + 1]]), [2**53])
    with pytest.raises(ValueError, match="`b` must hold numbers that float64 represents"):
        SparselyActivatedNetwork([1.0], [[2**53]], [-(2**53) - 1])
    held = SparselyActivatedNetwork([1.0], wrap([[2**53 + 2]]), [2**53])
    assert held.certify().max_active == 1
