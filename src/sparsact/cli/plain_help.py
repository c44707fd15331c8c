"""Help that shows a flag as it is typed: typer writes a type after it, as if it took a value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command whose flags have nothing after them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, ``--help`` among them."""
        return without_types(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """A group whose flags have nothing after them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, ``--help`` among them."""
        return without_types(super().get_params(ctx))


def without_types(params: list[Any]) -> list[Any]:
    """The same parameters, flags without a word for their value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
