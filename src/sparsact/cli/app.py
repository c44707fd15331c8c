"""The commands, gathered. Heavy libraries load inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from sparsact.cli.bounds import bounds
from sparsact.cli.certify import certify
from sparsact.cli.demo import demo
from sparsact.cli.doctor import doctor
from sparsact.cli.export import export
from sparsact.cli.fit import EPILOG, fit
from sparsact.cli.inspect import inspect_model
from sparsact.cli.measure import measure
from sparsact.cli.predict import predict
from sparsact.cli.sparsify import sparsify
from sparsact.cli.suggest import suggest

ELSEWHERE: Final = {"reproduce": ("sparsact-papers", "papers")}  # commands of other packages: (package, folder)


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
        if args[0] == "report":
            ctx.fail("no command 'report'; fit writes the report: sparsact fit TABLE --target COLUMN --report FILE")
        if args[0] in ELSEWHERE and self.get_command(ctx, args[0]) is None:
            package, folder = ELSEWHERE[args[0]]
            raise ImportError(
                f"`sparsact {args[0]}` is part of {package}, which is not installed: pip install {package}, or "
                f"./{folder} of a checkout."
            )
        return super().resolve_command(ctx, args)


def without_types(params: list[Any]) -> list[Any]:
    """The same parameters, flags and arguments without a word for the type of their value."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # typer's signature
    return params


app = typer.Typer(
    name="sparsact",
    cls=PlainGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from sparsact import __version__
        from sparsact.kernels import description

        typer.echo(f"sparsact {__version__}, kernels: {description()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and the kernels in use."
        ),
    ] = False,
) -> None:
    """Find which combinations of yes/no features drive a measured value, each effect with its interval."""


for name, command in (
    ("demo", demo),
    ("fit", fit),
    ("predict", predict),
    ("export", export),
    ("inspect", inspect_model),
    ("suggest", suggest),
    ("certify", certify),
    ("measure", measure),
    ("sparsify", sparsify),
    ("bounds", bounds),
    ("doctor", doctor),
):
    app.command(name, cls=PlainCommand, epilog=EPILOG if command is fit else None)(command)
for plugin in sorted(entry_points(group="sparsact.commands"), key=lambda each: each.name):
    app.command(plugin.name, cls=PlainCommand)(plugin.load())
