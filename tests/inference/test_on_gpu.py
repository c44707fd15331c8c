"""Models that Triton's products compute, on the GPU or, where there is none, in Triton's interpreter."""

from __future__ import annotations

from functools import partial

import gpu_products
import numpy as np
import pytest
import torch
from grids import few_of
from sparse_models import conv1d, gate_up, gated, gated_up_first, jump, plain, rows, squared
from torch import nn

from sparsact.inference import find_blocks, sparsify
from sparsact.inference.block_profile import BlockProfile, sample_inputs
from sparsact.inference.layer_facts import DEVICES, LayerFacts, device_obstacle
from sparsact.inference.timing import event_clock
from sparsact.inference.weight_cache import _sums

COUNTS = (1, 16)
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.03, "float16": 4e-3}
UP = {"up": "WhereGateIsOn", "gate": "SwitchedOn", "down": "ActiveInputs"}


def flipped(z):
    """Zeros whose origin the trace does not follow."""
    return z.relu().flip(-1)


MODELS = {
    "plain": (plain, {}, {"down": "ActiveInputs"}),
    "no unit on": (plain, {"shift": 50.0}, {"down": "ActiveInputs"}),
    "all units on": (plain, {"shift": -50.0}, {"down": "ActiveInputs"}),
    "squared": (squared, {}, {"down": "ActiveInputs"}),
    "thresholds": (jump, {}, {"down": "ActiveInputs"}),
    "gated": (gated, {}, UP),
    "gated, up first": (gated_up_first, {}, UP),
    "gate and up in one": (gate_up, {}, {"up": "GateThenUp", "down": "ActiveInputs"}),
    "Conv1D": (conv1d, {}, {"down": "ActiveInputs"}),
    "a layer alone": (partial(plain, activation=flipped), {}, {"down": "ActiveInputs"}),
}


@pytest.fixture(scope="module")
def run():
    pytest.importorskip("triton", reason="Triton has wheels for Linux alone; it comes with the extra `gpu`")
    return gpu_products.device()


@pytest.mark.grid
@pytest.mark.parametrize(
    ("name", "dtype"),
    few_of(
        [*((name, "float32") for name in MODELS), ("plain", "bfloat16"), ("gated", "float16")],
        [("gated", "float16")],
    ),
)
def test_a_sparse_model_returns_what_the_dense_one_does(run, name, dtype):
    """For 1 to 16 rows by Triton's products, for more densely; the host never waits for a number of the device."""
    make, options, kinds = MODELS[name]
    if make is conv1d:
        pytest.importorskip("transformers")
    (found, wanted), classes, sparse_calls = run(gpu_products.sparse_outputs, make, dtype, (*COUNTS, 17), options)
    assert classes == kinds
    assert sparse_calls == len(COUNTS)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert np.linalg.norm(one - other) <= TOLERANCE[dtype] * np.linalg.norm(other)


@pytest.mark.grid
@pytest.mark.skipif(torch.cuda.is_available(), reason="the interpreter is slow on every machine")
def test_auto_leaves_what_is_slower_dense(run):
    for method, reason, seconds in run(gpu_products.planned_by_auto, gated):
        assert (method, reason) == ("dense", "no exact method is faster on this machine")
        assert seconds["exact"] > seconds["dense"]
        assert "certified" not in seconds


@pytest.mark.grid
@pytest.mark.parametrize(
    ("dtype", "keep_weights"),
    few_of([("float32", True), ("float32", False), ("bfloat16", True)], [("float32", False)]),
)
def test_int8_models_return_what_they_return_on_the_cpu(run, dtype, keep_weights):
    counts = (*COUNTS, 19)
    make = plain if dtype == "float32" else squared
    outputs, reasons, error, same_place = run(gpu_products.quantized_outputs, make, "int8", counts, dtype, keep_weights)
    assert reasons == ["", ""]
    assert 0 < error < 0.1
    assert same_place
    for found, on_cpu in zip(*outputs, strict=True):
        if dtype == "float32":
            assert np.array_equal(found, on_cpu)
        else:  # the interpreter cuts off where the CPU rounds, and codes of the next layer may change
            assert np.linalg.norm(found - on_cpu) <= 0.03 * np.linalg.norm(on_cpu)


@pytest.mark.grid
def test_what_a_gpu_does_not_compute_stays_dense_with_the_reason(run):
    for method in ("certified", "approximate"):
        for reason in run(gpu_products.obstacles, plain, method):
            assert 'where only "exact" runs: move the model to the CPU' in reason
    reasons = run(gpu_products.quantized_outputs, plain, "int4", (1,), "float32", True)[1]
    assert all('where integers are int8: pass weights="int8", or move the model' in reason for reason in reasons)


def test_devices_without_kernels_and_blocks_on_two_are_refused():
    weights = torch.zeros(3, 2), torch.zeros(3, 2, device="meta")
    for some in (weights, weights[1:]):
        assert device_obstacle(some, "cpu").endswith("kernels run on the CPU or on CUDA: move the model")
    assert device_obstacle(weights[:1], "cpu") == ""
    assert "on meta, kernels run" in LayerFacts.of(nn.Linear(3, 2, device="meta")).quantizing_obstacle("int8")
    assert "on cpu, kernels run" in device_obstacle(weights[:1], "cuda")
    model = plain()
    block = find_blocks(model, rows(2, model))[0]
    sample = sample_inputs(model, [block], rows(2, model))[block]
    assert "on cpu, kernels run" in BlockProfile.of(model, block, sample, "cuda").obstacle("exact")


def test_without_triton_the_plan_says_what_to_install(monkeypatch):
    monkeypatch.setattr("sparsact.inference.layer_facts.find_spec", lambda name: None)
    monkeypatch.setitem(DEVICES, "cuda", DEVICES["cpu"])
    assert 'where kernels need Triton: pip install "sparsact[gpu]"' in device_obstacle([torch.zeros(2)], "cuda")


def test_layers_of_another_device_compute_densely():
    """So they do after ``.to("cuda")``: the state says for which type of device its product was made."""
    model = plain()
    before = model(rows(1, model)).detach()
    sparsify(model, "exact", rows(40, model))
    with torch.inference_mode():
        model(rows(1, model))
        assert model.down._sparse.sparse_calls
        state = model.down._sparse
        state.device, state.sparse_calls, state.direct = "cuda", 0, None
        assert torch.allclose(model(rows(1, model)), before)
    assert not state.sparse_calls


def test_seconds_between_events_wait_for_the_later_one():
    class Event:
        passed = 0
        synchronized = False

        def __init__(self):
            Event.passed += 250
            self.at = Event.passed

        def synchronize(self):
            self.synchronized = True

        def elapsed_time(self, other):
            assert other.synchronized
            return float(other.at - self.at)

    clock = event_clock(Event)
    marks = [clock.mark() for _ in range(3)]
    assert clock.seconds(marks[0], marks[2]) == 0.5
    assert not marks[1].synchronized


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_sums_tell_that_weights_changed(dtype):
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(4)).to(dtype)
    before = _sums(weight)
    assert torch.equal(_sums(weight.clone()), before)
    for change in (lambda w: w[3, 2].mul_(1.5), lambda w: w.copy_(w.flip(0)), lambda w: w.mul_(-1), torch.Tensor.zero_):
        other = weight.clone()
        change(other)
        assert not torch.equal(_sums(other), before)
    assert not torch.equal(_sums(weight[0]), _sums(weight[0].flip(0)))
