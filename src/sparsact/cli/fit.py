"""``sparsact fit``: :func:`sparsact.fit_table` for a shell."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Final

import typer
from typer import Option

from sparsact.cli.io import PIPE, check_apart, check_report, check_writable, readable
from sparsact.cli.options import SHARED, option, panel, with_help
from sparsact.cli.terminal import as_options, command_line, say
from sparsact.fit.options import OPTION_NAMES

MODELS: Final = {  # what each is, and when auto compares it
    "auto": ("best model on held-out rows", ""),
    "low-degree": ("polynomial of all small products", "all tables"),
    "sparse": ("polynomial of significant products", "columns of bits"),
    "gp": ("Gaussian process, all interactions", "up to 64 bits"),
    "letters": ("sites with letters, or categories", "3+ letters, few numbers"),
    "latent": ("measurements with a floor or curve", "rows at a floor, 21+ sites"),
    "lsh": ("local polynomials in hash tables", "columns of numbers"),
    "network": ("ReLU network, few active units", "1,000 to 100,000 rows"),
    "ensemble": ("weighted mean of models and trees", "up to 20 bits"),
}
TABLE: Final = "".join(f"| {name} | {what} | {when} |\n" for name, (what, when) in MODELS.items())
EPILOG: Final = f"| model | what it is | auto compares it for |\n|---|---|---|\n{TABLE}"


@with_help(
    **panel(
        "Target",
        target=option("COLUMN", "Column to predict; may be repeated.", "--target", "-t"),
        task=option("NAME", "regression, classification or auto."),
        log_target=Option("--log-target/--no-log-target", help="Learn the logarithm. Default: if better."),
    ),
    **panel(
        "Columns",
        columns=option("COLUMN", "Columns to use: a name, a list a,b or a pattern 's*'."),
        ignore=option("COLUMN", "Columns to leave out, in the same form."),
        domain=option("NAME", "Columns of numbers: auto standardises, real keeps, cube refuses them."),
        strict="Stop with an error instead of leaving columns out.",
        drop_missing="Leave out rows with missing values.",
        wild_type=option("ROW", "Row where effects start: a sequence, a row or most-frequent."),
        weights=option("COLUMN", "Weights of the rows, such as counts."),
        sigma=option("COLUMN", "Standard deviations, instead of --weights."),
        variance=option("COLUMN", "Variances, instead of --weights."),
        separator=SHARED["separator"],
        decimal=SHARED["decimal"],
    ),
    **panel("Model", model=option("NAME", "One of the models below.")),
    **panel(
        "Polynomials only: these options imply --model low-degree",
        degree=option("auto|N", "Most columns in a product."),
        alpha=option("auto|NUMBER", "Ridge penalty."),
        lasso="Choose terms by the lasso with penalty --alpha.",
    ),
    **panel(
        "Measurement models only: --model latent or auto",
        link=option("NAME", "Curve of the measurement: identity, log, sigmoid, monotone or auto."),
        censor=option("LOW,HIGH", "Limits of the measurement ('7,' is a floor), auto or none."),
    ),
    **panel(
        "Scoring",
        folds=option("N", "Folds of cross-validation."),
        groups=option("COLUMN", "Keep rows with equal values in one fold."),
        split=option("COLUMN", "Score rows marked test, fit the others."),
        test=option("FILE", "Score the model on this table too."),
        random_state=option("N", "Seed of folds and hash functions."),
    ),
    **panel(
        "Output",
        report=option("FILE", "Write an HTML report."),
        out=option("FILE", "Write the model."),
        as_json=SHARED["as_json"],
        quiet=Option("--quiet", "-q", help="Print nothing."),
        progress=SHARED["progress"],
    ),
    **panel(
        "Long fits",
        resume=option("FILE", "Save progress to this file, and continue from it if it exists."),
        keep_every=option("SECONDS", "Time between saves.", min=0),
        cluster=option("ADDRESS", "Share the work: local:N processes, or a Dask scheduler, tcp://HOST:PORT."),
    ),
)
def fit(
    context: typer.Context,
    tables: list[str],
    target: list[str],
    model: str = "auto",
    degree: str = "auto",
    alpha: str = "auto",
    lasso: bool = False,
    link: str = "identity",
    censor: str = "auto",
    columns: list[str] | None = None,
    ignore: list[str] | None = None,
    domain: str = "auto",
    task: str = "auto",
    strict: bool = False,
    wild_type: str | None = None,
    groups: str | None = None,
    weights: str | None = None,
    sigma: str | None = None,
    variance: str | None = None,
    split: str | None = None,
    drop_missing: bool = False,
    log_target: bool | None = None,
    test: Path | None = None,
    separator: str = "auto",
    decimal: str = "auto",
    folds: int = 5,
    report: Path | None = None,
    out: Path | None = None,
    random_state: int = 0,
    resume: Path | None = None,
    keep_every: float = 60.0,
    cluster: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
    progress: bool | None = None,
) -> None:
    """Fit a model to a table, and report its accuracy and most important effects.

    A column of two values becomes a bit, one of a few texts one bit for each. Numbers are standardised. Bit strings
    (0010110) become bits; sequences (ACDE) and mutations (A12V:G45D) become sites with letters. A column that looks
    like an identifier, copy, count, error, plate or split is left out with a note, unless --columns names it in full.

    The table may be larger than memory. Ctrl-C saves the progress; with --resume FILE the same command continues.

    Example: sparsact fit screen.csv --target y --report y.html --out y.sparsact
    """
    given = locals()
    from sparsact.datasets.table_files import files

    from_stdin = PIPE in tables
    if from_stdin and resume is not None:
        raise ValueError("--resume must read the table again, but stdin can be read once; write it to a file.")
    tables = context.with_resource(readable(tables))
    paths = files(tables)
    check_report(report)
    check_writable(out)
    check_writable(resume)
    check_apart({"--out": out, "--report": report, "--resume": resume}, [*paths, *([test] if test else ())])
    replaced = [str(path) for path in (out, report) if path is not None and path.is_file()]
    if replaced and not (quiet or as_json):
        are = "is" if len(replaced) == 1 else "are"
        typer.echo(f"{' and '.join(replaced)} {are} there already and will be replaced.", err=True)
    shown = False if quiet or (as_json and progress is None) else progress
    words = context.obj or ["fit"]

    from sparsact.fit.fit_table import fit_table
    from sparsact.passes.progress import showing
    from sparsact.passes.resumable import Checkpoint

    # without --resume the sums are written only when the fit is stopped
    kept = resume or _unused(out or Path(f"{paths[0].stem}.fit"))
    again = shlex.join(["sparsact", *words, *(() if resume else ("--resume", str(kept)))])
    checkpoint = Checkpoint(kept, keep_every if resume else None, f"; go on with: {again}")
    if from_stdin:
        checkpoint = Checkpoint(how_to_resume="; nothing was kept, since stdin cannot be read again")
    options = {name: value for name, value in given.items() if name in OPTION_NAMES}
    options |= {"columns": columns or None, "ignore": ignore or (), "held_out_rows": report is not None}
    with checkpoint.listening():
        with showing(shown) as show:
            result = fit_table(tables, **options, test=test, cluster=cluster, resume=checkpoint, progress=show)
        if out is not None:
            result.save(out)
        notes = tuple(map(as_options, result.encoding.notes))
        choices = replace(result.choices, for_intervals=as_options(result.choices.for_intervals))
        result = replace(result, encoding=replace(result.encoding, notes=notes), choices=choices)
        if report is not None:
            result.report(report, command_line(words))
    checkpoint.remove()
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    elif not quiet:
        say(as_options(str(result)))


def _unused(path: Path) -> Path:
    """A name like this one, for a statistic, that no file has."""
    number, found = 1, path.with_name(f"{path.name}.statistic")
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}.statistic")
    return found
