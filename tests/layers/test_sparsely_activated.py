from __future__ import annotations

import pytest
import torch
from gates import DroppingGate
from grids import grid
from torch.utils.flop_counter import FlopCounterMode

from sparsact.layers import Flops, SparselyActivatedLayer
from sparsact.routing import (
    BlockTop1,
    EuclideanLSH,
    HyperplaneLSH,
    Interpolation,
    Nearest,
    RandomHash,
    Switch,
    TopK,
    Tree,
)

n, t, o = 7, 24, 5
ROUTERS = {
    "top_k": TopK(5),
    "absolute": TopK(5, absolute=True),
    "random_hash": RandomHash(5, t),
    "hyperplanes": HyperplaneLSH(2, n_tables=3),  # 12 buckets, each of two units
    "euclidean": EuclideanLSH(2, 1.5, n_tables=2, n_buckets=6),
    "nearest": Nearest(3, n_centres=8),
    "interpolation": Interpolation(n_points=12),
    "switch": Switch(4, capacity_factor=1.0),  # drops some in training
    "block_top1": BlockTop1(3, 4),
    "tree": Tree(2),
    "gate": DroppingGate(6),  # 6 experts of four units
}
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# Relative to the largest value: roundings of sums of a dozen terms.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def layer(router="top_k", **options):
    options = {"generator": seeded(5), **options}
    return SparselyActivatedLayer(n, t, o, router=ROUTERS.get(router, router), **options)


def inputs(*lead, dtype=None, seed=11):
    return torch.randn(*lead, n, generator=seeded(seed)).to(dtype)


def masked(units, x):
    """The definition: all units, the router's mask, all outputs; a selection is constant to nobody."""
    z = torch.nn.functional.linear(x, units.up_weight, units.up_bias)
    phi = {"relu": torch.relu, "tanh": torch.tanh, "identity": lambda z: z}[units.activation]
    y = (phi(z) * units.route(x).dense()) @ units.down_weight
    return y if units.down_bias is None else y + units.down_bias


def gradients(value, units, x):
    weights = torch.arange(1.0, 1 + value.numel()).reshape(value.shape).to(value.dtype) / value.numel()
    return torch.autograd.grad((value * weights).sum(), [x, *units.parameters()], materialize_grads=True)


@pytest.mark.grid
@grid(router=list(ROUTERS), method=["sparse", "dense", "auto"], dtype=DTYPES)
def test_values_and_gradients_are_those_of_the_masked_dense_computation(router, method, dtype):
    units = layer(router, method=method, activation="tanh", dtype=torch.float64).to(dtype)
    x = inputs(9, dtype=dtype).requires_grad_()
    found, expected = units(x), masked(units, x)
    assert found.dtype == dtype
    assert expected.abs().max() > 0.1
    close(found, expected, dtype)
    for gradient, expectation in zip(gradients(found, units, x), gradients(expected, units, x), strict=True):
        close(gradient, expectation, dtype)
    with torch.no_grad():
        close(units(x), expected, dtype)


def close(found, expected, dtype):
    scale = max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


