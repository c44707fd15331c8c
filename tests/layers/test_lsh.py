from __future__ import annotations

import numpy as np
import pytest
import torch
from grids import grid

from sparsact.layers import LSHLayer
from sparsact.routing import EuclideanLSH, HyperplaneLSH, TopK

n, o = 4, 3
ROUTERS = {
    "hyperplanes": HyperplaneLSH(3, n_tables=2, random_state=1),
    "euclidean": EuclideanLSH(2, 1.5, n_tables=3, n_buckets=32, random_state=1),
}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def layer(router="hyperplanes", degree=0, filled=True, **options):
    made = LSHLayer(n, o, router=ROUTERS.get(router, router), degree=degree, generator=seeded(5), **options)
    if filled:
        with torch.no_grad():
            for seed, parameter in enumerate(made.parameters()):
                parameter.copy_(torch.randn(parameter.shape, generator=seeded(seed)))
    return made


def inputs(*lead, dtype=None):
    return torch.randn(*lead, n, generator=seeded(11)).to(dtype)


def by_buckets(table, x):
    """The definition: bucket by bucket, input by input."""
    rows = []
    for point, buckets, weights in zip(x, *(getattr(table.route(x), f) for f in ("indices", "weights")), strict=True):
        value = 0
        for bucket, weight in zip(buckets.tolist(), weights, strict=True):
            if bucket >= 0:
                value = value + weight * table.values[bucket]
                if table.degree:
                    value = value + weight * (point @ table.slopes[bucket].reshape(n, o))
        rows.append(value)
    return torch.stack(rows)


@grid(router=list(ROUTERS), degree=[0, 1], dtype=[torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_values_and_gradients(router, degree, dtype):
    table, x = layer(router, degree, dtype=torch.float64).to(dtype), inputs(9, dtype=dtype).requires_grad_()
    found, expected = table(x), by_buckets(table, x)
    atol = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.15, torch.float16: 2e-2}[dtype]
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)
    variables = [x, *table.parameters()]
    if degree == 0:
        variables = variables[1:]
    derivatives = (torch.autograd.grad(value.sum(), variables) for value in (found, expected))
    for gradient, expectation in zip(*derivatives, strict=True):
        torch.testing.assert_close(gradient, expectation, rtol=0, atol=atol)


@pytest.mark.parametrize("degree", [0, 1])
def test_a_bucket_that_nothing_has_trained_answers_zero(degree):
    table = layer(degree=degree, filled=False)
    assert torch.equal(table(inputs(3)), torch.zeros(3, o))
    table(inputs(3)).sum().backward()
    touched = table.route(inputs(3)).counts > 0
    assert torch.equal(table.values.grad.abs().sum(1) > 0, touched)


@pytest.mark.parametrize("degree", [0, 1])
def test_training_finds_the_least_squares_solution(degree):
    """For one table that is the means of its buckets, or the lines through them."""
    x = inputs(400, dtype=torch.float64)
    y = torch.sin(2 * x[:, :o]) + x[:, 1:]
    table = layer(HyperplaneLSH(2, random_state=3), degree, filled=False, dtype=torch.float64)
    optimizer = torch.optim.LBFGS(table.parameters(), max_iter=300, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (table(x) - y).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    buckets = table.route(x).indices[:, 0]
    for bucket in range(4):
        rows = buckets == bucket
        points = torch.cat([torch.ones(int(rows.sum()), 1), *([x[rows]] * degree)], dim=1).double().numpy()
        solution = np.linalg.lstsq(points, y[rows].numpy(), rcond=None)[0]
        np.testing.assert_allclose(table(x)[rows].detach(), points @ solution, rtol=0, atol=1e-4)


def test_flops_by_hand():
    assert layer().flops().active == 2 * 2 * o
    assert layer().flops().dense == 16 * 2 * o
    assert layer(degree=1).flops(5).active == 5 * (2 * 2 * o * (1 + n) + 2 * n * o)
    assert layer().flops(5).routing == 5 * ROUTERS["hyperplanes"].flops(n)


def test_what_is_refused():
    with pytest.raises(ValueError, match="`degree` must be 0 or 1; got 2"):
        layer(degree=2)
    with pytest.raises(ValueError, match="reads pre-activations"):
        layer(TopK(2))
    with pytest.raises(ValueError, match="4 features"):
        layer()(torch.ones(3, 5))
