"""``sparsify(model, weights="int4")`` compared with other libraries' 4-bit products, one token at a time.

The decoding step of ``benchmarks.int8``, a model with the shape of OPT at 5 % active units. Weights are in groups of 32
on every side. All sides take turns on the same weights; seconds are of the processor, of the wall for several threads.

- *ONNX Runtime int4*, *OpenVINO int4*, *llama.cpp q4_0*: where they are installed; see ``benchmarks.runtimes``.
- *own dense int4*: the kernels of the library, reading all weights.
- *sparse int8*, *torch int8*: as in ``benchmarks.int8``.

Goal: faster than ONNX Runtime. Roofline: the bytes that are read, at the speed of ``numpy.dot`` on as many bytes.

    python -m benchmarks.int4 [--quick] [--threads 1] [--out results/int4.jsonl]
"""

from __future__ import annotations

import torch
from threadpoolctl import threadpool_limits

from benchmarks.figures import options, report
from benchmarks.int8 import decoding


def main() -> int:
    """Measure, print the table, keep the rows."""
    parser = options(__doc__, repeats=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(2028)
    with threadpool_limits(arguments.threads):
        figures = decoding(4, arguments.repeats, arguments.quick)
    return report("int4", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())
