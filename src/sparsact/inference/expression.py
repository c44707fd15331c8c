"""What a model computes from outputs of linear layers, row by row, as an expression to evaluate on other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
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
    dtype: torch.dtype
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
        """Positional and keyword arguments; lists are flattened."""
        given = (*self.arguments, *self.keywords.values())
        return [operand for one in given for operand in (one if isinstance(one, list | tuple) else [one])]

    def __reduce__(self) -> tuple[Any, ...]:
        """Torch's operations are pickled by name."""
        name = str(self.function) if isinstance(self.function, OpOverload) else self.function
        return _operation, (name, self.arguments, self.keywords)


Expression = Leaf | Given | Operation
Source = Leaf | Given


def _operation(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Operation:
    if isinstance(function, str):
        function = reduce(getattr, function.split("."), torch.ops)  # namespace, name, overload
    return Operation(function, arguments, keywords)


def subexpressions(expression: Expression) -> list[Expression]:
    """The expression and everything it is computed from, each once, arguments before results."""
    found: dict[Expression, None] = {}
    waiting = [expression]
    while waiting:  # no recursion: a loop of the model may have made thousands
        part = waiting[-1]
        operands = part.operands if isinstance(part, Operation) else []
        new = [one for one in reversed(operands) if isinstance(one, Expression) and one not in found]
        waiting += new
        if not new:
            found[waiting.pop()] = None
    return list(found)


def leaves(expression: Expression) -> list[Leaf]:
    """The leaves of an expression, each once, in the order in which it reads them."""
    return [part for part in subexpressions(expression) if isinstance(part, Leaf)]


def operands_of(expression: Expression, kind: type[T]) -> list[T]:
    """Operands of one kind in an expression, such as tensors of the model (``Tensor``)."""
    operations = [part for part in subexpressions(expression) if isinstance(part, Operation)]
    return [operand for one in operations for operand in one.operands if isinstance(operand, kind)]


class RowProgram:
    """An expression, made ready to be evaluated many times on one device.

    With ``precision``, floating-point constants and casts to other floating-point types take that type.
    """

    def __init__(self, expression: Expression, device: torch.device, precision: torch.dtype | None = None) -> None:
        self._device, self._precision = device, precision
        parts = subexpressions(expression)
        self.sources = [part for part in parts if not isinstance(part, Operation)]
        self._places: dict[Expression, int] = {part: i for i, part in enumerate(self.sources)}
        self._steps: list[tuple[Callable[..., Any], list[Any], list[tuple[int, int]], dict[str, Any]]] = []
        for part in parts:
            if isinstance(part, Operation):
                self._places[part] = self._add(part)

    def __call__(self, values: Sequence[Tensor]) -> list[Any]:
        """Values of all steps, the expression's last, (rows, units) each, for such values of the sources."""
        found: list[Any] = list(values)
        for function, given, places, keywords in self._steps:
            arguments = given.copy()
            for i, place in places:
                arguments[i] = found[place]
            found.append(function(*arguments, **keywords))
        return found

    def by_part(self, values: Mapping[Any, Tensor]) -> dict[Expression, Any]:
        """Values of the expression and of its parts."""
        found = self([values[source] for source in self.sources])
        return {part: found[place] for part, place in self._places.items()}

    def _add(self, part: Operation) -> int:
        """Add the step of an operation, whose value it leaves in this place."""
        of_rows = part.name in _OF_ROWS
        given = [self._operand(operand, of_rows) for operand in part.arguments]
        function: Any = part.function
        if isinstance(function, OpOverload):
            function = partial(_on_copy, function) if function._schema.is_mutable else function._op
        keywords = {name: self._constant(value) for name, value in part.keywords.items()}
        return self._step(function, given, keywords)

    def _step(self, function: Callable[..., Any], given: list[Any], keywords: dict[str, Any] | None = None) -> int:
        places = [(i, operand.index) for i, operand in enumerate(given) if isinstance(operand, _Place)]
        self._steps.append((function, given, places, keywords or {}))
        return len(self.sources) + len(self._steps) - 1

    def _operand(self, operand: object, of_rows: bool) -> Any:
        """A constant, or the place of a value."""
        if isinstance(operand, Expression):
            return _Place(self._places[operand])
        if isinstance(operand, list | tuple):
            given = [self._operand(one, of_rows) for one in operand]
            return _Place(self._step(_listed, given)) if _Place in map(type, given) else given
        constant = self._constant(operand)
        if of_rows and isinstance(constant, Tensor):
            return _Place(self._step(_expanded, [constant, _Place(0)]))
        return constant

    def _constant(self, operand: object) -> Any:
        if isinstance(operand, Literal):
            operand = operand.values
        if isinstance(operand, Tensor):
            return operand.to(self._device, self._precision if operand.is_floating_point() else None)
        is_type = isinstance(operand, torch.dtype) and operand.is_floating_point
        return self._precision if is_type and self._precision else operand


# All their arguments must have as many rows as the source.
_OF_ROWS: Final = {"scatter", "gather", "cat"}


@dataclass(frozen=True)
class _Place:
    """Where a program finds a value."""

    index: int


def _on_copy(function: Callable[..., Any], first: Tensor, *others: Any, **keywords: Any) -> Any:
    """The value of an operation in place, on a copy of its first argument, which others may still read."""
    return function(first.clone(), *others, **keywords)


def _listed(*values: Any) -> list[Any]:
    return list(values)


def _expanded(constant: Tensor, source: Tensor) -> Tensor:
    return constant.expand(len(source), -1)


def evaluate(expression: Expression, values: Mapping[Any, Tensor]) -> dict[Expression, Any]:
    """Values of an expression and of its parts, (rows, units) each, for such values of its sources."""
    return RowProgram(expression, next(iter(values.values())).device).by_part(values)


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
    known: dict[Operation, Any] = {}

    def rest(part: Any) -> Any:
        if isinstance(part, Operation) and part not in known:
            known[part] = of_operation(part)
        return known[part] if isinstance(part, Operation) else part

    def of_operation(part: Operation) -> Any:
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
