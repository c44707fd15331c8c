"""Product keys compared with top-k over all units, and a memory of hashed n-grams with ``nn.EmbeddingBag``.

Product keys: 2**20 units, 32 of them for each of 256 inputs, d = 256, forward and backward with a sparse gradient. The
other side has the same keys, adds up the scores of all units and takes ``torch.topk``. This is less work than a product
of the inputs with whole keys of all units. Hashed n-grams: 2**20 slots, 4 of them for each of 4,096 tokens, whose ids
are drawn by Zipf's law from 32,000; forward, backward and a step of ``torch.optim.SparseAdam``. The bag is given the
slots and hashes nothing. One thread, float32. Unit: CPU seconds, medians of rounds in turns.

Targets: product keys at least 20 times as fast, with equal outputs; the memory at most 1.3 times the bag's time.

    python -m benchmarks.memories --device cuda  # wall-clock time, no targets
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.figures import TIMES, Check, Figure, unjudged
from benchmarks.harness import finished, interleaved
from benchmarks.program import option, program
from sparsact.layers import HashMemory, ProductKeyMemory


def product_keys(n_keys: int, k: int, d: int, m: int, clock: Callable[[], float], repeats: int) -> list[Figure]:
    """The memory against a top-k of all units."""
    layer = ProductKeyMemory(n_keys, d, n_active=k, n_heads=1, d_query=d)
    nn.init.normal_(layer.values)
    x, half = torch.randn(m, d), d // 2
    keys = layer.routing.get_parameter("keys")[0]

    def all_units(x: Tensor) -> Tensor:
        queries = x @ layer.query_weight.T
        first, second = queries[:, :half] @ keys[0].T, queries[:, half:] @ keys[1].T
        best, units = (first[:, :, None] + second[:, None]).flatten(1).topk(k)
        weights = best.softmax(1)
        return F.embedding_bag(units, layer.values, mode="sum", sparse=True, per_sample_weights=weights)

    def step(outputs: Callable[[Tensor], Tensor]) -> None:
        layer.zero_grad()
        outputs(x).square().sum().backward()

    with torch.no_grad():
        y = all_units(x)
        selection = layer.route(x)
        sums = (selection.logits[:, 0, 0, :, None] + selection.logits[:, 0, 1, None]).flatten(1)
        chosen = sums.gather(1, selection.indices).sort(descending=True).values
        worse = float((chosen != sums.topk(k).values).sum())
        error = float((layer(x) - y).abs().max() / y.abs().max())
    sides = {"all units": lambda: step(all_units), "product keys": lambda: step(layer)}
    times = interleaved(sides, repeats, clock=clock)
    work = f"{n_keys**2:,} units, {k} active, d={d}, {m:,} inputs"
    return [
        *(Figure.of(work, f"{name}, seconds", its, "s") for name, its in times.items()),
        Figure.ratio(work, "product keys, times as fast as top-k", times["all units"], times["product keys"], least=20),
        Check(work, "scores that are not among the k largest", worse, "", most=0),
        Check(work, "largest difference over the largest output", error, "", most=1e-5),
    ]


def hashed(n_slots: int, d: int, m: int, clock: Callable[[], float], repeats: int) -> list[Figure]:
    """A step of the memory against one of the bag with its rows."""
    memory = HashMemory(n_slots, d, gate=False)
    bag = nn.EmbeddingBag(*memory.values.shape, mode="sum", sparse=True)
    memory.values.data.copy_(bag.weight.data)
    ids = torch.multinomial(1 / torch.arange(1.0, 32_001), m, replacement=True).reshape(-1, m // 8)
    slots = memory.route(ids).indices
    error = float((memory(ids).flatten(0, 1) - bag(slots)).detach().abs().max())

    def stepping(layer: nn.Module, given: Tensor) -> Callable[[], None]:
        optimizer: Any = torch.optim.SparseAdam(list(layer.parameters()))

        def step() -> None:
            optimizer.zero_grad()
            layer(given).square().sum().backward()
            optimizer.step()

        return step

    times = interleaved({"bag": stepping(bag, slots), "memory": stepping(memory, ids)}, repeats, clock=clock)
    work = f"{n_slots:,} slots, {slots.shape[1]} for each of {m:,} tokens, d={d}"
    ratio = [ours / its for ours, its in zip(times["memory"], times["bag"], strict=True)]
    return [
        *(Figure.of(work, f"{name}, seconds of a step", its, "s") for name, its in times.items()),
        Figure.of(work, "memory, times the bag's", ratio, TIMES, most=1.3),
        Check(work, "largest difference", error, "", most=1e-5),
    ]


@program(option("--device", choices=("cpu", "cuda"), default="cpu"), repeats=11)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    on_gpu, quick = arguments.device == "cuda", arguments.quick
    clock = finished if on_gpu else time.process_time
    torch.manual_seed(2026)
    with torch.device(arguments.device):
        figures = product_keys(*((16, 4, 32, 8) if quick else (1024, 32, 256, 256)), clock, arguments.repeats)
        for d in (16,) if quick else (64, 256):
            figures += hashed(*((512, d, 64) if quick else (2**20, d, 4096)), clock, arguments.repeats)
    if not on_gpu:
        return figures
    return [replace(each, work=f"{torch.cuda.get_device_name()} {each.work}") for each in unjudged(figures)]