@grid(router=list(ROUTERS))
def test_derivatives(router):
    # In training, blocks have the derivative of a softmax in place of their own.
    units = layer(router, method="sparse", activation="tanh", dtype=torch.float64).eval()
    # A random hash has another set of units for every other x: only its parameters have derivatives.
    x = inputs(3, dtype=torch.float64).requires_grad_(router != "random_hash")
    parameters = [x, *units.parameters()]
    names = [name for name, _ in units.named_parameters()]

    def value(x, *values):
        return torch.func.functional_call(units, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(value, parameters, fast_mode=True)  # against random directions


def test_units_that_are_off_are_not_read():
    """Weights of NaN in units that no input switches on change neither values nor gradients."""
    units = layer("random_hash", method="sparse")
    x = inputs(2)
    off = units.route(x).counts == 0
    assert off.any()
    expected = units(x)
    with torch.no_grad():
        for parameter in (units.up_weight, units.up_bias, units.down_weight):
            parameter[off] = torch.nan
    found = units(x)
    assert torch.equal(found, expected)
    found.sum().backward()
    assert torch.equal(units.up_weight.grad[off], torch.zeros(int(off.sum()), n))
    assert units.up_weight.grad[~off].isfinite().all()
    assert units.down_weight.grad[~off].abs().sum(1).gt(0).any()


def test_top_k_reads_the_outputs_of_chosen_units_only():
    units = layer("top_k", method="sparse")
    x = inputs(2)
    off = units.route(x).counts == 0
    expected = units(x)
    with torch.no_grad():
        units.down_weight[off] = torch.nan
    assert torch.equal(units(x), expected)


@grid(router=list(ROUTERS), lead=[(), (1,), (0,), (2, 3), (2, 0, 3)], method=["sparse", "dense"])
def test_leading_dimensions(router, lead, method):
    units, x = layer(router, method=method), inputs(*lead)
    y, selection = units.forward_with_selection(x)
    assert y.shape == (*lead, o)
    rows = x.reshape(-1, n)
    torch.testing.assert_close(y.reshape(-1, o), units(rows))
    assert len(selection.indices) == len(rows)
    y.sum().backward()


def test_a_gate_learns_through_its_weights():
    units = layer("gate", method="sparse")
    units(inputs(4)).square().sum().backward()
    assert units.routing.gate.grad.abs().sum() > 0


@grid(router=list(ROUTERS), method=["sparse", "dense"])
def test_autocast_computes_in_its_dtype_and_routes_in_the_own(router, method):
    units, x = layer(router, method=method), inputs(9)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, selection = units.forward_with_selection(x)
        assert torch.nn.functional.linear(x, units.up_weight).dtype == y.dtype == torch.bfloat16
        y.float().sum().backward()
    assert units.up_weight.grad.dtype == torch.float32
    if router not in ("top_k", "absolute"):  # those rank pre-activations, which autocast rounds
        assert torch.equal(selection.indices, units.route(x).indices)
        close(y.float(), units(x), torch.bfloat16)


@pytest.mark.grid
@pytest.mark.parametrize("router", [pytest.param("top_k", marks=pytest.mark.slow), "gate"])
def test_compiled_without_a_break(router):
    units, x = layer(router, method="sparse"), inputs(9).requires_grad_()
    compiled = torch.compile(units.forward_with_selection, fullgraph=True, backend="aot_eager")
    y, selection = compiled(x)
    expected = units(x)
    torch.testing.assert_close(y, expected)
    assert torch.equal(selection.indices, units.route(x).indices)
    for found, expectation in zip(gradients(y, units, x), gradients(expected, units, x), strict=True):
        torch.testing.assert_close(found, expectation)


@pytest.mark.slow
@pytest.mark.parametrize("router", ["top_k", "random_hash", "hyperplanes", "gate"])
@pytest.mark.parametrize("method", ["sparse", "dense"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_compiled_by_inductor(router, method):
    units, x = layer(router, method=method), inputs(9).requires_grad_()
    compiled = torch.compile(units, fullgraph=True)
    y, expected = compiled(x), units(x)
    torch.testing.assert_close(y, expected)
    for found, expectation in zip(gradients(y, units, x), gradients(expected, units, x), strict=True):
        torch.testing.assert_close(found, expectation, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(compiled(inputs(4)), units(inputs(4)))


def test_flops_by_hand():
    """Table 1 of paper B at n = 8: 18 operations an active unit; 16 for each other to route make it 11/3 of that."""
    units = SparselyActivatedLayer(8, 4096, 1, router=TopK(1024), bias=False, device="meta")
    flops = units.flops()
    assert flops.active == 18432  # as printed
    assert flops.dense == 18 * 4096
    assert flops.routing == 16 * 3072 + TopK(1024).flops(4096)
    assert (flops.active + 16 * 3072) / flops.active == pytest.approx(11 / 3)
    assert units.flops(10) == Flops(10 * flops.routing, 10 * flops.active, 10 * flops.dense)
    assert flops.total == flops.active + flops.routing


def test_dense_flops_match_the_count_of_torch():
    units = layer("gate", method="dense")
    with FlopCounterMode(display=False) as counter:
        units(inputs(6))
    assert counter.get_total_flops() == units.flops(6).dense + units.flops(6).routing


def test_what_is_refused():
    units = layer()
    with pytest.raises(TypeError, match="must be a torch tensor; got ndarray"):
        units(inputs(3).numpy())
    with pytest.raises(TypeError, match=r"real numbers; got torch.int64: pass x.to\(torch.float32\)"):
        units(torch.ones(3, n, dtype=torch.int64))
    with pytest.raises(TypeError, match="real numbers; got"):
        units(torch.ones(3, n, dtype=torch.complex64))
    with pytest.raises(ValueError, match=r"7 features in its last dimension; got shape \(3, 8\)"):
        units(torch.ones(3, 8))
    with pytest.raises(ValueError, match="7 features"):
        units(torch.tensor(1.0))
    with pytest.raises(TypeError, match=r"`x` is torch.float64 and the layer torch.float32: pass x.to"):
        units(inputs(3, dtype=torch.float64))
    with pytest.raises(ValueError, match="`method` must be one of"):
        layer(method="fast")
    with pytest.raises(ValueError, match="`activation` must be one of"):
        layer(activation="rleu")
    with pytest.raises(ValueError, match="`n_units` = 24 is no multiple of the 5 units"):
        layer(DroppingGate(5))
    with pytest.raises(ValueError, match="cannot choose 25 of 24 units"):
        layer(TopK(25))
    with pytest.raises(TypeError, match="`router` must be a router"):
        layer(3)
    with pytest.raises(ValueError, match="`n_units` must be 1 or more"):
        SparselyActivatedLayer(n, 0, o, router=TopK(1))


def test_what_is_not_finite_is_not_hidden():
    units, x = layer("random_hash", method="sparse"), inputs(3)
    x[1, 2] = torch.nan
    y = units(x)
    assert y[1].isnan().all()
    assert y[[0, 2]].isfinite().all()


def test_no_bias_and_any_activation():
    units = layer("gate", bias=False, activation=torch.sin, method="sparse")
    assert sorted(name for name, _ in units.named_parameters()) == ["down_weight", "routing.gate", "up_weight"]
    x = inputs(4)
    z = x @ units.up_weight.T
    torch.testing.assert_close(units(x), (torch.sin(z) * units.route(x).dense()) @ units.down_weight)


def test_it_says_what_it_is():
    assert "7, 24, 5, activation='relu', bias=True, method='auto'" in repr(layer())
    assert "TopK(n_active=5, absolute=False)" in repr(layer())


def test_auto_takes_whole_matrices_for_large_batches():
    """And both give the same, so that a batch cut in two gives what it gave whole."""
    units = layer("random_hash", dtype=torch.float64)
    x = inputs(100, dtype=torch.float64)
    torch.testing.assert_close(units(x), torch.cat([units(row[None]) for row in x]), rtol=0, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("router", ["top_k", "hyperplanes", "gate"])
def test_on_a_cuda_device(router, dtype):
    units = layer(router, method="sparse", activation="tanh").to("cuda", dtype)
    x = inputs(9, dtype=dtype).cuda().requires_grad_()
    found, expected = units(x), masked(units, x)
    assert found.is_cuda
    close(found, expected, dtype)


@pytest.mark.parametrize(
    ("m", "k", "whole"), [(1, 1, False), (1, 12, False), (1, 13, True), (4, 12, False), (5, 12, True), (600, 1, False)]
)
def test_the_rule_of_auto(m, k, whole):
    """For float32, 24 units: at most half of them each, and two reads of each, or a sixteenth of them at large m."""
    units, read = layer(TopK(k)), []
    units.masked = lambda *arguments: read.append("whole") or torch.zeros(m, o)
    units(inputs(m))
    assert bool(read) == whole
