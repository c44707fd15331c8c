"""Triton's products of arrays and in models, on the GPU or, where there is none, in Triton's interpreter.

Triton must be told of the interpreter before it is imported, and another test may have imported it: hence a process.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from multiprocessing import get_context

import numpy as np
import sparse_models
import torch

from sparsact.inference import densify, find_blocks, sparsify
from sparsact.inference.apply import apply
from sparsact.inference.autotune import fastest
from sparsact.inference.block_profile import BlockProfile, sample_inputs
from sparsact.inference.methods import SparsifyOptions
from sparsact.inference.quantizing import quantize
from sparsact.inference.sparse_linear import SparseLinear
from sparsact.inference.sparsifying import requested_replacement


def device():
    """Calls a function of this module with arguments where Triton's kernels can be run."""
    if torch.cuda.is_available():
        return lambda function, *arguments: function(*arguments)
    return lambda function, *arguments: _interpreter().submit(function, *arguments).result()


@cache
def _interpreter():
    """The process that all files of tests share; it ends with this one."""
    process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with _interpreting():
        process.submit(os.getpid).result()
    return process


def product(options, name, dtype, *arrays):
    """What the product returns: float32 arrays in the precision ``dtype``, uint16 as bfloat16; no input changes.

    Of int8 weights the inputs alone are in that precision.
    """
    from sparsact.inference import triton

    place = "cuda" if torch.cuda.is_available() else "cpu"
    tensors = [None if array is None else torch.from_numpy(array).to(place) for array in arrays]
    tensors = [x.view(torch.bfloat16) if x is not None and x.dtype == torch.uint16 else x for x in tensors]
    cast = slice(0, 1 if name == "int8_product" else None)
    tensors[cast] = [
        x.to(getattr(torch, dtype)) if x is not None and x.dtype == torch.float32 else x for x in tensors[cast]
    ]
    before = [None if x is None else x.clone() for x in tensors]
    result = getattr(triton, name)(*tensors, **options)
    for x, was in zip(tensors, before, strict=True):
        assert x is None or not x.numel() or torch.equal(*(y.contiguous().view(torch.uint8) for y in (x, was)))
    assert result.dtype == tensors[0].dtype
    assert result.device == tensors[0].device
    return result.to("cpu", torch.float32).numpy()


def layer_kernel(name, dtype, *arguments):
    """What a kernel of routed layers returns: arrays of float32 in the precision ``dtype``, in float64."""
    from sparsact.kernels import gpu

    place = "cuda" if torch.cuda.is_available() else "cpu"
    given = [torch.from_numpy(one).to(place) if isinstance(one, np.ndarray) else one for one in arguments]
    given = [one.to(getattr(torch, dtype)) if getattr(one, "dtype", None) == torch.float32 else one for one in given]
    if name == "segment_matmul":  # matrices (E, o, n) transposed
        given[1] = given[1].transpose(1, 2)
    found = getattr(gpu, name)(*given)
    return (given[0] if name == "clear_from" else found).double().cpu().numpy()  # the one that works in place


def precisions():
    """Precision in which segments of float32 are multiplied, under each setting of torch."""
    from sparsact.kernels import gpu

    found, backends = [gpu._tiles()["PRECISION"]], torch.backends
    if hasattr(backends.cuda.matmul, "fp32_precision"):  # since torch 2.9
        for place in (backends, backends.cuda.matmul):
            before, place.fp32_precision = place.fp32_precision, "tf32"
            found.append(gpu._tiles()["PRECISION"])
            place.fp32_precision = before
    else:
        backends.cuda.matmul.allow_tf32 = True
        found.append(gpu._tiles()["PRECISION"])
        backends.cuda.matmul.allow_tf32 = False
    return found


def rounded(array, dtype):
    """A float32 array with the numbers that the precision ``dtype`` has."""
    return torch.from_numpy(array.astype(np.float32)).to(getattr(torch, dtype)).float().numpy()


@contextmanager
def _interpreting():
    """Processes started within run Triton's interpreter."""
    before = os.environ.get("TRITON_INTERPRET")
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        yield
    finally:
        del os.environ["TRITON_INTERPRET"]
        os.environ |= {} if before is None else {"TRITON_INTERPRET": before}


