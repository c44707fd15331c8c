"""Help that shows a flag as it is typed: typer writes a type after it, as if it took a value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

ELSEWHERE = {"reproduce": ("sparsact-papers", "papers")}  # commands of other packages: (package, folder)


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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names; an ImportError where its package is not installed."""
        if args[0] in ELSEWHERE and self.get_command(ctx, args[0]) is None:
            package, folder = ELSEWHERE[args[0]]
            raise ImportError(
                f"`sparsact {args[0]}` is part of {package}, not installed here: pip install {package}, "
                f"or ./{folder} of a checkout."
            )
        return super().resolve_command(ctx, args)


def without_types(params: list[Any]) -> list[Any]:
    """The same parameters, flags without a word for their value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params
