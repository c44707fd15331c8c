"""Routed layers on a GPU: what they are on the CPU, without waiting, and within a CUDA graph; products in Triton."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import gpu_products
import numpy as np
import pytest
import torch
from grids import few_of
from torch.nn import functional as F

from sparsact.layers import (
    BlockSparseFeedForward,
    MixtureOfExperts,
    SparselyActivatedLayer,
    routing_losses,
    update_biases,
)
from sparsact.routing import TopK

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
m, d, h = 150, 48, 20
EPSILON = {name: torch.finfo(getattr(torch, name)).eps for name in ("float32", "bfloat16", "float16")}
SIZES = [
    ([0, 3, 3, 5, 6], 8, 7, 6),
    ([0, 130, 150, 171], 171, 70, 130),
    ([0, 0, 0], 5, 2, 3),
    ([0, 64, 200], 300, 1, 1),
]


@pytest.fixture(scope="module")
def run():
    pytest.importorskip("triton", reason="Triton has wheels for Linux alone; it comes with the extra `gpu`")
    return gpu_products.device()


def close(found, exact, size, n_terms, dtype):
    """To within the rounding of sums of float32 in any order, and once to the precision of the result."""
    limit = (n_terms + 2) * 2.0**-24 * size + np.finfo(np.float64).eps + EPSILON[dtype] * abs(exact)
    return found.shape == exact.shape and bool(np.all(abs(found - exact) <= limit))


@pytest.mark.parametrize("dtype", few_of(EPSILON, ["float32"]))
@pytest.mark.parametrize(("starts", "p", "n", "o"), few_of(SIZES, [SIZES[0], SIZES[2]]))
def test_products_of_segments(run, dtype, starts, p, n, o):
    """Segments that are empty, share a tile or fill several, and rows after the last that hold NaN; in float64."""
    rng = np.random.default_rng(n)
    draws = [rng.standard_normal(shape) for shape in ((p, n), (len(starts) - 1, o, n), (p, o))]
    x, weight, y = (gpu_products.rounded(array, dtype) for array in draws)
    x[starts[-1] :] = np.nan
    products, outers = (
        run(gpu_products.layer_kernel, name, dtype, x, other, np.array(starts))
        for name, other in (("segment_matmul", weight), ("segment_outer", y))
    )
    x, weight, y = (one.astype(np.float64) for one in (x, weight, y))
    exact, size = np.zeros((p, o)), np.zeros((p, o))
    for e, (begin, end) in enumerate(pairwise(starts)):
        part = slice(begin, end)
        exact[part], size[part] = x[part] @ weight[e].T, abs(x[part]) @ abs(weight[e].T)
        assert close(outers[e], x[part].T @ y[part], abs(x[part]).T @ abs(y[part]), p, dtype)
    assert close(products, exact, size, n, dtype)
    cleared = run(gpu_products.layer_kernel, "clear_from", dtype, y.astype(np.float32), np.array([1]))
    assert np.array_equal(cleared, np.where(np.arange(p)[:, None] < 1, y, 0))


@pytest.mark.parametrize("dtype", few_of(EPSILON, ["float32"]))
@pytest.mark.parametrize(
    ("rows", "k", "t", "n"),
    few_of([(3, 5, 11, 7), (2, 1, 4, 1030), (17, 2, 70, 40), (40, 3, 5, 3)], [(3, 5, 11, 7), (2, 1, 4, 1030)]),
)
def test_products_with_selected_rows(run, dtype, rows, k, t, n):
    """Some places are empty, some rows named often, some by nobody; their numbers are NaN."""
    rng = np.random.default_rng([rows, t])
    indices = rng.integers(-1, t - 1, (rows, k))
    a, x, values = (gpu_products.rounded(rng.standard_normal(shape), dtype) for shape in ((rows, k), (rows, n), (t, n)))
    values[t - 1] = np.nan
    hot = (indices[..., None] == np.arange(t)).astype(float)  # (m, k, t)
    whole = np.nan_to_num(values.astype(np.float64))
    exact = {
        "gather_sum": ((a, values, indices), "mk,tn,mkt->mn", (a, whole), k),
        "gather_dot": ((x, values, indices), "mn,tn,mkt->mk", (x, whole), n),
        "scatter_outer": ((a, x, indices, t), "mk,mn,mkt->tn", (a, x), rows * k),
    }
    for name, (given, formula, (left, right), n_terms) in exact.items():
        left, right = left.astype(np.float64), right.astype(np.float64)
        found = run(gpu_products.layer_kernel, name, dtype, *given)
        wanted, size = np.einsum(formula, left, right, hot), np.einsum(formula, abs(left), abs(right), hot)
        assert close(found, wanted, size, n_terms, dtype), name
    lost = np.where(np.arange(rows)[:, None] == 1, t, indices)
    for name in ("gather_sum", "gather_dot"):
        found = run(gpu_products.layer_kernel, name, dtype, *exact[name][0][:2], lost)
        assert np.isnan(found[1]).all(), name
        assert np.isfinite(found[2:]).all(), name


def test_tf32_is_taken_where_torch_allows_it(run):
    assert set(run(gpu_products.precisions)[1:]) == {"tf32"}
    assert run(gpu_products.precisions)[0] == "ieee"


def test_where_triton_does_not_work_torch_multiplies():
    """On the CPU it has nothing to compile for."""
    gpu = pytest.importorskip("sparsact.kernels.gpu", reason="Triton has wheels for Linux alone", exc_type=ImportError)
    assert not gpu.works(torch.device("cpu"))


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("name", ["silu", "gelu"])
def test_gates_and_their_gradients(run, dtype, name):
    """Against torch's own functions and their derivatives, in float64."""
    rng = np.random.default_rng(5)
    z, gradient = (gpu_products.rounded(3 * rng.standard_normal(shape), dtype) for shape in ((7, 2 * 1030), (7, 1030)))
    found = [run(gpu_products.layer_kernel, "gated", dtype, z, name, *given) for given in ((), (gradient,))]
    wide = torch.from_numpy(z).double().requires_grad_()
    u, v = wide.chunk(2, -1)
    y = getattr(F, name)(u) * v
    y.backward(torch.from_numpy(gradient).double())
    for one, exact in zip(found, (y, wide.grad), strict=True):
        limit = 2 * EPSILON[dtype] * exact.detach().abs().numpy() + 1e-5
        assert np.all(abs(one - exact.detach().numpy()) <= limit)


