from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from grids import grid
from torch.nn import functional as F

from sparsact import kernels
from sparsact.layers import expert_outputs, gather, segments
from sparsact.layers.gather import gather_dot, gather_sum, scatter_outer
from sparsact.layers.segments import segment_matmul, segment_outer

m, n, t, k = 3, 7, 11, 5
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
TOLERANCE = {torch.float64: 1e-14, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def numbers(*shape, dtype=torch.float64, seed=2):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed + len(shape) + sum(shape)))
    return values.to(dtype).requires_grad_()


def places(seed=3):
    """With -1, and rows that are named twice."""
    indices = torch.randint(-1, t, (m, k), generator=torch.Generator().manual_seed(seed))
    indices[0, 1] = indices[0, 2]
    indices[1, 3] = -1
    return indices


def calls(dtype=torch.float64, device="cpu"):
    x, weight, a = (numbers(*shape, dtype=dtype) for shape in ((m, n), (t, n), (m, k)))
    starts = torch.tensor([0, 3, 3, 5, 6])  # an empty segment, and rows after the last
    p, experts = 8, numbers(4, n, 6, dtype=dtype)
    operands = {
        "gather_dot": (gather_dot, (x, weight, places())),
        "gather_sum": (gather_sum, (a, weight, places())),
        "scatter_outer": (scatter_outer, (a, x, places(), t)),
        "segment_matmul": (segment_matmul, (numbers(p, n, dtype=dtype), experts, starts)),
        "segment_outer": (segment_outer, (numbers(p, n, dtype=dtype), numbers(p, 6, dtype=dtype), starts)),
    }
    return {
        name: (operator, tuple(_on(device, each) for each in these)) for name, (operator, these) in operands.items()
    }


def _on(device, operand):
    return operand.detach().to(device).requires_grad_(operand.requires_grad) if torch.is_tensor(operand) else operand


def exact(name, operands):
    """Each operator from its definition, in float64, entry by entry."""
    first, second = (operand.detach().cpu().double() for operand in operands[:2])
    if name.startswith("segment"):
        starts = operands[2].tolist()
        if name == "segment_outer":
            return torch.stack([first[b:e].T @ second[b:e] for b, e in pairwise(starts)])
        products = torch.zeros(len(first), second.shape[2], dtype=torch.float64)
        for e, (begin, end) in enumerate(pairwise(starts)):
            products[begin:end] = first[begin:end] @ second[e]
        return products
    indices = operands[2].cpu()
    mask = torch.nn.functional.one_hot(indices.clamp(min=0), t).double() * (indices >= 0)[..., None]
    formula = {"gather_dot": "mn,tn,mkt->mk", "gather_sum": "mk,tn,mkt->mn", "scatter_outer": "mk,mn,mkt->tn"}[name]
    return torch.einsum(formula, first, second, mask)


OPERATORS = list(calls())


@grid(name=OPERATORS, dtype=DTYPES)
def test_values(name, dtype):
    operator, operands = calls(dtype)[name]
    found = operator(*operands)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact(name, operands), rtol=0, atol=TOLERANCE[dtype] * 8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS[:3])
def test_products_of_torch_match_the_kernels(name, dtype, monkeypatch):
    """The road of other devices, taken on this one, in blocks of two inputs."""
    operator, operands = calls(dtype)[name]
    expected = operator(*operands)
    monkeypatch.setattr(gather, "_has_kernel", lambda tensor: False)
    monkeypatch.setattr(gather, "NUMBERS_AT_ONCE", 2 * k * n)
    found = operator(*operands)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", OPERATORS)
def test_derivatives_of_both_orders(name):
    operator, operands = calls()[name]
    assert torch.autograd.gradcheck(operator, operands, fast_mode=True)
    assert torch.autograd.gradgradcheck(operator, operands, fast_mode=True)


@pytest.mark.grid
@pytest.mark.parametrize("name", OPERATORS)
def test_registrations(name):
    torch.library.opcheck(getattr(torch.ops.sparsact, name).default, calls(torch.float32)[name][1])


def test_only_gradients_that_are_asked_for_are_computed(monkeypatch):
    x, weight = numbers(m, n), numbers(t, n).detach()
    monkeypatch.setattr(gather, "scatter_outer", None)
    gather_dot(x, weight, places()).sum().backward()
    assert x.grad is not None


def test_any_layout():
    x, weight, indices = numbers(m, n), numbers(n, t).T, places().T.contiguous().T
    assert not weight.is_contiguous()
    expected = exact("gather_dot", (x, weight, indices))
    torch.testing.assert_close(gather_dot(x, weight, indices), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("row", [-2, t, 2**62])
@pytest.mark.parametrize("name", OPERATORS[:3])
def test_a_row_that_does_not_exist_is_refused(name, row):
    operator, operands = calls()[name]
    operands[2][1, 2] = row
    with pytest.raises(IndexError, match=r"range\(11\), or -1; got"):
        operator(*operands)


def test_no_input_is_changed_or_copied(monkeypatch):
    """The kernels see the memory of the tensors."""
    x, weight = (numbers(*shape, dtype=torch.bfloat16).detach() for shape in ((m, n), (t, n)))
    before, seen, kernel = weight.clone(), [], kernels.gather_dot
    monkeypatch.setattr(
        kernels, "gather_dot", lambda X, W, *rest, **more: seen.append(W) or kernel(X, W, *rest, **more)
    )
    gather_dot(x, weight, places())
    assert seen[0].ctypes.data == weight.data_ptr()
    assert torch.equal(weight, before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_values_on_a_cuda_device(name, dtype):
    operator, operands = calls(dtype, "cuda")[name]
    found = operator(*operands)
    assert found.is_cuda
    torch.testing.assert_close(found.double().cpu(), exact(name, operands), rtol=0, atol=TOLERANCE[dtype] * 8)
    found.sum().backward()
    assert operands[0].grad.is_cuda


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_segments_in_one_call(monkeypatch, dtype):
    """The path of an accelerator, tried here if this build of torch multiplies segments on the CPU too."""
    if not segments._grouped_mm_is_right(torch.device("cpu"), dtype):
        pytest.skip("this build of torch has no grouped product on the CPU")
    x, weight, y = (numbers(*shape, dtype=dtype) for shape in ((96, 16), (3, 16, 24), (96, 24)))
    starts = torch.tensor([0, 32, 32, 64])
    wanted = segment_matmul(x, weight, starts), segment_outer(x, y, starts)
    monkeypatch.setattr(segments, "_is_grouped", lambda left, right: True)
    found = segment_matmul(x, weight, starts), segment_outer(x, y, starts)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=float(torch.finfo(dtype).eps * 64))


@pytest.mark.parametrize("function", [F.silu, F.gelu])
def test_gated_activations(function):
    """Also in blocks of two rows, against torch's own operations; every order of derivative."""
    for half in (2**16, 5):
        z, gradient = numbers(7, 2 * half), numbers(7, half)
        plain = function(z[:, :half]) * z[:, half:]
        found = expert_outputs.gated(function, z)
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-14)
        expected, made = (torch.autograd.grad(y, z, gradient)[0] for y in (plain, found))
        torch.testing.assert_close(made, expected, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(expert_outputs.gated_rows, (z, expert_outputs.NAMES[function]), fast_mode=True)
    assert torch.autograd.gradgradcheck(expert_outputs.gated_rows, (z, expert_outputs.NAMES[function]), fast_mode=True)
    torch.library.opcheck(
        expert_outputs.gated_rows.operator, (z.detach().float().requires_grad_(), expert_outputs.NAMES[function])
    )
