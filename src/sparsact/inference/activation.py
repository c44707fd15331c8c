"""What a model computes between linear layers, as an expression, and whether it is the activation of a block.

An expression can be evaluated on other values: so an activation shows where it is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch
from torch import Tensor
from torch._ops import OpOverload

from sparsact.inference.block import Activation

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Leaf:
    """One call of a linear layer: its output, (..., width); or the part of it that begins at ``start``."""

    name: str
    width: int
    start: int | None = None


@dataclass(frozen=True, eq=False)
class RowScale:
    """A factor of each row, (..., 1), computed from all of its units, as by an RMS norm: zeros stay zeros."""

    values: Tensor


@dataclass(frozen=True, eq=False)
class Operation:
    """An elementwise operation on expressions, constants of shape (units,) and numbers."""

    function: OpOverload
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the operation, the same in place and out of place."""
        return str(self.function.overloadpacket.__name__).strip("_")

    @property
    def operands(self) -> tuple[Any, ...]:
        """Positional and keyword arguments."""
        return (*self.arguments, *self.keywords.values())


Expression = Leaf | Operation


def subexpressions(expression: Expression) -> list[Expression]:
    """The expression and everything it is computed from, each once, arguments before results."""
    found: dict[Expression, None] = {}

    def visit(part: Expression) -> None:
        if part in found:
            return
        if isinstance(part, Operation):
            for operand in part.operands:
                if isinstance(operand, Leaf | Operation):
                    visit(operand)
        found[part] = None

    visit(expression)
    return list(found)


def leaves(expression: Expression) -> list[Leaf]:
    """The leaves of an expression, each once, in the order in which it reads them."""
    return [part for part in subexpressions(expression) if isinstance(part, Leaf)]


def operands_of(expression: Expression, kind: type[T]) -> list[T]:
    """Operands of one kind in an expression: constants (``Tensor``) or factors of rows (``RowScale``)."""
    operations = [part for part in subexpressions(expression) if isinstance(part, Operation)]
    return [operand for one in operations for operand in one.operands if isinstance(operand, kind)]


def evaluate(
    expression: Expression,
    values: Mapping[Leaf, Tensor],
    precision: torch.dtype | None = None,
    *,
    as_traced: bool = False,
) -> Tensor:
    """Value of an expression whose leaves have ``values``, tensors of one shape (..., units).

    With ``precision``, floating-point constants and casts to other floating-point types take that type. Factors of rows
    are 1, or with ``as_traced`` what they were, for values (rows, units) of the traced rows.
    """
    known: dict[Expression, Any] = dict(values.items())
    device = next(iter(values.values())).device

    def value(argument: object) -> Any:
        if isinstance(argument, Leaf | Operation):
            return known[argument]
        if isinstance(argument, RowScale):
            scale = argument.values.reshape(-1, 1) if as_traced else torch.ones_like(argument.values.flatten()[:1])
            return scale.to(precision) if precision else scale
        if precision and isinstance(argument, torch.dtype) and argument.is_floating_point:
            return precision
        if isinstance(argument, Tensor):
            return argument.to(device, precision if argument.is_floating_point() else None)
        return argument

    for part in subexpressions(expression):
        if isinstance(part, Operation):
            arguments = [value(argument) for argument in part.arguments]
            if part.function._schema.is_mutable:  # in place on its first argument, which others may still read
                arguments[0] = arguments[0].clone()
            known[part] = part.function(*arguments, **{name: value(given) for name, given in part.keywords.items()})
    result: Tensor = known[expression]
    return result


Function = Callable[[Tensor], Tensor]


class NotAnActivation(Exception):  # noqa: N818 (an answer, never seen outside)
    """Why an expression is not the activation of a block."""


@dataclass(frozen=True, eq=False)
class ReplayedActivation:
    """The activation of a block: what the model computes from pre-activations (..., units) where ``up`` returns 1."""

    expression: Expression
    switch: Leaf
    up: Leaf | None
    precision: torch.dtype | None = None

    def __call__(self, pre_activations: Tensor) -> Tensor:
        """Activations of the same shape, in the model's type."""
        values = {self.switch: pre_activations}
        if self.up:
            values[self.up] = torch.ones_like(pre_activations)
        return evaluate(self.expression, values, self.precision)


def activation(expression: Expression, like: Tensor) -> tuple[Activation, Leaf, Leaf | None]:
    """The activation that an expression computes, the layer it is applied to, and the layer that it scales, if any.

    ``like`` has the type and device of pre-activations. NotAnActivation is raised if the expression mixes units, is
    affine, or of two layers is not f(one) * the other.
    """
    probes = _Probes(like, leaves(expression)[0].width)
    switch, up = _roles(expression, probes)
    f = ReplayedActivation(expression, switch, up)
    _check_elementwise(f, probes)
    if _is_affine(f, probes):
        raise NotAnActivation("nothing but an affine function is between them")
    units = 1 if all(constant.numel() == 1 for constant in operands_of(expression, Tensor)) else probes.width
    thresholds = zero_below(lambda precision: ReplayedActivation(expression, switch, up, precision), units, like)
    if thresholds is not None:
        thresholds = thresholds.expand(probes.width).contiguous()
    path = [part for part in subexpressions(expression) if isinstance(part, Operation) and leaves(part) == [switch]]
    name = ", ".join(part.name for part in path if part.name != "to_copy")  # a cast changes the type alone
    return Activation(name, f, thresholds, bool(operands_of(expression, RowScale))), switch, up


@dataclass(frozen=True)
class _Probes:
    """Fixed probe values, the same in every call."""

    like: Tensor
    width: int

    def __call__(self, rows: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(rows, self.width, generator=generator, dtype=torch.float64).to(self.like) * 4


def _roles(expression: Expression, probes: _Probes) -> tuple[Leaf, Leaf | None]:
    """The layer that the activation is applied to, and of a gated block the other one."""
    found = leaves(expression)
    if len(found) == 1:
        return found[0], None
    for up, gate in (found, found[::-1]):
        if _is_scaled(expression, gate, up, probes):
            if _is_scaled(expression, up, gate, probes):
                raise NotAnActivation("their product has no activation")
            return gate, up
    raise NotAnActivation("what is computed of them is not a function of one, times the other")


def _is_scaled(expression: Expression, gate: Leaf, up: Leaf, probes: _Probes) -> bool:
    """Whether the expression is f(gate) * up."""
    g, u = probes(37, 1), probes(37, 2)
    product = ReplayedActivation(expression, gate, up)(g) * u
    eps = torch.finfo(probes.like.dtype).eps
    values = evaluate(expression, {gate: g, up: u})
    return torch.allclose(values, product, rtol=8 * eps, atol=eps * eps, equal_nan=True)


def _check_elementwise(f: ReplayedActivation, probes: _Probes) -> None:
    """Changing every other unit must not change the rest."""
    before, after = probes(5, 3), probes(5, 4)
    after[:, ::2] = before[:, ::2]
    if not torch.equal(f(before)[:, ::2].nan_to_num(), f(after)[:, ::2].nan_to_num()):
        raise NotAnActivation("a unit depends on others between them")


def _is_affine(f: ReplayedActivation, probes: _Probes) -> bool:
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