@pytest.mark.parametrize("dtype", few_of(EPSILON, ["float32"]))
@pytest.mark.parametrize(
    ("rows", "t", "k"), few_of([(9, 7, 3), (5, 1, 1), (6, 600, 32), (4, 33, 33)], [(9, 7, 3), (5, 1, 1)])
)
def test_the_largest_of_rows(run, dtype, rows, t, k):
    """Equal numbers, zeros of both signs, infinities, NaN: places in order, of equal ones the first."""
    rng = np.random.default_rng([rows, t])
    values = gpu_products.rounded(rng.standard_normal((rows, t)), dtype)
    values[1] = np.where(np.arange(t) % 2, 0.0, -0.0)
    values[2] = np.round(values[2])
    values[3, :: max(1, t // 3)] = np.nan
    values[0, -1], values[0, 0] = np.inf, -np.inf
    found = run(gpu_products.layer_kernel, "top_k", dtype, values, k)
    for row, chosen in zip(values, found, strict=True):
        ranked = sorted(range(t), key=lambda j, row=row: (not np.isnan(row[j]), -np.nan_to_num(row[j], nan=0.0)))
        assert chosen.tolist() == sorted(ranked[:k])


LAYERS = {
    "top_k": lambda: MixtureOfExperts(d, h, n_experts=8),
    "rooms": lambda: MixtureOfExperts(d, h, n_experts=8, capacity_factor=0.8, group_size=30, n_shared=1),
    "sigmoid": lambda: MixtureOfExperts(d, h, n_experts=6, n_active=3, router="sigmoid", bias=True),
    "expert_choice": lambda: MixtureOfExperts(d, h, n_experts=8, router="expert_choice", activation="gelu"),
    "switch": lambda: MixtureOfExperts(d, h, n_experts=4, router="switch", activation="relu", bias=True),
    "block_top1": lambda: MixtureOfExperts(d, h, n_experts=8, router="block_top1"),
    "hyperplane_lsh": lambda: MixtureOfExperts(d, h, n_experts=8, router="hyperplane_lsh"),
    "learned_lsh": lambda: MixtureOfExperts(d, h, n_experts=8, router="learned_lsh"),
    "tree": lambda: MixtureOfExperts(d, h, n_experts=4, router="tree"),
    "hash_table": lambda: MixtureOfExperts(d, h, n_experts=5, router="hash_table", n_tokens=11),
    "TopK": lambda: SparselyActivatedLayer(d, 200, d, router=TopK(9)),
    "Scaling": lambda: BlockSparseFeedForward(d, 64, 16),
}
STEP = {name: make for name, make in LAYERS.items() if name != "block_top1"}  # as they are trained


def made(name):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        layer = LAYERS[name]()
        x, wanted = torch.randn(m, d), torch.randn(m, d)
    others = {"route_by": torch.arange(m) * 7 % 11} if name == "hash_table" else {}
    return layer, x, wanted, others


def gradients(layer, x, others, dtype=torch.float32):
    """Outputs and all gradients, on the CPU and in float64."""
    x = x.detach().to(dtype).requires_grad_()
    y = layer(x, **others)
    y.float().square().sum().backward()
    of = {name: parameter.grad for name, parameter in layer.named_parameters() if parameter.grad is not None}
    return {name: one.detach().double().cpu() for name, one in {"y": y, "x": x.grad, **of}.items()}


@needs_cuda
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients_match_the_cpu(name):
    layer, x, _, others = made(name)
    layer.eval()  # no noise of Gumbel's
    expected = gradients(deepcopy(layer), x, others)
    found = gradients(layer.cuda(), x.cuda(), {key: one.cuda() for key, one in others.items()})
    assert found.keys() == expected.keys()
    for key, wanted in expected.items():
        assert (found[key] - wanted).norm() <= 1e-5 * wanted.norm() + 1e-7, key


@needs_cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_experts_in_half_precision(dtype):
    """By torch's grouped product and by Triton's; of experts that are chosen as in float32."""
    layer, x, *_ = made("hyperplane_lsh")
    x = x.to(dtype).float()
    layer.routing.directions.copy_(layer.routing.directions.to(dtype))
    expected = gradients(deepcopy(layer).cuda(), x.cuda(), {})
    found = gradients(layer.cuda().to(dtype), x.cuda(), {}, dtype)
    for key, wanted in expected.items():
        assert (found[key] - wanted).norm() <= 8 * torch.finfo(dtype).eps * wanted.norm(), key


@needs_cuda
@pytest.mark.parametrize("name", STEP)
def test_a_step_of_training_is_captured_without_waiting(name):
    """Replayed as a CUDA graph it trains as it does when it is run."""
    trained = []
    for captured in (False, True):
        layer, x, wanted, others = made(name)
        layer.cuda().train()
        given = [x.cuda(), wanted.cuda(), *(one.cuda() for one in others.values())]
        optimizer = torch.optim.SGD(layer.parameters(), 0.01)

        def step(x, wanted, *others, layer=layer, optimizer=optimizer):
            if isinstance(layer, MixtureOfExperts):
                with routing_losses(layer) as losses:
                    y = layer(x, **dict(zip(("route_by",), others, strict=False)))
                loss = F.mse_loss(y, wanted) + losses.total
            else:
                loss = F.mse_loss(layer(x), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if hasattr(getattr(layer, "routing", None), "bias"):
                update_biases(layer)

        torch.cuda.manual_seed(0)
        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(3):
                step(*given)
        torch.cuda.synchronize()
        if captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step(*given)
            for _ in range(3):
                graph.replay()
        else:
            torch.cuda.set_sync_debug_mode("error")
            try:
                for _ in range(3):
                    step(*given)
            finally:
                torch.cuda.set_sync_debug_mode("default")
        trained.append({key: value.double().cpu() for key, value in layer.state_dict().items()})
    for key, value in trained[0].items():
        if name != "Scaling":  # its noise is that of another place of the generator
            assert (trained[1][key] - value).norm() <= 1e-4 * value.norm() + 1e-6, key
        assert trained[1][key].isfinite().all(), key
