"""An epoch of RMSProp on frozen features: against the reference, PyTorch's optimiser, and itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from instruction_sets import HERE

from sparsact import kernels
from sparsact.kernels.dispatch import reference

properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
OPTIMISER = {"learning_rate": 1e-2, "rho": 0.9, "epsilon": 1e-7}


def sample(rng: np.random.Generator, m: int, t: int, a: int, layout: str):
    """Features dense or compact, the same as a dense array, targets and an order."""
    values = rng.normal(size=(m, t if layout == "dense" else a)).astype(np.float32)
    if layout == "dense":
        return values, None, values, rng.normal(size=m), rng.permutation(m)
    units = np.sort(rng.permuted(np.tile(np.arange(t), (m, 1)), axis=1)[:, :a], axis=1)
    everything = np.zeros((m, t), dtype=np.float32)
    np.put_along_axis(everything, units, values, axis=1)
    return values, units.astype(layout), everything, rng.normal(size=m), rng.permutation(m)


def layer(rng: np.random.Generator, t: int):
    return rng.normal(size=t), rng.uniform(0, 1, size=t), np.array([0.3, 0.2])


@properties
@given(
    m=st.integers(1, 40),
    t=st.integers(1, 70),
    share=st.floats(0, 1),
    batch_size=st.integers(1, 45),
    layout=st.sampled_from(["dense", "uint16", "uint32"]),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_kernels_equal_the_reference(backend, m, t, share, batch_size, layout, fit_intercept, seed):
    rng = np.random.default_rng(seed)
    values, units, everything, y, order = sample(rng, m, t, max(1, int(share * t)), layout)
    found = layer(rng, t)
    expected = tuple(part.copy() for part in found)
    inputs = [array.copy() for array in (values, y, order)]
    loss = kernels.descend(
        values, units, y, order, found, fit_intercept=fit_intercept, batch_size=batch_size, **OPTIMISER
    )
    total = reference.descend_dense(everything, y, order, *expected, fit_intercept, batch_size, *OPTIMISER.values())
    assert loss == pytest.approx(total / m, rel=1e-9)
    for part, expectation in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, expectation, rtol=1e-8, atol=1e-9)
    if not fit_intercept:
        np.testing.assert_array_equal(found[2], [0.3, 0.2])
    for array, copy in zip((values, y, order), inputs, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.skipif(len(HERE) < 2, reason="one instruction set")
@pytest.mark.parametrize("layout", ["dense", "uint16"])
def test_instruction_sets_give_the_same_bits(layout):
    results = []
    for isa in HERE:
        rng = np.random.default_rng(5)
        values, units, _, y, order = sample(rng, 90, 75, 37, layout)
        parts = layer(rng, 75)
        with kernels.using("native", isa):
            loss = kernels.descend(values, units, y, order, parts, fit_intercept=True, batch_size=16, **OPTIMISER)
        results.append((loss, *(part.tobytes() for part in parts)))
    assert all(result == results[0] for result in results)


@pytest.mark.usefixtures("backend")
@grid(layout=["dense", "uint16"], fit_intercept=[True, False])
def test_an_epoch_matches_plain_torch(layout, fit_intercept):
    rng = np.random.default_rng(7)
    m, t = 333, 41
    values, units, everything, y, order = sample(rng, m, t, 11, layout)
    A, v, intercept = rng.normal(size=t), np.zeros(t), np.zeros(2)
    before = A.copy()
    linear = torch.nn.Linear(t, 1, bias=fit_intercept, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(A[None]))
        if fit_intercept:
            linear.bias.zero_()
    optimiser = torch.optim.RMSprop(linear.parameters(), lr=1e-2, alpha=0.9, eps=1e-7)
    rows, targets, loss = torch.from_numpy(everything.astype(np.float64)), torch.from_numpy(y), 0.0
    for batch in np.split(order, range(32, m, 32)):
        optimiser.zero_grad()
        error = torch.nn.functional.mse_loss(linear(rows[batch])[:, 0], targets[batch])
        error.backward()
        optimiser.step()
        loss += error.item() * len(batch) / m
    mean = kernels.descend(
        values, units, y, order, (A, v, intercept), fit_intercept=fit_intercept, batch_size=32, **OPTIMISER
    )
    moved = linear.weight.detach().numpy()[0] - before
    assert np.abs(A - before - moved).max() <= 1e-6 * np.abs(moved).max()
    assert mean == pytest.approx(loss, rel=1e-9)
    if fit_intercept:
        assert intercept[0] == pytest.approx(linear.bias.item(), rel=1e-6)
