"""The k largest outputs of a layer, found by a certified screen, compared with a dense layer and torch.topk.

First the encoder of a top-k autoencoder: 768 inputs, 24,576 units and k = 32, then the sum of the decoder's rows of the
features found, for 1, 16 and 256 rows. Dense PyTorch (``torch.topk``, indexing and ``einsum``) is compared with
:class:`CertifiedTopK` and ``kernels.gather_sum``. Then greedy decoding with the shape of OPT-125M
(``benchmarks.int8.DecodingStep``, 5 % of the units active, 64 keys and values a layer, a head of 50,272 words tied to
the embeddings): dense, with certified blocks, and with ``head="top_k"`` too. Weights are Gaussian. All sides take turns
on the same weights; seconds are wall-clock time.

Targets: the encoder 4, 3 and 2 times as fast with the same features; decoding 2.2 times as fast with the same tokens.
Roofline: the bytes of the copy, or of what a step reads, at the speed of ``numpy.dot`` on as many bytes.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from statistics import median
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved, seconds_of_reading
from benchmarks.int8 import DecodingStep
from benchmarks.program import option, program
from sparsact.inference import sparsify
from sparsact.inference.certified_top_k import CertifiedTopK
from sparsact.kernels.gather import gather_sum

ENCODER_GOALS: Final = {1: 4.0, 16: 3.0, 256: 2.0}  # by rows
HEAD: Final = 50  # largest logits, as transformers' filter has by default


def encoder(d: int, s: int, k: int, m: int, repeats: int) -> list[Figure]:
    """Features of m rows, and the sum of their decoder rows."""
    weight, bias, decoder = torch.randn(s, d) / d**0.5, torch.randn(s) / 10, torch.randn(s, d)
    found, x = CertifiedTopK(weight, bias), torch.randn(m, d)

    def dense() -> tuple[Tensor, Tensor]:
        values, indices = torch.topk(F.linear(x, weight, bias), k)
        return torch.einsum("mk,mkd->md", values, decoder[indices]), indices

    def certified() -> tuple[Any, Tensor]:
        values, indices = found.top_k(x, k)
        return gather_sum(values.numpy(), decoder.numpy(), indices.numpy()), indices

    with torch.inference_mode():
        same = (dense()[1].sort().values == certified()[1].sort().values).all(1)
        reading = seconds_of_reading(s * d)
        times = interleaved({"dense": dense, "certified": certified, "reading": reading}, repeats)
    work = f"encoder {d} x {s:,}, k = {k}, {m} rows"
    return [
        *(Figure.of(work, f"{name}, ms", times[name].scaled(1e3), "ms") for name in ("dense", "certified")),
        Figure(work, "roofline of the copy, ms", 1e3 * median(times["reading"]), "ms"),
        Check(work, "same features", float(same.float().mean()), "of rows", least=1),
        Figure.ratio(work, "times as fast", times["dense"], times["certified"], least=ENCODER_GOALS[m]),
    ]


def decoding(d: int, s: int, layers: int, vocabulary: int, repeats: int) -> list[Figure]:
    """Greedy decoding of 16 tokens."""
    model = DecodingStep(d, s, layers, vocabulary, 0.05).eval()
    with torch.no_grad():
        model.head.weight.normal_()
    past = torch.randn(layers, 2, d // 64, 64, 64)
    steps = [(torch.randn(1, d), past) for _ in range(8)]
    blocks, head = (deepcopy(model, {id(p): p for p in model.parameters()}) for _ in range(2))
    sparsify(blocks, "certified", steps)
    sparsify(head, "certified", steps, head="top_k", k=min(HEAD, vocabulary))

    def tokens(side: nn.Module) -> list[int]:
        found, x = [], steps[0][0]
        for _ in range(16):
            found.append(int(side(x, past).argmax()))
            x = model.head.weight[found[-1], None]
        return found

    sides = {"dense": model, "certified blocks": blocks, "certified blocks and head": head}
    weights = 4 * sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, nn.Linear))
    calls: dict[str, Callable[[], Any]] = {name: (lambda side=side: tokens(side)) for name, side in sides.items()}
    with torch.inference_mode():
        same = sum(a == b for a, b in zip(tokens(model), tokens(head), strict=True)) / 16
        times = interleaved(calls | {"reading": seconds_of_reading(weights)}, repeats)
    work = f"greedy decoding, {layers} x {d}-{s}, {vocabulary:,} words"
    read = weights - 4 * layers * d * s * 2 + layers * d * s * (1 + 8 * 0.05) - 3 * d * vocabulary
    return [
        *(Figure.of(work, f"{name}, ms a token", times[name].scaled(1e3 / 16), "ms") for name in sides),
        Figure(work, "roofline, ms a token", 1e3 * median(times["reading"]) * read / weights, "ms"),
        Check(work, "same tokens", same, "of tokens", least=1),
        *(
            Figure.ratio(work, f"{name}, times as fast", times["dense"], times[name], least=least)
            for name, least in (("certified blocks", None), ("certified blocks and head", 2.2))
        ),
    ]


@program(option("--threads", type=int, default=1), repeats=15)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    torch.manual_seed(2031)
    d, s, k, sizes = (64, 512, 8, (768, 2)) if arguments.quick else (768, 24576, 32, (3072, 12))
    figures = [one for m in ENCODER_GOALS for one in encoder(d, s, k, m, arguments.repeats)]
    return figures + decoding(d, sizes[0], sizes[1], 500 if arguments.quick else 50272, arguments.repeats)
