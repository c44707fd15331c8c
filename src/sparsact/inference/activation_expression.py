"""What a model computes from outputs of linear layers, as an expression that can be evaluated on other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._ops import OpOverload

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

    def value(argument: Any) -> Any:
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
