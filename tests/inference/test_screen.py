from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from hostile_numbers import KINDS, LARGEST, TINY, hostile  # noqa: E402

from sparsact import kernels  # noqa: E402
from sparsact.inference.certified_screen import Screen  # noqa: E402
from sparsact.inference.weights import FloatWeights  # noqa: E402

properties = settings(suppress_health_check=[HealthCheck.too_slow])


def exact(weight, bias, threshold, x):
    """<w_j, x> + b_j - t_j as fractions, (m, s)."""
    W, X = ([[Fraction(v) for v in row] for row in table.double().tolist()] for table in (weight, x))
    shift = [
        Fraction(b) - Fraction(t) for b, t in zip(bias.double().tolist(), threshold.double().tolist(), strict=True)
    ]
    return [
        [sum((w * v for w, v in zip(row, point, strict=True)), b) for row, b in zip(W, shift, strict=True)]
        for point in X
    ]


def assert_true(made, weight, bias, threshold, x):
    """No unit that is on is proved off; every bound holds."""
    bounds, survivors = made.upper_bounds(x), made.survivors(x)
    assert survivors.shape == (len(x), len(weight))
    assert survivors.dtype == torch.bool
    for row, upper, survive in zip(exact(weight, bias, threshold, x), bounds.tolist(), survivors.tolist(), strict=True):
        for value, bound, kept in zip(row, upper, survive, strict=True):
            assert np.isinf(bound) or value <= Fraction(bound)
            assert kept == (not bound <= 0)


