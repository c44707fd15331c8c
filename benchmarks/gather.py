"""Products with the weight rows of active units only, compared with PyTorch's product with the whole matrix.

A layer has 1,024 inputs and 4,096 units; each input activates 3 or 25 % of them, at random; batches of 1 and 32; one
thread. The dense side is ``torch.nn.functional.linear``. Each call takes the next of several matrices, together larger
than the cache of a core, so that both sides read their weights from memory, as in a model. Unit: seconds, medians of
repeats in turns. Whole layers, routing included, are timed too.

Target: at batch 1 and 3 % active, both products at least 10 times as fast as the dense one in float32. The other sizes
have no target: at batch 32 and 25 % nearly every row is needed, and the matrix units of processors make the dense
product faster in bfloat16.

Roofline: the selected rows, each read once, at the speed of reading all the matrices.
"""

from __future__ import annotations

from argparse import Namespace
from itertools import cycle
from statistics import median
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.figures import Figure
from benchmarks.harness import interleaved, seconds_of_reading
from benchmarks.program import program
from sparsact import kernels
from sparsact.layers import SparselyActivatedLayer
from sparsact.routing import HyperplaneLSH, RandomHash, TopK

COPIES: Final = 7  # of each matrix; no number of calls in a round, so that each call meets each of them


def array(tensor: Tensor) -> Any:
    """The tensor's memory as the kernels take it."""
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def products(n: int, t: int, m: int, share: float, dtype: torch.dtype, repeats: int) -> list[Figure]:
    """Both kernels of the forward pass, and that of the gradient, beside one dense product."""
    rng, k = np.random.default_rng(2025), round(share * t)
    matrices = [torch.randn(t, n).to(dtype) for _ in range(COPIES)]
    x, a = torch.randn(m, n).to(dtype), torch.randn(m, k).to(dtype)
    indices = np.stack([np.sort(rng.permutation(t)[:k]) for _ in range(m)])
    turn = cycle(range(COPIES))
    times = interleaved(
        {
            "dense": lambda: F.linear(x, matrices[next(turn)]),
            "gather_dot": lambda: kernels.gather_dot(array(x), array(matrices[next(turn)]), indices),
            "gather_sum": lambda: kernels.gather_sum(array(a), array(matrices[next(turn)]), indices),
            "scatter_outer": lambda: kernels.scatter_outer(array(a), array(x), indices, t),
            "reading": seconds_of_reading(4 * n * t * COPIES),
        },
        repeats,
    )
    selected = len(np.unique(indices)) * n * matrices[0].element_size()
    speed = 4 * n * t * COPIES / median(times["reading"])
    work = f"{n}x{t} {str(dtype).removeprefix('torch.')} batch={m} active={share:.0%}"
    least = 10 if m == 1 and share < 0.1 and dtype == torch.float32 else None
    return [
        *(Figure.of(work, f"{name}, seconds", times[name], "s") for name in times if name != "reading"),
        Figure.ratio(work, "gather_dot, times as fast", times["dense"], times["gather_dot"], least=least),
        Figure.ratio(work, "gather_sum, times as fast", times["dense"], times["gather_sum"], least=least),
        Figure(work, "roofline, seconds", selected / speed, "s"),
    ]


def layers(n: int, t: int, m: int, share: float, repeats: int) -> list[Figure]:
    """Whole layers, forward without gradients, routing included, in the sparse and in the dense method, and as auto."""
    k, figures = max(1, round(share * t)), []
    tables = max(1, k // 8)
    for name, router in (
        ("top_k", TopK(k)),
        ("random_hash", RandomHash(max(1, k // 8), t // 8)),
        ("hyperplanes", HyperplaneLSH(max(1, (t // 8 // tables).bit_length() - 1), tables)),
    ):
        width = t if name == "top_k" else router.width(n) * 8
        layer = SparselyActivatedLayer(n, width, n, router=router, generator=torch.Generator().manual_seed(1))
        x = torch.randn(m, n)

        def run(method: str, layer: SparselyActivatedLayer = layer, x: Tensor = x) -> None:
            layer.method = method
            with torch.no_grad():
                layer(x)

        times = interleaved(
            {method: (lambda method=method: run(method)) for method in ("sparse", "dense", "auto")}, repeats
        )
        work = f"layer {n}-{width}-{n} {name} batch={m} active={share:.0%}"
        figures += [Figure.of(work, f"{method}, seconds", values, "s") for method, values in times.items()]
        figures.append(Figure.ratio(work, "sparse, times as fast", times["dense"], times["sparse"]))
    return figures


@program(repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n, t = (64, 256) if arguments.quick else (1024, 4096)
    torch.manual_seed(2024)
    figures = []
    for m in (1, 32):
        for share in (0.03, 0.25):
            for dtype in (torch.float32, torch.bfloat16):
                figures += products(n, t, m, share, dtype, arguments.repeats)
            figures += layers(n, t, m, share, arguments.repeats)
    return figures
