"""``sparsact fit``: learn a table, and tell what was learned."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsact.cli.outputs import check_apart, check_report, check_writable, naming
from sparsact.cli.terminal import say

if TYPE_CHECKING:
    from sparsact.reports import FitSummary, LowDegreeInfo, Term


class DomainOption(StrEnum):
    """What feature columns may hold."""

    auto = "auto"
    cube = "cube"
    real = "real"


class ModelKind(StrEnum):
    """What kind of model to learn."""

    auto = "auto"
    low_degree = "low-degree"
    lsh = "lsh"


class TaskOption(StrEnum):
    """What the target is."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


TERMS_TOLD = 8


def fit(
    context: typer.Context,
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="A .csv, .tsv (also .gz), .parquet or .npz file; several, or a quoted pattern such as "
            "'parts/*.parquet', are one table, in the natural order of their names.",
            show_default=False,
        ),
    ],
    target: Annotated[
        list[str], typer.Option("--target", "-t", metavar="COLUMN", help="Column to learn; may be repeated.")
    ],
    model: Annotated[
        ModelKind,
        typer.Option(
            help="'low-degree': a polynomial of products of columns; 'lsh': local polynomials in the buckets of hash "
            "tables; 'auto': of bits a polynomial, of numbers whichever does better on held-out rows."
        ),
    ] = ModelKind.auto,
    degree: Annotated[
        str,
        typer.Option(
            metavar="auto|N", help="Of a polynomial: largest size of an interaction, or 'auto' to cross-validate."
        ),
    ] = "auto",
    alpha: Annotated[
        str, typer.Option(metavar="auto|NUMBER", help="Of a polynomial: ridge penalty, or 'auto' to cross-validate.")
    ] = "auto",
    columns: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Learn from this column only; may be repeated.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Leave this column out; may be repeated.")
    ] = None,
    domain: Annotated[
        DomainOption,
        typer.Option(
            help="What becomes of columns of numbers. 'auto': standardised; 'real': as they are; 'cube': refused, so "
            "that every column is bits."
        ),
    ] = DomainOption.auto,
    task: Annotated[
        TaskOption, typer.Option(help="'auto': classes where the target is text or true/false.")
    ] = TaskOption.auto,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse the table where columns would be left out: identifiers (texts nearly all different, row "
            "numbers) and columns that repeat others.",
        ),
    ] = False,
    folds: Annotated[int, typer.Option(metavar="N", help="Folds of cross-validation.")] = 5,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML report to this file.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the model to this file.")] = None,
    random_state: Annotated[int, typer.Option(metavar="N", help="Seed of folds and hash functions.")] = 0,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Go on from this statistic file if it is there; keep it up to date while at work, and remove it when "
            "the fit is done. It serves the same files and options only.",
        ),
    ] = None,
    keep_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How often the file of --resume is written.")
    ] = 60.0,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="local:N|tcp://HOST:PORT",
            help="Let the workers of a Dask cluster sum up the files, one each at a time: N processes started here, or "
            "those of a scheduler that runs. The model is the same (extra `dask`).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    progress: Annotated[
        bool | None, typer.Option("--progress/--no-progress", help="Show progress; by default on a terminal.")
    ] = None,
) -> None:
    """Learn a target from columns of bits or numbers, and tell how well and of what it consists.

    The table is read in batches, so it may be larger than memory. Bit strings such as 0010110 expand into
    their bits; columns of two values become a bit; texts of a few values become one bit each; other numbers are
    standardised. Identifiers and columns that repeat others are left out, and a note says so. Another note warns of
    columns that may be the target again.

    Ctrl-C (or SIGTERM) stops between two batches and leaves a statistic file: beside the model, or in the working
    folder. With it as --resume FILE, the same command goes on, to the same bits as if it had never been stopped. With
    --resume from the start the file is also written as the fit goes, so that a crash loses little.

    Example: sparsact fit landscape.csv --target brightness --report report.html --out model.sparsact
    """
    from sparsact.cli.fitting.choose import wish
    from sparsact.cli.progress import stages
    from sparsact.datasets.parts import Parts, files
    from sparsact.datasets.table_survey import TableSurvey
    from sparsact.datasets.tables import BATCH_ROWS

    asked = wish(degree, alpha, folds, random_state, domain.value, model.value)
    check_report(report)
    check_writable(out)
    check_writable(resume)
    shown = False if quiet or (as_json and progress is None) else progress
    words = context.obj or ["fit"]
    check_apart({"--out": out, "--report": report, "--resume": resume}, files(tables))
    parts = Parts.open(tables)
    survey = TableSurvey.of(
        parts,
        target,
        columns,
        BATCH_ROWS,
        ignore=ignore or (),
        domain=domain.value,
        task=task.value,
        strict=strict,
    )
    from sparsact.cli.fitting.work import (  # what loads slowly, after what may be reported before
        look_through,
        resumption,
    )

    options = {
        **{f"--{name}": value for name, value in asdict(asked).items()},
        "--target": target,
        "--columns": columns or [],
        "--ignore": ignore or [],
        "--task": task.value,
        "--strict": strict,
        "--report": report is not None,
    }
    kept = resumption(parts, options, words, resume, out, keep_every)
    with kept.listening(), workers(cluster) as kept.cluster:
        with stages(shown) as work:
            with work.stage("reading", parts.n_rows) as on_rows:
                opened = look_through(survey, on_rows, kept)
            from sparsact.cli.fitting.work import fit_table

            fitted = fit_table(opened, asked, work, parts.name, words, with_rows=report is not None, kept=kept)
        if out is not None:
            fitted.model.table_encoding_ = opened.encoding.to_json()
            with naming(out):
                fitted.model.save(out)
        if report is not None:
            from sparsact.files import write
            from sparsact.reports.page import fit_page

            with naming(report):
                write(report, fit_page(fitted.summary))
    kept.remove()
    if as_json:
        typer.echo(json.dumps(as_plain(fitted.summary, report, out), allow_nan=False))
    elif not quiet:
        _tell(fitted.summary, report, out)