def sparse_outputs(make, dtype, counts, options):
    """What a model made sparse by Triton's products returns for each number of rows, and what the dense one returns.

    Also which classes its layers have, and how many calls of the second layer were computed sparsely.
    """
    place = "cuda" if torch.cuda.is_available() else "cpu"
    dense = make(**options).to(place, getattr(torch, dtype))
    model, given = deepcopy(dense), [sparse_models.rows(m, dense, seed=m).to(dense.down.weight) for m in counts]
    _, profiles = _profiles(model, [sparse_models.rows(64, dense, seed=3).to(dense.down.weight)])
    apply(model, [requested_replacement(one, "exact") for one in profiles])
    state = model.down._sparse
    with torch.inference_mode():
        for x in given:  # layers learn the order of their calls, and copy their weights
            model(x)
        state.calls = state.sparse_calls = 0
        with _no_waiting():
            found = [model(x) for x in given]
        sparse_calls = state.sparse_calls
        again = deepcopy(model)
        assert all(torch.equal(again(x), y) for x, y in zip(given, found, strict=True))
        wanted = [dense(x) for x in given]
        lost = given[1].clone()
        lost[0, 1] = float("inf")
        assert torch.equal(*(one(lost).isfinite() for one in (model, dense)))
    kinds = {
        name: type(layer._sparse.selector).__name__
        for name, layer in model.named_children()
        if isinstance(layer, SparseLinear)
    }
    return [[y.float().cpu().numpy() for y in side] for side in (found, wanted)], kinds, sparse_calls


def planned_by_auto(make):
    """The plans that ``"auto"`` makes from times of Triton's products, as text, and how often the model was called."""
    model = make().to("cuda" if torch.cuda.is_available() else "cpu")
    _, profiles = _profiles(model, [sparse_models.rows(64, model, seed=3).to(model.down.weight)])
    return [(plan.method, plan.reason, dict(plan.seconds)) for _, plan in fastest(profiles, 0.1)]


def obstacles(make, method):
    """Why blocks stay dense by a method."""
    model = make().to("cuda" if torch.cuda.is_available() else "cpu")
    _, profiles = _profiles(model, [sparse_models.rows(64, model, seed=3).to(model.down.weight)])
    return [requested_replacement(one, method)[1].reason for one in profiles]


def quantized_outputs(make, weights, counts, dtype, keep_weights):
    """What a model with integer weights returns by Triton's products and by the kernels of the CPU, and its plan."""
    place = "cuda" if torch.cuda.is_available() else "cpu"
    model = make().to(getattr(torch, dtype))
    given = [sparse_models.rows(m, model, seed=m).to(model.down.weight) for m in counts]
    shown = [sparse_models.rows(8, model, seed=3).to(model.down.weight)]
    on_cpu = sparsify(deepcopy(model), "exact", shown, weights=weights)
    model.to(place)
    shown = [x.to(place) for x in shown]
    _, profiles = _profiles(model, shown)
    options = SparsifyOptions.checked("exact", weights, keep_weights, 0.1, None, None)
    plan = quantize(model, profiles, shown, options, "cuda")
    with torch.inference_mode():
        for x in given:
            model(x.to(place))
        on_device = [x.to(place) for x in given]
        with _no_waiting():
            found = [model(x) for x in on_device]
        outputs = [[y.float().cpu().numpy() for y in side] for side in (found, [on_cpu(x) for x in given])]
    weight = densify(model).down.weight
    return outputs, [one.reason for one in plan.layers], plan.output_error, weight.device.type == place


def _profiles(model, shown):
    blocks = find_blocks(model, shown[0])
    samples = sample_inputs(model, blocks, shown)
    return blocks, [BlockProfile.of(model, block, samples[block], "cuda") for block in blocks]


@contextmanager
def _no_waiting():
    """Fail where the host waits for a number that the device computes."""
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")
        return
    names = "__bool__", "__float__", "__int__", "__index__", "item", "tolist", "nonzero"
    held = {name: getattr(torch.Tensor, name) for name in names}

    def refuse(*given):
        raise AssertionError("the host waits for a number")

    try:
        for name in names:
            setattr(torch.Tensor, name, refuse)
        yield
    finally:
        for name, method in held.items():
            setattr(torch.Tensor, name, method)
