"""``sparsact reproduce``: measure what both papers claim, and write the page of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sparsact.cli.terminal import terminal

if TYPE_CHECKING:
    from sparsact_papers.collect import Failure
    from sparsact_papers.correction import Correction
    from sparsact_papers.experiment import Experiment, Findings
    from sparsact_papers.results import Scale, Store, Task

STORE: Final = Path("results/reproduction")
Work = list[tuple["Experiment", "Task"]]


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this experiment, or a group (see above); may be repeated."),
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes, about a minute in all.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, under ten minutes on two cores.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Sizes of the papers: hours.")] = False,
    store: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of rows; a later run measures only what is missing.")
    ] = STORE,
    report: Annotated[Path, typer.Option(metavar="FILE", help="HTML page to write.")] = Path("report.html"),
    jobs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of processes, one thread each. Default: one per core."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Repeat the experiments of both papers, and write a page with a verdict on every figure, table and claim.

    By default the page shows the full-size results in --store; experiments without such results run at quick size.
    --only A or B chooses a paper, --only practice what goes beyond the papers, and another word the experiments whose
    names begin with it. A run that was stopped continues. To merge two stores, concatenate their files.

    Example: sparsact reproduce --quick --report report.html
    """
    from joblib import cpu_count

    from sparsact.cli.io import check_report
    from sparsact_papers.experiment import Findings
    from sparsact_papers.experiments import chosen
    from sparsact_papers.results import Scale, Store

    if smoke + quick + full > 1:
        raise ValueError("--smoke, --quick and --full exclude each other; pass one of them.")
    scale = Scale.SMOKE if smoke else Scale.QUICK if quick else Scale.FULL if full else None
    experiments = chosen(only or [])
    rows = Store(store)
    if listed:
        _list(experiments, rows, as_json)
        if not any(store.glob("*.jsonl")):
            typer.echo(f"No rows in {store}. A clone keeps them in {STORE}: run there, or pass --store.", err=True)
        return
    check_report(report)
    work, unmet = _work(experiments, rows, scale)
    if work:
        _check_store(store)
    failures = _collect(work, rows, jobs or cpu_count(), store)
    found = [Findings.of(experiment, rows, scale) for experiment in experiments]
    _write(found, report, only, scale, store)
    _tell(found, failures, unmet, rows, report, as_json)
    if failures:
        raise typer.Exit(1)


def _work(experiments: list[Experiment], rows: Store, scale: Scale | None) -> tuple[Work, dict[str, str]]:
    """Tasks without a row, and experiments that cannot be measured here, with what is missing."""
    from sparsact_papers.experiment import Findings
    from sparsact_papers.results import Scale as Scales

    work: Work = []
    unmet: dict[str, str] = {}
    for experiment in experiments:
        if scale is None and Findings.of(experiment, rows).scale is Scales.FULL:
            continue  # the rest of a full run may take hours: it needs --full
        tasks = [task for task in experiment.tasks(scale or Scales.QUICK) if task not in rows]
        lacking = experiment.unmet() if tasks else None
        if lacking:
            unmet[experiment.name] = lacking
        else:
            work += [(experiment, task) for task in tasks]
    return work, unmet


def _check_store(folder: Path) -> None:
    """Make the folder of the store, or say why not before hours of work."""
    import os

    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, *folder.glob("*.jsonl")):
        if not os.access(place, os.W_OK):
            raise ValueError(f"cannot write to {str(place)!r}: permission denied; choose another --store.")


def _collect(work: Work, rows: Store, jobs: int, folder: Path) -> list[Failure]:
    """Measure, with a bar and the time that is left."""
    from sparsact_papers.collect import collect, task_progress

    if not work:
        return []
    try:
        with task_progress(work, rows, jobs) as finished:
            return collect(work, rows, jobs=jobs, finished=finished)
    except KeyboardInterrupt:
        typer.echo(f"sparsact: finished tasks are kept in {folder}; the same command goes on from there.", err=True)
        raise


def _write(found: list[Findings], report: Path, only: list[str] | None, scale: Scale | None, store: Path) -> None:
    from shlex import join

    from sparsact_papers.page import write

    words = ["sparsact", "reproduce", *(word for name in only or () for word in ("--only", name))]
    words += [f"--{scale.value}"] if scale else []
    write(found, join(words if store == STORE else [*words, "--store", str(store)]), report)


