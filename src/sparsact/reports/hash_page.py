"""One self-contained HTML page of a fit by hashing."""

from __future__ import annotations

from pathlib import Path

from sparsact.reports.display import Display
from sparsact.reports.figures import bucket_load, column_shares, compared, confusion, error_cost, residuals
from sparsact.reports.hash_summary import HashedTarget, HashSummary
from sparsact.reports.page import template

LOAD = (
    "Rows in the buckets of all tables. Buckets of few rows say little, and weigh little in the average; most rows "
    "should lie in buckets of a dozen or more."
)
COST = (
    "Each point is a width of the cells, with its best ridge penalty; errors are exact leave-one-out errors. Finer "
    "cells cost more buckets, and beyond some width hold too few rows."
)
SHARES = (
    "Each column is taken in units of its own standard deviation. Columns with a small share hardly matter for which "
    "rows count as near."
)


def render(summary: HashSummary) -> str:
    """The page, as HTML 5."""
    figures = [Display.of(bucket_load, "bucket-load", "Bucket load", LOAD, bucket_load.frame(summary.counts))]
    if summary.trials:
        figures.append(Display.of(error_cost, "error-cost", "Error against cost", COST, error_cost.frame(summary)))
    if summary.column_shares:
        shares = column_shares.frame(summary)
        figures.append(Display.of(column_shares, "columns", "Columns in the directions", SHARES, shares))
    return template("hash.html.j2").render(
        summary=summary,
        sections=[(target, _prediction(target, f"t{i}")) for i, target in enumerate(summary.targets)]
        if summary.confusion is None
        else [],
        confusion=_confusion(summary),
        figures=figures,
    )


def write(summary: HashSummary, path: str | Path) -> None:
    """Write the page."""
    Path(path).write_text(render(summary), encoding="utf-8")


def _prediction(target: HashedTarget, key: str) -> list[Display]:
    caption = "Predicting the mean of the target has R² = 0; all models were measured on the same folds."
    rows = f"{len(target.actual)} rows, each predicted by a model that had not seen it."
    return [
        Display.of(compared, f"{key}-scores", "Held-out R² beside other models", caption, compared.frame(target)),
        Display.of(residuals, f"{key}-residuals", "Predicted, actual and residual", rows, residuals.frame(target)),
    ]


def _confusion(summary: HashSummary) -> Display | None:
    if summary.confusion is None:
        return None
    caption = "Each row of the table was predicted by a model that had not seen it."
    return Display.of(confusion, "confusion", "Confusion of held-out rows", caption, confusion.frame(summary.confusion))
