"""The commands, gathered. Heavy libraries load inside the commands, so that ``--help`` is quick."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from sparsact.cli.bounds import bounds
from sparsact.cli.certify import certify
from sparsact.cli.fit import fit
from sparsact.cli.inspect_model import inspect_model
from sparsact.cli.measure import measure
from sparsact.cli.plain_help import PlainCommand, PlainGroup
from sparsact.cli.predict import predict
from sparsact.cli.sparsify import sparsify

app = typer.Typer(
    name="sparsact",
    cls=PlainGroup,
    help="Learn from tables of bits or numbers; prove and measure which units a network switches on.",
    add_completion=False,
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
    """Learn from tables of bits or numbers; prove and measure which units a network switches on."""


for name, command in (
    ("fit", fit),
    ("predict", predict),
    ("inspect", inspect_model),
    ("certify", certify),
    ("measure", measure),
    ("sparsify", sparsify),
    ("bounds", bounds),
):
    app.command(name, cls=PlainCommand)(command)
for plugin in sorted(entry_points(group="sparsact.commands"), key=lambda each: each.name):
    app.command(plugin.name, cls=PlainCommand)(plugin.load())