def _list(experiments: list[Experiment], rows: Store, as_json: bool) -> None:
    import json

    from rich.table import Table as Grid

    from sparsact_papers.results import Scale

    told = [
        {
            "name": experiment.name,
            "paper": experiment.paper,
            "place": experiment.place,
            "title": experiment.title,
            "claims": len(experiment.claims),
            **{
                scale.value: {"rows": len(rows.of(experiment.tasks(scale))), "tasks": len(experiment.tasks(scale))}
                for scale in Scale
            },
            "unmet": experiment.unmet(),
        }
        for experiment in experiments
    ]
    if as_json:
        typer.echo(json.dumps(told))
        return
    grid = Grid()
    grid.add_column("name", no_wrap=True)
    grid.add_column("what is measured")
    for scale in (Scale.QUICK, Scale.FULL):
        grid.add_column(f"{scale.value} rows", justify="right", no_wrap=True)
    for line in told:
        counts = [f"{line[scale]['rows']}/{line[scale]['tasks']}" for scale in ("quick", "full")]  # type: ignore[index]
        grid.add_row(str(line["name"]), f"{line['title']} ({line['paper']}, {line['place']})", *counts)
    terminal().print(grid)


def _tell(
    found: list[Findings], failures: list[Failure], unmet: dict[str, str], rows: Store, report: Path, as_json: bool
) -> None:
    from collections import Counter

    from sparsact_papers.correction import Correction, Standing

    outcomes = Counter(verdict.outcome.value for findings in found for _, verdict in findings.verdicts)
    correction = Correction.of(found)
    if as_json:
        import json

        told = _as_json(found, correction, failures, unmet, report) | {"unreadable": rows.n_unreadable}
        typer.echo(json.dumps(told, allow_nan=False))
        return
    for findings in found:
        typer.echo(f"{findings.experiment.name} ({findings.scale.value}, {len(findings.rows)}/{findings.n_tasks} rows)")
        for claim, verdict in findings.verdicts:
            condition = f" Only if {verdict.condition}." if verdict.condition else ""
            typer.echo(f"  {verdict.label}: {claim.statement}{condition} {verdict.measured}")
            typer.echo(f"    refuted if {claim.refuted_if}")
            if verdict.theorem:
                typer.echo(f"    implied by: {verdict.theorem}")
            if correction.standing(findings, claim) is Standing.ALONE:
                typer.echo("    decided at 95 %; it does not survive a correction for the number of claims")
    for name, lacking in unmet.items():
        typer.echo(f"not measured here: {name}: {lacking}", err=True)
    for failure in failures:
        typer.echo(f"failed: {failure.task.experiment} {dict(failure.task.parameters)}: {failure.reason}", err=True)
    if rows.n_unreadable:
        typer.echo(f"{rows.n_unreadable} lines of the store could not be read and were passed over.", err=True)
    typer.echo(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    typer.echo(correction.told)
    typer.echo(f"wrote {report}")


def _as_json(
    found: list[Findings], correction: Correction, failures: list[Failure], unmet: dict[str, str], report: Path
) -> dict[str, Any]:
    return {
        "report": str(report),
        "correction": {
            "estimated": correction.n_estimated,
            "decided": correction.n_decided,
            "wrong_by_chance_at_most": correction.n_by_chance,
            "surviving": correction.n_surviving,
        },
        "experiments": [
            {
                "name": findings.experiment.name,
                "scale": findings.scale.value,
                "rows": len(findings.rows),
                "tasks": findings.n_tasks,
                "claims": [
                    {
                        "name": claim.name,
                        "place": claim.place,
                        "statement": claim.statement,
                        "outcome": verdict.outcome.value,
                        "condition": verdict.condition,
                        "slack": verdict.slack,
                        "implied_by": verdict.theorem,
                        "standing": correction.standing(findings, claim).value,
                        "measured": verdict.measured,
                        "refuted_if": claim.refuted_if,
                    }
                    for claim, verdict in findings.verdicts
                ],
            }
            for findings in found
        ],
        "unmet": unmet,
        "failures": [{"task": f.task.definition, "reason": f.reason} for f in failures],
    }
