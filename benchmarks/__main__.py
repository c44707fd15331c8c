"""``python -m benchmarks``: measure both sides of every comparison on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsact.cli import run as run_command
from sparsact.cli.app import PlainCommand

if TYPE_CHECKING:
    from benchmarks.table.cells import Rows


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Benchmarks to run; all by default.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: check that both sides agree; speed has no target.")
    ] = False,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append figures as lines of JSON, with machine, versions and commit."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Measure; or only print the rows of the file --rows.")
    ] = True,
    show: Annotated[bool, typer.Option("--list", help="List the benchmarks and the packages that they miss.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Compare this library with others on this machine, and print each figure beside its target.

    Each benchmark runs in its own interpreter and times both sides in turns. A benchmark is skipped, with a note, if a
    package that it needs is missing. The exit status is 1 if a target is missed.

    Example: python -m benchmarks walsh_hadamard least_squares --rows rows.jsonl
    """
    from benchmarks.registry import chosen, run
    from benchmarks.table import newest

    if show:
        _tell_list(as_json)
        return
    benchmarks = chosen(names or ())
    if not measure and rows is None:
        raise ValueError("--no-measure prints rows that exist already: name their file with --rows.")
    with TemporaryDirectory() as folder:
        path = rows or Path(folder) / "rows.jsonl"
        before = newest(path) if path.exists() else {}
        status = {
            each.name: None if each.missing() else run(each, path, quick=quick, quiet=as_json)
            for each in benchmarks[: None if measure else 0]
        }
        found = newest(path) if path.exists() else {}
    new = {key: row for key, row in found.items() if not measure or before.get(key) != row}
    if as_json:
        typer.echo(json.dumps({"status": status, "rows": list(new.values())}))
    else:
        _tell(new, status)
    if any(code != 0 for code in status.values() if code is not None):
        raise typer.Exit(1)


def _tell_list(as_json: bool) -> None:
    from benchmarks.registry import BENCHMARKS

    told: list[dict[str, Any]] = [
        {n: getattr(each, n) for n in ("name", "goal", "takes", "needs")} | {"missing": list(each.missing())}
        for each in BENCHMARKS.values()
    ]
    if as_json:
        typer.echo(json.dumps(told))
        return
    for each in told:
        needs = f" (needs {', '.join(each['missing'])})" * bool(each["missing"])
        typer.echo(f"{each['name']:<19}{each['takes']:<8}{each['goal']}{needs}")


def _tell(rows: Rows, status: dict[str, int | None]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from benchmarks.registry import ratios

    table = Table("work", "figure", r"ratio \[least ... most]", "target", title="Ratios, median of repeats")
    for cells in ratios(rows):
        table.add_row(*map(escape, cells))
    if table.row_count:
        Console(width=140).print(table)
    words = {0: "every target met", None: "skipped: a package that it needs is not installed (see --list)"}
    for name, code in status.items():
        typer.echo(f"{name}: {words.get(code, 'a target missed, or an error: see above')}")


def _app() -> typer.Typer:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
    app.command(cls=PlainCommand)(bench)
    return app


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run_command(_app, "python -m benchmarks", args)


if __name__ == "__main__":
    sys.exit(main())
