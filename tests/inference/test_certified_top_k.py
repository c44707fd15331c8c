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
from torch.nn import functional as F  # noqa: E402

from sparsact import kernels  # noqa: E402
from sparsact.inference.certified_top_k import BoundedOutputs, CertifiedTopK  # noqa: E402

properties = settings(suppress_health_check=[HealthCheck.too_slow])
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def assert_same_top(found, weight, bias, x, k):
    """Values of dense torch up to the order of summation, each that of its index, in decreasing order."""
    dense = F.linear(x, weight, bias)
    wanted = torch.topk(dense, k).values
    sizes = x.float().norm(dim=-1, keepdim=True) * weight.float().norm(dim=1).max()
    room = TOLERANCE[weight.dtype] * (sizes + (0 if bias is None else bias.float().abs().max()))
    assert found.values.shape == found.indices.shape == wanted.shape
    assert found.values.dtype == wanted.dtype
    difference = (found.values.float() - wanted.float()).abs()
    assert ((difference <= room) | (found.values == wanted) | (found.values.isnan() & wanted.isnan())).all()
    own = dense.gather(-1, found.indices)
    assert (((own.float() - found.values.float()).abs() <= room) | (own == found.values) | own.isnan()).all()
    for row in found.indices.reshape(-1, k):
        assert len(set(row.tolist())) == k


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("m", [1, 5, 19, 50, 300])
def test_values_and_indices_match_torch(dtype, m):
    generator = torch.Generator().manual_seed(m)
    weight, bias, x = (torch.randn(*shape, generator=generator).to(dtype) for shape in ((301, 70), (301,), (m, 70)))
    before = [one.clone() for one in (weight, bias, x)]
    sample = torch.randn(60, 70, generator=generator) + 1
    for top in (CertifiedTopK(weight, bias), CertifiedTopK(weight, None, sample)):
        for k in (1, 7, 301):
            found = top.top_k(x, k)
            assert_same_top(found, weight, top.bias, x, k)
            if dtype == torch.float32 and k < 301 and m < 300:  # some differ by less than rounding
                assert torch.equal(found.indices, torch.topk(F.linear(x, weight, top.bias), k).indices)
    assert all(torch.equal(*pair) for pair in zip(before, (weight, bias, x), strict=True))
    assert top.top_k(x[None], 3).values.shape == (1, m, 3)
    assert top.top_k(x[:0], 3).indices.shape == (0, 3)
    assert top.top_k(x, 0).values.shape == (m, 0)


