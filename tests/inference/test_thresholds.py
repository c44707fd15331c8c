"""Thresholds against every 16-bit number."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from sparsact.inference.activation import probe_grid, zero_below

STEPS = torch.tensor([-3.0, -0.01, 0.0, 1e-5, 0.3, 7.0, 2000.0])
FUNCTIONS = {
    "relu": F.relu,
    "jump": lambda z: z * (z > STEPS.to(z)),
    "shifted": lambda z: F.relu(z - STEPS.to(z)),
    "two pieces": lambda z: F.relu(z) + F.relu(z - STEPS.to(z)),
    "step": lambda z: (z >= (STEPS + 0.5).to(z)).to(z),
}


def every_number(dtype):
    numbers = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    return numbers[numbers.isfinite()].sort().values


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_threshold_is_the_last_number_before_the_first_that_is_on(name, dtype):
    f = FUNCTIONS[name]
    found = zero_below(lambda precision: f, 7, torch.empty(0, dtype=dtype))
    numbers = every_number(dtype)
    on = f(numbers[:, None].expand(-1, 7)) != 0
    first = on.to(torch.int8).argmax(0)
    assert on.any(0).all()
    assert torch.equal(found, numbers[first - 1])


@pytest.mark.parametrize("power", [2, 3, 8])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_underflows_above_0_has_the_threshold_0(power, dtype):
    found = zero_below(lambda precision: lambda z: F.relu(z) ** power, 3, torch.empty(0, dtype=dtype))
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_a_function_that_is_zero_is_off_everywhere():
    found = zero_below(lambda precision: torch.zeros_like, 2, torch.empty(0))
    assert found.tolist() == [torch.finfo(torch.float32).max] * 2


def test_a_gap_below_the_edge_is_seen():
    """Zero up to 1 and from 1.01 to 1.03: the grid sees neither 1.01 nor 1.03, the probes below the edge do."""
    probes = probe_grid(torch.empty(0))
    assert not ((probes > 1) & (probes < 1.03)).any()
    found = zero_below(lambda precision: lambda z: ((z > 1) & (z < 1.01)) | (z > 1.03), 2, torch.empty(0))
    assert found is None or (found <= 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_grid_ascends_and_is_finite(dtype):
    probes = probe_grid(torch.empty(0, dtype=dtype)).double()
    assert probes.isfinite().all()
    assert (probes.diff() >= 0).all()
    assert torch.equal(probes, -probes.flip(0))
