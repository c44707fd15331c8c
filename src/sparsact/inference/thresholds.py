"""Below which pre-activation each unit is off: found by computing the activation on numbers of all sizes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]
WORDS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def zero_below(in_precision: Callable[[torch.dtype | None], Function], units: int, like: Tensor) -> Tensor | None:
    """Thresholds t with f(z_j) = 0 for all z_j <= t_j; -inf for units without, None if no unit has one.

    Parameters
    ----------
    in_precision : callable
        The activation as the model computes it (of None), and with all that it does in one type.
    units : int
        How many numbers the activation has on its last axis.
    like : Tensor
        Its type and device are those of the thresholds.

    Returns
    -------
    thresholds : Tensor of shape (units,)
        The largest number of its type at which all probes up to it gave zero. What is zero only because numbers
        underflow is not counted: GELU gives 0 at -6 in 32 bits, and at -9 in 64. A threshold is kept where 32 and 64
        bits agree on it, and is 0 where they agree only that it is not below 0, as of squared ReLU.

    Notes
    -----
    Probes at some 250 magnitudes from 1e-30 to 1e30 of both signs, then bisection between neighbours, which finds
    the edge to the last bit, then 64 probes below the edge. A function that is not zero only between probes is not
    told from one that is zero there.
    """
    thresholds = _edge(in_precision(None), units, like)
    for dtype in (torch.float32, torch.float64):
        there = _edge(in_precision(dtype), units, torch.empty(0, dtype=dtype, device=like.device))
        thresholds = _agreed(thresholds, there)
    return None if bool((thresholds == -torch.inf).all()) else thresholds


def _agreed(here: Tensor, there: Tensor) -> Tensor:
    """Thresholds where another precision has the same up to rounding; 0 where both have one that is not below 0."""
    limits, others = torch.finfo(here.dtype), torch.finfo(there.dtype)
    a, b = here.double(), there.double()
    same = (a - b).abs() <= 8 * max(limits.eps, others.eps) * torch.maximum(a.abs(), b.abs())
    same &= a.isfinite() & b.isfinite()
    same |= (here == limits.max) & (there == others.max)  # zero everywhere
    rest = torch.where((a >= 0) & (b >= 0), 0.0, -torch.inf).to(here)
    return torch.where(same, here, rest)


def grid(like: Tensor) -> Tensor:
    """Numbers of both signs and all magnitudes from 1e-30 to 1e30 that the type holds, and the largest, ascending."""
    limits = torch.finfo(like.dtype)
    magnitudes = torch.cat([10.0 ** torch.linspace(-30, 30, 241, dtype=torch.float64), torch.arange(1.0, 12.0)])
    magnitudes = magnitudes[(magnitudes >= limits.tiny) & (magnitudes < limits.max)].sort().values
    most = torch.tensor([limits.max], dtype=torch.float64)
    return torch.cat([-most, -magnitudes.flip(0), torch.zeros(1), magnitudes, most]).to(like)


def _edge(f: Function, units: int, like: Tensor) -> Tensor:
    """The largest number up to which f is 0, for each unit."""
    probes = grid(like)
    zero = f(probes[:, None].expand(-1, units).contiguous()) == 0
    leading = zero.to(torch.int8).cumprod(0).sum(0)
    low = probes[(leading - 1).clamp(min=0)]
    high = probes[leading.clamp(max=len(probes) - 1)]
    below, above = _rank(low), _rank(high)
    for _ in range(8 * like.element_size()):
        middle = (below & above) + ((below ^ above) >> 1)  # their mean, without overflow
        off = f(_unrank(middle, like)) == 0
        below, above = torch.where(off, middle, below), torch.where(off, above, middle)
    edge = torch.where(leading == len(probes), high, _unrank(below, like))
    edge = torch.where(edge == 0, 0.0, edge)
    shares = torch.linspace(0, 1, 64, dtype=torch.float64, device=like.device)[:, None]
    previous = probes[(leading - 3).clamp(min=0)].double()
    between = (previous + shares * (edge.double() - previous)).to(like).minimum(edge)
    sure = (f(between) == 0).all(0) & (leading > 0)
    return torch.where(sure, edge, -torch.inf)


def _rank(numbers: Tensor) -> Tensor:
    """Floating-point numbers as integers in the same order, neighbours one apart."""
    bits = numbers.view(WORDS[numbers.element_size()]).long()
    return torch.where(bits >= 0, bits, -(bits & _magnitude_bits(numbers)))


def _unrank(ranks: Tensor, like: Tensor) -> Tensor:
    """The inverse of :func:`_rank`, for the type of ``like``."""
    bits = torch.where(ranks >= 0, ranks, (-ranks) | ~_magnitude_bits(like))
    return bits.to(WORDS[like.element_size()]).view(like.dtype)


def _magnitude_bits(like: Tensor) -> int:
    return (1 << (8 * like.element_size() - 1)) - 1