@properties
@given(
    kinds=st.tuples(*[st.sampled_from(KINDS)] * 3),
    d=st.one_of(st.integers(1, 9), st.integers(60, 70)),
    s=st.integers(1, 40),
    m=st.integers(1, 20),
    dtype=st.sampled_from(list(TOLERANCE)),
    calibrated=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_hostile_numbers(kinds, d, s, m, dtype, calibrated, seed):
    """The candidates hold every unit that real numbers, or dense torch, put among the k largest."""
    rng = np.random.default_rng(seed)
    limit = torch.finfo(dtype).max
    weight, x, bias = (
        hostile(rng, shape, kind).clamp(-limit, limit).to(dtype)
        for shape, kind in zip(((s, d), (m, d), s), kinds, strict=True)
    )
    k = int(rng.integers(1, s + 1))
    sample = x.float() if calibrated and x.isfinite().all() else None
    bounds = BoundedOutputs(weight, bias, sample)
    out = bounds.fill(x, m, k)
    dense = F.linear(x, weight, bias)
    assert_equal_backends(weight, bias, sample, x, k)
    if out is None:  # some row may overflow
        assert (
            float(x.float().norm(dim=1).max() * weight.float().norm(dim=1).max()) > 1e-3 * limit
            or bias.abs().max() > limit / 8
        )
        return
    kept = out > -torch.inf
    kth = torch.topk(dense, k).values[:, -1:]
    assert kept[(dense >= kth) & (dense > -torch.inf)].all()
    for point, row in zip(x.double().tolist(), kept.tolist(), strict=True):
        exact = [
            sum((Fraction(a) * Fraction(b) for a, b in zip(point, unit, strict=True)), Fraction(b0))
            for unit, b0 in zip(weight.double().tolist(), bias.double().tolist(), strict=True)
        ]
        floor = sorted(exact)[-k]
        assert all(one for value, one in zip(exact, row, strict=True) if value >= floor)


def assert_equal_backends(weight, bias, sample, x, k):
    """Every instruction set and the reference give the same bits."""
    found = []
    isas = [] if kernels.dispatch.native is None else ["portable", "avx2", "avx512"]
    widest = None if not isas else isas.index(kernels.dispatch.native.widest_isa())
    for backend, isa in [("reference", None), *(("native", isa) for isa in isas[: (widest or 0) + 1])]:
        with kernels.using(backend, isa):
            out = BoundedOutputs(weight, bias, sample)
            filled, top = out.fill(x, len(x), k), out.top_k(x, k)
            known = top.indices[:, 0] >= 0
            found.append((filled is None, None if filled is None else filled.nan_to_num(), top.indices[known]))
    for one in found[1:]:
        assert one[0] == found[0][0]
        assert one[1] is None or torch.equal(one[1], found[0][1])
        assert torch.equal(one[2], found[0][2])


def test_many_rows_are_packed_and_give_the_same_bits():
    """64 and more rows: tiles of AMX or VNNI where the processor has them; a row more than blocks of 4 and 16."""
    generator = torch.Generator().manual_seed(3)
    weight, x = torch.randn(77, 130, generator=generator), torch.randn(69, 130, generator=generator)
    x[7] *= 1e4
    x[:, 5] *= 50
    assert_equal_backends(weight, None, None, x, 5)
    assert_equal_backends(weight, torch.randn(77, generator=generator), x[:30], x, 5)


@pytest.mark.parametrize("strange", [torch.nan, torch.inf, -torch.inf])
def test_rows_and_inputs_that_are_not_finite_are_as_in_torch(strange):
    generator = torch.Generator().manual_seed(4)
    weight, x, bias = (torch.randn(*shape, generator=generator) for shape in ((40, 11), (12, 11), (40,)))
    x[3, 2], x[8, 0] = strange, LARGEST
    for place in ("weight", "bias", None):
        changed = weight.clone(), bias.clone()
        if place == "weight":
            changed[0][5, 1] = strange
        if place == "bias":
            changed[1][9] = strange
        values, indices = CertifiedTopK(*changed).top_k(x, 6)
        dense = F.linear(x, *changed)
        wanted = torch.topk(dense, 6).values
        assert torch.allclose(values, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
        assert torch.allclose(dense.gather(1, indices), values, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_ties_are_broken_by_place_and_all_kept():
    weight = torch.eye(6)[[0, 1, 1, 2, 1, 3]]
    x = torch.tensor([[1.0, 2.0, 3.0, -TINY, 0.0, 0.0]])
    assert CertifiedTopK(weight).top_k(x, 3).indices.tolist() == [[3, 1, 2]]
    assert BoundedOutputs(weight, None).fill(x, 1, 2).tolist() == [[-torch.inf, 2.0, 2.0, 3.0, 2.0, -torch.inf]]


def test_few_units_are_computed():
    """Gaussian weights and inputs, 512 inputs: the bounds of int8 leave about twice the 20 largest of 4,000."""
    generator = torch.Generator().manual_seed(5)
    weight, x = torch.randn(4000, 512, generator=generator), torch.randn(9, 512, generator=generator)
    out = BoundedOutputs(weight, None).fill(x, 9, 20)
    assert 20 * 9 <= (out > -torch.inf).sum() < 80 * 9


def test_new_weights_gradients_and_other_inputs():
    generator = torch.Generator().manual_seed(6)
    weight, x = torch.randn(50, 8, generator=generator), torch.randn(3, 8, generator=generator)
    top = CertifiedTopK(weight)
    top.top_k(x, 2)
    weight.neg_()
    assert torch.equal(top.top_k(x, 2).indices, torch.topk(x @ weight.T, 2).indices)
    taught = CertifiedTopK(torch.nn.Parameter(weight))
    taught.top_k(x, 2).values.sum().backward()
    assert taught.weight.grad.abs().sum() > 0
    with torch.inference_mode():
        made = CertifiedTopK(torch.randn(50, 8), torch.zeros(50))
        assert made.top_k(x, 2).values.shape == (3, 2)
    mapped = torch.vmap(lambda one: top.top_k(one[None], 2).indices)(x)
    assert torch.equal(mapped[:, 0], torch.topk(x @ weight.T, 2).indices)
    for other in (copy.deepcopy(top), pickle.loads(pickle.dumps(top))):
        assert torch.equal(other.top_k(x, 4).values, top.top_k(x, 4).values)


def test_errors_say_what_is_wrong():
    with pytest.raises(TypeError, match="float64"):
        CertifiedTopK(torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"`weight` must have shape"):
        CertifiedTopK(torch.ones(3))
    with pytest.raises(ValueError, match=r"`weight` must have shape .* got \(5,\)"):
        CertifiedTopK(torch.randn(5))
    with pytest.raises(ValueError, match=r"`sample` must have shape \(\.\.\., 3\), .* got \(6, 2\)"):
        CertifiedTopK(torch.randn(2, 3), sample=torch.randn(6, 2))
    with pytest.raises(ValueError, match=r"`bias` must have shape \(2,\)"):
        CertifiedTopK(torch.ones(2, 3), torch.ones(3))
    top = CertifiedTopK(torch.ones(2, 3))
    with pytest.raises(ValueError, match="`k` must lie between 0 and 2; got 3"):
        top.top_k(torch.ones(1, 3), 3)
    for x in (torch.ones(1, 4), torch.ones(1, 3, dtype=torch.float64), torch.tensor(1.0)):
        with pytest.raises(ValueError, match=r"inputs must have shape \(\.\.\., 3\)"):
            top.top_k(x, 1)


def test_threads_change_no_bit():
    generator = torch.Generator().manual_seed(8)
    weight, x = torch.randn(411, 66, generator=generator), torch.randn(21, 66, generator=generator)
    bounds, threads, found = BoundedOutputs(weight, None), torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append((bounds.fill(x, 21, 9), bounds.fill(x, 3, 9), bounds.top_k(x, 9).indices))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for other in found[1:] for pair in zip(found[0], other, strict=True))
