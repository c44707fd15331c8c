"""``sparsact suggest``: :func:`sparsact.suggest_rows` for a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsact.cli.io import check_apart, check_writable, read_model
from sparsact.cli.options import AsJson
from sparsact.cli.terminal import grid, say, shown, terminal


def suggest(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that sparsact fit has written.", show_default=False)
    ],
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="Rows to choose from; by default all combinations of the values of the columns.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float, typer.Option("--n", "--budget", metavar="N", help="Number of rows; with --cost, their summed costs.")
    ] = 20,
    goal: Annotated[
        str,
        typer.Option(
            metavar="effects|variance|maximum|minimum",
            help="'effects': know effects of one and two columns, or of --effect; 'variance': predict; 'maximum' and "
            "'minimum': find the best row.",
        ),
    ] = "effects",
    effect: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN[,COLUMN...]", help="Of goal effects: a set of columns; may be repeated."),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of TABLE with what each row costs.")
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows measured so far, with the target: a Gaussian process is fitted to them. Models that are none "
            "(all but gp and letters) need it.",
        ),
    ] = None,
    repeat: Annotated[bool, typer.Option("--repeat", help="Allow rows that were measured already.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rows to this .csv file.", show_default=False)
    ] = None,
    random_state: Annotated[int, typer.Option(metavar="N", help="Seed of samples of candidates.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Suggest the rows to measure next: those that tell most about effects, predictions or the best row.

    The rows are one batch without repeats, the most telling first. Column 'gain' says what each adds to the rows above
    it: a share of the variance that is left today, or the expected improvement of the target.

    Example: sparsact suggest model.sparsact --n 20 --out next.csv
    """
    check_writable(out, (".csv",))
    check_apart({"--out": out}, [path for path in (model, table, measured and Path(measured)) if path])
    learned, _ = read_model(model)

    import pyarrow.csv

    from sparsact.files import replacing
    from sparsact.fit.suggest import suggest_rows

    effects = None if effect is None else [one.split(",") for one in effect]
    options: dict[str, Any] = {"goal": goal, "effects": effects, "costs": cost, "measured": measured, "repeat": repeat}
    found = suggest_rows(learned, budget, table, **options, random_state=random_state)
    if out is not None:
        with replacing(out) as file:
            pyarrow.csv.write_csv(found.table, file)
    if as_json:
        typer.echo(json.dumps({"notes": found.notes, "rows": found.table.to_pylist()}, allow_nan=False, default=str))
        return
    for note in found.notes:
        say(note)
    if out is None:
        printed = grid(found.table.column_names[:-1], found.table.column_names[-1:])
        for row in found.table.to_pylist():
            *values, gain = row.values()
            printed.add_row(*map(shown, values), f"{gain:.4g}")
        terminal().print(printed)
    else:
        say(f"rows: {out}")
