"""A feed-forward block and its products on a GPU, compared with dense PyTorch (cuBLAS) on the same device.

d = 4096, s = 16384, bfloat16, 1 to 16 inputs a call, which have the same units active or, "own sets", each its own.
No call finds its weights in the L2 cache: a round uses copies of the weights that together are three times as large,
and disjoint sets of active units within each copy. Each side is captured as a CUDA graph of one round, without the time
that Python takes to launch; ``--eager`` runs it like the layers of ``sparsify``. CUDA events time both. No TF32.

Units: microseconds a call, times as fast as dense, and GB/s of the weights that the call must read. No target yet.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import median
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.figures import Figure
from benchmarks.program import option, program
from sparsact.inference.weights.int8 import quantized_weight

QUICK, SIZES = (2048, 8192), (4096, 16384)
DENSITIES, BATCHES = (0.01, 0.03, 0.1, 0.3), (1, 2, 4, 8, 16)
INT8_LIMIT: Final = 5e-2
LIMITS: Final = {torch.float16: 1e-2, torch.bfloat16: 4e-2, torch.float32: 1e-5}  # of the largest number of the result


@dataclass(frozen=True)
class Call:
    """What one call takes: weights up (s, d), down (d, s) and its neuron-major copy, biases, and who is active."""

    up: Tensor
    down: Tensor
    values: Tensor
    bias: Tensor  # of the output
    x: Tensor
    thresholds: Tensor  # of the units: so high or low that they alone decide who is active
    h: Tensor
    mask: Tensor
    own: Tensor  # as h, each input with a set of its own
    integers: Tensor  # values as int8
    scale: Tensor
    shift: Tensor  # bias in float32


def calls(d: int, s: int, density: float, dtype: torch.dtype, batch: int, copies: int) -> list[Call]:
    """One round: each copy of the weights with each of its disjoint sets of active units, the copies in turn."""
    generator = torch.Generator("cuda").manual_seed(2025)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device="cuda").to(dtype)

    weights: list[dict[str, Tensor]] = []
    for _ in range(copies):
        down, bias = normal(d, s), normal(d)
        integers, scale = (part.to("cuda") for part in quantized_weight(down))
        floats = {"up": normal(s, d) / d**0.5, "down": down, "values": down.T.contiguous(), "bias": bias}
        weights.append(floats | {"integers": integers.T.contiguous(), "scale": scale, "shift": bias.float()})
    found, k = [], max(1, round(density * s))
    sets = torch.randperm(s, generator=generator, device="cuda")[: s // k * k].view(-1, k)
    for active, copy in product(sets, weights):
        on = torch.zeros(s, dtype=torch.bool, device="cuda").index_fill_(0, active, True)
        h = torch.where(on, normal(batch, s).abs() + 0.1, 0)
        thresholds = torch.where(on, 8.0, -8.0).to(dtype)
        mask = on.expand(batch, s).to(torch.uint8).contiguous()
        own = torch.rand(batch, s, generator=generator, device="cuda").argsort(dim=1) < k
        drawn = {"x": normal(batch, d), "own": torch.where(own, normal(batch, s).abs() + 0.1, 0)}
        found.append(Call(**copy, **drawn, thresholds=thresholds, h=h, mask=mask))
    return found


def sides(
    density: float, batch: int, itemsize: int
) -> dict[str, tuple[Callable[[Call], Tensor], Callable[[Call], Tensor], float]]:
    """By name: the call, what it should return (in the precision of what it is given), matrices that it must read."""
    from sparsact.inference.triton import active_dot, int8_product, sparse_product

    def down(c: Call) -> Tensor:
        return F.linear(c.h, c.down, c.bias)

    def own(c: Call) -> Tensor:
        return F.linear(c.own, c.down, c.bias)

    def int8(c: Call) -> Tensor:
        return F.linear(c.h, (c.integers * c.scale).T, c.bias)

    def up(c: Call) -> Tensor:
        return F.linear(c.x, c.up, c.thresholds)

    def block(c: Call) -> Tensor:
        return F.linear(up(c).relu(), c.down, c.bias)

    return {
        "down, dense": (down, down, 1),
        "down, sparse_product": (lambda c: sparse_product(c.h, c.values, c.bias), down, density),
        "down, together": (lambda c: sparse_product(c.h, c.values, c.bias, together=True), down, density),
        "down, own sets": (lambda c: sparse_product(c.own, c.values, c.bias), own, 1 - (1 - density) ** batch),
        "down, own sets together": (
            lambda c: sparse_product(c.own, c.values, c.bias, together=True),
            own,
            1 - (1 - density) ** batch,
        ),
        "down, int8": (lambda c: int8_product(c.h, c.integers, c.scale, c.shift), int8, density / itemsize),
        "down, int8 whole": (
            lambda c: int8_product(c.h, c.integers, c.scale, c.shift, gather=False),
            int8,
            1 / itemsize,
        ),
        "up, dense": (up, up, 1),
        "up, active_dot": (
            lambda c: active_dot(c.x, c.up, c.thresholds, c.mask),
            lambda c: torch.where(c.mask.bool(), up(c), 0),
            density,
        ),
        "block, dense": (block, block, 2),
        "block, down sparse": (lambda c: sparse_product(up(c).relu(), c.values, c.bias), block, 1 + density),
        "block, active units given": (
            lambda c: sparse_product(active_dot(c.x, c.up, c.thresholds, c.mask).relu(), c.values, c.bias),
            block,
            2 * density,
        ),
    }


def check(name: str, call: Callable[[Call], Tensor], reference: Callable[[Call], Tensor], given: Call) -> None:
    """Stop unless the call returns what its reference does in float64."""
    mask = {"mask": given.mask}
    wide = Call(**{key: tensor.double() for key, tensor in vars(given).items()} | mask)
    exact, found = reference(wide), call(given)
    error = ((found - exact).abs().max() / exact.abs().max()).item()
    if not error <= (INT8_LIMIT if "int8" in name else LIMITS[found.dtype]):
        raise SystemExit(f"gpu: {name} in {found.dtype} is off by {error:.1e} of the largest number")


def microseconds(call: Callable[[Call], Tensor], round_: list[Call], repeats: int, eager: bool) -> list[float]:
    """Time of one call, as the mean over a round, for each of the repeated rounds."""

    def run() -> None:
        for given in round_:
            call(given)

    run()  # compiles the kernels
    torch.cuda.synchronize()
    if not eager:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        run = graph.replay
    run()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        run()
        event.record()
    torch.cuda.synchronize()
    return [1e3 * a.elapsed_time(b) / len(round_) for a, b in pairwise(events)]


def measured(arguments: Namespace) -> Iterator[Figure]:
    """The table."""
    device = torch.cuda.get_device_properties(0)
    (d, s), dtype = QUICK if arguments.quick else SIZES, getattr(torch, arguments.dtype)
    matrix = d * s * dtype.itemsize
    copies, dense = 3 * device.L2_cache_size // matrix + 2, [0.0]
    for batch, density in product(arguments.batch, DENSITIES[1:2] if arguments.quick else DENSITIES):
        round_ = calls(d, s, density, dtype, batch, copies)
        work = f"{device.name} d={d} s={s} {dtype} {density:.0%} batch={batch}{' eager' * arguments.eager}"
        for name, (call, reference, matrices) in sides(density, batch, dtype.itemsize).items():
            check(name, call, reference, round_[0])
            times = microseconds(call, round_, arguments.repeats, arguments.eager)
            dense = times if name.endswith("dense") else dense
            yield Figure.of(work, f"{name}, us", times, "us")
            yield Figure(work, f"{name}, times dense", median(dense) / median(times), "x")
            yield Figure(work, f"{name}, GB/s", matrices * matrix / median(times) / 1e3, "GB/s")


@program(
    option("--batch", type=int, nargs="+", default=BATCHES, help="inputs of a call"),
    option("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16"),
    option("--eager", action="store_true", help="as written, the time to launch included"),
    repeats=20,
    one_thread=False,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    if not torch.cuda.is_available():
        print("gpu: no CUDA device here, nothing measured")
        return []
    with torch.inference_mode():
        return list(measured(arguments))
