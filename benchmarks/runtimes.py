"""The decoding step of ``benchmarks.int8`` in other libraries, each where it is installed, on one thread.

- *ONNX Runtime* (``onnxruntime``, ``onnx``): int8 by its dynamic quantisation, a scale for each output, weights in 7 of
  the bits, since sums saturate on processors without VNNI; int4 by ``MatMulNBits``, symmetric, a float32 scale for each
  group of 32, int8 arithmetic (``accuracy_level=4``).
- *OpenVINO* (``openvino``, ``onnx``): symmetric compressed weights as NNCF writes them, float16 scales, in int8 one for
  each output, in int4 one for each group of 32; the hint of latency. Inputs may be quantised, in groups of 32, which is
  its default, but with AVX2 alone it keeps them in float32.
- *llama.cpp* (``ggml-python``, which is built on this machine): it has no OPT, so the step is a graph of its library
  ggml, made once: q8_0 or q4_0, q4_0 rearranged as llama.cpp does, flash attention over float32. Keys and values of the
  past are copied into its cache in each step, as torch concatenates them.
"""

from __future__ import annotations

import ctypes
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Step = Callable[[Tensor, Tensor], Any]


def in_others(model: nn.Module, step: Sequence[Tensor], bits: int) -> dict[str, Step]:
    """The step by every library that is here, its weights in 8 or 4 bits; says which are left out."""
    sides = {
        f"ONNX Runtime int{bits}": (in_onnx_runtime, ("onnxruntime", "onnx")),
        f"OpenVINO int{bits}": (in_openvino, ("openvino", "onnx")),
        f"llama.cpp q{bits}_0": (in_ggml, ("ggml",)),
    }
    found: dict[str, Step] = {}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = str(Path(folder) / "float32.onnx")
        if find_spec("onnx") is not None:
            torch.onnx.export(model, tuple(step), whole, input_names=["x", "past"], dynamo=False)
        for name, (made, modules) in sides.items():
            if missing := [module for module in modules if find_spec(module) is None]:
                print(f"{name} is left out: without {' and '.join(missing)}", file=sys.stderr)
            else:
                found[name] = made(model, step, bits, whole)
    return found


