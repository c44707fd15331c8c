"""The figures of an LSH model, with their captions."""

from __future__ import annotations

from sparsact.reports.figure import Display
from sparsact.reports.figures import bucket_load, columns, coverage, layouts
from sparsact.reports.lsh_summary import LSHSummary

LOAD = (
    "Above: how many buckets hold so many rows, in classes that double. Below: where the rows are. Buckets of one row "
    "know little; rows in full buckets are averaged over larger cells."
)
TRIED = (
    "Each point is a width of the grids with its best ridge penalty; narrower cells cost more memory. Rows were taken "
    "out one by one, and their buckets asked for them. Where the table is large, kinds of directions are first "
    "compared on fewer rows (dashed)."
)
INSIDE = (
    "Normal intervals about the prediction, from the variance of the targets in the buckets, at held-out rows. Above "
    "the diagonal intervals are wider than they need be, below it too narrow."
)
NEAR = (
    "Left: what makes two rows near each other, from the largest column down; a column without a share is not looked "
    "at by the buckets. Right: the linear trend that is taken off first, in standard deviations of the target for one "
    "of the column. "
)
KINDS = {
    "gradients": "The directions are those along which the target moves beyond the trend, so a share tells how much it "
    "depends on the column.",
    "standard": "The directions are the principal ones of the standardised columns: they tell how the rows lie, not "
    "what the target depends on.",
    "principal": "The directions are the principal ones of the rows: they tell how these lie, not what the target "
    "depends on.",
}


def lsh_figures(tables: LSHSummary | None) -> list[Display]:
    """Load, error against cost, coverage and columns; none where the model is another."""
    if tables is None:
        return []
    drawn = [Display.of(bucket_load, "bucket-load", "Bucket load", LOAD, bucket_load.frame(tables))]
    if tables.trials:
        drawn.append(Display.of(layouts, "layouts", "Error against cost", TRIED, layouts.frame(tables)))
    ranked = columns.frame(tables)
    drawn.append(Display.of(columns, "columns", "Columns that matter", NEAR + KINDS[tables.directions], ranked))
    if tables.coverage:
        drawn.append(
            Display.of(coverage, "coverage", "Coverage of prediction intervals", INSIDE, coverage.frame(tables))
        )
    return drawn
