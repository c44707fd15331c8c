"""What a model computes between linear layers, as an expression, and whether it is the activation of a block.

An expression can be evaluated on other values: so an activation shows where it is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch import Tensor

from sparsact.inference.block import Activation
from sparsact.inference.expression import (
    Expression,
    Given,
    Leaf,
    Literal,
    Operation,
    RowProgram,
    evaluate,
    leaves,
    operands_of,
    subexpressions,
    without_factors,
)
from sparsact.inference.torch_operations import MIXING

Function = Callable[[Tensor], Tensor]


class NotAnActivation(Exception):  # noqa: N818 (an answer, never seen outside)
    """Why an expression is not the activation of a block."""


@dataclass(frozen=True, eq=False)
class ReplayedActivation:
    """The activation of a block: what the model computes from pre-activations (..., units) where ``up`` returns 1."""

    expression: Expression
    switch: Leaf
    up: Leaf | None = None
    precision: torch.dtype | None = None
    _programs: dict[tuple[torch.device, torch.dtype], RowProgram] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, pre_activations: Tensor) -> Tensor:
        """Activations of the same shape, in the model's type or in that of ``pre_activations``."""
        z = pre_activations
        rows = z if z.ndim == 2 else z.reshape(-1, z.shape[-1])
        program = self._programs.get((z.device, z.dtype))
        if program is None:
            precision = self.precision or (None if z.dtype is self.switch.dtype else z.dtype)
            program = self._programs[z.device, z.dtype] = RowProgram(self.expression, z.device, precision)
        values = [rows if source is self.switch else torch.ones_like(rows) for source in program.sources]
        result: Tensor = program(values)[-1]
        return result if z.ndim == 2 else result.view(z.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without programs, which hold constants of one device."""
        return ReplayedActivation, (self.expression, self.switch, self.up, self.precision)


def activation(
    rest: Expression, factors: list[Expression], like: Tensor, n_rows: int
) -> tuple[Activation, Leaf, Leaf | None]:
    """The activation that an expression without ``factors`` computes, the layer it is applied to, the layer it scales.

    ``like`` has the type and device of pre-activations. NotAnActivation is raised if the expression is affine, mixes
    units and is never exactly 0, or of two layers is not f(one) * the other.
    """
    probes = Probes(like, leaves(rest)[0].width)
    if Given in map(type, subexpressions(rest)):
        raise NotAnActivation("what is between them depends on other numbers of the input")
    f, up = _roles(rest, probes)
    _check_rows(f, probes)
    elementwise = _is_elementwise(f, probes)
    if elementwise and _is_affine(f, probes):
        raise NotAnActivation("nothing but an affine function is between them")
    constants = [*operands_of(f.expression, Tensor), *(one.values for one in operands_of(f.expression, Literal))]
    units = 1 if all(constant.numel() == 1 for constant in constants) else probes.width
    thresholds = zero_below(lambda precision: replace(f, precision=precision), units, like) if elementwise else None
    if thresholds is not None:
        thresholds = thresholds.expand(probes.width).contiguous()
    zeros = thresholds is None and _has_zeros(f, probes)
    if not (elementwise or zeros):
        raise NotAnActivation("a unit depends on others between them")
    if thresholds is None and not zeros and any(isinstance(one, Given) and one.width > 1 for one in factors):
        raise NotAnActivation("other numbers of the input multiply what is between them")
    path = [one for one in subexpressions(f.expression) if isinstance(one, Operation)]
    named = [one.name for one in path if f.up is None or leaves(one) == [f.switch]]
    name = ", ".join(one for one in named if one not in _UNNAMED)
    mixes = not elementwise and n_rows < 2
    return Activation(name, f, thresholds, bool(factors), zeros, mixes, like.dtype), f.switch, up


_UNNAMED: Final = {"to_copy", "getitem", "slice"}  # they change the type alone, or select


def without_rows(expression: Expression, like: Tensor) -> tuple[Expression, list[Expression]]:
    """An expression without what multiplies or masks whole rows of it, or comes from the input; and these factors."""
    sources = [part for part in subexpressions(expression) if not isinstance(part, Operation)]
    values = evaluate(expression, {one: like.new_ones(2, one.width, dtype=one.dtype) for one in sources})
    whole = values[expression].shape[-1] > 1

    def is_factor(part: object) -> bool:
        per_row = whole and isinstance(part, Expression) and values[part].shape[-1] == 1
        return per_row or isinstance(part, Given)

    return without_factors(expression, is_factor)


@dataclass(frozen=True)
class Probes:
    """Fixed probe values, the same in every call."""

    like: Tensor
    width: int

    def __call__(self, rows: int, seed: int, size: float = 4.0) -> Tensor:
        """Rows of them, normal of deviation ``size``."""
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(rows, self.width, generator=generator, dtype=torch.float64).mul_(size).to(self.like)


def _roles(expression: Expression, probes: Probes) -> tuple[ReplayedActivation, Leaf | None]:
    """The activation with the layer that it is applied to, and of a gated block the other one."""
    found = leaves(expression)
    if len(found) == 1:
        return ReplayedActivation(expression, found[0]), None
    for up, gate in (found, found[::-1]):
        if f := _scaled(expression, gate, up, probes):
            if _scaled(expression, up, gate, probes):
                raise NotAnActivation("their product has no activation")
            return f, up
    raise NotAnActivation("what is computed of them is not a function of one, times the other")


def _scaled(expression: Expression, gate: Leaf, up: Leaf, probes: Probes) -> ReplayedActivation | None:
    """The function f, if the expression is f(gate) * up."""
    rest, _ = without_factors(expression, lambda part: part is up)
    f = ReplayedActivation(rest, gate) if leaves(rest) == [gate] else ReplayedActivation(expression, gate, up)
    g, u = probes(37, 1), probes(37, 2)
    eps = torch.finfo(probes.like.dtype).eps
    values = evaluate(expression, {gate: g, up: u})[expression]
    same = torch.allclose(values, f(g) * u, rtol=8 * eps, atol=eps * eps, equal_nan=True)
    return f if same else None


def _check_rows(f: ReplayedActivation, probes: Probes) -> None:
    """Each row must be computed alone."""
    rows = probes(9, 6)
    eps = torch.finfo(rows.dtype).eps  # sums of one row and of several may be rounded differently
    several, alone = f(rows.flip(0)).flip(0), torch.cat([f(row[None]) for row in rows])
    if not torch.allclose(several, alone, rtol=64 * eps, atol=64 * eps, equal_nan=True):
        raise NotAnActivation("a row depends on others between them")


def _is_elementwise(f: ReplayedActivation, probes: Probes) -> bool:
    """Whether no operation goes along the units, and changing every other one leaves the rest as it is."""
    parts = subexpressions(f.expression)
    if any(isinstance(one, Operation) and one.name in MIXING for one in parts):  # of numbers unlike the probes, too
        return False
    before, after = probes(5, 3), probes(5, 4)
    after[:, ::2] = before[:, ::2]
    return torch.equal(f(before)[:, ::2].nan_to_num(), f(after)[:, ::2].nan_to_num())


def _has_zeros(f: ReplayedActivation, probes: Probes) -> bool:
    """Whether f is 0 for some units of a row at usual numbers, in 64 bits too: not by underflow."""
    rows = probes(64, 5, 1.0)
    zeros = (f(rows) == 0) & (replace(f, precision=torch.float64)(rows.double()) == 0)
    return bool((zeros & ~zeros.all(-1, keepdim=True)).any())


def _is_affine(f: ReplayedActivation, probes: Probes) -> bool:
    """Whether f(0), f(a), f(2a) and f(-a) lie on a line, for a of many magnitudes and all units."""
    steps = 10.0 ** torch.arange(-3, 4, dtype=torch.float64)[:, None].expand(-1, probes.width)
    at_0, at_a, at_2a, at_minus = (f((steps * k).to(probes.like)).double() for k in (0, 1, 2, -1))
    size = torch.stack([at_0, at_a, at_2a, at_minus]).abs().amax(0)
    rounding = 16 * torch.finfo(probes.like.dtype).eps * size
    line = ((at_a + at_minus - 2 * at_0).abs() <= rounding) & ((at_2a - 2 * at_a + at_0).abs() <= rounding)
    return bool(line.all())


def zero_below(in_precision: Callable[[torch.dtype | None], Function], units: int, like: Tensor) -> Tensor | None:
    """Thresholds t with f(z_j) = 0 for all z_j <= t_j; -inf for units without, None if no unit has one.

    ``in_precision`` returns the activation as the model computes it (of None), or with all its operations in one type;
    ``like`` has the type and device of the thresholds. A threshold is the largest number of its type at which all
    probes up to it gave zero. Zeros due to underflow do not count: GELU gives 0 at -6 in 32 bits, and at -9 in 64. A
    threshold is kept where 32 and 64 bits agree on it, and is 0 where they agree only that it is not below 0, as for
    squared ReLU.

    Probes at some 250 magnitudes from 1e-30 to 1e30 of both signs, then bisection between neighbours, which finds
    the edge to the last bit, then 64 probes below the edge. A function that is nonzero only between probes passes for
    one that is zero there.
    """
    thresholds = _edge(in_precision(None), units, like)
    for dtype in (torch.float32, torch.float64):
        other = _edge(in_precision(dtype), units, torch.empty(0, dtype=dtype, device=like.device))
        thresholds = _agreed(thresholds, other)
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


def probe_grid(like: Tensor) -> Tensor:
    """Ascending numbers of both signs, of magnitudes from 1e-30 to 1e30 that the type holds, and its largest."""
    limits = torch.finfo(like.dtype)
    magnitudes = torch.cat([10.0 ** torch.linspace(-30, 30, 241, dtype=torch.float64), torch.arange(1.0, 12.0)])
    magnitudes = magnitudes[(magnitudes >= limits.tiny) & (magnitudes < limits.max)].sort().values
    largest = torch.tensor([limits.max], dtype=torch.float64)
    return torch.cat([-largest, -magnitudes.flip(0), torch.zeros(1), magnitudes, largest]).to(like)


def _edge(f: Function, units: int, like: Tensor) -> Tensor:
    """The largest number up to which f is 0, for each unit."""
    probes = probe_grid(like)
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


WORDS: Final = {8: torch.int64, 4: torch.int32, 2: torch.int16}


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