def in_fours(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers (outputs, groups, 32) of weights (outputs, inputs), the largest of a group at -8, and their scales."""
    groups = weight.reshape(len(weight), -1, 32)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[:, :, None], axis=2)
    scales = np.where(largest == 0, 1, largest / -8).astype(np.float32)
    return np.clip(np.rint(groups / scales), -8, 7).astype(np.int8), scales


def packed(integers: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
    """Two numbers of four bits a byte, the first one low."""
    nibbles: NDArray[np.uint8] = integers.astype(np.uint8) & np.uint8(15)
    return nibbles[..., ::2] | nibbles[..., 1::2] << np.uint8(4)


def in_onnx_runtime(model: nn.Module, step: Sequence[Tensor], bits: int, whole: str) -> Step:
    """The step in ONNX Runtime."""
    import onnxruntime

    small = f"{whole}.small"
    if bits == 8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(whole, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    else:
        _with_four_bits(whole, small)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = torch.get_num_threads(), 1
    session = onnxruntime.InferenceSession(small, settings, providers=["CPUExecutionProvider"])
    return lambda x, past: session.run(None, {"x": x.numpy(), "past": past.numpy()})[0]


def _with_four_bits(whole: str, small: str) -> None:
    """The graph with ``MatMulNBits`` for every linear layer."""
    import onnx
    from onnx import helper, numpy_helper

    graph = onnx.load(whole)
    arrays = {one.name: one for one in graph.graph.initializer}
    for node in graph.graph.node:
        if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in arrays:
            continue
        weight = numpy_helper.to_array(arrays.pop(node.input[1]))
        weight = np.ascontiguousarray(weight.T) if node.op_type == "MatMul" else weight
        integers, scales = in_fours(weight)
        names = [f"{node.output[0]}_{part}" for part in ("bits", "scales")]
        arrays[names[0]] = numpy_helper.from_array(packed(integers + 8), names[0])
        arrays[names[1]] = numpy_helper.from_array(scales.reshape(-1), names[1])
        bias = ["", "", node.input[2]] if len(node.input) > 2 else []
        n, k = weight.shape
        settings = {"N": n, "K": k, "bits": 4, "block_size": 32, "accuracy_level": 4}
        new = [node.input[0], *names, *bias]
        node.CopyFrom(helper.make_node("MatMulNBits", new, node.output, domain="com.microsoft", **settings))
    del graph.graph.initializer[:]
    graph.graph.initializer.extend(arrays.values())
    graph.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(graph, small)


def in_openvino(model: nn.Module, step: Sequence[Tensor], bits: int, whole: str) -> Step:
    """The step in OpenVINO."""
    openvino, ops = import_module("openvino"), import_module("openvino.opset13")
    core = openvino.Core()
    graph = core.read_model(whole)
    for node in graph.get_ordered_ops():
        if node.get_type_name() != "MatMul" or node.input_value(1).get_node().get_type_name() != "Constant":
            continue
        weight = node.input_value(1).get_node().get_data()
        weight = np.ascontiguousarray(weight if node.get_attributes()["transpose_b"] else weight.T)
        if bits == 8:
            scales = np.abs(weight).max(axis=1, keepdims=True) / 127
            integers = ops.constant(np.rint(weight / scales).astype(np.int8))
        else:
            values, scales = in_fours(weight)
            tensor = openvino.Tensor(openvino.Type.i4, openvino.Shape(list(values.shape)))
            tensor.data.view(np.uint8).reshape(-1)[:] = packed(values).reshape(-1)
            integers = ops.constant(tensor)
        product = ops.multiply(ops.convert(integers, "f16"), ops.constant(scales.astype(np.float16)))
        small = ops.convert(ops.reshape(product, list(weight.shape), special_zero=False), "f32")
        openvino.utils.replace_node(node, ops.matmul(node.input_value(0), small, transpose_a=False, transpose_b=True))
    settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(graph, "CPU", settings)
    return lambda x, past: compiled([x.numpy(), past.numpy()], share_inputs=True)[0]


def in_ggml(model: Any, step: Sequence[Tensor], bits: int, whole: str) -> Step:
    """The step in ggml: a graph that is made once, its weights and its cache in buffers of the library."""
    g = import_module("ggml")
    kind = g.GGML_TYPE_Q8_0 if bits == 8 else g.GGML_TYPE_Q4_0
    plain, rearranged, c = (
        g.ggml_init(g.ggml_init_params(mem_size=1 << 24, mem_buffer=None, no_alloc=True)) for _ in range(3)
    )
    graph, contents = g.ggml_new_graph_custom(c, 1 << 13, False), []

    def vector(values: Tensor) -> Any:
        contents.append((g.ggml_new_tensor_1d(plain, g.GGML_TYPE_F32, len(values)), values.detach().numpy()))
        return contents[-1][0]

    def linear(layer: nn.Linear, x: Any) -> Any:
        outputs, inputs = layer.weight.shape
        context = rearranged if bits == 4 and outputs % 8 == 0 else plain
        weight = g.ggml_new_tensor_2d(context, kind, inputs, outputs)
        source, small = layer.weight.detach().numpy(), np.empty(g.ggml_nbytes(weight), np.uint8)
        floats = source.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        g.ggml_quantize_chunk(kind, floats, small.ctypes.data, 0, outputs, inputs, None)
        contents.append((weight, small))
        y = g.ggml_mul_mat(c, weight, x)
        return y if layer.bias is None else g.ggml_add(c, y, vector(layer.bias))

    def normed(layer: nn.LayerNorm, x: Any) -> Any:
        return g.ggml_add(c, g.ggml_mul(c, g.ggml_norm(c, x, layer.eps), vector(layer.weight)), vector(layer.bias))

    layers, _, heads, length, size = step[1].shape
    row, head = 4 * size, 4 * size * (length + 1)  # bytes
    token = x = g.ggml_new_tensor_2d(plain, g.GGML_TYPE_F32, heads * size, 1)
    cache = g.ggml_new_tensor_4d(plain, g.GGML_TYPE_F32, size, length + 1, heads, 2 * layers)
    for i, layer in enumerate(model.layers):
        z, seen = normed(layer.attention_norm, x), []
        query = g.ggml_reshape_3d(c, linear(layer.q, z), size, 1, heads)
        for start, one in ((2 * i * heads * head, layer.k), ((2 * i + 1) * heads * head, layer.v)):
            last = g.ggml_view_3d(c, cache, size, 1, heads, row, head, start + length * row)
            new = g.ggml_reshape_3d(c, linear(one, z), size, 1, heads)
            g.ggml_build_forward_expand(graph, g.ggml_cpy(c, new, last))
            seen.append(g.ggml_view_3d(c, cache, size, length + 1, heads, row, head, start))
        mixed = g.ggml_flash_attn_ext(c, query, *seen, None, size**-0.5, 0.0, 0.0)
        x = g.ggml_add(c, x, linear(layer.out, g.ggml_reshape_2d(c, mixed, heads * size, 1)))
        x = g.ggml_add(c, x, linear(layer.fc2, g.ggml_relu(c, linear(layer.fc1, normed(layer.norm, x)))))
    result = linear(model.head, normed(model.norm, x))
    g.ggml_build_forward_expand(graph, result)

    silent = g.ggml_log_callback(lambda level, text, data: None)
    g.ggml_log_set(silent, None)
    backend, registry = g.ggml_backend_cpu_init(), g.ggml_backend_cpu_reg()
    g.ggml_backend_cpu_set_n_threads(backend, torch.get_num_threads())
    host = g.ggml_backend_get_default_buffer_type(backend)
    address = g.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_dev_get_extra_bufts")
    types = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(address)
    each = iter(types(g.ggml_backend_reg_dev_get(registry, 0)))  # of buffers; None ends them
    other = next(one for one in each if one is None or g.ggml_backend_buft_name(one) == b"CPU_REPACK")
    g.ggml_backend_alloc_ctx_tensors_from_buft(plain, host)
    g.ggml_backend_alloc_ctx_tensors_from_buft(rearranged, other or host)
    for tensor, values in contents:
        g.ggml_backend_tensor_set(tensor, values.ctypes.data, 0, values.nbytes)
    contents.clear()
    g.ggml_gallocr_alloc_graph(g.ggml_gallocr_new(host), graph)

    def call(x: Tensor, past: Tensor, silent: Any = silent) -> NDArray[np.float32]:  # ggml keeps no reference to it
        logits = np.empty((1, g.ggml_nelements(result)), np.float32)
        g.ggml_backend_tensor_set(token, x.data_ptr(), 0, x.nbytes)
        g.ggml_backend_tensor_set_2d(cache, past.data_ptr(), 0, length * row, 2 * layers * heads, head, length * row)
        if g.ggml_backend_graph_compute(backend, graph) != 0:
            raise RuntimeError("ggml could not compute the step")
        g.ggml_backend_tensor_get(result, logits.ctypes.data, 0, logits.nbytes)
        return logits

    return call
