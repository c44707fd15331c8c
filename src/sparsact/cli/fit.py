"""``sparsact fit``: :func:`sparsact.fit_table` for a shell."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import typer
from typer import Option

from sparsact.cli.io import PIPE, check_apart, check_report, check_writable, readable
from sparsact.cli.options import option, with_help
from sparsact.cli.terminal import command_line, say
from sparsact.fit.options import OPTION_NAMES, OPTIONS


@with_help(
    target=option("COLUMN", "Column to learn; may be repeated.", "--target", "-t"),
    model=option(
        "|".join(OPTIONS["model"]),
        "'low-degree': a polynomial of all products of few columns; 'sparse': of the significant ones; "
        "'gp': a Gaussian process with interactions of all sizes; 'letters': Gaussian processes and networks on "
        "sites with letters, such as amino acids, or categories; 'latent': a measurement model, of bits behind a "
        "floor, a ceiling or a curve; 'lsh': local polynomials in the buckets of hash tables; 'network': a ReLU "
        "network in which each row switches on few units; 'ensemble': a weighted mean of models of bits and of "
        "boosted trees; 'auto': whichever does best on held-out rows (polynomials of few terms, Gaussian "
        "processes for up to 64 bits, ensembles for up to 20, models of letters for sites of more than two "
        "and numbers of few values, "
        "measurement models where rows are pinned at the lowest or highest target, its logarithm fits better, "
        "sites are more than 20, or --link or --censor select one, hash tables for numbers only, networks for "
        "1,000 to 100,000 rows, after a quick look).",
    ),
    degree=option("auto|N", "Of a polynomial: largest size of an interaction, or 'auto' to cross-validate."),
    alpha=option("auto|NUMBER", "Of a polynomial: ridge penalty, or 'auto' to cross-validate."),
    lasso="Of a polynomial: choose terms by the lasso; --alpha is then its penalty.",
    columns=option(
        "COLUMN",
        "Learn from these columns only: a name, a list a,b or a pattern 's*'; may be repeated. Columns named in full "
        "are never left out as identifiers, counts, errors, plates or splits.",
    ),
    ignore=option("COLUMN", "Leave these columns out, spelled in the same ways; may be repeated."),
    domain=option(
        "|".join(OPTIONS["domain"]),
        "What becomes of columns of numbers. 'auto': standardised; 'real': as they are; 'cube': refused, so that every "
        "column is bits.",
    ),
    task=option("|".join(OPTIONS["task"]), "'auto': classes where the target is text or true/false."),
    strict="Refuse the table where columns would be left out: identifiers (texts nearly all different, row numbers), "
    "columns that repeat others, and columns that look like counts, errors, plates or splits.",
    wild_type=option(
        "SEQUENCE|ROW|most-frequent",
        "The wild type, from which effects are counted, as mutations such as E104K: its letters, the number or the "
        "name of its row, or the most frequent letters. Its values of columns of two are 0.",
    ),
    groups=option("COLUMN", "Keep rows of equal value here, such as a plate, in one fold."),
    weights=option(
        "COLUMN", "Precision of each row, such as a count: weight 2 has half of the variance, 0 leaves a row out."
    ),
    sigma=option(
        "COLUMN",
        "In place of --weights: standard deviation of each row; 0 counts as the lower quartile of the others.",
    ),
    variance=option("COLUMN", "In place of --sigma: variance of each row."),
    split=option(
        "COLUMN",
        "Score rows of test (or held-out; without them of validation, valid, val or dev), and learn from the others. "
        "Or 0, 1, 2: training, validation, test; 0, 1: training, test, the opposite in a column whose name says train.",
    ),
    drop_missing="Leave out rows in which a value is missing, with a note.",
    log_target=Option(
        "--log-target/--no-log-target",
        help="Learn the logarithm of the target, or not; predictions are brought back. By default where it fits better "
        "and 96 % of the targets span a factor of 100.",
    ),
    test=option("FILE", "Score the model on this table too, which no choice has seen."),
    link=option(
        "|".join(OPTIONS["link"]),
        "Of a measurement model: the curve from the latent to the target; 'monotone' is learned.",
    ),
    censor=option(
        "auto|none|LOWER,UPPER",
        "Of a measurement model: the bounds at which targets are pinned, such as '7,' for a floor. 'auto': the lowest "
        "and the highest target, if many rows are there.",
    ),
    folds=option("N", "Folds of cross-validation."),
    report=option("FILE", "Write an HTML report to this file."),
    out=option("FILE", "Write the model to this file."),
    random_state=option("N", "Seed of folds and hash functions."),
    resume=option(
        "FILE",
        "Go on from this statistic file if it is there; keep it up to date while at work, and remove it when the fit "
        "is done. It serves the same files and options only.",
    ),
    keep_every=option("SECONDS", "How often the file of --resume is written.", min=0),
    cluster=option(
        "local:N|tcp://HOST:PORT",
        "Let the workers of a Dask cluster sum up the files, one each at a time: N processes started here, or the "
        "workers of a running scheduler. The model is the same (extra `dask`).",
    ),
    quiet=Option("--quiet", "-q", help="Print nothing."),
)
def fit(
    context: typer.Context,
    tables: list[str],
    target: list[str],
    model: str = "auto",
    degree: str = "auto",
    alpha: str = "auto",
    lasso: bool = False,
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
    link: str = "identity",
    censor: str = "auto",
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
    """Learn a target from columns of bits or numbers, and report how well it predicts and what drives the target.

    The table is read in batches, so it may be larger than memory. Bit strings such as 0010110 expand into
    their bits; columns of two values become a bit; texts of a few values become one bit each; other numbers are
    standardised. Texts of one length such as ACDE are one site a letter, and so are lists of mutations such as
    A12V:G45D. Identifiers, columns that repeat others, and columns that look like counts, errors, plates or a split
    are left out, and notes say so. Other notes warn of columns that may be the target again.

    Ctrl-C (or SIGTERM) stops between two batches and leaves a statistic file: next to the model, or in the working
    folder. With it as --resume FILE, the same command goes on, to the same bits as if it had never been stopped. With
    --resume from the start the file is also written as the fit goes, so that a crash loses little.

    A table may also come from another program: zcat rows.csv.gz | sparsact fit - --target y.

    Example: sparsact fit landscape.csv --target brightness --report report.html --out model.sparsact
    """
    given = locals()
    from sparsact.datasets.table_files import files

    from_stdin = PIPE in tables
    if from_stdin and resume is not None:
        raise ValueError("--resume reads the table again, and stdin is gone by then; write it to a file.")
    tables = context.with_resource(readable(tables))
    paths = files(tables)
    check_report(report)
    check_writable(out)
    check_writable(resume)
    check_apart({"--out": out, "--report": report, "--resume": resume}, [*paths, *([test] if test else ())])
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
        if report is not None:
            result.report(report, command_line(words))
    checkpoint.remove()
    if as_json:
        typer.echo(json.dumps(result.to_dict(), allow_nan=False))
    elif not quiet:
        say(result)


def _unused(path: Path) -> Path:
    """A name like this one, for a statistic, that no file has."""
    number, found = 1, path.with_name(f"{path.name}.statistic")
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}.{number}.statistic")
    return found
