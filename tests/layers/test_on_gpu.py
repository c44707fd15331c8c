"""Routed layers on a GPU: what they are on the CPU, without waiting, and within a CUDA graph; products in Triton."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import gpu_products
import pytest
import torch
from torch.nn import functional as F  # noqa: N812 # as torch writes it

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
SIZES = [
    ([0, 3, 3, 5, 6], 8, 7, 6),
    ([0, 130, 150, 171], 171, 70, 130),
    ([0, 0, 0], 5, 2, 3),
    ([0, 64, 200], 300, 1, 1),
]


@pytest.fixture(scope="module")
def run():
    pytest.importorskip("triton", reason="Triton has wheels for Linux alone; it comes with the extra `gpu`")
    with gpu_products.device() as run:
        yield run


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("starts", "p", "n", "o"), SIZES)
def test_products_of_segments_in_triton(run, dtype, starts, p, n, o):
    """Segments that are empty, share a tile or fill several, and rows after the last that hold NaN; in float64."""
    draw = torch.Generator().manual_seed(n)
    x, weight, y = (torch.randn(shape, generator=draw) for shape in ((p, n), (len(starts) - 1, o, n), (p, o)))
    x[starts[-1] :] = float("nan")
    found = run(gpu_products.segments, dtype, x.numpy(), weight.numpy(), y.numpy(), starts)
    x, weight, y = (one.to(getattr(torch, dtype)).double() for one in (x, weight, y))
    rows = [slice(begin, end) for begin, end in pairwise(starts)]
    products, sizes = torch.zeros(p, o, dtype=torch.float64), torch.ones(p, o, dtype=torch.float64)
    for part, matrix in zip(rows, weight, strict=True):
        products[part], sizes[part] = x[part] @ matrix.T, x[part].abs() @ matrix.T.abs()
    outers = torch.stack([x[part].T @ y[part] for part in rows])
    spreads = torch.stack([x[part].T.abs() @ y[part].abs() for part in rows])
    for one, exact, size in zip(map(torch.from_numpy, found), (products, outers), (sizes, spreads), strict=True):
        limit = (n + p) * 2.0**-24 * size + torch.finfo(getattr(torch, dtype)).eps * exact.abs()
        assert one.shape == exact.shape
        assert ((one - exact).abs() <= limit).all()


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
def test_outputs_and_gradients_are_those_of_the_cpu(name):
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
