"""Awkward arrays through the public doors, on every instruction set; `make sanitize` watches each access."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from grids import grid
from instruction_sets import BACKENDS, name_of

import sparsact as sa
from sparsact import kernels
from sparsact.fourier import Spectrum

rng = np.random.default_rng(0)
BITS, Y = rng.integers(0, 2, (67, 5)), rng.normal(size=(67, 2))
W = np.where(rng.random((9, 5)) < 0.6, rng.integers(-3, 4, (9, 5)), 0).astype(float)


REFERENCE = pytest.param(*BACKENDS[:1], marks=[pytest.mark.grid] * (len(BACKENDS) > 1))  # tens of times as slow


@pytest.fixture(params=[REFERENCE, *BACKENDS[1:]], ids=name_of)
def backend(request):
    with kernels.using(*request.param):
        yield


def unaligned(array):
    """The same numbers, off by a byte from where they should stand."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)
    twin = raw[1:].view(array.dtype).reshape(array.shape)
    twin[...] = array
    assert not twin.flags.aligned or array.itemsize == 1
    return twin


def field(array):
    """The same numbers as a field of records of an odd number of bytes."""
    records = np.zeros(len(array), dtype=[("flag", "i1"), ("x", array.dtype, array.shape[1:])])
    records["x"] = array
    return records["x"]


LAYOUTS = {
    "plain": np.asarray,
    "by columns": np.asfortranarray,
    "every other": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "unaligned": unaligned,
    "a field of records": field,
    "far apart": lambda X: np.lib.stride_tricks.as_strided(
        np.pad(X, ((0, 0), (0, 4099)))[:, :5], X.shape, ((5 + 4099) * X.itemsize, X.itemsize)
    ),
    "read only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
}
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64")


@cache
def learned():
    """Coefficients and predictions of the plain table: every backend gives these bits."""
    model = sa.LowDegreeRegressor(2).fit(BITS, Y)
    return model.coefficients_, model.predict(BITS)


@grid(layout=LAYOUTS, dtype=DTYPES)
def test_any_layout_is_learned_and_predicted_alike(backend, layout, dtype):
    X = LAYOUTS[layout](BITS.astype(dtype))
    model = sa.LowDegreeRegressor(2).fit(X, Y)
    np.testing.assert_array_equal(model.coefficients_, learned()[0])
    np.testing.assert_array_equal(model.predict(X), learned()[1])
    net = sa.SparselyActivatedNetwork(np.ones(9), sp.csr_array(W), np.zeros(9))
    signs = LAYOUTS[layout]((1.0 - 2.0 * BITS).astype(dtype if dtype[0] in "if" else "int8"))
    np.testing.assert_array_equal(net.n_active(signs), (signs.astype(float) @ W.T > 0).sum(axis=1))


@pytest.mark.grid
@grid(layout=LAYOUTS)
def test_any_layout_of_numbers_is_hashed_and_transformed_alike(backend, layout):
    reals = rng.normal(size=(67, 5))
    X, weights = LAYOUTS[layout](reals), LAYOUTS[layout](rng.random((67, 5)))[:, 0]
    fixed = {"bucket_width": 0.9, "n_hashes": 2, "alpha": 0.1, "degree": 1, "directions": "principal", "n_stages": 1}
    hashed, plain = (sa.LSHRegressor(2, **fixed, random_state=0) for _ in range(2))
    np.testing.assert_array_equal(hashed.fit(X, Y, weights).predict(X), plain.fit(reals, Y, weights).predict(reals))
    routed = sa.DSMRegressor(8, 2, random_state=0).fit(X, Y)
    np.testing.assert_allclose(routed.predict(X), routed.predict(reals), rtol=1e-12)
    values = LAYOUTS[layout](rng.normal(size=(64, 5)))[:, 1]
    spectrum = Spectrum.of(values)
    np.testing.assert_array_equal(spectrum.coefficients, Spectrum.of(values.copy()).coefficients)
    signs = rng.choice([-1.0, 1.0], (9, 6))
    np.testing.assert_array_equal(spectrum(field(signs)), spectrum(signs))


@grid(m=[0, 1, 63, 64, 65])
def test_a_stride_of_zero_and_few_rows(backend, m):
    net = sa.SparselyActivatedNetwork(np.ones(9), sp.csr_array(W), np.zeros(9))
    X = np.broadcast_to(np.array([1.0, -1.0, 1.0, 1.0, -1.0]), (m, 5))
    assert net(X).shape == net.n_active(X).shape == (m,)
    assert len(set(net(X).tolist())) == min(m, 1)


@grid(form=[np.asarray, sp.csr_array], s=[0, 1])
def test_networks_of_no_unit_one_unit_and_no_weight(backend, form, s):
    for n in (1, 2, 12):
        net = sa.SparselyActivatedNetwork(np.ones(s), form(np.zeros((s, n))), -np.ones(s))
        signs = np.ones((3, n))
        np.testing.assert_array_equal(net(signs), s)
        assert net.certify().max_active == s
        assert Spectrum.of(net).influences().sum() == 0
        assert net(np.full((1, n), 1e308)).tolist() == [s]


def test_numbers_at_the_ends_of_the_range(backend):
    X = np.array([[1e300, -1e300], [5e-324, -5e-324], [0.0, -0.0], [3.0, 4.0]] * 17)
    y = np.array([1e300, 1e-300, -1e300, 0.0] * 17)
    for learner in (
        sa.LSHRegressor(2, random_state=0),
        sa.LSHRegressor(2, family="hyperplane", random_state=0),
        sa.DSMRegressor(8, 2, random_state=0),
        sa.LowDegreeRegressor(2, domain="real"),
    ):
        for inputs in (X, X / 1e300):
            try:
                with np.errstate(all="ignore"):
                    learner.fit(inputs, y).predict(inputs[::-1])
            except ValueError:
                continue


@pytest.mark.parametrize("index", [2**62, -(2**62), 9, -2])
def test_indices_beyond_the_rows_do_not_reach_a_kernel(backend, index):
    torch = pytest.importorskip("torch", reason="layers need torch")
    from sparsact.layers.gather import gather_dot, gather_sum, scatter_outer

    x, weight, a = torch.ones(3, 4), torch.ones(9, 4), torch.ones(3, 2)
    indices = torch.zeros(3, 2, dtype=torch.int64)
    indices[1, 1] = index
    for call in (
        lambda: gather_dot(x, weight, indices),
        lambda: gather_sum(a, weight, indices),
        lambda: scatter_outer(a, x, indices, 9),
    ):
        with pytest.raises((ValueError, IndexError), match="9"):
            call()
