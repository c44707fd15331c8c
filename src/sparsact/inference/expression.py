"""What a model computes from outputs of linear layers, row by row, as an expression to evaluate on other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

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
class Given:
    """Other numbers of the input, (..., width), that an expression is multiplied with or masked by."""

    width: int
    dtype: torch.dtype


@dataclass(frozen=True, eq=False)
class Literal:
    """Numbers (units,) that the model's code makes in each call, from no parameter and no input."""

    values: Tensor


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation on rows, elementwise or along the units, of expressions, constants of shape (units,) and numbers."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the operation, the same in place and out of place."""
        packet = getattr(self.function, "overloadpacket", self.function)
        return str(packet.__name__).strip("_")

    @property
    def operands(self) -> list[Any]:
        """Positional and keyword arguments, and those in a list."""
        given = (*self.arguments, *self.keywords.values())
        return [operand for one in given for operand in (one if isinstance(one, list | tuple) else [one])]

    def __reduce__(self) -> tuple[Any, ...]:
        """Torch's operations are pickled by name."""
        function = self.function.name() if isinstance(self.function, OpOverload) else self.function
        return _operation, (function, self.arguments, self.keywords)


Expression = Leaf | Given | Operation
Source = Leaf | Given


def _operation(function: str | Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Operation:
    if isinstance(function, str):
        space, _, name = function.partition("::")
        packet, _, overload = name.partition(".")
        function = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    return Operation(function, arguments, keywords)  # type: ignore[arg-type] # torch.ops is not typed


def subexpressions(expression: Expression) -> list[Expression]:
    """The expression and everything it is computed from, each once, arguments before results."""
    found: dict[Expression, None] = {}

    def visit(part: Expression) -> None:
        if part in found:
            return
        if isinstance(part, Operation):
            for operand in part.operands:
                if isinstance(operand, Expression):
                    visit(operand)
        found[part] = None

    visit(expression)
    return list(found)


def leaves(expression: Expression) -> list[Leaf]:
    """The leaves of an expression, each once, in the order in which it reads them."""
    return [part for part in subexpressions(expression) if isinstance(part, Leaf)]


def operands_of(expression: Expression, kind: type[T]) -> list[T]:
    """Operands of one kind in an expression, such as tensors of the model (``Tensor``)."""
    operations = [part for part in subexpressions(expression) if isinstance(part, Operation)]
    return [operand for one in operations for operand in one.operands if isinstance(operand, kind)]


# Their arguments must have as many rows each.
_OF_ROWS: Final = {"scatter", "gather", "cat"}


def evaluate(
    expression: Expression, values: Mapping[Any, Tensor], precision: torch.dtype | None = None
) -> dict[Expression, Any]:
    """Value of an expression and of its parts, (rows, units) each, for such values of its leaves.

    With ``precision``, floating-point constants and casts to other floating-point types take that type.
    """
    known: dict[Expression, Any] = dict(values)
    first = next(iter(values.values()))
    rows, device = len(first), first.device

    def value(argument: object, of_rows: bool = False) -> Any:
        if isinstance(argument, Expression):
            return known[argument]
        if isinstance(argument, Literal):
            argument = argument.values
        if isinstance(argument, Tensor):
            constant = argument.to(device, precision if argument.is_floating_point() else None)
            return constant.expand(rows, -1) if of_rows else constant
        if isinstance(argument, list | tuple):
            return [value(one, of_rows) for one in argument]
        if precision and isinstance(argument, torch.dtype) and argument.is_floating_point:
            return precision
        return argument

    for part in subexpressions(expression):
        if isinstance(part, Operation):
            of_rows = part.name in _OF_ROWS
            arguments = [value(argument, of_rows) for argument in part.arguments]
            if isinstance(part.function, OpOverload) and part.function._schema.is_mutable:
                arguments[0] = arguments[0].clone()  # in place on its first argument, which others may still read
            known[part] = part.function(
                *arguments, **{name: value(given, of_rows) for name, given in part.keywords.items()}
            )
    return known


# Arguments of an operation: what stays 0 where it is, the factor or mask, and what the mask fills in, which must be 0.
_FACTORS: Final[dict[str, tuple[tuple[int, int, int | None], ...]]] = {
    "mul": ((0, 1, None), (1, 0, None)),
    "div": ((0, 1, None),),
    "masked_fill": ((0, 1, 2),),
    "where": ((1, 0, 2), (2, 0, 1)),
}


def without_factors(expression: Expression, is_factor: Callable[[Any], bool]) -> tuple[Expression, list[Any]]:
    """The expression without the factors and masks that it is a product with, and these.

    Where the rest is 0 the expression is 0 too, or NaN if a factor is not finite.
    """
    factors: list[Any] = []

    def rest(part: Any) -> Any:
        if not isinstance(part, Operation):
            return part
        given = part.arguments
        for kept, factor, filled in _FACTORS.get(part.name, ()):
            if is_factor(given[factor]) and (filled is None or _is_zero(given[filled])):
                factors.append(given[factor])
                return rest(given[kept])
        n_factors = {"mul": 2, "div": 1, "to_copy": 1}.get(part.name, 0)
        return replace(part, arguments=(*map(rest, given[:n_factors]), *given[n_factors:])) if n_factors else part

    return rest(expression), factors


def _is_zero(operand: object) -> bool:
    values = operand.values if isinstance(operand, Literal) else operand
    return not values.any() if isinstance(values, Tensor) else isinstance(values, int | float) and values == 0
