"""``sparsify(model, weights="int4")`` compared with 4-bit products of other libraries, one token at a time.

The decoding steps are the steps of ``benchmarks.int8``: the shape of OPT-125M with 5 % of the units active. Every side
quantises weights in groups of 32. All sides take turns on the same weights; seconds are CPU time on one thread and
wall-clock time on several.

- *ONNX Runtime int4*, *OpenVINO int4*, *llama.cpp q4_0*: if they are installed; see ``benchmarks.runtimes``.
- *own dense int4*: the kernels of this library, reading all weights.
- *sparse int8*, *torch int8*: as in ``benchmarks.int8``.

Targets: 1.35 times as fast as ONNX Runtime, 1.15 times as llama.cpp; with 8 and 16 tokens at least as fast as the
fastest dense side. Roofline: the bytes that are read, at the speed of ``numpy.dot`` on as many bytes.
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