def workers(address: str | None) -> AbstractContextManager[Any]:
    """The cluster at an address, or none."""
    if address is None:
        return nullcontext()
    from sparsact.cli.fitting.cluster import cluster

    return cluster(address)


def as_plain(summary: FitSummary, report: Path | None, out: Path | None) -> dict[str, Any]:
    """A summary as JSON holds it."""
    from sparsact.cli.fitting.explain import as_plain as tables_as_plain
    from sparsact.reports.summary import gains

    told: dict[str, Any] = {
        "table": summary.table,
        "target_columns": list(summary.target_columns),
        "task": summary.task,
        "rows": summary.n_rows,
        "columns": list(summary.feature_names),
        "notes": list(summary.notes),
        "learned": summary.learned,
        "verdict": summary.verdict,
        "kind": "lsh" if summary.choice is None else "low-degree",
        "why": summary.why,
        "contenders": [
            {
                "name": contender.name,
                "chosen": contender.chosen,
                "r2": contender.r2.mean,
                "r2_deviation": contender.r2.deviation,
                "rmse": contender.rmse and contender.rmse.mean,
            }
            for contender in summary.contenders
        ],
        **_of_polynomial(summary.choice),
        "lsh": summary.lsh and tables_as_plain(summary.lsh),
        "targets": [
            {
                "name": target.name,
                "r2": target.r2.mean,
                "r2_deviation": target.r2.deviation,
                "terms": [[list(t.subset), t.coefficient, t.low, t.high] for t in target.terms[:TERMS_TOLD]],
                "not_identified": {t.label: list(t.aliases) for t in target.terms[:TERMS_TOLD] if not t.identified},
                "weight_by_degree": list(target.weights),
                "influences": dict(target.influences),
            }
            for target in summary.targets
        ],
        "r2_by_degree": [asdict(gain) for gain in gains(summary.candidates, summary.choice.degree)]
        if summary.choice
        else [],
        "candidates": [
            {"degree": c.degree, "alpha": c.alpha, "r2": c.r2.mean, "r2_deviation": c.r2.deviation}
            for c in summary.candidates
        ],
        "seconds": summary.resources.seconds,
        "peak_memory_bytes": summary.resources.peak_bytes,
        "report": report and str(report),
        "model": out and str(out),
    }
    if summary.confusion is not None:
        told |= {"accuracy": summary.confusion.accuracy, "majority": summary.confusion.majority}
        told["confusion"] = {"classes": list(summary.confusion.classes), "counts": summary.confusion.counts.tolist()}
    return told


def same_as(term: Term) -> str:
    """The aliases of a term that is not identified, the first three by name."""
    if not term.aliases:
        return ""
    more = f" and {len(term.aliases) - 3} more" if len(term.aliases) > 3 else ""
    return f": same as {', '.join(term.aliases[:3])}{more}"


def _of_polynomial(choice: LowDegreeInfo | None) -> dict[str, Any]:
    if choice is None:
        return dict.fromkeys(("degree", "alpha", "monomials", "solver", "solver_reason"))
    return {
        "degree": choice.degree,
        "alpha": choice.alpha,
        "monomials": choice.n_monomials,
        "solver": choice.solver,
        "solver_reason": choice.reason,
    }


def _tell(summary: FitSummary, report: Path | None, out: Path | None) -> None:
    """The findings, for a person."""
    from sparsact.reports.amounts import duration, size

    say(summary.verdict)
    of_bits = " of bits" if summary.domain == "cube" else ""
    say(f"  {summary.n_rows:,} rows, {len(summary.feature_names)} columns{of_bits}")
    for note in summary.notes:
        say(f"  note: {note}")
    say(f"  chosen: {summary.model}, because {summary.why}")
    if (choice := summary.choice) is not None:
        say(f"  degree {choice.degree} ({choice.n_monomials:,} monomials), ridge penalty {choice.alpha:g}")
        say(f"  solver {choice.solver}: {choice.reason}")
    if (tables := summary.lsh) is not None:
        say(f"  {tables.layout}")
        say(f"  {tables.fill}")
    if summary.learned and len(summary.targets) == 1:
        for term in summary.targets[0].terms[:TERMS_TOLD]:
            bounds = "" if term.low is None else f"   [{term.low:.4g}, {term.high:.4g}]"
            if not term.identified:
                bounds = f"   not identified by these rows{same_as(term)}"
            say(f"  {term.coefficient:>10.4g}  {term.label}{bounds}")
        if any(not term.identified for term in summary.targets[0].terms[:TERMS_TOLD]):
            say("  Other products can take the place of those that are not identified, with the same predictions here.")
    say(f"  {duration(summary.resources.seconds)}, peak memory {size(summary.resources.peak_bytes)}")
    for what, path in (("report", report), ("model", out)):
        if path is not None:
            say(f"  {what}: {path}")
