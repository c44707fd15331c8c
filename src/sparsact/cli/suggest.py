"""``sparsact suggest``: :func:`sparsact.suggest_rows` for a shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from sparsact.cli.io import check_apart, check_writable, read_model
from sparsact.cli.options import SHARED, argument, option, with_help
from sparsact.cli.terminal import grid, say, shown, terminal


@with_help(
    model=SHARED["learned_model"],
    table=argument("TABLE", "Rows to choose from. Default: all combinations of the columns' values."),
    budget=option("N", "Number of rows; with --cost, their total cost.", "--n", "--budget"),
    goal=option(
        "effects|variance|maximum|minimum",
        "'effects': estimate effects of one and two columns, or --effect; 'variance': predict; 'maximum', 'minimum': "
        "find the best row.",
    ),
    effect=option("COLUMN[,COLUMN...]", "With goal effects: columns whose joint effect to estimate; may be repeated."),
    cost=option("COLUMN", "Column of TABLE with the cost of each row."),
    measured=option(
        "FILE",
        "Rows measured so far, with the target: a Gaussian process is fitted to them. Required unless the model is gp "
        "or letters.",
    ),
    repeat="Allow rows that were measured already.",
    out=option("FILE", "Write the rows to this .csv file."),
    random_state=option("N", "Seed for sampling candidates."),
)
def suggest(
    model: Path,
    table: Path | None = None,
    budget: float = 20,
    goal: str = "effects",
    effect: list[str] | None = None,
    cost: str | None = None,
    measured: str | None = None,
    repeat: bool = False,
    out: Path | None = None,
    random_state: int = 0,
    as_json: bool = False,
) -> None:
    """Suggest which rows to measure next, to learn most about effects, predictions or the best row.

    The rows form one batch without repeats, the most informative first. Column 'gain' is what each row adds to the rows
    above it: a share of the remaining variance, or the expected improvement of the target.

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
        *names, last = map(shown, found.table.column_names)
        printed = grid((), (last, *names))
        printed.box, printed.padding, printed.columns[0].no_wrap = None, (0, 1, 0, 0), True
        for column in printed.columns[1:]:
            column.overflow, column.justify = "fold", "left"
        for row in found.table.to_pylist():
            *values, gain = row.values()
            short = f"{gain:.2g}" if goal in ("maximum", "minimum") else f"{float(f'{100 * gain:.2g}'):g}%"
            printed.add_row(short, *map(shown, values))
        terminal().print(printed)
    else:
        say(f"rows: {out}")
