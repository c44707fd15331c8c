"""``sparsify(model, weights="int4")`` compared with ONNX Runtime's 4-bit products, one token at a time.

The decoding step of ``benchmarks.int8``, a model with the shape of OPT at 5 % active units, on one thread. Weights are
in groups of 32, inputs in int8 on both sides. All sides take turns on the same weights; seconds are of the processor.

- *ONNX Runtime int4*: ``MatMulNBits`` for each linear layer, symmetric, a float32 scale for each group, int8 arithmetic
  (``accuracy_level=4``), where ``onnx`` and ``onnxruntime`` are installed.
- *own dense int4*: the kernels of the library, reading all weights.
- *sparse int8*, *torch int8*: as in ``benchmarks.int8``.

Goal: faster than ONNX Runtime. Roofline: the bytes that are read, at the speed of ``numpy.dot`` on as many bytes.

    python -m benchmarks.int4 [--quick] [--out results/int4.jsonl]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from benchmarks.figures import Figure, judged, options, report
from benchmarks.harness import interleaved
from benchmarks.int8 import DecodingStep, dense_quantized, quantized_by_torch, seconds_of_reading, session_of
from sparsact.inference import find_blocks, plan_of, sparsify

BYTES_A_WEIGHT = (4 + 8 / 32) / 8  # its bits and its share of the group's multiplier


def decoding(sizes: tuple[int, int, int, int], repeats: int, quick: bool) -> list[Figure]:
    """A step of the decoder, by every side, and its relative errors against float32."""
    d, s, layers, vocabulary = sizes
    model = DecodingStep(d, s, layers, vocabulary, 0.05).eval()
    steps = [(torch.randn(1, d), torch.randn(layers, 2, d // 64, 64, 64)) for _ in range(4)]
    dense, sparse, sparse8 = (deepcopy(model, {id(p): p for p in model.parameters()}) for _ in range(3))
    blocks = find_blocks(sparse, steps[0])
    sparsify(sparse, "exact", steps, weights="int4", blocks=blocks)
    sparsify(sparse8, "exact", steps, weights="int8", blocks=find_blocks(sparse8, steps[0]))
    sides: dict[str, Callable[..., Any]] = {
        "torch int8": quantized_by_torch(model),
        "sparse int8": sparse8,
        "own dense int4": dense_quantized(dense, "int4"),
        "sparse int4": sparse,
    }
    onnx = in_onnx_runtime(model, steps[0])
    if onnx is not None:
        sides["ONNX Runtime int4"] = onnx
    work = f"OPT shape, {layers} x {d}-{s}, 5% active"
    with torch.inference_mode():
        float32 = torch.cat([model(*step) for step in steps])
        figures = [
            Figure(work, f"{name}, relative error of logits", _error(side, steps, float32), "")
            for name, side in sides.items()
        ]
        calls: dict[str, Callable[[], object]] = {
            name: (lambda side=side: [side(*step) for step in steps]) for name, side in sides.items()
        }
        weights = sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, nn.Linear))
        read = weights - (1 - plan_of(sparse).choices[0].density) * layers * d * s
        calls["reading"] = seconds_of_reading(int(BYTES_A_WEIGHT * read))
        times = interleaved(calls, repeats, clock=time.process_time)
    for name, values in times.items():
        count = 1 if name == "reading" else len(steps)
        label = "bandwidth floor of sparse int4" if name == "reading" else name
        figures.append(Figure.of(work, f"{label}, CPU ms", [1e3 * one / count for one in values], "ms"))
    for name in sides:
        if name != "sparse int4":
            least = judged(1.0, quick) if name == "ONNX Runtime int4" else None
            quantity = f"sparse int4, times as fast as {name}"
            figures.append(Figure.ratio(work, quantity, times[name], times["sparse int4"], least=least))
    return figures


def _error(side: Callable[..., Any], steps: Sequence[Sequence[Tensor]], expected: Tensor) -> float:
    found = torch.cat([torch.as_tensor(side(*step)) for step in steps])
    return float((found - expected).norm() / expected.norm())


def in_onnx_runtime(model: nn.Module, step: Sequence[Tensor]) -> Callable[..., Any] | None:
    """The step in ONNX Runtime, its linear layers in 4 bits; None if it is not installed."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    import onnx
    from onnx import helper, numpy_helper

    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = f"{folder}/float32.onnx"
        torch.onnx.export(model, tuple(step), path, input_names=["x", "past"], dynamo=False)
        graph = onnx.load(path)
        arrays = {one.name: one for one in graph.graph.initializer}
        for node in graph.graph.node:
            if node.op_type not in ("Gemm", "MatMul") or node.input[1] not in arrays:
                continue
            weight = numpy_helper.to_array(arrays.pop(node.input[1]))
            if node.op_type == "MatMul":
                weight = np.ascontiguousarray(weight.T)
            packed, scales = four_bits(weight)
            names = [f"{node.output[0]}_{part}" for part in ("bits", "scales")]
            arrays[names[0]] = numpy_helper.from_array(packed, names[0])
            arrays[names[1]] = numpy_helper.from_array(scales, names[1])
            bias = ["", "", node.input[2]] if len(node.input) > 2 else []
            outputs, inputs = weight.shape
            settings = {"N": outputs, "K": inputs, "bits": 4, "block_size": 32, "accuracy_level": 4}
            new = [node.input[0], *names, *bias]
            made = helper.make_node("MatMulNBits", new, node.output, domain="com.microsoft", **settings)
            node.CopyFrom(made)
        del graph.graph.initializer[:]
        graph.graph.initializer.extend(arrays.values())
        graph.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        onnx.save(graph, path)
        session = session_of(path)
    return lambda x, past: session.run(None, {"x": x.numpy(), "past": past.numpy()})[0]


def four_bits(weight: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Weights (outputs, inputs) as ``MatMulNBits`` reads them, groups of 32 with the largest weight at -8; scales."""
    groups = weight.reshape(len(weight), -1, 32)
    largest = np.take_along_axis(groups, np.abs(groups).argmax(axis=2)[:, :, None], axis=2)
    scales = np.where(largest == 0, 1, largest / -8).astype(np.float32)
    integers = np.clip(np.rint(groups / scales) + 8, 0, 15).astype(np.uint8)
    return integers[:, :, ::2] | integers[:, :, 1::2] << 4, scales.reshape(-1)


def main() -> int:
    """Measure, print the table, keep the rows."""
    arguments = options(__doc__, repeats=15).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(2028)
    shape = (128, 512, 2, 300) if arguments.quick else (1024, 4096, 24, 50272)
    with threadpool_limits(1):
        figures = decoding(shape, arguments.repeats, arguments.quick)
    return report("int4", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
