"""What a fit by hashing found, for a person and for a machine."""

from __future__ import annotations

from typing import Any

import typer

from sparsact.reports.hash_summary import HashSummary
from sparsact.reports.page import duration, size

COLUMNS_TOLD = 8


def as_plain(summary: HashSummary) -> dict[str, Any]:
    """A summary as JSON holds it."""
    layout = summary.layout
    told: dict[str, Any] = {
        "kind": "lsh",
        "table": summary.table,
        "target_columns": list(summary.target_columns),
        "task": summary.task,
        "rows": summary.n_rows,
        "columns": list(summary.feature_names),
        "notes": list(summary.notes),
        "learned": summary.learned,
        "verdict": summary.verdict,
        "reason": summary.reason,
        "tables": layout.n_tables,
        "hashes": layout.n_hashes,
        "width": layout.width,
        "degree": layout.degree,
        "alpha": layout.alpha,
        "directions": layout.directions,
        "laid_out_on": layout.laid_out_on,
        "buckets": summary.n_buckets,
        "miss_rate": summary.miss_rate,
        "interval_coverage": summary.coverage,
        "column_shares": dict(summary.column_shares),
        "trials": [
            {"directions": trial.directions, "rows": trial.n_rows, "buckets": trial.n_buckets, "error": trial.error}
            for trial in summary.trials
        ],
        "targets": [
            {
                "name": target.name,
                "r2": target.r2.mean,
                "r2_deviation": target.r2.deviation,
                "others": {name: spread.mean for name, spread in target.others},
            }
            for target in summary.targets
        ],
        "seconds": summary.resources.seconds,
        "peak_memory_bytes": summary.resources.peak_bytes,
    }
    if summary.confusion is not None:
        told |= {"accuracy": summary.confusion.accuracy, "majority": summary.confusion.majority}
        told["confusion"] = {"classes": list(summary.confusion.classes), "counts": summary.confusion.counts.tolist()}
    return told


def tell(summary: HashSummary) -> None:
    """The findings, for a person."""
    layout = summary.layout
    typer.echo(summary.verdict)
    typer.echo(f"  {summary.n_rows:,} rows, {len(summary.feature_names)} columns")
    for note in summary.notes:
        typer.echo(f"  note: {note}")
    typer.echo(f"  {summary.reason}")
    typer.echo(
        f"  {layout.n_tables} tables of {layout.n_hashes} directions ({layout.directions}), cells {layout.width:.3g} "
        f"wide, ridge penalty {layout.alpha:g}"
    )
    rows = summary.n_rows * layout.n_tables / max(1, summary.n_buckets)
    typer.echo(f"  {summary.n_buckets:,} buckets of {rows:.1f} rows, miss rate {summary.miss_rate:.2%}")
    ranked = sorted(summary.column_shares, key=lambda pair: -pair[1])[:COLUMNS_TOLD]
    typer.echo("  columns in the directions: " + ", ".join(f"{name} {share:.2f}" for name, share in ranked))
    typer.echo(f"  {duration(summary.resources.seconds)}, peak memory {size(summary.resources.peak_bytes)}")
