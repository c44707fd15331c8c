"""What a model did to the output of a linear layer, as an expression that can be computed again on other numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.nn.modules.module import _has_any_global_hook


@dataclass(frozen=True, eq=False)
class Leaf:
    """One call of a linear layer: its output, (..., width)."""

    name: str
    width: int


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation on each number by itself: of expressions, of constants per unit, (units,), and of numbers."""

    function: OpOverload
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the operation, the same in place and out of place."""
        return str(self.function.overloadpacket.__name__).strip("_")


Expression = Leaf | Operation


def parts(expression: Expression) -> list[Expression]:
    """The expression and all that it is made of, each once, arguments before what is computed of them."""
    found: dict[Expression, None] = {}

    def visit(part: Expression) -> None:
        if part in found:
            return
        if isinstance(part, Operation):
            for argument in _operands(part):
                visit(argument)
        found[part] = None

    visit(expression)
    return list(found)


def _operands(operation: Operation) -> Iterator[Expression]:
    for argument in (*operation.arguments, *operation.keywords.values()):
        if isinstance(argument, Leaf | Operation):
            yield argument


def alike(expression: Expression) -> bool:
    """Whether no constant in an expression differs between units."""
    operations = [part for part in parts(expression) if isinstance(part, Operation)]
    given = [given for operation in operations for given in (*operation.arguments, *operation.keywords.values())]
    return all(constant.numel() == 1 for constant in given if isinstance(constant, Tensor))


def leaves(expression: Expression) -> list[Leaf]:
    """The leaves of an expression, each once, in the order in which it reads them."""
    return [part for part in parts(expression) if isinstance(part, Leaf)]


def replay(expression: Expression, values: Mapping[Leaf, Tensor], precision: torch.dtype | None = None) -> Tensor:
    """The value of an expression when its leaves have ``values``, tensors of one shape (..., units).

    With ``precision``, constants are taken in it, and what the model casts to another floating type is cast to it.
    """
    known: dict[Expression, Any] = dict(values.items())

    def value(argument: Any) -> Any:
        if isinstance(argument, Leaf | Operation):
            return known[argument]
        if precision and isinstance(argument, torch.dtype) and argument.is_floating_point:
            return precision
        if precision and isinstance(argument, Tensor) and argument.is_floating_point():
            return argument.to(precision)
        return argument

    for part in parts(expression):
        if isinstance(part, Operation):
            arguments = [value(argument) for argument in part.arguments]
            if part.function._schema.is_mutable:  # in place on its first argument, which others may still read
                arguments[0] = arguments[0].clone()
            known[part] = part.function(*arguments, **{name: value(given) for name, given in part.keywords.items()})
    result: Tensor = known[expression]
    return result


class Readers:
    """Modules between the layers of a block.

    Parameters
    ----------
    model : nn.Module
    names : iterable of str
        As in ``model.get_submodule``.
    """

    def __init__(self, model: nn.Module, names: Iterable[str]) -> None:
        self._places = []
        for name in names:
            parent, _, last = name.rpartition(".")
            self._places.append((model.get_submodule(parent), last, model.get_submodule(name)))

    @property
    def hooked(self) -> bool:
        """Whether a hook sees what one is given, or another module stands in its place."""
        return any(parent._modules.get(name) is not module or hooked(module) for parent, name, module in self._places)


def hooked_globally() -> bool:
    """Whether there are hooks for all modules of the process."""
    return bool(_has_any_global_hook())  # type: ignore[no-untyped-call]


def hooked(module: nn.Module) -> bool:
    """Whether a module has hooks that see, or change, what it is given or gives."""
    return bool(module._forward_hooks or module._forward_pre_hooks)
