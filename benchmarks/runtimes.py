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
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.figures import Figure

Step = Callable[[Tensor, Tensor], Any]


def in_others(model: nn.Module, step: Sequence[Tensor], bits: int) -> dict[str, Step]:
    """The step by every library that is here, its weights in 8 or 4 bits; says which are left out."""
    sides = {
        f"ONNX Runtime int{bits}": (in_onnx_runtime, ("onnxruntime", "onnx")),
        f"OpenVINO int{bits}": (in_openvino, ("openvino", "onnx")),
        f"llama.cpp q{bits}_0": (Ggml, ("ggml",)),
    }
    found: dict[str, Step] = {}
    for name, (made, modules) in sides.items():
        if missing := [module for module in modules if find_spec(module) is None]:
            print(f"{name} is left out: {' and '.join(missing)} not installed", file=sys.stderr)
            continue
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = made(model, step, bits, folder)
    return found


def errors(
    work: str, model: nn.Module, sides: Mapping[str, Callable[..., Any]], steps: Sequence[Sequence[Tensor]]
) -> list[Figure]:
    """Relative errors of all logits together, against float32."""
    exact = torch.cat([model(*step) for step in steps])
    found = {name: torch.cat([torch.as_tensor(side(*step)) for step in steps]) for name, side in sides.items()}
    return [
        Figure(work, f"{name}, relative error of logits", float((logits - exact).norm() / exact.norm()), "")
        for name, logits in found.items()
    ]


