"""``sparsify(model, weights="int4")`` compared with other libraries' 4-bit products, one token at a time.

The decoding step of ``benchmarks.int8``, a model with the shape of OPT at 5 % active units, on one thread. Weights are
in groups of 32 on every side. All sides take turns on the same weights; seconds are of the processor.

- *ONNX Runtime int4*, *OpenVINO int4*, *llama.cpp q4_0*: where they are installed; see ``benchmarks.runtimes``.
- *own dense int4*: the kernels of the library, reading all weights.
- *sparse int8*, *torch int8*: as in ``benchmarks.int8``.

Goal: faster than ONNX Runtime. Roofline: the bytes that are read, at the speed of ``numpy.dot`` on as many bytes.

    python -m benchmarks.int4 [--quick] [--out results/int4.jsonl]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from benchmarks.figures import Figure, judged, options, report
from benchmarks.harness import interleaved
from benchmarks.int8 import DecodingStep, dense_quantized, quantized_by_torch, seconds_of_reading
from benchmarks.runtimes import errors, in_others
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
    sides |= in_others(model, steps[0], 4)
    work = f"OPT shape, {layers} x {d}-{s}, 5% active"
    with torch.inference_mode():
        figures = errors(work, model, sides, steps)
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
