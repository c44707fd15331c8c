"""``sparsify(model, weights="int4")`` compared with other libraries' 4-bit products, one token at a time.

The decoding steps of ``benchmarks.int8``, a model with the shape of OPT-125M at 5 % active units. Weights are in groups
of 32 on every side. All sides take turns on the same weights; seconds are of the processor, of the wall for several
threads.

- *ONNX Runtime int4*, *OpenVINO int4*, *llama.cpp q4_0*: where they are installed; see ``benchmarks.runtimes``.
- *own dense int4*: the kernels of the library, reading all weights.
- *sparse int8*, *torch int8*: as in ``benchmarks.int8``.

Goals: 1.35 times as fast as ONNX Runtime, 1.15 times as llama.cpp; with 8 and 16 tokens at least as fast as the fastest
dense side. Roofline: the bytes that are read, at the speed of ``numpy.dot`` on as many bytes.
"""

from __future__ import annotations

from argparse import Namespace

import torch

from benchmarks.figures import Figure
from benchmarks.int8 import decoding
from benchmarks.program import option, program


@program(option("--threads", type=int, default=1), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2028)
    return decoding(4, arguments.repeats, arguments.quick)