def in_fours(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers (outputs, groups, 32) of weights (outputs, inputs), the largest of a group at -8, and their scales."""
    groups = weight.reshape(len(weight), -1, 32)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[:, :, None], axis=2)
    scales = np.where(largest == 0, 1, largest / -8).astype(np.float32)
    return np.clip(np.rint(groups / scales), -8, 7).astype(np.int8), scales


def packed(integers: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
    """Two numbers of four bits a byte, the first one low."""
    nibbles = integers.astype(np.uint8) & 15
    return nibbles[..., ::2] | nibbles[..., 1::2] << 4


def exported(model: nn.Module, step: Sequence[Tensor], folder: str) -> str:
    """File of the float32 step as an ONNX graph."""
    path = str(Path(folder) / "float32.onnx")
    torch.onnx.export(model, tuple(step), path, input_names=["x", "past"], dynamo=False)
    return path


def in_onnx_runtime(model: nn.Module, step: Sequence[Tensor], bits: int, folder: str) -> Step:
    """The step in ONNX Runtime."""
    import onnxruntime

    whole, small = exported(model, step, folder), str(Path(folder) / "small.onnx")
    if bits == 8:
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(whole, small, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8)
    else:
        _with_four_bits(whole, small)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
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
        if node.op_type == "MatMul":
            weight = np.ascontiguousarray(weight.T)
        integers, scales = in_fours(weight)
        names = [f"{node.output[0]}_{part}" for part in ("bits", "scales")]
        arrays[names[0]] = numpy_helper.from_array(packed(integers + 8), names[0])
        arrays[names[1]] = numpy_helper.from_array(scales.reshape(-1), names[1])
        bias = ["", "", node.input[2]] if len(node.input) > 2 else []
        outputs, inputs = weight.shape
        settings = {"N": outputs, "K": inputs, "bits": 4, "block_size": 32, "accuracy_level": 4}
        new = [node.input[0], *names, *bias]
        node.CopyFrom(helper.make_node("MatMulNBits", new, node.output, domain="com.microsoft", **settings))
    del graph.graph.initializer[:]
    graph.graph.initializer.extend(arrays.values())
    graph.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(graph, small)


def in_openvino(model: nn.Module, step: Sequence[Tensor], bits: int, folder: str) -> Step:
    """The step in OpenVINO."""
    openvino, ops = import_module("openvino"), import_module("openvino.opset13")
    core = openvino.Core()
    graph = core.read_model(exported(model, step, folder))
    for node in graph.get_ordered_ops():
        constant = node.input_value(1).get_node() if node.get_type_name() == "MatMul" else None
        if constant is None or constant.get_type_name() != "Constant":
            continue
        weight = constant.get_data()
        if not node.get_attributes()["transpose_b"]:
            weight = np.ascontiguousarray(weight.T)
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
    settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(graph, "CPU", settings)
    return lambda x, past: compiled([x.numpy(), past.numpy()], share_inputs=True)[0]


class Ggml:
    """The step in ggml: a graph that is made once, its weights and its cache in buffers of the library."""

    def __init__(self, model: Any, step: Sequence[Tensor], bits: int, folder: str) -> None:
        del folder
        self.g = g = import_module("ggml")
        self.silent = g.ggml_log_callback(lambda level, text, data: None)
        g.ggml_log_set(self.silent, None)
        self.type = g.GGML_TYPE_Q8_0 if bits == 8 else g.GGML_TYPE_Q4_0
        self.backend = g.ggml_backend_cpu_init()
        g.ggml_backend_cpu_set_n_threads(self.backend, 1)
        self.plain, self.rearranged, self.context = (
            g.ggml_init(g.ggml_init_params(mem_size=1 << 24, mem_buffer=None, no_alloc=True)) for _ in range(3)
        )
        self.contents: list[tuple[Any, NDArray[Any]]] = []
        self.graph = g.ggml_new_graph_custom(self.context, 1 << 13, False)
        self._build(model, *step)
        host = g.ggml_backend_get_default_buffer_type(self.backend)
        g.ggml_backend_alloc_ctx_tensors_from_buft(self.plain, host)
        g.ggml_backend_alloc_ctx_tensors_from_buft(self.rearranged, self._rearranging() or host)
        for tensor, values in self.contents:
            g.ggml_backend_tensor_set(tensor, values.ctypes.data, 0, values.nbytes)
        self.contents.clear()
        if not g.ggml_gallocr_alloc_graph(g.ggml_gallocr_new(host), self.graph):
            raise MemoryError("no room for the graph")

    def _rearranging(self) -> Any:
        """Type of buffer in which q4_0 is rearranged as it is written; None where the library has none."""
        g, registry = self.g, self.g.ggml_backend_cpu_reg()
        address = g.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_dev_get_extra_bufts")
        types = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)(address)
        each = iter(types(g.ggml_backend_reg_dev_get(registry, 0)))
        return next(one for one in each if one is None or g.ggml_backend_buft_name(one) == b"CPU_REPACK")

    def _build(self, model: Any, token: Tensor, past: Tensor) -> None:
        g, c, number = self.g, self.context, self.g.GGML_TYPE_F32
        layers, _, heads, length, size = past.shape
        self.token = x = g.ggml_new_tensor_2d(self.plain, number, token.shape[1], 1)
        self.cache = g.ggml_new_tensor_4d(self.plain, number, size, length + 1, heads, 2 * layers)
        row, head = 4 * size, 4 * size * (length + 1)
        for i, layer in enumerate(model.layers):
            z, seen = self._normed(layer.attention_norm, x), []
            query = g.ggml_reshape_3d(c, self._linear(layer.q, z), size, 1, heads)
            for j, one in enumerate((layer.k, layer.v)):
                start = (2 * i + j) * heads * head
                last = g.ggml_view_3d(c, self.cache, size, 1, heads, row, head, start + length * row)
                new = g.ggml_reshape_3d(c, self._linear(one, z), size, 1, heads)
                g.ggml_build_forward_expand(self.graph, g.ggml_cpy(c, new, last))
                seen.append(g.ggml_view_3d(c, self.cache, size, length + 1, heads, row, head, start))
            mixed = g.ggml_flash_attn_ext(c, query, *seen, None, size**-0.5, 0.0, 0.0)
            x = g.ggml_add(c, x, self._linear(layer.out, g.ggml_reshape_2d(c, mixed, token.shape[1], 1)))
            up = g.ggml_relu(c, self._linear(layer.fc1, self._normed(layer.norm, x)))
            x = g.ggml_add(c, x, self._linear(layer.fc2, up))
        self.logits = self._linear(model.head, self._normed(model.norm, x))
        g.ggml_build_forward_expand(self.graph, self.logits)

    def _linear(self, layer: nn.Linear, x: Any) -> Any:
        g, (outputs, inputs) = self.g, layer.weight.shape
        whole = self.type == g.GGML_TYPE_Q4_0 and outputs % 8 == 0  # else there is nothing to rearrange
        weight = g.ggml_new_tensor_2d(self.rearranged if whole else self.plain, self.type, inputs, outputs)
        values, small = layer.weight.detach().numpy(), np.empty(g.ggml_nbytes(weight), np.uint8)
        source = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        g.ggml_quantize_chunk(self.type, source, small.ctypes.data, 0, outputs, inputs, None)
        self.contents.append((weight, small))
        y = g.ggml_mul_mat(self.context, weight, x)
        return y if layer.bias is None else g.ggml_add(self.context, y, self._vector(layer.bias))

    def _normed(self, layer: nn.LayerNorm, x: Any) -> Any:
        g = self.g
        y = g.ggml_mul(self.context, g.ggml_norm(self.context, x, layer.eps), self._vector(layer.weight))
        return g.ggml_add(self.context, y, self._vector(layer.bias))

    def _vector(self, values: Tensor) -> Any:
        tensor = self.g.ggml_new_tensor_1d(self.plain, self.g.GGML_TYPE_F32, len(values))
        self.contents.append((tensor, values.detach().numpy()))
        return tensor

    def __call__(self, x: Tensor, past: Tensor) -> NDArray[np.float32]:
        """Logits (1, vocabulary)."""
        g, token, seen = self.g, x.numpy(), past.numpy()
        row = 4 * seen.shape[-1] * seen.shape[-2]
        heads, logits = seen.nbytes // row, np.empty((1, self.g.ggml_nelements(self.logits)), np.float32)
        g.ggml_backend_tensor_set(self.token, token.ctypes.data, 0, token.nbytes)
        g.ggml_backend_tensor_set_2d(self.cache, seen.ctypes.data, 0, row, heads, row + 4 * seen.shape[-1], row)
        if g.ggml_backend_graph_compute(self.backend, self.graph) != 0:
            raise RuntimeError("ggml could not compute the step")
        g.ggml_backend_tensor_get(self.logits, logits.ctypes.data, 0, logits.nbytes)
        return logits
