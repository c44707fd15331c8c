"""The hash tables of an LSH model: how they are laid out, how full they are, and which columns they look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import registry
from sparsact.datasets import Table
from sparsact.fit.candidate import Details
from sparsact.fit.fold_sums import as_numbers
from sparsact.kernels.bucket_statistics import n_sums
from sparsact.learners.lsh.estimator import LSHModel
from sparsact.learners.lsh.layout import Layout
from sparsact.reports.chapter import Chapter
from sparsact.reports.numbers import size

BYTES_OF_KEY_AND_COUNT: Final = 16


@dataclass(frozen=True)
class TriedLayout:
    """A layout that was tried: its cost, and its error on rows left out.

    ``error`` is the root mean squared error over that of the linear trend; 1 is no better than the trend.
    """

    directions: str
    n_rows: int
    bucket_width: float
    alpha: float
    degree: int
    n_buckets: int
    n_bytes: int
    error: float
    chosen: bool = False


@dataclass(frozen=True)
class ColumnWeight:
    """What a column does: its slope in the linear trend, and its share of the squared local distance.

    ``trend`` is in standard deviations of the target for one of the column (a root mean square over several targets);
    the distance says which rows are near, and its shares add up to 1.
    """

    column: str
    trend: float
    share: float


@dataclass(frozen=True)
class LayoutInfo(Details):
    """Hash tables: their layout, how full they are, and their columns."""

    has_effects = False

    directions: str
    n_stages: int
    n_tables: int
    n_local: int
    degree: int
    bucket_width: float
    alpha: float
    n_buckets: int
    n_bytes: int
    load: tuple[tuple[int, int], ...]  # (rows in a bucket, buckets with that number), by rows
    miss_rate: float
    trials: tuple[TriedLayout, ...]
    columns: tuple[ColumnWeight, ...]
    rows_laid_out: int | None = None
    missed_everywhere: float | None = None  # share of held-out rows
    coverage: tuple[tuple[float, float], ...] = ()  # (probability, share of held-out targets inside)

    @property
    def median_load(self) -> int:
        """Rows in the bucket of a row that is drawn at random: half of all rows lie in buckets of no more."""
        half, seen = sum(rows * buckets for rows, buckets in self.load) / 2, 0
        for rows, buckets in self.load:
            seen += rows * buckets
            if seen >= half:
                return rows
        return 0

    @property
    def layout(self) -> str:
        """How the buckets are made, in words."""
        kinds = {
            "gradients": "directions along which the target changes",
            "standard": "principal directions of the standardised columns",
            "principal": "principal directions of the columns",
        }
        parts = {0: "a constant", 1: "a linear function", 2: "a quadratic"}
        before = "" if self.n_stages == 1 else f"{self.n_stages} stages, each on the residuals before it; the last: "
        return (
            f"{before}{self.n_tables} hash tables, grids of width {self.bucket_width:.3g} (standard deviations) "
            f"in {self.n_local} {kinds[self.directions]}, {parts[self.degree]} in each bucket "
            f"(ridge penalty {self.alpha:g})"
        )

    @property
    def fill(self) -> str:
        """How full the buckets are, in words."""
        everywhere = self.missed_everywhere
        return (
            f"{self.n_buckets:,} buckets ({self.n_bytes / 1e6:,.1f} MB), half of the rows in buckets of at most "
            f"{self.median_load:,}; a new row misses {self.miss_rate:.1%} of its buckets"
            + ("" if everywhere is None else f", and all of them in {everywhere:.2%} of cases")
        )

    def lines(self) -> list[str]:
        """The layout, and how full it is."""
        return [self.layout, self.fill]

    def to_dict(self) -> dict[str, Any]:
        """The entry ``lsh``: all fields."""
        found = asdict(self) | {
            "trials": list(map(asdict, self.trials)),
            "columns": list(map(asdict, self.columns)),
            "load": {"rows": [rows for rows, _ in self.load], "buckets": [buckets for _, buckets in self.load]},
            "median_load": self.median_load,
            "coverage": [{"probability": level, "inside": inside} for level, inside in self.coverage],
        }
        return {"lsh": found}

    def chapter(self, n_rows: int) -> Chapter:
        """The buckets and columns, with figures."""
        layout, fill = (text[0].upper() + text[1:] for text in (self.layout, self.fill))
        n_laid_out = self.rows_laid_out or 0
        whole = "rows drawn from the table" if n_laid_out < n_rows else "rows, the whole table"
        chosen = f"chosen from {len(self.trials)} by the error on rows left out, on {n_laid_out:,} {whole}"
        return Chapter(
            "tables",
            "Contents of the hash tables",
            f"{layout}. A row is predicted by the average of its buckets, one in each table. {fill}.",
            registry.find(registry.PAGES["hash tables"])(self),
            wide=("columns",),
            tiles=(
                ("buckets", f"{self.n_buckets:,}", size(self.n_bytes)),
                ("bucket miss rate", f"{self.miss_rate:.1%}", ""),
            ),
            facts=(("layout", chosen),),
        )


def bucket_bytes(n_buckets: int, layout: Layout, n_local: int) -> int:
    """Bytes of the sums, counts and keys of a number of buckets."""
    return n_buckets * (8 * n_sums(n_local, layout.degree, layout.n_targets) + BYTES_OF_KEY_AND_COUNT)


def layout_info(
    model: LSHModel,
    columns: tuple[ColumnWeight, ...],
    n_laid_out: int | None = None,
    missed: float | None = None,
    coverage: tuple[tuple[float, float], ...] = (),
) -> LayoutInfo:
    """The tables of a model; after a fit also the number of rows it chose from, and what held-out rows said."""
    layout = model.table_.layout
    rows, buckets = np.unique(model.bucket_counts_, return_counts=True)
    return LayoutInfo(
        directions=str(model.directions_),
        n_stages=model.n_stages_,
        n_tables=int(layout.n_tables),
        n_local=int(layout.n_local),
        degree=int(layout.degree),
        bucket_width=float(model.bucket_width_),
        alpha=float(model.alpha_),
        n_buckets=int(model.n_buckets_),
        n_bytes=bucket_bytes(int(model.n_buckets_), layout, layout.n_local),
        load=tuple(zip(rows.tolist(), buckets.tolist(), strict=True)),
        miss_rate=float(model.miss_rate_),
        trials=tried(model),
        columns=columns,
        rows_laid_out=n_laid_out,
        missed_everywhere=missed,
        coverage=coverage,
    )


def tried(model: LSHModel) -> tuple[TriedLayout, ...]:
    """Layouts that were tried for the last stage, each once, with the chosen one marked."""
    layout = model.table_.layout
    found = {
        (t.directions, round(t.rows_per_bucket * t.n_buckets / t.n_tables), t.bucket_width, t.alpha, t.degree): t
        for t in model.trials_
        if np.isfinite(t.error) and t.stage == model.n_stages_
    }
    own = (model.directions_, model.bucket_width_, model.alpha_, model.degree_)
    mine = [key for key in found if (key[0], *key[2:]) == own]
    chosen = max(mine, key=lambda key: key[1], default=None)
    return tuple(
        TriedLayout(*key, t.n_buckets, bucket_bytes(t.n_buckets, layout, t.n_hashes), t.error, key == chosen)
        for key, t in sorted(found.items())
    )


def standardised_weights(
    model: LSHModel, table: Table, X: NDArray[Any], y: NDArray[np.float64]
) -> tuple[ColumnWeight, ...]:
    """Weights of columns in units of their own deviations and of the target's, estimated from some of the rows."""
    answers = as_numbers(table.encoding.targets[0], y).reshape(len(y), -1)
    spread = np.sqrt(np.maximum(np.nanvar(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0), 0.0))
    return column_weights(model, table.feature_names, spread, answers.std(axis=0))


def column_weights(
    model: LSHModel, names: Sequence[str], spread: NDArray[np.float64], of_targets: NDArray[np.float64]
) -> tuple[ColumnWeight, ...]:
    """Each column's slope in the trend, for units of columns and of targets, and its share of the local distance."""
    # Of two classes the layout has one target each, and `as_numbers` the sign of the second, which moves twice as far.
    of_signs = model.trend_.shape[1] == 2 and len(of_targets) == 1
    trend = 2.0 * model.trend_[:, 1:] if of_signs else model.trend_
    slopes = trend * spread[:, None] / np.where(of_targets > 0, of_targets, 1.0)
    slope = slopes[:, 0] if slopes.shape[1] == 1 else np.sqrt((slopes**2).mean(axis=1))
    return tuple(map(ColumnWeight, names, slope.tolist(), model.column_shares_.tolist()))