@properties
@given(
    kinds=st.tuples(*[st.sampled_from(KINDS)] * 4),
    d=st.one_of(st.integers(1, 9), st.integers(60, 70)),
    s=st.integers(1, 7),
    m=st.integers(0, 3),
    dtypes=st.tuples(*[st.sampled_from(["float32", "bfloat16", "float16"])] * 2),
    calibrated=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_unit_that_is_on_is_ever_proved_off(kinds, d, s, m, dtypes, calibrated, seed):
    rng = np.random.default_rng(seed)
    weight, x = hostile(rng, (s, d), kinds[0]), hostile(rng, (m, d), kinds[1])
    weight, x = (
        (values.clamp(-6e4, 6e4) if dtype == "float16" else values.clamp(-3.3e38, 3.3e38)).to(getattr(torch, dtype))
        for values, dtype in zip((weight, x), dtypes, strict=True)
    )
    bias, threshold = hostile(rng, s, kinds[2]), hostile(rng, s, kinds[3])
    sample = torch.cat([x.float(), hostile(rng, (5, d), kinds[1])]) if calibrated else None
    before = [values.clone() for values in (weight, x, bias, threshold)]
    made = Screen.of(weight, bias, threshold, sample)
    assert_true(made, weight, bias, threshold, x)
    for values, kept in zip((weight, x, bias, threshold), before, strict=True):
        assert torch.equal(values, kept)
    with kernels.using("reference"):
        plain = pickle.loads(pickle.dumps(made))
        assert torch.equal(plain.survivors(x), made.survivors(x))
        assert torch.equal(plain.upper_bounds(x), made.upper_bounds(x))


@properties
@given(d=st.integers(1, 70), seed=st.integers(0, 2**32 - 1), calibrated=st.booleans())
def test_a_bias_at_the_edge_is_decided_as_real_numbers_decide_it(d, seed, calibrated):
    """Biases one step about -<w, x>, in float64: those below may be proved off, those above never."""
    rng = np.random.default_rng(seed)
    row, x = rng.integers(-128, 129, size=d) / 128, (rng.integers(-300, 301, size=(1, d)) / 64).astype(np.float32)
    x = torch.from_numpy(x)
    weight = torch.from_numpy(np.tile(row.astype(np.float32), (3, 1)))
    edge = -float((weight.double() @ x[0].double())[0])
    bias = torch.tensor([np.nextafter(edge, -np.inf), edge, np.nextafter(edge, np.inf)], dtype=torch.float64)
    made = Screen.of(weight, bias, sample=x if calibrated else None)
    assert_true(made, weight, bias, torch.zeros(3), x)
    assert made.survivors(x)[0, 2]


def test_rows_of_zeros_are_decided_exactly():
    made = Screen.of(torch.zeros(3, 5), torch.tensor([-TINY, 0.0, TINY]))
    x = torch.full((2, 5), LARGEST)
    assert made.survivors(x).tolist() == [[False, False, True]] * 2
    made = Screen.of(torch.randn(3, 5, generator=torch.Generator().manual_seed(1)), torch.tensor([-TINY, 0.0, TINY]))
    assert made.survivors(torch.zeros(1, 5)).tolist() == [[False, False, True]]


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_never_proved_off(strange):
    generator = torch.Generator().manual_seed(2)
    weight, x = torch.randn(7, 11, generator=generator), torch.randn(5, 11, generator=generator)
    bias = torch.full((7,), -1e6)
    weight[3, 4], x[2, 9] = strange, strange
    for sample in (None, x):
        survivors = Screen.of(weight, bias, sample=sample).survivors(x)
        expected = torch.zeros(5, 7, dtype=torch.bool)
        expected[2], expected[:, 3] = True, True
        assert torch.equal(survivors, expected)
    bias[5] = strange
    kept = Screen.of(weight, bias).survivors(x)[:, 5]
    assert kept[2]
    assert kept.all() or strange == float("-inf")


def test_a_threshold_that_is_infinite():
    """A unit that is never zero is never proved off; one that always is, is."""
    made = Screen.of(torch.ones(2, 3), None, torch.tensor([-torch.inf, torch.inf]))
    assert made.survivors(torch.randn(4, 3, generator=torch.Generator().manual_seed(3)))[:, 0].all()


def realistic(seed, n=192, d=512, s=777):
    """Heavy-tailed weights, outlying coordinates and a common mean: (weight, inputs), of 3 % active at -t."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_t(4, size=(s, d))
    x = rng.normal(size=(n, d)) + rng.normal(size=d)
    x[:, rng.permutation(d)[:4]] *= 30
    return torch.from_numpy(weight).float(), torch.from_numpy(x).float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_most_units_that_are_off_are_proved_off(dtype):
    """Gaussian weights and inputs, 3 % active: about twice as many survive; 7 % is 20 standard errors off."""
    generator = torch.Generator().manual_seed(4)
    weight, x = (torch.randn(rows, 515, generator=generator).to(dtype) for rows in (1023, 61))
    z = x.double() @ weight.double().T
    edge = z.flatten().quantile(0.97)
    made = Screen.of(weight, -edge.repeat(1023))
    survivors = made.survivors(x)
    assert survivors[z > edge].all()
    assert survivors.double().mean() < 0.07
    assert 1023 * 515 < made.nbytes < 1.2 * 1023 * 515


def test_a_sample_pays_where_inputs_have_something_in_common():
    """Units that survive and are off: a third of those without the sample at most; inputs are others than its own."""
    weight, x = realistic(5)
    sample, x = x[:128], x[128:]
    z = x.double() @ weight.double().T
    edge = z.flatten().quantile(0.97)
    bias = -edge.repeat(len(weight))
    with_sample, without = (
        Screen.of(weight, bias, sample=chosen).survivors(x) & (z <= edge) for chosen in (sample, None)
    )
    assert 0 < 3 * with_sample.sum() < without.sum()


def test_copies_and_pickles_answer_alike():
    weight, x = realistic(6, s=23)
    made = Screen.of(weight, sample=x)
    expected = made.upper_bounds(x)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(other.upper_bounds(x), expected)


def test_what_a_screen_cannot_take():
    with pytest.raises(TypeError, match="float64"):
        Screen.of(torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"d <= 65536; got \(2, 65537\)"):
        Screen.of(torch.ones(2, 65537))
    with pytest.raises(ValueError, match=r"`bias` must have shape \(2,\)"):
        Screen.of(torch.ones(2, 3), torch.ones(3))
    with pytest.raises(ValueError, match="`sample` must hold finite inputs of 3 numbers"):
        Screen.of(torch.ones(2, 3), sample=torch.full((4, 3), torch.nan))
    made = Screen.of(torch.ones(2, 3))
    for x in (torch.ones(3), torch.ones(1, 4), torch.ones(1, 3, dtype=torch.float64)):
        with pytest.raises(ValueError, match=r"inputs must have shape \(m, 3\)"):
            made.survivors(x)


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_product_by_the_screen_is_that_by_its_mask(dtype, backend):
    if backend == "native" and kernels.dispatch.native is None:
        pytest.skip("built without a compiler")
    weight, bias = torch.randn(53, 19).to(dtype), torch.randn(53).to(dtype) - 3
    x = torch.randn(4, 19).to(dtype)
    with kernels.using(backend):
        screen, product = Screen.of(weight, bias), FloatWeights.of(weight, bias)
        mask = screen.active(x)
        assert 0 < mask.sum() < mask.numel()
        assert torch.equal(product.screened(x, screen, 4, 1.0), product.rows(x, mask, 4, 1.0))
        assert product.screened(x, screen, 4, 0.0) is None
