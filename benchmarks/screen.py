"""A feed-forward block that proves which units are inactive and skips them, compared with dense PyTorch.

The block has three parts: a screen rules out units by a bound, ``ActiveDot`` computes the others exactly, and
``SparseProduct`` adds up the rows of the active ones, all in float32. The dense side is ``linear``, ``relu``,
``linear`` in the dtype of the weights; outputs are compared with float64. Sizes: 2,048 inputs and 8,192 units, or 4,096
and 16,384, with 3 % active; one input, one thread. Each call uses the next of several copies of the weights, so that
both sides read from memory.

Weights and inputs are Gaussian or *spread*: heavy-tailed weights (Student, 4 degrees of freedom), and inputs with a
common mean and six coordinates thirty times as large. In the spread case the screen also gets a sample of other inputs.
Units: seconds (medians of repeats in turns), and the share of units that the screen cannot rule out.

Targets: in bfloat16 the block at least 2.2 times as fast; its output equal to the dense block's to 2e-6 of its norm,
and the same active units, at each of 64 inputs. Without a target: what copies of fewer bits would prove, were they
exact in everything else (``4 bits`` has a scale for every 32 weights). A 4-bit first level pays if it rules out half of
the units.

Roofline: the bytes of the screen's copy of the weights, at the speed of reading a float32 matrix.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from itertools import cycle
from math import ceil
from statistics import median
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.figures import Check, Figure
from benchmarks.gather import array
from benchmarks.harness import interleaved, seconds_of_reading
from benchmarks.program import program
from sparsact import kernels
from sparsact.inference.certified_screen import Screen

COLD_BYTES: Final = 1.5e9  # of copies of the weights, at least
ACTIVE: Final = 0.03
GROUP: Final = 32  # weights of a scale at 4 bits


def layer(d: int, s: int, spread: bool, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weights (s, d) and inputs (n, d)."""
    weight, x = torch.randn(s, d, generator=generator) / d**0.5, torch.randn(n, d, generator=generator)
    if spread:
        freedom = torch.stack([torch.randn(s, d, generator=generator).square() for _ in range(4)]).mean(dim=0)
        weight /= freedom.sqrt()
        x += torch.randn(d, generator=generator)
        x[:, torch.randperm(d, generator=generator)[:6]] *= 30
    return weight, x


def proved_at_4_bits(weight: Tensor, x: Tensor, edge: float) -> float:
    """Share of units that a certified copy of 4 bits, with a scale a group, would prove off."""
    groups = weight.float().reshape(len(weight), -1, GROUP)
    scale = groups.abs().amax(2, keepdim=True).clamp(min=1e-30) / 7
    rest = (groups - scale * (groups / scale).round()).reshape(weight.shape)
    bound = x.float() @ (weight.float() - rest).T + x.float().norm(dim=1, keepdim=True) * rest.norm(dim=1)
    return float((bound <= edge).float().mean())


def block(d: int, s: int, dtype: torch.dtype, spread: bool, repeats: int) -> list[Figure]:
    """Screen and whole block, for one input."""
    generator = torch.Generator().manual_seed(2025)
    weight, inputs = (values.to(dtype) for values in layer(d, s, spread, 320, generator))
    sample, inputs = inputs[:256], inputs[256:]
    z = inputs.float() @ weight.float().T
    edge = float(np.quantile(z.numpy(), 1 - ACTIVE))
    bias = torch.full((s,), -edge)
    first = Screen.of(weight, bias, sample=sample if spread else None)
    down = (torch.randn(s, d, generator=generator) / s**0.5).to(dtype)
    copies = max(3, ceil(COLD_BYTES / (2 * down.nbytes)))
    ups, downs = ([matrix.clone() for _ in range(copies)] for matrix in (weight, down))
    transposed = [matrix.T.contiguous() for matrix in downs]
    screens = [Screen(first.rows.clone(), *first._parts()[1:]) for _ in range(copies)]
    dots = [kernels.ActiveDot(array(up), bias.numpy(), numbers=np.float32) for up in ups]
    sums = [kernels.SparseProduct(array(rows), numbers=np.float32) for rows in downs]
    x, narrow_bias = inputs[:1].contiguous(), bias.to(dtype)
    turns = {name: cycle(range(copies)) for name in ("screen", "block", "dense")}

    def certified(x: Tensor = x) -> tuple[Tensor, Tensor]:
        """The output, and the activations that it was summed from."""
        turn = next(turns["block"])
        survivors, x = screens[turn].survivors(x), x.float()
        h, out = torch.empty(1, s), torch.empty(1, d)
        dots[turn].at_mask(x.data_ptr(), survivors.data_ptr(), 1, h.data_ptr(), 1, s)
        sums[turn].at(h.relu_().data_ptr(), 1, out.data_ptr(), 1, s)
        return out, h

    def dense() -> Tensor:
        turn = next(turns["dense"])
        return F.linear(F.relu(F.linear(x, ups[turn], narrow_bias)), transposed[turn])

    times = interleaved(
        {
            "screen": lambda: screens[next(turns["screen"])].survivors(x),
            "block": certified,
            "dense": dense,
            "reading": seconds_of_reading(int(COLD_BYTES)),
        },
        repeats,
    )
    difference, alike = faults(certified, weight, bias, down, inputs)
    speed = COLD_BYTES / median(times["reading"])
    work = f"{d}x{s} {str(dtype).removeprefix('torch.')} {'spread' if spread else 'Gaussian'}"
    least = 2.2 if dtype == torch.bfloat16 else None
    return [
        Figure(work, "active", float((z > edge).float().mean()), "of units"),
        Figure(work, "survivors", float(first.survivors(inputs).float().mean()), "of units"),
        Figure(work, "proved off at 4 bits", proved_at_4_bits(weight, inputs, edge), "of units"),
        *(Figure.of(work, f"{name}, seconds", times[name], "s") for name in ("screen", "block", "dense")),
        Figure(work, "roofline of the screen, seconds", first.nbytes / speed, "s"),
        Check(work, "output, relative difference", difference, "", most=2e-6),
        Check(work, "same active units", alike, "of inputs", least=1),
        Figure.ratio(work, "block, times as fast", times["dense"], times["block"], least=least),
    ]


def faults(
    certified: Callable[[Tensor], tuple[Tensor, Tensor]], weight: Tensor, bias: Tensor, down: Tensor, inputs: Tensor
) -> tuple[float, float]:
    """Largest relative difference of outputs from those in float64, and the share of inputs with the same active set.

    A unit whose pre-activation is 0 up to the rounding of float32 is on in one and off in the other by right.
    """
    differences, alike = [], 0
    for i in range(len(inputs)):
        out, h = certified(inputs[i : i + 1].contiguous())
        z = inputs[i : i + 1].double() @ weight.double().T + bias.double()
        wanted = z.relu() @ down.double()
        differences.append(float((out - wanted).norm() / wanted.norm()))
        sure = z.abs() > 1e-5 * inputs[i].double().norm() * weight.double().norm(dim=1)
        alike += bool(torch.equal((h > 0) & sure, (z > 0) & sure))
    return max(differences), alike / len(inputs)


@program(repeats=25)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    shapes = ((128, 512),) if arguments.quick else ((2048, 8192), (4096, 16384))
    figures = []
    with torch.no_grad():
        for d, s in shapes:
            for dtype in (torch.bfloat16, torch.float32):
                for spread in (False, True):
                    figures += block(d, s, dtype, spread, arguments.repeats)
    return figures
