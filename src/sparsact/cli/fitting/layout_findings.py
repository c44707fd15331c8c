"""What the hash tables of a fitted LSH model hold, as the plain data of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.choice import as_numbers
from sparsact.cli.fitting.held_out import LEVELS, HeldOut
from sparsact.cli.fitting.rows import RowSample
from sparsact.datasets import Table
from sparsact.kernels.buckets import n_sums
from sparsact.reports.lsh_summary import ColumnWeight, LSHSummary, TriedLayout

BYTES_OF_KEY_AND_COUNT = 16


def lsh_summary(
    model: Any, columns: tuple[ColumnWeight, ...], n_laid_out: int | None = None, held_out: HeldOut | None = None
) -> LSHSummary:
    """The tables of a model; of one that was just fitted also on how many rows, and how it does on held-out ones."""
    layout = model.table_.layout
    rows, buckets = np.unique(model.bucket_counts_, return_counts=True)
    return LSHSummary(
        directions=str(model.directions_),
        n_tables=int(layout.n_tables),
        n_local=int(layout.n_local),
        degree=int(layout.degree),
        width=float(model.width_),
        alpha=float(model.alpha_),
        n_buckets=int(model.n_buckets_),
        n_bytes=_bytes(int(model.n_buckets_), layout, layout.n_local),
        load=tuple(zip(rows.tolist(), buckets.tolist(), strict=True)),
        miss_rate=float(model.miss_rate_),
        trials=tried(model),
        columns=columns,
        rows_laid_out=n_laid_out,
        missed_everywhere=None if held_out is None else held_out.missed,
        coverage=tuple(zip(LEVELS, held_out.coverage, strict=False)) if held_out else (),
    )


def as_plain(tables: LSHSummary) -> dict[str, Any]:
    """Tables as JSON holds them."""
    return asdict(tables) | {
        "load": {"rows": [rows for rows, _ in tables.load], "buckets": [buckets for _, buckets in tables.load]},
        "median_load": tables.median_load,
        "coverage": [{"probability": level, "inside": inside} for level, inside in tables.coverage],
    }


def tried(model: Any) -> tuple[TriedLayout, ...]:
    """Layouts that were tried, each once, with the chosen one marked."""
    layout = model.table_.layout
    found = {
        (t.directions, round(t.rows_per_bucket * t.n_buckets / layout.n_tables), t.width, t.alpha): t
        for t in model.trials_
        if np.isfinite(t.error)
    }
    mine = [key for key in found if (key[0], key[2], key[3]) == (model.directions_, model.width_, model.alpha_)]
    chosen = max(mine, key=lambda key: key[1], default=None)
    return tuple(
        TriedLayout(*key, t.n_buckets, _bytes(t.n_buckets, layout, t.n_hashes), t.error, key == chosen)
        for key, t in sorted(found.items())
    )


def _bytes(n_buckets: int, layout: Any, n_local: int) -> int:
    """Of the sums, counts and keys of so many buckets."""
    return n_buckets * (8 * n_sums(n_local, layout.degree, layout.n_targets) + BYTES_OF_KEY_AND_COUNT)


def standardised_weights(model: Any, table: Table, sample: RowSample) -> tuple[ColumnWeight, ...]:
    """Weights of columns in units of their own deviations and of the target's, as a sample of the rows has them."""
    X, y, _ = sample.rows()
    answers = as_numbers(table.encoding.targets[0], y).reshape(len(y), -1)
    return column_weights(model, table.feature_names, X.std(axis=0), answers.std(axis=0))


def column_weights(
    model: Any, names: Sequence[str], spread: NDArray[np.float64], of_targets: NDArray[np.float64]
) -> tuple[ColumnWeight, ...]:
    """Each column's slope in the trend and its share in the local directions, for units of columns and of targets."""
    layout = model.table_.layout
    squares = (layout.hashes.local * spread[:, None]) ** 2
    shares = squares / max(float(squares.sum()), 1e-300)
    # Of two classes the layout has one target each, and `as_numbers` the sign of the second, which moves twice as far.
    of_signs = layout.n_targets == 2 and len(of_targets) == 1
    trend = 2.0 * layout.trend[:, 1:] if of_signs else layout.trend
    slopes = trend * spread[:, None] / np.where(of_targets > 0, of_targets, 1.0)
    slope = slopes[:, 0] if slopes.shape[1] == 1 else np.sqrt((slopes**2).mean(axis=1))
    return tuple(ColumnWeight(name, float(slope[i]), tuple(shares[i].tolist())) for i, name in enumerate(names))
